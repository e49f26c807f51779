"""Promise: a thread that flushes subnormal numbers to zero, or rounds otherwise, gets the same
bytes, and finds its mode as it was.

The mode is set by a few bytes of machine code, as torch.set_flush_denormal does it.
"""

import contextlib
import ctypes
import mmap
import platform
import sys
import threading

import numpy as np
import pytest
from support import COUNT, SAMPLES, make_loader

from onemodel import (
    ArrayDataset,
    Compose,
    DataLoader,
    ImageBatchCollator,
    MixingSampler,
    Sample,
    SampleRng,
    WeightedSampler,
    digest,
    image,
)
from onemodel._cli.canonical import canonical
from onemodel._cli.canonical import make_loader as make_canonical_loader
from onemodel._simd import scale_and_shift
from onemodel._simd.float_mode import DefaultFloatMode
from onemodel.augment import (
    Blur,
    Erase,
    GainOffset,
    Noise,
    ResizeHeight,
    Shift,
    StretchWidth,
)
from onemodel.transforms import CutMix, Mixup, Normalize, OneHot

DEFAULT = 0x1F80
MODES = {"flush to zero": 0x9FC0, "round down": 0x3F80, "round to zero": 0x7F80}

X86_64 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.fixture(scope="module")
def mxcsr():
    """Functions that read and write the calling thread's MXCSR."""
    if not X86_64 or sys.platform not in ("linux", "darwin"):
        pytest.skip("the machine code of this test is for x86-64 and its Unix calling convention")
    try:
        memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        pytest.skip(f"the platform gives no executable memory: {error}")
    # stmxcsr [rdi]; ret ... ldmxcsr [rdi]; ret
    memory[:4], memory[16:20] = b"\x0f\xae\x1f\xc3", b"\x0f\xae\x17\xc3"
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32))
    store, load = kind(address), kind(address + 16)

    def read():
        value = ctypes.c_uint32()
        store(ctypes.byref(value))
        return value.value & 0xFFC0  # without the flags that arithmetic sets

    def write(value):
        load(ctypes.byref(ctypes.c_uint32(value)))

    yield read, write, memory
    write(DEFAULT)


@contextlib.contextmanager
def mode_of(mxcsr, mode):
    """The block runs in a mode, and must leave it as it was."""
    read, write, _ = mxcsr
    write(mode)
    try:
        yield
        assert read() == mode & 0xFFC0
    finally:
        write(DEFAULT)


# Subnormal pixels, and sums that are rounded
TINY = [
    Sample(np.float32(1e-39) * np.arange(1, 13, dtype=np.float32).reshape(1, 2, 6) / 3, (), index)
    for index in range(COUNT)
]
ROWS = np.float32(1e-39) * np.arange(1, 22 * 48 + 1, dtype=np.float32).reshape(22, 4, 4, 3)


def in_python(rng, image):
    image *= np.float32(rng.next_single())
    image += image / np.float32(3)


def batch_in_python(rng, batch):
    return batch / np.float32(3)


RUNS = {
    "native images": lambda: {
        "dataset": TINY,
        "collate": ImageBatchCollator(
            augment=Compose([GainOffset((0.8, 1.2), (0.0, 0.0)), Blur(1.0)])
        ),
    },
    "python images": lambda: {
        "dataset": TINY,
        "collate": ImageBatchCollator(augment=in_python),
    },
    "native rows": lambda: {
        "dataset": ArrayDataset(ROWS),
        "transform": Normalize(0.0, 0.7),
    },
    "python rows": lambda: {"dataset": ArrayDataset(ROWS), "transform": batch_in_python},
    "mixed rows": lambda: {
        "dataset": ArrayDataset(ROWS, np.arange(22) % 4),
        "transform": Compose([OneHot(4), Mixup(0.5)]),
    },
}


def make(run, **options):
    return DataLoader(batch_size=4, seed=3, **RUNS[run](), **options)


def expected_digests(run):
    with make(run) as loader:
        return [loader.digest(g) for g in range(4)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("run", RUNS)
def test_the_consumer_s_mode_changes_no_byte(run, workers, mode, mxcsr):
    expected = expected_digests(run)
    with make(run, workers=workers) as loader, mode_of(mxcsr, MODES[mode]):
        assert [loader.digest(g) for g in range(4)] == expected
        assert [digest(batch) for batch in loader.steps(0, 4)] == expected
        assert [digest(loader[g]) for g in range(4)] == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workers", [0, 2])
def test_device_runs_in_the_default_mode(workers, mode, mxcsr):
    def delivered():
        with make("native rows", workers=workers, device=lambda batch: batch / 3) as loader:
            return [digest(batch) for batch in loader.steps(0, 4)] + [digest(loader[0])]

    expected = delivered()
    with mode_of(mxcsr, MODES[mode]):
        assert delivered() == expected


@pytest.mark.parametrize("run", ["python images", "python rows"])
def test_the_test_would_see_another_mode(run, mxcsr):
    """Without the default mode these callables give other bytes: the test above is not empty."""
    image = TINY[0].image.copy() if run == "python images" else ROWS[0].copy()
    made = []
    for mode in (DEFAULT, MODES["flush to zero"]):
        with mode_of(mxcsr, mode):
            made.append((image / np.float32(3)).tobytes())
    assert made[0] != made[1]


@pytest.mark.parametrize("run", ["python images", "python rows"])
def test_a_mode_set_inside_of_a_worker_changes_no_later_batch(run, mxcsr, needs_threads):
    """A library that the dataset imports may set it, in the worker's thread, for good."""
    _, write, _ = mxcsr
    expected = expected_digests(run)
    options = RUNS[run]()
    inner = options["dataset"]

    class Setting:
        def __len__(self):
            return len(inner)

        def __getitem__(self, index):
            found = inner[index]
            if (
                3 in np.atleast_1d(index)
                and threading.current_thread() is not threading.main_thread()
            ):
                write(MODES["flush to zero"])
            return found

    options["dataset"] = Setting()
    with DataLoader(batch_size=4, seed=3, workers=2, **options) as loader:
        taken = [digest(batch) for batch in loader.steps(0, 4)]
    assert taken[1:] == expected[1:]  # who sets it inside of step 0 may have that step otherwise


def test_the_mode_comes_back_when_a_callable_raises(mxcsr):
    def fail(rng, image):
        assert 1e-310 / 3 > 0
        raise KeyError("on purpose")

    with make_loader(SAMPLES, collate=ImageBatchCollator(augment=fail)) as loader:
        for mode in MODES.values():
            with mode_of(mxcsr, mode), pytest.raises(KeyError):
                loader[0]
            with mode_of(mxcsr, mode), pytest.raises(KeyError):
                next(loader.steps(0))


def test_the_context(mxcsr):
    read, _, _ = mxcsr
    with mode_of(mxcsr, MODES["round down"]):
        with DefaultFloatMode():
            assert read() == DEFAULT & 0xFFC0
        assert read() == MODES["round down"] & 0xFFC0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("replacement", [False, True])
def test_a_weighted_sampler_is_the_same_in_every_mode(replacement, mode, mxcsr):
    """Made and asked in that mode: subnormal weights are above zero, quotients round to nearest."""
    weights = [1e-310, 0.0, 3e-310, *np.random.default_rng(0).random(40) * 1e-310]

    def drawn():
        sampler = WeightedSampler(weights, 40, replacement=replacement)
        return [sampler.batch_indices(1, epoch, 0).tolist() for epoch in range(20)]

    expected = drawn()
    with mode_of(mxcsr, MODES[mode]):
        found = drawn()
    assert found == expected


@pytest.mark.parametrize("mode", MODES)
def test_shares_are_divided_alike_in_every_mode(mode, mxcsr):
    """Each number is the seventh of the one before it, also where that is subnormal."""
    shares = [7.0**-power for power in range(360, 0, -1)]
    expected = MixingSampler([3] * 360, shares, 4).sources[0]
    with mode_of(mxcsr, MODES[mode]):
        found = MixingSampler([3] * 360, shares, 4).sources[0]
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("means", [0.1, 1e-39])
def test_pixels_are_converted_alike_in_every_mode(means, mode, mxcsr):
    """The numbers are remembered for all threads, so here they are new ones each time."""
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)

    def converted():
        scale_and_shift._remembered.cache_clear()
        return image.gray8_to_planar(pixels, means, 0.3)

    expected = converted()
    with mode_of(mxcsr, MODES[mode]):
        found = converted()
    assert found.tobytes() == expected.tobytes()


# Without a loader


def random_images(seed):
    """Ordinary numbers beside subnormal ones."""
    images = SampleRng(seed).random((1, 6, 40), np.float32)
    images[0, 1] *= np.float32(1e-39)
    return images


IMAGES = [random_images(seed) for seed in range(6)]  # made in the default mode


def augmented(make_augmentation):
    def call():
        image = IMAGES[1].copy()
        make_augmentation()(SampleRng(5), image)
        return image.tobytes()

    return call


def transformed(make_transform):
    def call():
        sample = Sample(IMAGES[2])
        return make_transform()(SampleRng(5), sample).image.tobytes()

    return call


def rows_of_a_transform(make_transform):
    def call():
        rows = np.stack(IMAGES), np.eye(6, dtype=np.float32)
        return [part.tobytes() for part in make_transform()(SampleRng(5), rows)]

    return call


DIRECT = {
    "GainOffset": augmented(lambda: GainOffset((0.1, 0.7), (-0.3, 0.1))),
    "Noise": augmented(lambda: Noise(0.1)),
    "Erase": augmented(lambda: Erase(3, (1, 4), fill=0.1)),
    "Shift": augmented(lambda: Shift((-3, 3), (-1, 1), fill=0.1)),
    "Blur": augmented(lambda: Blur(1.0)),
    "a chain": augmented(lambda: Compose([Blur(1.0), GainOffset((0.1, 0.7)), Noise(0.3)])),
    "StretchWidth": transformed(lambda: StretchWidth(0.7, 1.3)),
    "ResizeHeight": transformed(lambda: ResizeHeight(11)),
    "Normalize": rows_of_a_transform(lambda: Normalize(0.1, 0.7, key=0)),
    "Mixup": rows_of_a_transform(lambda: Mixup(0.2)),
    "CutMix": rows_of_a_transform(lambda: CutMix(0.2)),
    "next_normal": lambda: [SampleRng(k).next_normal() for k in range(50)],
    "standard_normal": lambda: SampleRng(3).standard_normal(500).tobytes(),
    "uniform": lambda: [
        [SampleRng(k).uniform(0.1, 0.7) for k in range(50)],
        SampleRng(3).uniform(-0.1, 1e-300, 500).tobytes(),
        SampleRng(3).uniform(0, 1e-310),
    ],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DIRECT)
def test_a_direct_call_gives_the_same_in_every_mode(name, mode, mxcsr):
    expected = DIRECT[name]()
    with mode_of(mxcsr, MODES[mode]):
        found = DIRECT[name]()
    assert found == expected


# The canonical batches

FAINT = [c for c in canonical()["configurations"] if c["dataset"]["kind"].startswith("faint")]


@pytest.mark.parametrize("configuration", FAINT, ids=lambda configuration: configuration["name"])
def test_the_faint_canonical_batches_are_of_subnormal_numbers(configuration):
    with make_canonical_loader(configuration) as loader:
        for step in configuration["digests"]:
            batch = loader[int(step)]
            pixels = batch["x"] if isinstance(batch, dict) else batch.images
            # compared as integers: a comparison of floats may flush as well
            bits = pixels.view(np.int32) & 0x7FFFFFFF
            assert np.count_nonzero((bits > 0) & (bits < 0x00800000)) > pixels.size // 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("configuration", FAINT, ids=lambda configuration: configuration["name"])
def test_the_faint_canonical_batches_come_in_every_mode(mxcsr, configuration, mode):
    with mode_of(mxcsr, MODES[mode]), make_canonical_loader(configuration) as loader:
        for step, expected in configuration["digests"].items():
            assert loader.digest(int(step)) == expected
