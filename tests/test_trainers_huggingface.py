"""Promise: Hugging Face's Trainer trains and evaluates on `loader[g]` and resumes at any step.

Both forms of the guide are run: batches that it skips itself, and a state that it loads.
"""

import json

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")
from trainer_runs import EPOCHS, epochs, make_view, quiet, step_of, torch  # noqa: F401
from transformers import Trainer, TrainerCallback, TrainingArguments

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("needs_threads", "needs_subprocess")]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(16, 3)
        self.trained, self.evaluated = [], []

    def forward(self, x, labels):
        (self.trained if self.training else self.evaluated).append(
            step_of({"x": x, "labels": labels})
        )
        scores = self.layer(x.flatten(1))
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


class Skipping(Trainer):
    """Trainer skips the batches of the epoch that were trained on."""

    workers = 0

    def get_train_dataloader(self):
        return self.accelerator.prepare(self._in_torch(self.train_dataset))

    def get_eval_dataloader(self, eval_dataset=None):
        return self._in_torch(eval_dataset or self.eval_dataset)

    def _in_torch(self, view):
        return torch.utils.data.DataLoader(view, batch_size=None, num_workers=self.workers)


class SkippingWithWorkers(Skipping):
    workers = 2


class Loading(Trainer):
    """The loader's state is loaded, so nothing has to be skipped."""

    def get_train_dataloader(self):
        return self.train_dataset

    def get_eval_dataloader(self, eval_dataset=None):
        return eval_dataset or self.eval_dataset


class LoaderState(TrainerCallback):
    """Keeps the view's state beside each checkpoint."""

    def __init__(self, view):
        self.view = view

    def path(self, args, state):
        return f"{args.output_dir}/checkpoint-{state.global_step}/loader.json"

    def on_save(self, args, state, control, **_):
        with open(self.path(args, state), "w") as file:
            json.dump(self.view.state_dict(), file)

    def on_train_begin(self, args, state, control, **_):
        if state.global_step:
            with open(self.path(args, state)) as file:
                self.view.load_state_dict(json.load(file))


def make(kind, directory, every):
    view = make_view("labels")
    loading = kind is Loading
    arguments = TrainingArguments(
        directory,
        num_train_epochs=EPOCHS,
        save_strategy="steps",
        save_steps=every,
        eval_strategy="epoch",
        ignore_data_skip=loading,
        learning_rate=0.1,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    return kind(
        Model(),
        arguments,
        train_dataset=view,
        eval_dataset=make_view("labels"),
        callbacks=[LoaderState(view)] if loading else [],
    )


@pytest.mark.parametrize("every", [6, 8])
@pytest.mark.parametrize("kind", [Skipping, SkippingWithWorkers, Loading])
def test_train_evaluate_and_resume(kind, every, tmp_path):
    whole = make(kind, tmp_path, every)
    whole.train()
    assert whole.model.trained == epochs(0, EPOCHS - 1)
    assert whole.model.evaluated == epochs(0, EPOCHS - 1)
    resumed = make(kind, tmp_path, every)
    resumed.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{every}"))
    assert resumed.model.trained == whole.model.trained[every:]
    assert torch.equal(resumed.model.layer.weight, whole.model.layer.weight)
