"""What a review found at the doors: each was a crash or wrong bytes, and is an error now."""

import numpy as np
import pytest

import onemodel
from onemodel import (
    ArrayDataset,
    BatchKey,
    DataLoader,
    ImageBatchCollator,
    KeyedPermutation,
    Sample,
    SampleRng,
    ShuffledSampler,
)
from onemodel._engine.sample_builder import SampleBatchBuilder
from onemodel._random.batch_rng import BatchRng
from onemodel.augment import Erase, Shift
from onemodel.augment.protocol import Chain
from onemodel.datasets.gather import gather_rows
from onemodel.transforms import RandomHorizontalFlip
from onemodel.transforms._mixup import mix_rows
from onemodel.transforms.protocol import RowChain

LAST = 2**64 - 1


def test_a_list_that_changes_during_collation():
    samples = [Sample(np.full((1, 8, 64), k + 1, np.float32)) for k in range(4)]
    kept = []

    def augment(rng, image):
        samples.clear()
        kept.append(np.full((1, 8, 64), 99, np.float32))

    batch = ImageBatchCollator(augment=augment)(samples, BatchKey(0, 0, 0, 0, np.arange(4)))
    assert batch.images[:, 0, 0, 0].tolist() == [1, 2, 3, 4]


def test_the_last_step_of_all():
    loader = DataLoader(ArrayDataset(np.arange(6)), 2)
    stream = loader.steps(LAST)
    next(stream)
    with pytest.raises(StopIteration):
        next(stream)
    state = loader.state_dict()
    other = DataLoader(ArrayDataset(np.arange(6)), 2)
    other.load_state_dict(state)
    assert list(other.steps()) == []


def test_a_pass_ends_with_the_last_step():
    loader = DataLoader(ArrayDataset(np.arange(10)), 2)  # 2**64 is no multiple of 5
    loader.set_epoch(2**64 // 5 - 1)
    assert len(list(loader)) == 5
    assert len(list(loader)) == 2**64 % 5
    with pytest.raises(ValueError, match="first step"):
        iter(loader)


def test_slots_beyond_int64():
    samples = [Sample(np.ones((1, 1, 1), np.float32))]
    ImageBatchCollator()(samples, BatchKey(0, 0, 0, 2**63, np.zeros(1, np.int64)))
    with pytest.raises(TypeError, match=str(2**63)):
        ImageBatchCollator()([3], BatchKey(0, 0, 0, 2**63, np.zeros(1, np.int64)))


def test_programs_and_augmentations_are_made_once():
    rows = RowChain([RandomHorizontalFlip()], np.uint8, (4, 4, 3))
    for made, arguments in (
        (rows, ([RandomHorizontalFlip()], np.uint8, (4, 4, 3))),
        (Erase(1), (1000,)),
        (Shift(), ()),
        (Chain([Erase(1)]), ([],)),
    ):
        with pytest.raises(TypeError, match="once"):
            made.__init__(*arguments)
    x = np.zeros((1, 1, 1, 3), np.uint8)
    with pytest.raises(TypeError, match="initialised"):
        RowChain.__new__(RowChain).run(BatchRng(0), x, None, x)


def test_blending_checks_its_arrays():
    images, labels = np.zeros((4, 3), np.float32), np.zeros((4, 2), np.float32)
    for result, block in ((np.zeros((1, 3), np.float32), 8), (images.copy(), 0)):
        with pytest.raises(ValueError, match="must"):
            mix_rows(BatchRng(0), 1, block, images, result, labels, labels.copy())
    frozen = images.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        mix_rows(BatchRng(0), 1, 8, images, frozen, labels, labels.copy())


def test_indices_are_integers():
    for indices in (np.array([0.9, 3.7]), np.array([False, True])):
        with pytest.raises(TypeError, match="integers"):
            gather_rows(np.arange(5), indices)


def test_out_shares_no_memory():
    memory = np.zeros((1, 5, 4), np.float32)
    with pytest.raises(ValueError, match="share no memory"):
        Chain([onemodel.augment.GainOffset()])(SampleRng(0), memory[:, :4], memory[:, 1:])
    images = np.zeros((6, 1, 4, 4), np.float32)
    with pytest.raises(ValueError, match="out must share no memory"):
        gather_rows(images[1:], np.array([0, 1]), out=images[:2])
    chain = RowChain([RandomHorizontalFlip(1)], images.dtype, images.shape[1:])
    with pytest.raises(ValueError, match="result must share no memory"):
        chain.run(BatchRng(1, 2, 3), images[1:5], None, images[:4], False)


def test_permutations_are_made_once():
    permutation = KeyedPermutation(5, 1)
    with pytest.raises(TypeError, match="cannot be changed"):
        permutation.__init__(2**40, 1)
    assert permutation.n == 5


def test_positions_that_change_after_the_check():
    """A walk from outside of [0, n) may go in a circle: it must come to an end."""
    positions = np.zeros(300, np.int64)

    class Changing(np.ndarray):
        @property
        def shape(self):
            positions[:] = range(2**40, 2**40 + 300)
            return (300,)

    out = np.empty(300, np.int64)
    KeyedPermutation(10**6, 1).take(positions, out=out.view(Changing))


def test_a_position_is_an_integer():
    for wrong in (np.array([1, 2]), "a", None, True, 1.0):
        with pytest.raises(TypeError, match="position must be an integer"):
            KeyedPermutation(5, 1)[wrong]


@pytest.mark.parametrize("kind", [list, tuple])
def test_samplers_made_from_ours_may_give_any_integers(kind):
    class Other(ShuffledSampler):
        def batch_indices(self, seed, epoch, step):
            return super().batch_indices(seed, epoch, step)[::-1].astype(np.int32)[::1]

    samples = kind(Sample(np.full((1, 2, 3), k, np.float32)) for k in range(8))
    loader = DataLoader(samples, sampler=Other(8, 4), collate=ImageBatchCollator())
    expected = ShuffledSampler(8, 4).batch_indices(0, 0, 1)[::-1]
    assert loader[1].indices.tolist() == expected.tolist()


def test_samplers_made_from_ours_are_checked():
    class Wrong(ShuffledSampler):
        def batch_indices(self, seed, epoch, step):
            return super().batch_indices(seed, epoch, step) - 1

    samples = [Sample(np.zeros((1, 2, 3), np.float32))] * 4
    loader = DataLoader(samples, sampler=Wrong(4, 4), collate=ImageBatchCollator())
    with pytest.raises(IndexError, match="got -1 to 2"):
        loader[0]


def test_an_index_past_a_list_names_its_slot():
    samples = [Sample(np.zeros((1, 2, 3), np.float32))] * 4
    key = BatchKey(0, 0, 0, 2, np.array([3, 4]))
    with pytest.raises(IndexError, match=r"\[0, 4\), got 4") as caught:
        SampleBatchBuilder(samples, None, ImageBatchCollator()).build(key)
    assert caught.value.__notes__ == ["slot 3, dataset index 4"]


@pytest.mark.filterwarnings("ignore:Setting the dtype")
def test_an_augmentation_may_not_change_the_dtype():
    def reinterpret(rng, image):
        image.dtype = np.int32

    samples = [Sample(np.zeros((1, 2, 3), np.float32))]
    collate = ImageBatchCollator(augment=reinterpret)
    with pytest.raises(ValueError, match=r"float32 \[1, 2, 3\], got int32"):
        collate(samples, BatchKey(0, 0, 0, 0, np.array([0])))
