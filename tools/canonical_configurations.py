"""The loaders whose batches `onemodel verify` compares, as the plain values of `canonical.json`.

Together they use every sampler, augmentation and transform, both faces, shards and workers. A new
configuration goes in where it belongs; `python tools/make_canonical.py` then computes its digests.
"""

SYNTHETIC = {"kind": "synthetic lines", "count": 60, "height": 6}
DIGITS = {"kind": "digit lines", "count": 90, "seed": 3, "digits": [1, 5], "height": 24}
DIGIT_TABLE = {**DIGITS, "kind": "digit lines in a uint8 table"}
ARRAYS = {"kind": "arrays", "count": 50}
# Values below 2**-126, which a thread that flushes subnormals would take for 0. No callable gets
# them: on 32-bit ARM NumPy's vectors take them for 0 as well.
FAINT = {**SYNTHETIC, "kind": "faint lines"}
FAINT_TABLE = {**SYNTHETIC, "kind": "faint lines in a float32 table"}
FAINT_ARRAYS = {**ARRAYS, "kind": "faint arrays"}

SEQUENTIAL = {"kind": "sequential", "batch_size": 8, "drop_last": True}
SHUFFLED = {"kind": "shuffled", "batch_size": 8, "drop_last": True}
SHUFFLED_ALL = {"kind": "shuffled", "batch_size": 7, "drop_last": False}
BUCKETED = {"kind": "bucketed", "batch_size": 8, "pool_batches": 3, "drop_last": True}
BUCKETED_ALL = {"kind": "bucketed", "batch_size": 8, "pool_batches": 64, "drop_last": False}
MIXING = {
    "kind": "mixing",
    "sizes": [20, 0, 40],
    "shares": [0.3, 5.0, 0.1],
    "batch_size": 8,
    "steps_per_epoch": None,
}
BUCKETED_SLOTS = {**BUCKETED, "shuffle_slots": True}
WEIGHTED = {"kind": "weighted", "weights": [0, 1, 0.5, 3, 2, 1.25] * 10, "batch_size": 8}
WEIGHTED_ONCE = {**WEIGHTED, "batch_size": 7, "replacement": False, "drop_last": False}
BUDGET = {"kind": "budget", "budget": 60, "multiple_of": 2, "pool_batches": 3}

PLAIN = [{"kind": "plain gain"}]
GAIN_OFFSET = [{"kind": "GainOffset", "gain": [0.8, 1.2], "offset": [-0.1, 0.1]}]
NATIVE = [
    {"kind": "Shift", "dx": [-2, 3], "dy": [-1, 1], "fill": 0.25},
    {"kind": "Blur", "p": 0.5},
    {"kind": "HorizontalFlip", "p": 0.5},
    {"kind": "Erase", "count": 2, "size": [1, 4], "fill": -0.5},
    {"kind": "Invert", "p": 0.25},
    {"kind": "Noise", "sigma": 0.1},
]
ROWS = [
    {"kind": "RandomCrop", "padding": 1, "size": [4, 6]},
    {"kind": "RandomHorizontalFlip", "p": 0.5},
    {"kind": "Cutout", "size": 2},
    {"kind": "Normalize", "mean": [0.5, 0.4, 0.3], "std": [0.25, 0.2, 0.1]},
]
BLENDED = [
    {"kind": "OneHot", "classes": 50},
    {"kind": "Mixup", "alpha": 0.5, "block": 2},
    {"kind": "CutMix", "alpha": 1.0, "block": 4},
]
RESHAPED = [
    {"kind": "StretchWidth", "low": 0.7, "high": 1.4},
    {"kind": "ResizeHeight", "height": 9, "keep_aspect": False},
]
FAINT_GAIN_OFFSET = [{"kind": "GainOffset", "gain": [0.8, 1.2], "offset": [-1e-39, 1e-39]}]
FAINT_ROWS = [
    *ROWS[:3],
    {"kind": "Normalize", "mean": [0.0, 1e-40, -1e-39], "std": [0.3, 0.7, 3.0]},
]
LARGE_SEED = 2**64 - 1


def collate(augment=(), width_multiple=4, pad_value=0.0):
    """Describe a collator."""
    return {"augment": list(augment), "width_multiple": width_multiple, "pad_value": pad_value}


def configuration(name, dataset, sampler, **changes):
    """Describe a loader: the usual one but for `changes`."""
    usual = {"seed": 42, "transform": [], "collate": collate(), "shard": [0, 1], "workers": 0}
    return {"name": name, "dataset": dataset, "sampler": sampler, **usual, **changes}


CONFIGURATIONS = [
    configuration("synthetic lines, sequential", SYNTHETIC, SEQUENTIAL),
    configuration("synthetic lines, shuffled", SYNTHETIC, SHUFFLED),
    configuration("synthetic lines, shuffled, short last batch", SYNTHETIC, SHUFFLED_ALL),
    configuration("synthetic lines, mixing", SYNTHETIC, MIXING),
    configuration("synthetic lines, bucketed", SYNTHETIC, BUCKETED),
    configuration("synthetic lines, bucketed, short batch", SYNTHETIC, BUCKETED_ALL),
    configuration(
        "synthetic lines, shuffled, GainOffset", SYNTHETIC, SHUFFLED, collate=collate(GAIN_OFFSET)
    ),
    configuration(
        "synthetic lines, bucketed, GainOffset after a callable, shard 1 of 2",
        SYNTHETIC,
        BUCKETED_ALL,
        collate=collate(PLAIN + GAIN_OFFSET),
        shard=[1, 2],
    ),
    configuration(
        "synthetic lines, shuffled, Python augmentation, workers",
        SYNTHETIC,
        SHUFFLED,
        collate=collate(PLAIN),
        workers=2,
    ),
    configuration(
        "synthetic lines, shuffled, transform, largest seed",
        SYNTHETIC,
        SHUFFLED,
        transform=[{"kind": "crop left"}],
        collate=collate(PLAIN, width_multiple=1, pad_value=-0.5),
        seed=LARGE_SEED,
    ),
    configuration(
        "synthetic lines, mixing, all native augmentations, workers",
        SYNTHETIC,
        MIXING,
        collate=collate(GAIN_OFFSET + NATIVE),
        workers=2,
    ),
    configuration(
        "synthetic lines, shuffled, native augmentations around a callable",
        SYNTHETIC,
        SHUFFLED_ALL,
        collate=collate(NATIVE[:3] + PLAIN + NATIVE[3:], width_multiple=1, pad_value=1.0),
    ),
    configuration(
        "synthetic lines, shuffled, stretched and resized",
        SYNTHETIC,
        SHUFFLED,
        transform=RESHAPED,
        collate=collate(GAIN_OFFSET),
    ),
    configuration("digit lines, shuffled, workers", DIGITS, SHUFFLED, workers=2),
    configuration("digit lines, bucketed", DIGITS, BUCKETED),
    configuration(
        "digit lines in a uint8 table, bucketed, GainOffset, workers",
        DIGIT_TABLE,
        BUCKETED,
        collate=collate(GAIN_OFFSET),
        workers=2,
    ),
    configuration("arrays, shuffled", ARRAYS, SHUFFLED_ALL, collate=None),
    configuration(
        "arrays, sequential, transform, workers",
        ARRAYS,
        SEQUENTIAL,
        transform=[{"kind": "flip and scale"}],
        collate=None,
        workers=2,
    ),
    configuration(
        "arrays, shuffled, native transforms of rows, workers",
        ARRAYS,
        SHUFFLED_ALL,
        transform=ROWS,
        collate=None,
        workers=2,
    ),
    configuration(
        "arrays, shuffled, all native transforms, shard 1 of 2",
        ARRAYS,
        SHUFFLED,
        transform=ROWS + BLENDED,
        collate=None,
        shard=[1, 2],
    ),
    configuration("synthetic lines, weighted, workers", SYNTHETIC, WEIGHTED, workers=2),
    configuration("synthetic lines, weighted without replacement", SYNTHETIC, WEIGHTED_ONCE),
    configuration("synthetic lines, budget, shard 1 of 2", SYNTHETIC, BUDGET, shard=[1, 2]),
    configuration(
        "synthetic lines, bucketed, slots shuffled, shard 1 of 2",
        SYNTHETIC,
        BUCKETED_SLOTS,
        shard=[1, 2],
    ),
    configuration(
        "faint lines, shuffled, stretched and resized, workers",
        FAINT,
        SHUFFLED,
        transform=RESHAPED,
        collate=collate(FAINT_GAIN_OFFSET),
        workers=2,
    ),
    configuration(
        "faint lines in a float32 table, shuffled, native augmentations, workers",
        FAINT_TABLE,
        SHUFFLED_ALL,
        collate=collate([*FAINT_GAIN_OFFSET, {"kind": "Blur", "p": 0.75}]),
        workers=2,
    ),
    configuration(
        "faint arrays, shuffled, native transforms",
        FAINT_ARRAYS,
        SHUFFLED_ALL,
        transform=FAINT_ROWS + BLENDED[:2],
        collate=None,
    ),
]
