"""Promise: Lightning trains, validates and tests on `loader[g]`, and resumes at any step.

Every form that a loader may take there is run: as it is, as a view, and as a view in torch's own
DataLoader with worker processes or without.
"""

import pytest

pytest.importorskip("lightning", reason="lightning is not installed")
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint
from trainer_runs import (
    EPOCHS,
    epochs,
    make_loader,
    make_view,
    quiet,  # noqa: F401
    step_of,
    torch,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("needs_threads", "needs_subprocess")]


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(16, 3)
        self.trained, self.validated, self.tested = [], [], []

    def training_step(self, batch, _number):
        self.trained.append(step_of(batch))
        return torch.nn.functional.cross_entropy(self.layer(batch["x"].flatten(1)), batch["y"])

    def validation_step(self, batch, _number):
        self.validated.append(step_of(batch))

    def test_step(self, batch, batch_idx):
        self.tested.append(step_of(batch))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 0.1)


def trainer(**options):
    return lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"enable_checkpointing": False, "max_epochs": EPOCHS, **options},
    )


def in_torch(view, workers=0):
    return torch.utils.data.DataLoader(view, batch_size=None, num_workers=workers)


FORMS = {
    "loader": lambda: make_loader(workers=1, device="torch"),
    "view": lambda: make_view(workers=1),
    "torch": lambda: in_torch(make_view()),
    "torch with workers": lambda: in_torch(make_view(), 2),
}


@pytest.mark.parametrize("form", FORMS)
def test_fit_validate_and_test(form):
    model, run = Model(), trainer(num_sanity_val_steps=2)
    run.fit(model, FORMS[form](), FORMS[form]())
    run.validate(model, FORMS[form](), verbose=False)
    run.test(model, FORMS[form](), verbose=False)
    assert model.trained == epochs(0, EPOCHS - 1)
    # a view runs over the trainer's own epochs, whatever passes come before; others count passes
    assert model.validated[:2] == [0, 1]
    assert len(model.validated) == 2 + len(epochs(0, EPOCHS))
    for at in range(2, len(model.validated), 6):
        assert model.validated[at : at + 6] in [epochs(epoch) for epoch in range(EPOCHS + 1)]
    assert model.tested in [epochs(epoch) for epoch in range(EPOCHS + 1)]


@pytest.mark.parametrize("every", [4, 6, 8])
@pytest.mark.parametrize("make", [make_view, lambda: FORMS["loader"]()], ids=["view", "loader"])
def test_resume_gives_the_same_batches_and_weights(tmp_path, every, make, request):
    if every == 6 and "loader" in request.node.callspec.id:
        pytest.skip("Lightning loads no loader's state at the end of an epoch: the guide says so")
    saver = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=every, save_top_k=-1)
    whole = Model()
    trainer(callbacks=[saver], enable_checkpointing=True).fit(whole, make())
    (path,) = tmp_path.glob(f"step={every}.ckpt")
    resumed = Model()
    trainer().fit(resumed, make(), ckpt_path=path, weights_only=False)
    assert whole.trained == epochs(0, EPOCHS - 1)
    assert resumed.trained == whole.trained[every:]
    assert torch.equal(resumed.layer.weight, whole.layer.weight)


def test_resume_at_the_end_of_an_epoch(tmp_path):
    saver = ModelCheckpoint(tmp_path, "{epoch}", save_top_k=-1)
    whole = Model()
    trainer(callbacks=[saver], enable_checkpointing=True).fit(whole, make_view(), make_view())
    resumed = Model()
    path = tmp_path / "epoch=1.ckpt"
    trainer().fit(resumed, make_view(), make_view(), ckpt_path=path, weights_only=False)
    assert resumed.trained == epochs(2)
    assert torch.equal(resumed.layer.weight, whole.layer.weight)
