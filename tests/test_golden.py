"""Promise: the golden vectors come out byte for byte, of the package and of the twins alike.

`tests/golden/README.md` says what each key holds.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from reference.lines import GoldenLines, gain_and_offset
from support import integers, load_package

import onemodel
from onemodel._samplers.weighted import integer_weights

GOLDEN = Path(__file__).parent / "golden"
VECTORS = json.loads((GOLDEN / "vectors.json").read_text())
SAMPLERS = json.loads((GOLDEN / "samplers.json").read_text())


def word(text):
    return int(text, 16)


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array).astype("<f4").tobytes()).hexdigest()


def test_the_file_is_whole():
    counts = {name: len(value) for name, value in VECTORS.items() if name != "tag"}
    assert counts == {
        "mix": 7,
        "derive": 16,
        "streams": 3,
        "perm": 28,
        "samplers": 26,
        "gray8": 4,
        "rgb8": 4,
        "batches": 24,
    }


def test_mix(implementation):
    for x, expected in VECTORS["mix"]:
        assert implementation.mix(word(x)) == word(expected)


def test_derive(implementation):
    for seed, epoch, step, slot, stream, expected in VECTORS["derive"]:
        assert implementation.derive(word(seed), epoch, step, slot, stream) == word(expected)


@pytest.mark.parametrize("stream", VECTORS["streams"], ids=lambda stream: stream["state"])
def test_scalar_draws(implementation, stream):
    def rng():
        return implementation.SampleRng(word(stream["state"]))

    draw = rng()
    assert [draw.next_u64() for _ in range(8)] == [word(text) for text in stream["u64"]]

    for name, method in (
        ("single", "next_single"),
        ("double", "next_double"),
        ("normal", "next_normal"),
    ):
        draw = getattr(rng(), method)
        expected = [float.fromhex(text) for text in stream[name]]
        assert [draw() for _ in expected] == expected

    for n, expected, state in stream["below"]:
        draw = rng()
        assert [draw.next_int(int(n)) for _ in expected] == integers(expected)
        assert draw.state == word(state)


def test_permutation(implementation):
    for vector in VECTORS["perm"]:
        permutation = implementation.KeyedPermutation(vector["n"], word(vector["key"]))
        for position, index in vector["at"]:
            assert permutation[position] == index
            assert permutation.inverse(index) == position


def of_kind(kind):
    return [vector for vector in VECTORS["samplers"] if vector["kind"] == kind]


def test_shuffled_sampler(implementation):
    for vector in of_kind("shuffled"):
        sampler = implementation.ShuffledSampler(
            vector["n"], vector["batch"], drop_last=vector["drop_last"]
        )
        assert sampler.steps_per_epoch == vector["steps"]
        seed = word(vector["seed"])
        for epoch, expected in zip((0, 1, 5), vector["epochs"], strict=True):
            batches = [
                integers(sampler.batch_indices(seed, epoch, step))
                for step in range(vector["steps"])
            ]
            assert batches == expected


def test_mixing_sampler(implementation):
    for vector in of_kind("mixing"):
        sampler = implementation.MixingSampler(
            vector["sizes"], vector["shares"], vector["batch"], steps_per_epoch=8
        )
        for epoch, step, expected in vector["at"]:
            indices = sampler.batch_indices(word(vector["seed"]), epoch, step)
            assert integers(indices) == expected


def test_bucketed_sampler(implementation):
    for vector in of_kind("bucketed"):
        sampler = implementation.BucketedSampler(
            vector["lengths"],
            vector["batch"],
            pool_batches=vector["pool_batches"],
            drop_last=vector["drop_last"],
        )
        seed = word(vector["seed"])
        for epoch, expected in vector["epochs"]:
            assert sampler.steps_per_epoch == len(expected)
            batches = [
                integers(sampler.batch_indices(seed, epoch, step)) for step in range(len(expected))
            ]
            assert batches == expected


OF_THE_TWINS = {
    "weighted": "WeightedSampler",
    "budget": "BudgetSampler",
    "shuffled_slots": "BucketedSampler",
}


@pytest.mark.parametrize("kind", OF_THE_TWINS)
def test_samplers_of_the_twins(kind, implementation):
    """The vectors of samplers.json."""
    assert len(SAMPLERS[kind]) == {"weighted": 14, "budget": 4, "shuffled_slots": 2}[kind]
    for vector in SAMPLERS[kind]:
        column, *others = vector["arguments"]
        if kind == "weighted":
            column = [float.fromhex(text) for text in column]
        sampler = getattr(implementation, OF_THE_TWINS[kind])(column, *others, **vector["options"])
        assert len(vector["epochs"]) == 4
        for seed, epoch, expected in vector["epochs"]:
            assert sampler.steps_per_epoch == len(expected)
            for step, batch in enumerate(expected):
                assert integers(sampler.batch_indices(word(seed), epoch, step)) == batch


def test_weights_as_integers():
    for weights, amounts in SAMPLERS["amounts"]:
        found = integer_weights(np.array([float.fromhex(text) for text in weights]))
        assert integers(found) == [word(text) for text in amounts]


def test_gray8(implementation):
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for vector in VECTORS["gray8"]:
        planar = implementation.gray8_to_planar(pixels, vector["mean"], vector["std"])
        assert planar.dtype == np.float32
        assert planar.shape == (1, 16, 16)
        values = planar.ravel().tolist()
        assert values[:4] == [float.fromhex(text) for text in vector["first"]]
        assert values[-1] == float.fromhex(vector["last"])
        assert sha256(planar) == vector["sha256"]


def test_rgb8(implementation):
    vector = VECTORS["rgb8"]
    pixels = (np.arange(8 * 5 * 3) * 7 % 256).astype(np.uint8).reshape(8, 5, 3)
    planar = implementation.rgb8_to_planar(pixels, vector["mean"], vector["std"])
    assert planar.dtype == np.float32
    assert planar.shape == (3, 8, 5)
    assert sha256(planar) == vector["sha256"]


def batch_name(vector):
    return f"seed{vector['seed'][-4:]}-n{vector['n']}-step{vector['step']}"


@pytest.mark.parametrize("vector", VECTORS["batches"], ids=batch_name)
def test_batches(implementation, vector):
    digest = implementation.digest_at(
        vector["step"],
        seed=word(vector["seed"]),
        samples=GoldenLines(vector["n"], vector["height"]),
        sampler=implementation.ShuffledSampler(vector["n"], vector["batch"]),
        width_multiple=vector["width_multiple"],
        pad_value=vector["pad"],
        augment=gain_and_offset if vector["augment"] else None,
    )
    assert digest == vector["sha256"]


@pytest.mark.parametrize(
    "vector", [vector for vector in VECTORS["batches"] if vector["augment"]], ids=batch_name
)
def test_the_native_augmentation_gives_the_golden_batches(vector):
    """Decision 12 of the design: this pair of ranges is the augmentation of the vectors."""
    native = onemodel.augment.GainOffset(gain=(0.8, 1.2), offset=(-0.1, 0.1))
    digest = load_package().digest_at(
        vector["step"],
        seed=word(vector["seed"]),
        samples=GoldenLines(vector["n"], vector["height"]),
        sampler=onemodel.ShuffledSampler(vector["n"], vector["batch"]),
        width_multiple=vector["width_multiple"],
        pad_value=vector["pad"],
        augment=native,
    )
    assert digest == vector["sha256"]
