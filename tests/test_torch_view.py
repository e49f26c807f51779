"""Promise: `LoaderView` is a dataset of torch that gives each batch of the run once, in order.

In the training process and in worker processes, however these are started and however long they
live, the batches are `loader[g]`, each pass is the next epoch, and the view is moved like a loader.
"""

import copy
import gc
import pickle
import warnings

import numpy as np
import pytest
from support import refused

import onemodel as om

torch = pytest.importorskip("torch", reason="torch is not installed")
import onemodel.torch  # noqa: E402  it needs torch
from onemodel.torch import LoaderView  # noqa: E402

ROWS, BATCH = 22, 4
STEPS = 6  # an odd last batch, and 6 is no multiple of 4 workers

pytestmark = pytest.mark.usefixtures("needs_threads", "needs_subprocess")


def array_loader(**options):
    """Batches of a dict with a native transform, so that each batch is another."""
    images = np.random.default_rng(0).integers(0, 255, (ROWS, 4, 4, 1), np.uint8)
    data = om.ArrayDataset({"x": images, "index": np.arange(ROWS)})
    transform = om.transforms.RandomCrop(1)
    return om.DataLoader(data, BATCH, shuffle=True, transform=transform, seed=7, **options)


def image_loader(**options):
    """Batches of the class ImageBatch."""
    lines = om.datasets.DigitLines(ROWS, height=8)
    sampler = om.ShuffledSampler(ROWS, BATCH, drop_last=False)
    collate = om.ImageBatchCollator()
    return om.DataLoader(lines, sampler=sampler, collate=collate, seed=7, **options)


def digest(batch):
    """The digest of a batch of tensors."""
    if isinstance(batch, om.ImageBatch):
        return om.digest(batch.map(lambda tensor: tensor.numpy()))
    return om.digest({name: tensor.numpy() for name, tensor in batch.items()})


def expected(loader, *steps):
    return [loader.digest(g) for g in steps]


def torch_loader(view, **options):
    return torch.utils.data.DataLoader(view, batch_size=None, **options)


WORKERS = [
    {},
    {"num_workers": 1},
    {"num_workers": 2},
    {"num_workers": 4, "prefetch_factor": 1},
    {"num_workers": 2, "persistent_workers": True},
    {"num_workers": 8, "persistent_workers": True},
]


@pytest.fixture(autouse=True)
def _no_fork_warnings():
    """Python 3.12 warns of forks beside threads; the view's workers start no thread."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=".*suggested max number of worker.*")
        yield


@pytest.mark.parametrize("options", WORKERS, ids=str)
@pytest.mark.parametrize("make", [array_loader, image_loader])
def test_each_pass_is_the_next_epoch(make, options):
    view = LoaderView(make())
    batches = torch_loader(view, **options)
    for epoch in range(3):
        seen = [digest(batch) for batch in batches]
        assert seen == expected(make(), *range(epoch * STEPS, (epoch + 1) * STEPS))
    assert len(batches) == len(view) == STEPS


@pytest.mark.parametrize("options", WORKERS, ids=str)
def test_passes_that_are_broken_off_move_the_epoch_and_peeks_do_not(options):
    view = LoaderView(array_loader())
    batches = torch_loader(view, **options)
    if "persistent_workers" not in options:
        iter(batches)
    assert view.loader.epoch == 0
    assert digest(next(iter(batches))) == array_loader().digest(0)
    assert view.loader.epoch == 1
    for count, _ in enumerate(batches):
        if count == 2:
            break
    assert view.loader.epoch == 2
    assert [digest(batch) for batch in batches] == expected(
        array_loader(), *range(2 * STEPS, 3 * STEPS)
    )


def test_persistent_workers_begin_a_pass_together_at_iter():
    """All of them or none, whichever of them had a batch to build."""
    view = LoaderView(array_loader())
    batches = torch_loader(view, num_workers=8, persistent_workers=True)
    for _ in range(5):
        iter(batches)
    assert [digest(batch) for batch in batches] == expected(
        array_loader(), *range(5 * STEPS, 6 * STEPS)
    )
    assert view.loader.epoch == 6


@pytest.mark.parametrize("options", WORKERS, ids=str)
def test_set_epoch_and_loaded_states_reach_the_workers(options):
    view = LoaderView(array_loader())
    batches = torch_loader(view, **options)
    loader = array_loader()
    assert digest(next(iter(batches))) == loader.digest(0)
    view.set_epoch(5)
    assert [digest(batch) for batch in batches] == expected(loader, *range(5 * STEPS, 6 * STEPS))
    view.load_state_dict(loader.state_dict(step=2 * STEPS + 2))
    view.set_epoch(2)  # the position inside of it stays
    with refused(ValueError, "epoch", 2, 3):
        view.set_epoch(3)
    assert [digest(batch) for batch in batches] == expected(
        loader, *range(2 * STEPS + 3, 3 * STEPS)
    )
    assert [digest(batch) for batch in batches] == expected(loader, *range(3 * STEPS, 4 * STEPS))


def test_the_state_is_what_was_taken():
    view = LoaderView(array_loader(workers=2))
    run = iter(torch_loader(view))
    for _ in range(3):
        next(run)
    state = view.state_dict()
    assert state["next_step"] == 3
    other = LoaderView(array_loader())
    other.load_state_dict(state)
    assert [digest(batch) for batch in other] == expected(array_loader(), 3, 4, 5)


def test_with_worker_processes_the_state_needs_the_step():
    view = LoaderView(array_loader())
    batches = torch_loader(view, num_workers=2)
    assert view.state_dict()["next_step"] == 0
    next(iter(batches))
    with refused(ValueError, "step", "worker processes", None):
        view.state_dict()
    assert view.state_dict(step=0)["next_step"] == 1
    view.load_state_dict(view.state_dict(step=0))
    assert view.state_dict()["next_step"] == 1
    next(iter(view))
    assert view.state_dict()["next_step"] == 2


def test_what_is_left_of_an_older_pass_moves_nothing():
    view = LoaderView(array_loader())
    batches = torch_loader(view, num_workers=2)
    run = iter(batches)
    next(run)
    view.set_epoch(9)
    assert len(list(run)) == STEPS - 1
    assert view.loader.epoch == 9


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_share_the_memory_of_the_batch(workers):
    loader = array_loader(workers=workers)
    view = LoaderView(loader)
    run = iter(view)
    batch = next(run)
    assert all(isinstance(tensor, torch.Tensor) for tensor in batch.values())
    before = loader.stats.pool.returned
    del run
    loader.close()
    del batch
    gc.collect()
    assert loader.stats.pool.returned == loader.stats.pool.rented > before


def test_an_error_in_a_worker_names_the_step():
    class Broken:
        def __len__(self):
            return 8

        def __getitem__(self, indices):
            if 5 in indices:
                raise OSError("the disk is gone")
            return np.asarray(indices)

    view = LoaderView(om.DataLoader(Broken(), 2))
    run = iter(torch_loader(view, num_workers=2))
    assert [next(run).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(OSError, match="the disk is gone"):
        next(run)


def test_it_is_a_dataset_of_torch():
    view = LoaderView(array_loader())
    assert isinstance(view, torch.utils.data.IterableDataset)
    assert view.batch_sampler is None
    view.sampler.set_epoch(3)  # as Lightning does
    assert view.loader.epoch == 3
    assert "LoaderView(DataLoader(" in repr(view)
    assert array_loader().batch_sampler is None
    for wrong in ([1], view, None):
        with refused(TypeError, "loader", "DataLoader"):
            LoaderView(wrong)


def pickles(loader):
    try:
        pickle.dumps(loader)
    except TypeError:
        return False
    return True


needs_pickle = pytest.mark.skipif(
    not pickles(array_loader()), reason="a DataLoader cannot be pickled in this version"
)


@needs_pickle
@pytest.mark.slow
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
@pytest.mark.parametrize("persistent", [False, True])
def test_other_start_methods(context, persistent):
    view = LoaderView(array_loader())
    batches = torch_loader(
        view, num_workers=2, multiprocessing_context=context, persistent_workers=persistent
    )
    for epoch in (0, 1, 4):
        if epoch == 4:
            view.set_epoch(4)
        assert [digest(batch) for batch in batches] == expected(
            array_loader(), *range(epoch * STEPS, (epoch + 1) * STEPS)
        )


@needs_pickle
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda view: pickle.loads(pickle.dumps(view))])
def test_a_copy_is_a_view_of_its_own(clone):
    view = LoaderView(array_loader())
    other = clone(view)
    next(iter(torch_loader(other, num_workers=1)))
    assert (view.loader.epoch, other.loader.epoch) == (0, 1)
    next(iter(torch_loader(view, num_workers=1)))
    assert (view.loader.epoch, other.loader.epoch) == (1, 1)
