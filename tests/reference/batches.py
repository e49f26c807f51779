"""The whole pure function. Source: section 1 of the normative text, "The contract".

Decision 9 of the design: rank r of w takes the slots [r * B // w, (r + 1) * B // w) of the global
batch; slots keep their global numbers, and the padding width is the rank's own unless the form of
the batch says otherwise.
"""

from .collate import collate_images
from .rng import STREAM_TRANSFORM, SampleRng, derive


def locate(g, steps_per_epoch):
    """The (epoch, step in epoch) of global step `g`."""
    return divmod(g, steps_per_epoch)


def batch_at(
    g,
    *,
    seed,
    samples,
    sampler,
    transform=None,
    shard=(0, 1),
    width_multiple=1,
    pad_value=0.0,
    augment=None,
    **form,
):
    """The batch of global step `g` as a dict of six arrays."""
    epoch, step = locate(g, sampler.steps_per_epoch)
    indices = sampler.batch_indices(seed, epoch, step)

    rank, ranks = shard
    first = rank * len(indices) // ranks
    stop = (rank + 1) * len(indices) // ranks

    whole = []
    for slot in range(len(indices)):
        sample = samples[indices[slot]]
        if transform is not None:
            rng = SampleRng(derive(seed, epoch, step, slot, STREAM_TRANSFORM))
            sample = transform(rng, sample)
        whole.append(sample)

    return collate_images(
        whole[first:stop],
        indices[first:stop],
        seed,
        epoch,
        step,
        first,
        width_multiple=width_multiple,
        pad_value=pad_value,
        augment=augment,
        whole=whole,
        **form,
    )
