"""Which item stands in each slot, and with which generator: docs/specification.md, "Items"."""

from reference.rng import SampleRng, derive

ITEM_STREAM, SUBSTITUTE_STREAM, TRIES = 3, 4, 16


def item_rng(seed, epoch, step, slot):
    """The generator of a slot's transform."""
    return SampleRng(derive(seed, epoch, step, slot, ITEM_STREAM))


def index_read(index, broken, candidates, seed, epoch, step, slot):
    """The index whose item stands in the slot; None where no try finds one."""
    if index not in broken:
        return index
    rng = SampleRng(derive(seed, epoch, step, slot, SUBSTITUTE_STREAM))
    for _ in range(TRIES):
        other = candidates[rng.next_int(len(candidates))]
        if other not in broken:
            return other
    return None
