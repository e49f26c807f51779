"""The budget sampler. Source: docs/specification.md, section "Samplers", budget."""

from .permutation import KeyedPermutation
from .rng import STREAM_BUDGET_GROUP, STREAM_BUDGET_PLACEMENT, derive


class BudgetSampler:
    """Groups of like lengths, cut once; an epoch shuffles inside each, and the batches."""

    def __init__(self, lengths, budget, *, multiple_of=1, largest_batch=None, pool_batches=8):
        self.lengths = [int(length) for length in lengths]
        self.budget = budget
        self.multiple_of = multiple_of
        most = 2**31 - 1 if largest_batch is None else largest_batch

        order = sorted(range(len(self.lengths)), key=lambda index: (-self.lengths[index], index))
        self.groups = []  # (items, batches)
        while order:
            longest = max(self.lengths[order[0]], 1)
            held = min(budget // longest, most) // multiple_of * multiple_of
            items = min(pool_batches * held, len(order))
            if len(order) - items < held:
                items = len(order)
            units = items // multiple_of
            batches = -(-units // (held // multiple_of))
            self.groups.append((order[:items], batches))
            order = order[items:]
        self.steps_per_epoch = sum(batches for _, batches in self.groups)
        self.batch_size = max(len(batch) for batch in self.sorted_batches(0, 0))

    def sorted_batches(self, seed, epoch):
        """The batches of an epoch, group after group."""
        batches = []
        for number, (items, count) in enumerate(self.groups):
            key = derive(seed, epoch, number, 0, STREAM_BUDGET_GROUP)
            permutation = KeyedPermutation(len(items), key)
            units = len(items) // self.multiple_of
            for batch in range(count):
                begin = batch * units // count * self.multiple_of
                end = (batch + 1) * units // count * self.multiple_of
                batches.append([items[permutation[place]] for place in range(begin, end)])
        return batches

    def batch_indices(self, seed, epoch, step):
        key = derive(seed, epoch, 0, 0, STREAM_BUDGET_PLACEMENT)
        place = KeyedPermutation(self.steps_per_epoch, key).inverse(step)
        return self.sorted_batches(seed, epoch)[place]
