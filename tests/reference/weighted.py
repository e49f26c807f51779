"""The weighted sampler. Source: docs/specification.md, section "Samplers", weighted."""

import math
from fractions import Fraction

from .rng import STREAM_WEIGHTED, STREAM_WEIGHTED_ORDER, SampleRng, derive
from .samplers import count_steps

LN_2 = float.fromhex("0x1.62e42fefa39efp-1")


def integer_weights(weights):
    """Each weight times one power of two, to nearest; the largest has 63 - bits(n) bits."""
    _, exponent = math.frexp(max(weights))
    scale = Fraction(2) ** (63 - len(weights).bit_length() - exponent)
    return [max(1, round(Fraction(weight) * scale)) if weight else 0 for weight in weights]


def alias_table(amounts):
    """(threshold, alias) of each column."""
    n, total = len(amounts), sum(amounts)
    scaled = [amount * n for amount in amounts]
    table = [(total, column) for column in range(n)]
    light = iter([column for column in range(n) if scaled[column] <= total])
    heavy = [column for column in range(n) if scaled[column] > total]
    rest = scaled[heavy[0]] if heavy else 0
    for place, column in enumerate(heavy):
        while rest > total:
            filled = next(light)
            table[filled] = (scaled[filled], column)
            rest -= total - scaled[filled]
        following = heavy[place + 1] if place + 1 < len(heavy) else None
        table[column] = (rest, column if following is None else following)
        if following is not None:
            rest = scaled[following] - (total - rest)
    return table


def exponential(u):
    """-ln(1 - u), every operation rounded to float64 in this order."""
    m, x = math.frexp(1.0 - u)
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    series = 1.0 / 25
    for odd in (23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1):
        product = series * y
        series = product + 1.0 / odd
    doubled = 2.0 * z
    logarithm = doubled * series
    binary = x * -LN_2
    return binary - logarithm


class WeightedSampler:
    """With replacement a draw for each slot, without an order for each epoch."""

    def __init__(
        self, weights, batch_size, *, replacement=True, steps_per_epoch=None, drop_last=True
    ):
        self.weights = [float(weight) for weight in weights]
        self.n = len(self.weights)
        self.batch_size = batch_size
        self.replacement = replacement
        self.amounts = integer_weights(self.weights)
        items = self.n if replacement else sum(amount > 0 for amount in self.amounts)
        if steps_per_epoch is None:
            self.steps_per_epoch = count_steps(items, batch_size, drop_last)
        else:
            self.steps_per_epoch = steps_per_epoch
        self.rows = self.steps_per_epoch * batch_size
        if steps_per_epoch is None or not replacement:
            self.rows = min(self.rows, items)
        self.total = sum(self.amounts)
        self.table = alias_table(self.amounts)

    def batch_indices(self, seed, epoch, step):
        slots = range(step * self.batch_size, min((step + 1) * self.batch_size, self.rows))
        if self.replacement:
            return [self._draw(seed, epoch, step, slot) for slot in range(len(slots))]
        order = self.order(seed, epoch)
        return [order[slot] for slot in slots]

    def _draw(self, seed, epoch, step, slot):
        rng = SampleRng(derive(seed, epoch, step, slot, STREAM_WEIGHTED))
        column = rng.next_int(self.n)
        threshold, alias = self.table[column]
        return column if rng.next_int(self.total) < threshold else alias

    def order(self, seed, epoch):
        """The items that an epoch gives, in their order."""
        rng = SampleRng(derive(seed, epoch, 0, 0, STREAM_WEIGHTED_ORDER))
        uniform = [rng.next_double() for _ in range(self.n)]
        times = [
            (exponential(uniform[index]) / float(amount), index)
            for index, amount in enumerate(self.amounts)
            if amount > 0
        ]
        return [index for _, index in sorted(times)][: self.rows]
