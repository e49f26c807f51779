"""The Python side of the page: builds what is asked for, with the very code that is shown.

The program that a visitor copies is made of three parts: the head makes `lines`, the body makes
`loader`, and the tail prints the digest of one batch. The page runs the same body, word for word.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import numpy as np
import picture_lines

import onemodel as om
from onemodel._cli import verify

LINES = 2000

# The two steps that are shown side by side, of the run that the page opens with.
NEAR_AND_FAR = (0, 10**18)
OPENING = {"data": "digits", "sampler": "shuffled", "batch": "12", "seed": "42", "augment": []}
ROUNDS = 12
BUILDS = 3  # a round: a browser's clock may be as coarse as a millisecond

HEAD = f"""\
import onemodel as om

lines = om.datasets.DigitLines({LINES}, seed=0)
"""

PICTURE_HEAD = """\
from PIL import Image

with Image.open({name!r}) as file:
    rgba = np.asarray(file.convert("RGBA"))
lines = PictureLines(rgba)
assert lines.sha256.startswith({sha256!r}), "decoded to other pixels than in the browser"
"""

SAMPLERS = {
    "sequential": "sampler = om.SequentialSampler(len(lines), {batch}{short})\n",
    "shuffled": "sampler = om.ShuffledSampler(len(lines), {batch}{short})\n",
    "mixing": """\
# Half of every batch comes from the last quarter of the lines, on average.
most = len(lines) * 3 // 4
sampler = om.MixingSampler([most, len(lines) - most], [0.5, 0.5], {batch}{steps})
""",
    "bucketed": "sampler = om.BucketedSampler(lines.widths, {batch}{short})\n",
}

AUGMENTATIONS = {
    "gain": "om.augment.GainOffset(gain=(0.5, 1.0), offset=(0.0, 0.25))",
    "blur": "om.augment.Blur(p=0.75)",
    "noise": "om.augment.Noise(sigma=0.08)",
}

BODY = """\
{sampler}{augment}collate = om.ImageBatchCollator(width_multiple=8{argument})
loader = om.DataLoader(lines, sampler=sampler, collate=collate, seed={seed})
"""

TAIL = """
print(loader.digest({step}))
"""


class Picture:
    """The visitor's picture, cut into lines."""

    def __init__(self, rgba, name):
        self.lines = picture_lines.PictureLines(rgba)
        self.sha256 = self.lines.sha256[:16]
        self.helper = Path(picture_lines.__file__).read_text(encoding="utf-8") + "\n\n"
        self.head = PICTURE_HEAD.format(name=name, sha256=self.sha256)


class Demo:
    """What the page talks to: one picture and one loader at a time."""

    def __init__(self):
        self._picture = None
        self._made = None  # (body, lines) that the loader was made from
        self._loader = None

    def use_picture(self, data, width, height, name):
        """Cut a picture given as bytes in RGBA; return what came of it as JSON."""
        rgba = np.frombuffer(data, dtype=np.uint8).reshape(height, width, 4)
        if not (rgba != rgba[0, 0]).any():
            return json.dumps({"error": "This picture is blank: all its pixels are the same."})
        picture = Picture(rgba, name)
        lines = picture.lines
        if not len(lines):
            return json.dumps({"error": "There is nothing in this picture to cut out."})
        self._picture = picture
        return json.dumps({"pieces": len(lines), "isText": lines.is_text, "sha256": picture.sha256})

    def show(self, request):
        """Build one batch; return its description as JSON, and its images.

        What does not fit (a batch size that is too large, say) comes back as "error".
        """
        asked = json.loads(request)
        try:
            return self._show(asked)
        except (IndexError, TypeError, ValueError) as error:
            return json.dumps({"error": str(error)}), None

    def _show(self, asked):
        helper, head, body, lines = self._program(asked)
        g = int(asked["step"])
        if self._made is None or self._made[0] != body or self._made[1] is not lines:
            self._made, self._loader = (body, lines), loader_of(body, lines)
            self._loader[0 if g else 1].release()  # so that the first is timed like any other
        started = time.perf_counter()
        batch = self._loader[g]
        seconds = time.perf_counter() - started
        said = described(batch, seconds)
        # What the batch was made from, for the page to name: never what it asked for since.
        said["of"] = {**asked, "batch": int(asked["batch"]), "step": str(g)}
        if asked["data"] == "picture":
            said["of"]["picture"] = self._picture.sha256
        said["stepsPerEpoch"] = str(self._loader.steps_per_epoch)
        said["helper"] = helper
        said["code"] = f"{head}{body}{TAIL.format(step=g)}"
        return json.dumps(said), batch.images

    def pair(self):
        """Build a near and a far step of one run; return of each what `show` returns.

        Both are built before anything is timed, and then in turn; the fastest round counts, since
        whatever else this machine does can only add to it.
        """
        _, _, body, lines = self._program(OPENING)
        loader = loader_of(body, lines)
        seconds = {g: [] for g in NEAR_AND_FAR}
        for round_ in range(1 + ROUNDS):
            for g in NEAR_AND_FAR:
                started = time.perf_counter()
                for _ in range(BUILDS):
                    loader[g].release()
                if round_ > 0:
                    seconds[g].append((time.perf_counter() - started) / BUILDS)
        both = []
        for g in NEAR_AND_FAR:
            batch = loader[g]
            said = described(batch, min(seconds[g]))
            said["of"] = {**OPENING, "batch": int(OPENING["batch"]), "step": str(g)}
            both.append((json.dumps(said), batch.images))
        return both

    def _program(self, asked):
        """Return the program's helper, head and body, and the dataset that the head makes."""
        if asked["data"] == "picture":
            if self._picture is None:
                raise ValueError("Choose a picture first.")
            picture = self._picture
            helper, head, lines = picture.helper, picture.head, picture.lines
            # A picture may hold fewer pieces than a batch has slots.
            short = ", drop_last=False"
            steps = f", steps_per_epoch=max(1, len(lines) // {asked['batch']})"
        else:
            helper, head, lines = "", HEAD, digit_lines()
            short = steps = ""
        sampler = SAMPLERS[asked["sampler"]].format(
            batch=int(asked["batch"]), short=short, steps=steps
        )
        parts = [AUGMENTATIONS[name] for name in asked["augment"]]
        augment = ""
        if len(parts) == 1:
            augment = f"augment = {parts[0]}\n"
        elif parts:
            listed = "".join(f"    {part},\n" for part in parts)
            augment = f"augment = om.Compose([\n{listed}])\n"
        argument = ", augment=augment" if parts else ""
        seed = int(asked["seed"])
        body = BODY.format(sampler=sampler, augment=augment, argument=argument, seed=seed)
        return helper, head, body, lines

    def versions(self):
        """Say what runs here."""
        python = ".".join(map(str, sys.version_info[:3]))
        bits = np.dtype(np.intp).itemsize * 8
        return (
            f"onemodel {om.__version__}, NumPy {np.__version__}, Python {python} "
            f"on {sys.platform}, {bits} bit"
        )

    async def prove(self, tell):
        """Recompute the canonical batches, telling each result as JSON; let others in between."""
        configurations = verify.canonical()["configurations"]
        total = sum(len(configuration["digests"]) for configuration in configurations)
        for result in verify.results():
            line = {
                "configuration": result.configuration,
                "step": str(result.step),
                "expected": result.expected,
                "found": result.found,
                "same": result.same,
                "total": total,
            }
            tell(json.dumps(line))
            # Asked for another batch meanwhile, the worker answers that first.
            await asyncio.sleep(0)


def loader_of(body, lines):
    """Run the body of a program; return its loader."""
    namespace = {"om": om, "lines": lines}
    exec(body, namespace)
    return namespace["loader"]


def described(batch, seconds):
    """Say what a batch holds, ready for JSON."""
    targets = np.split(batch.targets, np.cumsum(batch.target_lengths)[:-1])
    return {
        # As texts: they may not fit in JavaScript's numbers.
        "epoch": str(batch.epoch),
        "step": str(batch.step),
        "shape": list(batch.images.shape),
        "widths": batch.widths.tolist(),
        "indices": batch.indices.tolist(),
        # Digit lines keep 0 free for the blank of CTC, so their symbols are digits plus one.
        "targets": ["".join(str(symbol - 1) for symbol in target) for target in targets],
        "least": float(batch.images.min()),
        "greatest": float(batch.images.max()),
        "waste": batch.padding_waste,
        "milliseconds": seconds * 1000,
        "digest": om.digest(batch),
    }


def digit_lines():
    """Return the dataset of the head, the same object each time."""
    if not _kept:
        _kept.append(om.datasets.DigitLines(LINES, seed=0))
    return _kept[0]


_kept = []
