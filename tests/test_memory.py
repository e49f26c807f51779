"""Promise: after warm-up a batch costs no array memory, and memory somebody can see is never
written again.

Counted twice: by `tracemalloc`, which sees every allocation of NumPy and of the pool, and by the
pool's own counters.
"""

import gc
import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from reference.lines import gain_and_offset

import onemodel
from onemodel import BufferPool, DataLoader, ImageBatchCollator, Sample, ShuffledSampler

COUNT, BATCH, HEIGHT = 128, 8, 32
WIDTHS = range(193, 257)
RNG = np.random.default_rng(0)
SAMPLES = [
    Sample(RNG.random((1, HEIGHT, int(width)), dtype=np.float32), (index % 7,) * (index % 5), index)
    for index, width in enumerate(RNG.choice(WIDTHS, size=COUNT))
]
SMALL = 16 * 1024  # bytes: Python objects of a step; its images take about 250,000


def warm(pool):
    """Have out at once the largest of all that a batch asks for, more often than the run does.

    Which sizes meet, and how many batches are under way together, is chance. The smallest of each
    kind is more than half of the largest, so a free buffer of the largest serves for it; a single
    further allocation is a failure.
    """
    width = max(WIDTHS)
    kinds = [
        ((BATCH, 1, HEIGHT, -(-width // 4) * 4), np.float32),
        ((1, HEIGHT, width), np.float32),
        (4 * BATCH + 4 * BATCH, np.int32),
    ]
    held = [pool.rent(shape, dtype) for shape, dtype in kinds for _ in range(12)]
    del held


workers_0_and_2 = pytest.mark.parametrize("workers", [0, 2])


@pytest.fixture
def traced():
    """Trace allocations during the test, with nothing left of what came before."""
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def make(pool, workers=0, augment=gain_and_offset, **options):
    return DataLoader(
        SAMPLES,
        sampler=ShuffledSampler(COUNT, BATCH),
        collate=ImageBatchCollator(width_multiple=4, augment=augment, pool=pool),
        workers=workers,
        prefetch=4,
        **options,
    )


@pytest.mark.parametrize("augment", [None, gain_and_offset], ids=["plain", "augmented"])
def test_no_array_memory_per_batch(augment, traced):
    """Without workers: the highest point within each step stays near its start."""
    pool = BufferPool()
    warm(pool)
    with make(pool, augment=augment) as loader:
        stream = loader.steps(0)
        for _ in range(20):
            batch = next(stream)
        allocated = pool.stats.allocated
        worst = 0
        for _ in range(200):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            batch = next(stream)
            worst = max(worst, tracemalloc.get_traced_memory()[1] - before)
        assert batch.images.nbytes > 10 * SMALL
        assert worst < SMALL
        assert pool.stats.allocated == allocated


def test_no_array_memory_per_batch_with_workers(traced, needs_threads):
    """The ring is in another state at each moment, so the bound is on the whole of 300 steps."""
    pool = BufferPool()
    warm(pool)
    with make(pool, workers=2) as loader:
        stream = loader.steps(0)
        for _ in range(20):
            batch = next(stream)
        allocated, held = pool.stats.allocated, pool.stats.bytes
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(300):
            batch = next(stream)
        peak = tracemalloc.get_traced_memory()[1]
        assert batch.images.nbytes > 10 * SMALL
        assert pool.stats.allocated == allocated
        assert pool.stats.bytes == held
        assert peak - before < 4 * SMALL


@workers_0_and_2
def test_two_thousand_batches_without_growth(workers, traced):
    pool = BufferPool()
    warm(pool)
    with make(pool, workers=workers) as loader:
        stream = loader.steps(0)
        for _ in range(20):
            next(stream).release()
        gc.collect()
        before, allocated = tracemalloc.get_traced_memory()[0], pool.stats.allocated
        for _ in range(2000):
            next(stream).release()
        gc.collect()
        assert pool.stats.allocated == allocated
        assert tracemalloc.get_traced_memory()[0] - before < 4 * SMALL


def test_everything_comes_back(needs_threads):
    """When the stream is over and its batches are gone, the pool has lent out nothing."""
    pool = BufferPool()
    for workers in (0, 2):
        with make(pool, workers=workers) as loader:
            for batch in loader.steps(0, 20):
                batch.release()
            stream = loader.steps(0)
            next(stream)
            stream.close()  # waits for the workers, which dropping the stream does not
            del stream, batch
    gc.collect()
    assert pool.stats.rented > 0
    assert pool.stats.returned == pool.stats.rented


def test_an_error_gives_the_memory_back():
    pool = BufferPool()

    def augment(rng, image):
        raise KeyError("on purpose")

    with make(pool, augment=augment) as loader:
        for g in range(3):
            with pytest.raises(KeyError):
                loader[g]
    gc.collect()
    assert pool.stats.returned == pool.stats.rented


# Views

WAYS_TO_HOLD = {
    "the array": lambda images: images,
    "a slice": lambda images: images[3:5, :, :, ::2],
    "one row": lambda images: images[7],
    "a reshaped view": lambda images: images.reshape(-1),
    "a memoryview": memoryview,
    "another dtype": lambda images: images.view(np.uint32),
    "DLPack": np.from_dlpack,
    "asarray": np.asarray,
    "a broadcast view": lambda images: np.broadcast_to(images[0], (2, *images[0].shape)),
    "the buffer of a buffer": lambda images: np.frombuffer(memoryview(images).cast("B"), np.uint8),
}


@workers_0_and_2
@pytest.mark.parametrize("way", WAYS_TO_HOLD)
@pytest.mark.parametrize("release", [True, False], ids=["released", "dropped"])
def test_what_is_held_is_never_overwritten(way, release, workers):
    pool = BufferPool()
    with make(pool, workers=workers) as loader:
        stream = loader.steps(0)
        held = []
        for step in range(60):
            batch = next(stream)
            if step % 10 == 0:
                view = WAYS_TO_HOLD[way](batch.images)
                held.append((view, np.array(view)))
            if release:
                batch.release()
        del batch
        assert len(held) == 6
        for view, copy in held:
            assert np.asarray(view).tobytes() == copy.tobytes()


@pytest.mark.parametrize("name", ["widths", "targets", "target_lengths", "labels", "indices"])
def test_the_small_outputs_are_held_as_well(name):
    with make(BufferPool()) as loader:
        held = []
        for batch in loader.steps(0, 40):
            array = getattr(batch, name)
            held.append((array, array.copy()))
            batch.release()
        for array, copy in held:
            assert np.array_equal(array, copy)


def test_a_batch_given_back_is_used_again():
    """The other side of the promise: memory that nobody holds does come round."""
    addresses = set()
    with make(BufferPool()) as loader:
        for batch in loader.steps(0, 100):
            addresses.add(batch.images.ctypes.data)
            batch.release()
    assert len(addresses) < 20


def test_release_twice():
    with make(BufferPool()) as loader:
        batch = loader[0]
        batch.release()
        batch.release()
        with loader[1] as other:
            images = other.images
            expected = images.copy()
        other.release()
        for _ in loader.steps(2, 10):
            pass
        assert np.array_equal(images, expected)


def test_a_released_batch_shows_nothing():
    """After release the arrays may belong to another batch; reading them says so."""
    with make(BufferPool()) as loader:
        batch = loader[0]
        batch.release()
        with pytest.raises((RuntimeError, ValueError), match="released"):
            batch.images  # noqa: B018


def test_torch_tensors_hold_the_memory():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with make(BufferPool()) as loader:
        held = []
        for batch in loader.steps(0, 40):
            tensor = torch.from_numpy(batch.images)
            held.append((tensor, tensor.clone()))
            batch.release()
        del batch
        assert all(torch.equal(tensor, copy) for tensor, copy in held)


# The pool


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((3, 4), np.float32),
        (7, np.int64),
        ((), np.float64),
        ((0, 5), np.uint8),
        ((2, 0), np.float32),
        ((1,), np.uint8),
        ((1000, 1001), np.int32),
        ((5,), np.dtype("<c16")),
        ((np.int64(2), np.int32(3)), "int16"),
        ((2, 3), bool),
    ],
    ids=str,
)
def test_rent(shape, dtype):
    array = BufferPool().rent(shape, dtype)
    expected = np.empty(shape, dtype)
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.ctypes.data % 64 == 0
    array[...] = 1
    assert array.size == 0 or (array == 1).all()


def test_counters():
    pool = BufferPool()
    assert tuple(pool.stats) == (0, 0, 0, 0)
    first = pool.rent(100, np.float32)
    assert (pool.stats.rented, pool.stats.returned, pool.stats.allocated) == (1, 0, 1)
    assert pool.stats.bytes >= 400
    held = pool.stats.bytes
    del first
    assert (pool.stats.rented, pool.stats.returned) == (1, 1)
    second = pool.rent((10, 10), np.float32)
    assert (pool.stats.rented, pool.stats.allocated) == (2, 1)
    assert pool.stats.bytes == held
    third = pool.rent(100, np.float32)
    assert pool.stats.allocated == 2
    assert not np.shares_memory(second, third)


def test_the_block_that_came_back_last_goes_out_first():
    """It is the one that the cache still knows."""
    pool = BufferPool()
    arrays = [pool.rent(1000, np.uint8) for _ in range(4)]
    addresses = [array.ctypes.data for array in arrays]
    for _ in range(4):
        arrays.pop(0)
    again = [pool.rent(1000, np.uint8) for _ in range(4)]
    assert [array.ctypes.data for array in again] == addresses[::-1]


def test_size_classes_bound_the_loss():
    """A buffer of any size gets at most an eighth more than it asked for, beside the alignment."""
    for size in (1, 63, 64, 65, 100, 1000, 4097, 10**5, 10**6 + 1):
        pool = BufferPool()
        array = pool.rent(size, np.uint8)
        assert size <= pool.stats.bytes <= size * 1.125 + 64
        del array


def test_neighbouring_sizes_share_a_block():
    """Ragged batches differ by some columns; that must not make the pool grow for ever."""
    pool = BufferPool()
    for width in range(1000, 2000):
        pool.rent((16, width), np.float32)
    assert pool.stats.rented == 1000
    assert pool.stats.allocated < 12


def test_clear_frees_what_is_not_out(traced):
    pool = BufferPool()
    kept = pool.rent(10**6, np.uint8)
    kept[:] = 5
    for array in [pool.rent(10**6, np.uint8) for _ in range(3)]:
        del array
    before = tracemalloc.get_traced_memory()[0]
    pool.clear()
    assert before - tracemalloc.get_traced_memory()[0] > 1_900_000
    assert (kept == 5).all()
    assert pool.rent(10**6, np.uint8).shape == (10**6,)


def test_an_array_outlives_its_pool():
    pool = BufferPool()
    array = pool.rent(1000, np.uint8)
    array[:] = 9
    view = array[10:20]
    del pool, array
    gc.collect()
    assert (view == 9).all()


def test_many_threads_share_a_pool(needs_threads):
    """Each thread writes its own mark and finds it again; no two ever hold one block."""
    pool = BufferPool()
    barrier = threading.Barrier(6)
    wrong = []

    def work(mark):
        barrier.wait(60)
        for turn in range(400):
            arrays = [pool.rent(1 + (turn * 37 + k * 501) % 3000, np.uint8) for k in range(3)]
            for array in arrays:
                array[:] = mark
            if not all((array == mark).all() for array in arrays):
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
    assert pool.stats.rented == pool.stats.returned == 6 * 400 * 3


@pytest.mark.parametrize("shape", [-1, (2, -3), (-1, -1), (2**40, 2**40)], ids=str)
def test_rent_checks_the_shape(shape):
    with pytest.raises(ValueError, match="shape"):
        BufferPool().rent(shape, np.uint8)


@pytest.mark.parametrize("shape", [1.5, (2, 2.0), "3", None, [2, "3"]], ids=repr)
def test_rent_checks_the_type_of_the_shape(shape):
    with pytest.raises(TypeError, match="shape"):
        BufferPool().rent(shape, np.uint8)


def test_rent_refuses_objects():
    with pytest.raises(TypeError, match="dtype"):
        BufferPool().rent(3, object)


def test_the_default_collator_has_a_pool_of_its_own():
    first, second = ImageBatchCollator(), ImageBatchCollator()
    samples = SAMPLES[:2]
    key = onemodel.BatchKey(0, 0, 0, 0, np.arange(2))
    left, right = first(samples, key), second(samples, key)
    assert not np.shares_memory(left.images, right.images)


# The pool holds no more than was out at once

KIB = 1024
SLACK = 1.2  # a class has at most an eighth more than was asked for; of all, a sixteenth stays


def test_sizes_that_change_do_not_add_up():
    """256 KiB out at once in buffers of ever other sizes: held is not one set for each size."""
    rng, pool = np.random.default_rng(0), BufferPool()
    kept = pool.rent(KIB, np.uint8)  # somebody keeps a few labels
    counts = [64, 4, 32, 1, 16, 2, 8, 64, 1, 128, *(2 ** rng.uniform(0, 8, 400)).astype(int)]
    for count in counts:
        held = [pool.rent(256 * KIB // count, np.uint8) for _ in range(count)]
        assert pool.stats.bytes <= 2 * 256 * KIB * SLACK  # smaller sizes in larger buffers
        del held
        assert pool.stats.bytes <= (256 * KIB + kept.nbytes) * SLACK


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(
    "sizes",
    [(10, 100), (90, 100), (50, 101), (1, 1000), (10, 33, 70, 100), (64, 64, 1024)],
    ids=str,
)
def test_sizes_in_turn_allocate_nothing(number, sizes):
    """`number` are out at once, the oldest goes first: no memory is given back and asked again."""
    pool, held = BufferPool(), []
    for turn in range(600):
        del held[: len(held) - number + 1]
        held.append(pool.rent(1000 * sizes[turn % len(sizes)], np.uint8))
        if turn == 120:
            allocated = pool.stats.allocated
    assert pool.stats.allocated == allocated
    most = max(sum((sizes * 9)[k : k + number]) for k in range(len(sizes)))
    held.clear()
    assert pool.stats.bytes <= 1000 * most * SLACK


def test_small_and_large_of_one_batch_settle():
    """An image of any size and a few integers, both back before the next batch."""
    rng, pool = np.random.default_rng(3), BufferPool()
    for turn in range(1500):
        held = [pool.rent(int(rng.integers(*span)), np.uint8) for span in [(900, 2000), (1e5, 1e6)]]
        del held
        if turn == 100:
            allocated = pool.stats.allocated
    assert pool.stats.allocated - allocated <= 4
    assert pool.stats.bytes <= 1_002_000 * SLACK


def test_memory_that_was_refused_does_not_count():
    """An allocation that failed was never out, so it is no reason to keep more."""

    def allocate(size):
        if size > 10**6:
            raise MemoryError
        return bytearray(size)

    pool = BufferPool(allocate=allocate)
    with pytest.raises(MemoryError):
        pool.rent(10**9, np.uint8)
    for size in (100 * 3**k for k in range(8)):
        pool.rent(size, np.uint8)
        assert pool.stats.bytes <= size * SLACK


def test_sizes_that_no_class_shares_do_not_add_up():
    """Each is more than twice the last one, so that no free buffer serves as it is."""
    pool = BufferPool()
    most = 0
    for turn in range(40):
        size = 1000 * 3 ** (turn % 7)
        most = max(most, size)
        held = pool.rent(size, np.uint8)
        del held
        assert pool.stats.bytes <= most * SLACK


def test_a_buffer_that_grows_leaves_its_smaller_ones():
    """As an array that is made anew each time a little larger, the old one copied into it."""
    pool = BufferPool()
    size = KIB
    array = pool.rent(size, np.uint8)
    while size < 1024 * KIB:
        size = size * 9 // 8
        larger = pool.rent(size, np.uint8)  # both are out for a moment
        array = larger
        del larger
        assert pool.stats.bytes <= size * (1 + 8 / 9) * SLACK
    del array
    assert pool.stats.bytes <= size * (1 + 8 / 9) * SLACK


def test_any_mixture_holds_no_more_than_was_out():
    """The bound is on what the buffers have, which is what was asked for and a class's rest."""
    rng = np.random.default_rng(8)
    pool, held, most = BufferPool(), {}, 0
    for turn in range(3000):
        if held and rng.random() < 0.5:
            held.pop(int(rng.choice(list(held))))
        else:
            held[turn] = pool.rent(int(2 ** rng.uniform(6, 18)), np.uint8)
        if len(held) > 20:
            held.clear()
        # a free buffer may be up to twice as large as what it serves
        most = max(most, sum(array.nbytes for array in held.values()))
        assert pool.stats.bytes <= 2 * SLACK * most
    held.clear()
    stats = pool.stats
    assert stats.bytes <= SLACK * most
    assert stats.rented == stats.returned


def test_counters_under_four_threads(needs_threads):
    """What was rented came back, and a free buffer is nobody's: each finds its own mark again."""
    pool = BufferPool()
    barrier, wrong = threading.Barrier(4), []

    def hammer(mark):
        barrier.wait(60)
        for turn in range(5000):
            array = pool.rent(64 << (turn + mark) % 6, np.uint8)
            array[:] = mark
            if (array != mark).any():
                wrong.append(turn)

    threads = [threading.Thread(target=hammer, args=(mark,)) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert wrong == []
    assert pool.stats.rented == pool.stats.returned == 4 * 5000
    # each thread rents the next one before it lets the last one go
    assert pool.stats.bytes <= 4 * (1024 + 2048) * SLACK
    pool.clear()
    assert pool.stats.bytes == 0


FORK_SCRIPT = """
import os, sys, threading
import numpy as np
from onemodel import BufferPool
sys.setswitchinterval(1e-6)
pool, over = BufferPool(), threading.Event()
def hammer():
    while not over.is_set():
        arrays = [pool.rent(64 << k, np.uint8) for k in range(5)]
threads = [threading.Thread(target=hammer) for _ in range(2)]
for thread in threads:
    thread.start()
for turn in range(40):
    child = os.fork()
    if child == 0:
        arrays = [pool.rent(64 << k % 7, np.uint8) for k in range(200)]
        for mark, array in enumerate(arrays):
            array[:] = mark
        fine = all((array == mark).all() for mark, array in enumerate(arrays))
        del arrays, array
        pool.clear()
        os._exit(0 if fine else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, turn
over.set()
for thread in threads:
    thread.join(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_fork_while_others_rent(needs_threads, needs_subprocess):
    """The child finds the pool's lock free, whoever held it in the parent."""
    subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK_SCRIPT],
        timeout=120,
        check=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
    )
