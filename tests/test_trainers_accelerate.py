"""Promise: under Accelerate a run sees `loader[g]`, skips, and goes on from a saved state."""

import pytest

pytest.importorskip("accelerate", reason="accelerate is not installed")
from accelerate import (
    Accelerator,
    DataLoaderConfiguration,
    skip_first_batches,
)
from accelerate.state import AcceleratorState, GradientState, PartialState
from trainer_runs import STEPS, epochs, make_loader, make_view, quiet, step_of, torch  # noqa: F401

import onemodel as om

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("needs_threads", "needs_subprocess")]


@pytest.fixture(params=[None, False], ids=["dispatched", "not dispatched"])
def accelerator(request):
    yield Accelerator(
        cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=request.param)
    )
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def steps(batches):
    return [step_of(batch) for batch in batches]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_prepared_loader_runs_over_the_epochs_and_skips(accelerator, workers):
    view = make_view()
    batches = accelerator.prepare(
        torch.utils.data.DataLoader(view, batch_size=None, num_workers=workers)
    )
    assert len(batches) == STEPS
    assert steps(batches) == epochs(0)
    assert steps(batches) == epochs(1)
    # a run that goes on in epoch 4 after 2 batches, in a new process
    view = make_view()
    batches = accelerator.prepare(
        torch.utils.data.DataLoader(view, batch_size=None, num_workers=workers)
    )
    batches.set_epoch(4)
    assert steps(skip_first_batches(batches, 2)) == epochs(4)[2:]
    batches.set_epoch(5)
    assert steps(batches) == epochs(5)


@pytest.mark.parametrize("make", [make_view, make_loader], ids=["view", "loader"])
@pytest.mark.parametrize("taken", [1, 4, STEPS, STEPS + 2])
def test_save_state_holds_the_position(accelerator, tmp_path, make, taken):
    """The form without a look-ahead: nothing is skipped, the state is that of the last batch."""

    def begin():
        batches = om.torch.DevicePrefetcher(make(), accelerator.device)
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters())
        batches, model, optimizer = accelerator.prepare(batches, model, optimizer)
        accelerator._custom_objects.clear()
        accelerator.register_for_checkpointing(batches)
        return batches

    batches = begin()
    seen = []
    while len(seen) < taken:
        for batch in batches:
            seen.append(step_of(batch))
            if len(seen) == taken:
                accelerator.save_state(tmp_path / "state")
                break
    accelerator._models.clear()
    accelerator._optimizers.clear()
    batches = begin()
    accelerator.load_state(tmp_path / "state")
    seen += steps(batches) + steps(batches)
    assert seen == list(range(len(seen)))
    accelerator._models.clear()
    accelerator._optimizers.clear()
