"""Train on small images; kill the run whenever you like; it ends with the same weights.

The data are scikit-learn's 1,797 digits, as uint8 images [8, 8, 1]. Each batch is cropped, cut
out, normalised and mixed up by native transforms. After every ``--save-every`` steps the weights
and the loader's state go into one file, written atomically. Start the same command again after
a kill and it goes on from there: the batches are those that the uninterrupted run would have
seen, so the weights are equal bit by bit (on one machine with one version of the libraries).

    python examples/cifar_like.py --checkpoint run.npz
    python examples/cifar_like.py --checkpoint run.npz --kill-at 60    # dies without a word
    python examples/cifar_like.py --checkpoint run.npz                 # goes on, same result

It trains a small network in PyTorch where that is installed, and else one in NumPy.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import onemodel as om
from onemodel.transforms import Compose, Cutout, Mixup, Normalize, OneHot, RandomCrop

CLASSES = 10
TEST_ROWS = 297


def load_images():
    """Return (train images, train labels, test images, test labels); uint8 [n, 8, 8, 1]."""
    digits = load_digits()
    images = (digits.images * 15).astype(np.uint8)[..., None]
    labels = digits.target.astype(np.int64)
    return images[TEST_ROWS:], labels[TEST_ROWS:], images[:TEST_ROWS], labels[:TEST_ROWS]


class NumpyNetwork:
    """Two layers and plain gradient descent on soft labels; float32 throughout."""

    def __init__(self, seed, hidden=64):
        rng = om.SampleRng(om.derive(seed, 0, 0, 0, 7))
        self.weights = {
            "w1": rng.standard_normal((64, hidden)) * np.float32(64**-0.5),
            "b1": np.zeros(hidden, np.float32),
            "w2": rng.standard_normal((hidden, CLASSES)) * np.float32(hidden**-0.5),
            "b2": np.zeros(CLASSES, np.float32),
        }

    def forward(self, images):
        """Return the flat images, the hidden layer and the logarithms of the shares."""
        flat = images.reshape(len(images), -1)
        hidden = np.maximum(flat @ self.weights["w1"] + self.weights["b1"], 0)
        scores = hidden @ self.weights["w2"] + self.weights["b2"]
        scores -= scores.max(axis=1, keepdims=True)
        return flat, hidden, scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def step(self, images, labels, rate=0.5):
        """Take one step down the gradient; return the loss before it."""
        flat, hidden, log_shares = self.forward(images)
        loss = -(labels * log_shares).sum() / len(images)
        scores_slope = (np.exp(log_shares) - labels) / np.float32(len(images))
        hidden_slope = (scores_slope @ self.weights["w2"].T) * (hidden > 0)
        slopes = {
            "w1": flat.T @ hidden_slope,
            "b1": hidden_slope.sum(axis=0),
            "w2": hidden.T @ scores_slope,
            "b2": scores_slope.sum(axis=0),
        }
        for name, slope in slopes.items():
            self.weights[name] -= np.float32(rate) * slope
        return float(loss)

    def predict(self, images):
        """Return the likeliest class of each image."""
        return self.forward(images)[2].argmax(axis=1)

    def load(self, weights):
        """Take the weights from a dict of arrays."""
        self.weights = {name: weights[name] for name in self.weights}


class TorchNetwork:
    """A convolution and a linear layer, plain gradient descent on soft labels."""

    def __init__(self, seed):
        import torch

        self.torch = torch
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        self.model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(16 * 64, CLASSES),
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.3)

    @property
    def weights(self):
        """The weights as a dict of arrays."""
        return {name: tensor.numpy() for name, tensor in self.model.state_dict().items()}

    def step(self, images, labels):
        """Take one step down the gradient; return the loss before it."""
        images, labels = self.torch.from_numpy(images), self.torch.from_numpy(labels)
        loss = self.torch.nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def predict(self, images):
        """Return the likeliest class of each image."""
        with self.torch.no_grad():
            return self.model(self.torch.from_numpy(images)).argmax(dim=1).numpy()

    def load(self, weights):
        """Take the weights from a dict of arrays."""
        tensors = {name: self.torch.from_numpy(weights[name]) for name in self.weights}
        self.model.load_state_dict(tensors)


def save(path, network, loader):
    """Write weights and loader state into one file, whole or not at all."""
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        state = np.array(json.dumps(loader.state_dict()))
        np.savez(file, loader_state=state, **network.weights)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def restore(path, network, loader):
    """Read what ``save`` wrote into the network and the loader."""
    with np.load(path) as stored:
        network.load({name: stored[name] for name in stored.files if name != "loader_state"})
        loader.load_state_dict(json.loads(str(stored["loader_state"])))


def train(options):
    """Train from the checkpoint, or from the start where there is none."""
    images, labels, test_images, test_labels = load_images()
    normalize = Normalize(mean=0.3, std=0.35)
    loader = om.DataLoader(
        om.ArrayDataset(images, labels),
        batch_size=options.batch_size,
        shuffle=True,
        transform=Compose([RandomCrop(1), Cutout(1), normalize, OneHot(CLASSES), Mixup(0.0625)]),
        workers=options.workers,
        seed=options.seed,
    )
    network = (TorchNetwork if options.backend == "torch" else NumpyNetwork)(options.seed)
    if options.checkpoint.exists():
        restore(options.checkpoint, network, loader)
    start = loader.state_dict()["next_step"]
    print(f"{loader!r}, {options.backend}, from step {start}")

    losses = []
    with loader:
        for step, (batch, targets) in enumerate(
            loader.steps(stop=options.epochs * len(loader)), start
        ):
            losses.append(network.step(batch, targets))
            if step == options.kill_at:
                os._exit(9)  # as a kill would: nothing is saved, nothing is said
            if (step + 1) % options.save_every == 0:
                save(options.checkpoint, network, loader)
            if (step + 1) % len(loader) == 0:
                print(f"epoch {step // len(loader)}: loss {np.mean(losses):.3f}")
                losses.clear()
    save(options.checkpoint, network, loader)
    right = network.predict(normalize(om.SampleRng(0), test_images)) == test_labels
    digest = hashlib.sha256()
    for name, array in sorted(network.weights.items()):
        digest.update(name.encode() + array.tobytes())
    print(f"test accuracy {right.mean():.3f}")
    print(f"weights {digest.hexdigest()}")


def main():
    """Read the command line and train."""
    has_torch = importlib.util.find_spec("torch") is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="an .npz file")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=10, help="steps")
    parser.add_argument("--kill-at", type=int, default=-1, help="die after this step")
    parser.add_argument(
        "--backend", choices=["torch", "numpy"], default="torch" if has_torch else "numpy"
    )
    train(parser.parse_args())


if __name__ == "__main__":
    main()
