"""Compute tests/golden/samplers.json with the twins of tests/reference, and not with the package.

    python tools/make_sampler_vectors.py

It was run once, when these samplers were specified. A later run that gives another file says that
a twin has changed.
"""

import json
import random
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from reference.budget import BudgetSampler  # noqa: E402
from reference.samplers import BucketedSampler  # noqa: E402
from reference.weighted import WeightedSampler, integer_weights  # noqa: E402

SEEDS = [0, 42, 0xDEADBEEFCAFEF00D, 2**64 - 1]
EPOCHS = [0, 1, 5, 2**40]
DRAW = random.Random(12)  # of lengths and weights, which the file holds
LENGTHS = [DRAW.randrange(1, 200) for _ in range(61)]
TIED = [8, 6, 6, 9, 8, 0, 9, 6, 6, 6, 0]
WEIGHTS = [
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
    [DRAW.random() for _ in range(53)],
    [DRAW.choice([0.0, 1.0, 1e-9, 1e9, DRAW.random()]) for _ in range(40)],
    [5e-324, 1e-310, 0.0, 2e-310, 1e-300],
    [1.7e308, 1e308, 5e-324, 1.0],
    [0.1] * 10,
]


def batches(sampler, seed, epoch):
    """Return all batches of an epoch."""
    return [sampler.batch_indices(seed, epoch, step) for step in range(sampler.steps_per_epoch)]


def vector(kind, arguments, options):
    """Return the arguments and the epochs of one sampler."""
    sampler = kind(*arguments, **options)
    return {
        "arguments": [[float.hex(x) for x in arguments[0]], arguments[1]]
        if kind is WeightedSampler
        else arguments,
        "options": options,
        "epochs": [
            [hex(seed), epoch, batches(sampler, seed, epoch)]
            for seed, epoch in zip(SEEDS, EPOCHS, strict=True)
        ],
    }


def main():
    """Write the file."""
    weighted = [
        vector(WeightedSampler, [weights, 8], {"replacement": replacement, "drop_last": False})
        for weights in WEIGHTS
        for replacement in (True, False)
    ]
    weighted.append(
        vector(WeightedSampler, [WEIGHTS[0], 5], {"replacement": True, "steps_per_epoch": 4})
    )
    weighted.append(
        vector(WeightedSampler, [WEIGHTS[1], 6], {"replacement": False, "steps_per_epoch": 3})
    )
    budget = [
        vector(BudgetSampler, [LENGTHS, 800], {"pool_batches": 2}),
        vector(BudgetSampler, [LENGTHS, 1000], {"multiple_of": 4, "pool_batches": 3}),
        vector(BudgetSampler, [LENGTHS, 2000], {"multiple_of": 2, "largest_batch": 9}),
        vector(BudgetSampler, [TIED, 20], {"multiple_of": 2, "pool_batches": 1}),
    ]
    slots = [
        vector(BucketedSampler, [LENGTHS, 8], {"pool_batches": 3, "shuffle_slots": True}),
        vector(BucketedSampler, [TIED, 4], {"drop_last": False, "shuffle_slots": True}),
    ]
    made = {
        "amounts": [
            [[float.hex(x) for x in each], [hex(q) for q in integer_weights(each)]]
            for each in WEIGHTS
        ],
        "weighted": weighted,
        "budget": budget,
        "shuffled_slots": slots,
    }
    path = TESTS / "golden" / "samplers.json"
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
