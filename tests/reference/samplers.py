"""The four samplers. Source: section 3 of the normative text, "Samplers".

Decision 3 of the design: samplers hold no seed. Decision 4: how the shares of the mixing sampler
are normalised. Decision 5: where the short last batch of the bucketed sampler may stand.
"""

from .permutation import KeyedPermutation
from .rng import (
    STREAM_BUCKET_PLACEMENT,
    STREAM_BUCKET_SHUFFLE,
    STREAM_BUCKET_SLOTS,
    STREAM_EPOCH_ORDER,
    STREAM_MIXING,
    SampleRng,
    derive,
)


def count_steps(n, batch_size, drop_last):
    return n // batch_size if drop_last else -(-n // batch_size)


class SequentialSampler:
    """Position p is index p."""

    def __init__(self, n, batch_size, *, drop_last=True):
        self.n = n
        self.batch_size = batch_size
        self.steps_per_epoch = count_steps(n, batch_size, drop_last)

    def batch_indices(self, seed, epoch, step):
        first = step * self.batch_size
        return list(range(first, min(first + self.batch_size, self.n)))


class ShuffledSampler:
    """Position p is index perm(p), under a key of the epoch."""

    def __init__(self, n, batch_size, *, drop_last=True):
        self.n = n
        self.batch_size = batch_size
        self.steps_per_epoch = count_steps(n, batch_size, drop_last)

    def batch_indices(self, seed, epoch, step):
        permutation = KeyedPermutation(self.n, derive(seed, epoch, 0, 0, STREAM_EPOCH_ORDER))
        first = step * self.batch_size
        return [permutation[p] for p in range(first, min(first + self.batch_size, self.n))]


class MixingSampler:
    """Each slot draws its source by share and then an index of that source, with replacement."""

    def __init__(self, sizes, shares, batch_size, *, steps_per_epoch=None):
        self.sizes = list(sizes)
        self.batch_size = batch_size
        if steps_per_epoch is None:
            steps_per_epoch = sum(self.sizes) // batch_size
        self.steps_per_epoch = steps_per_epoch

        self.starts = []
        start = 0
        for size in self.sizes:
            self.starts.append(start)
            start += size

        # The running sum adds in source order. The built-in `sum` would not do: since Python 3.12
        # it carries the rounding error of floats along, which gives another last bit.
        self.sources = [
            i for i, (size, share) in enumerate(zip(sizes, shares, strict=True)) if size and share
        ]
        running = []
        total = 0.0
        for source in self.sources:
            total = total + float(shares[source])
            running.append(total)
        self.cumulative = [value / total for value in running]

    def batch_indices(self, seed, epoch, step):
        return [self._draw(seed, epoch, step, slot) for slot in range(self.batch_size)]

    def _draw(self, seed, epoch, step, slot):
        rng = SampleRng(derive(seed, epoch, step, slot, STREAM_MIXING))
        u = rng.next_double()
        source = self.sources[-1]
        for candidate, bound in zip(self.sources, self.cumulative, strict=True):
            if bound > u:
                source = candidate
                break
        return self.starts[source] + rng.next_int(self.sizes[source])


class BucketedSampler:
    """Batches of similar lengths: shuffle, pool, sort each pool, cut, place the batches anew."""

    def __init__(
        self, lengths, batch_size, *, pool_batches=64, drop_last=True, shuffle_slots=False
    ):
        self.lengths = [int(length) for length in lengths]
        self.batch_size = batch_size
        self.pool_batches = pool_batches
        self.drop_last = drop_last
        self.shuffle_slots = shuffle_slots
        self.steps_per_epoch = count_steps(len(self.lengths), batch_size, drop_last)

    def plan(self, seed, epoch):
        """All batches of an epoch, in the order in which they are given out."""
        n = len(self.lengths)
        shuffle = KeyedPermutation(n, derive(seed, epoch, 0, 0, STREAM_BUCKET_SHUFFLE))
        order = [shuffle[p] for p in range(n)]
        if self.drop_last:
            order = order[: self.steps_per_epoch * self.batch_size]

        pool_size = self.batch_size * self.pool_batches
        ordered = []
        for first in range(0, len(order), pool_size):
            pool = order[first : first + pool_size]
            ordered += sorted(pool, key=lambda index: (self.lengths[index] << 32) | index)

        placement = KeyedPermutation(
            self.steps_per_epoch, derive(seed, epoch, 1, 0, STREAM_BUCKET_PLACEMENT)
        )
        batches = [None] * self.steps_per_epoch
        for t in range(self.steps_per_epoch):
            first = t * self.batch_size
            batches[placement[t]] = ordered[first : first + self.batch_size]
        if self.shuffle_slots:
            batches = [
                self._with_slots_shuffled(seed, epoch, step, batch)
                for step, batch in enumerate(batches)
            ]
        return batches

    def _with_slots_shuffled(self, seed, epoch, step, batch):
        slots = KeyedPermutation(len(batch), derive(seed, epoch, step, 0, STREAM_BUCKET_SLOTS))
        return [batch[slots[slot]] for slot in range(len(batch))]

    def batch_indices(self, seed, epoch, step):
        return self.plan(seed, epoch)[step]
