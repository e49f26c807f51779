"""Damage what users hand over and see that only documented errors come.

python tools/fuzz.py [--seconds 60] [SUBJECT...]: each subject for so long.
python tools/fuzz.py --case NUMBER SUBJECT: one case again, as a failure names it.

tables: bytes of an ImageTable's files change. It opens or says what is wrong; every batch of one
that opens is made or refused; `onemodel check` finds the change.
states: fields of a loader's state change. It is refused, or the next batch is the one it names.
reports: bytes of what `onemodel verify --json` printed change.
folders: pictures, links and odd files for `onemodel pack`. It packs or says why not.
kernels: the tests that hold the kernels to their twins in Python, with new random arguments.

A case is a pure function of its subject and number.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onemodel as om
from onemodel._cli.main import main as onemodel_command
from onemodel._cli.report import read_report
from onemodel.datasets import ImageTable
from onemodel.datasets.table_files import check_table

DOCUMENTED = (TypeError, ValueError, IndexError, OSError)
ROOT = Path(__file__).resolve().parent.parent
TWINS = ("collate", "augment", "transforms", "resize", "image", "permutation", "rng", "samplers")

#: What somebody may have put where a number or a text was.
ODD = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**400, 0.5, float("nan"), float("inf"),
    "", "0", "é\0", [], [[]], [0, "a"], {}, {"a": 1}, [1] * 1000,
)  # fmt: skip

Case = Callable[[random.Random, Path], None]


def damaged(rng: random.Random, content: bytes) -> bytes:
    """Return other bytes than ``content``."""
    found = bytearray(content)
    kind = rng.randrange(4) if found else 3
    place = rng.randrange(len(found)) if found else 0
    if kind == 0:
        found[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del found[place : place + rng.choice((1, 8, 100, len(found)))]
    elif kind == 2:
        found[place : place + 4] = rng.randbytes(4)
    else:
        found[place:place] = rng.randbytes(rng.choice((1, 8, 64)))
    return bytes(found) if bytes(found) != content else content + b"\0"


def replaced(rng: random.Random, value: Any) -> Any:
    """Return a copy of nested dicts and lists in which one thing is odd, gone or new."""
    value = copy.deepcopy(value)
    place = value
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
            place = place[key]
            continue
        how = rng.randrange(3)
        if how == 0:
            del place[key]
        elif how == 1 and isinstance(place, dict):
            place[rng.choice(("", "version", "sha256", "new"))] = rng.choice(ODD)
        else:
            place[key] = rng.choice(ODD)
        return value


def table_case(rng: random.Random, folder: Path) -> None:
    """Change one file of a table."""
    generator = np.random.default_rng(rng.randrange(2**32))
    count, height, more = rng.randrange(1, 5), rng.randrange(1, 4), rng.choice(((), (3,)))
    images = [
        generator.integers(0, 255, (height, rng.randrange(1, 9), *more), np.uint8)
        for _ in range(count)
    ]
    labels = generator.integers(0, 9, count)
    names = [f"{k}.png" for k in range(count)] if rng.random() < 0.5 else None
    table = ImageTable.from_arrays(images, labels=labels)
    if names is not None:
        table = ImageTable(
            table.pixels, table.widths, channels=table.channels, height=table.height, names=names
        )
    table.save(folder / "table")
    path = rng.choice(sorted((folder / "table").iterdir()))
    before = path.read_bytes()
    if path.name == "manifest.json" and rng.random() < 0.5:
        path.write_text(json.dumps(replaced(rng, json.loads(before))))
    else:
        path.write_bytes(damaged(rng, before))
    unchanged = path.name == "manifest.json" and same_json(before, path.read_bytes())
    opened = None
    with contextlib.suppress(*DOCUMENTED):
        opened = ImageTable.open(folder / "table", memory_map=rng.random() < 0.5)
    if not unchanged and not check_table(folder / "table"):
        raise AssertionError(f"check finds nothing, though {path.name} changed")
    if opened is not None:
        loader = om.DataLoader(opened, 2, collate=om.ImageBatchCollator(), seed=3)
        with contextlib.suppress(*DOCUMENTED):
            for batch in loader.steps(0, loader.steps_per_epoch):
                batch.images.sum()


def same_json(before: bytes, after: bytes) -> bool:
    """Return whether both say the same."""
    try:
        return bool(json.loads(before) == json.loads(after))
    except ValueError:
        return False


def state_case(rng: random.Random, folder: Path) -> None:
    """Change one field of a state."""
    samples = [om.Sample(np.full((1, 2, 3 + k % 4), k, np.float32), [k], k) for k in range(12)]

    def make() -> om.DataLoader:
        return om.DataLoader(samples, 5, collate=om.ImageBatchCollator(), shuffle=True, seed=4)

    state = replaced(rng, make().state_dict(step=rng.randrange(10)))
    loader = make()
    try:
        loader.load_state_dict(state)
    except DOCUMENTED:
        return
    batch = next(iter(loader), None)
    if batch is None and state["next_step"] == 2**64:  # the end of all steps
        return
    if batch.global_step != state["next_step"]:
        raise AssertionError(f"next_step is {state['next_step']}, the batch {batch.global_step}")
    if om.digest(batch) != make().digest(batch.global_step):
        raise AssertionError(f"the batch of step {batch.global_step} is another one")


def report_case(rng: random.Random, folder: Path) -> None:
    """Change what `verify --json` printed."""
    machine = {"onemodel": om.__version__, "python": "3", "vectors": "avx2"}
    batches = [
        {"configuration": "lines", "step": step, "expected": "ab", "found": "ab", "same": True}
        for step in range(3)
    ]
    whole = {
        "format": "onemodel.verify", "version": 1, "algorithm": 1, "machine": machine, "same": 3,
        "total": 3, "batches": batches,
    }  # fmt: skip
    path = folder / "report.json"
    path.write_text(json.dumps(replaced(rng, whole)))
    if rng.random() < 0.5:
        path.write_bytes(damaged(rng, path.read_bytes()))
    with contextlib.suppress(*DOCUMENTED):
        read_report(path)


def folder_case(rng: random.Random, folder: Path) -> None:
    """Put odd things into a folder of pictures and pack it."""
    from PIL import Image

    source = folder / "pictures"
    source.mkdir()
    for k in range(rng.randrange(1, 5)):
        mode = rng.choice(("L", "RGB", "RGBA", "P", "1", "I;16", "CMYK"))
        suffix = rng.choice((".png", ".tif", ".jpg", ".gif", ".PNG", ".png.txt"))
        name = source / rng.choice((f"{k}{suffix}", f"a/{k}{suffix}", f"é {k}{suffix}"))
        name.parent.mkdir(exist_ok=True)
        size = (rng.randrange(1, 20), rng.choice((4, 4, 4, 5)))
        saved = io.BytesIO()
        with contextlib.suppress(OSError, ValueError, KeyError):
            Image.new(mode, size).save(saved, rng.choice(("PNG", "TIFF", "JPEG", "GIF")))
        content = saved.getvalue()
        name.write_bytes(damaged(rng, content) if rng.random() < 0.4 else content)
    odd = rng.randrange(6)
    if odd == 0:
        (source / "gone.png").symlink_to(source / "nowhere.png")
    elif odd == 1:
        (source / "loop").symlink_to(source)
    elif odd == 2 and hasattr(os, "mkfifo"):
        os.mkfifo(source / "pipe.png")
    elif odd == 3:
        (source / "folder.png").mkdir()
    elif odd == 4:
        (source / "labels.tsv").write_bytes(damaged(rng, b"0.png\tab\n1.png\tcd\n"))
    arguments = ["pack", str(source), str(folder / "out")]
    if odd == 4:
        arguments += ["--labels", str(source / "labels.tsv"), "--alphabet", "abcd"]
    if rng.random() < 0.3:
        arguments += ["--height", str(rng.choice((1, 4, 7)))]
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        code = onemodel_command(arguments)
    if code not in (0, 1, 2):
        raise AssertionError(f"pack ended with {code}")
    if code != 2:
        opened = ImageTable.open(folder / "out")
        if check_table(folder / "out") or len(opened) < 1:
            raise AssertionError("the table that was packed is not whole")


CASES: dict[str, Case] = {
    "tables": table_case,
    "states": state_case,
    "reports": report_case,
    "folders": folder_case,
}


def run_case(subject: str, number: int) -> str | None:
    """Run one case; return what is wrong, with how to see it again, or None."""
    folder = Path(tempfile.mkdtemp())
    try:
        CASES[subject](random.Random(f"{subject} {number}"), folder)
    except Exception:
        again = f"python tools/fuzz.py --case {number} {subject}"
        return f"{again}\n{traceback.format_exc()}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def run_kernels(number: int) -> str | None:
    """Run the tests against the twins with the random arguments of one seed."""
    tests = [str(ROOT / "tests" / f"test_{name}.py") for name in TWINS]
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
        "--hypothesis-profile=fuzz", f"--hypothesis-seed={number}", *tests,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return f"{' '.join(command)}\n{done.stdout[-4000:]}"


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = (*CASES, "kernels")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(known)}")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--case", type=int, help="run this one alone")
    given = parser.parse_args()
    subjects = given.subjects or known
    if not set(subjects) <= set(known):
        parser.error(f"SUBJECT must be of {', '.join(known)}, got {' '.join(subjects)}")
    failures = 0
    for subject in subjects:
        one = run_kernels if subject == "kernels" else lambda n, s=subject: run_case(s, n)
        first = given.case if given.case is not None else time.time_ns() // 1000
        end = time.monotonic() + given.seconds
        count = 0
        while (count == 0) if given.case is not None else (time.monotonic() < end):
            wrong = one(first + count)
            count += 1
            if wrong is not None:
                failures += 1
                print(wrong, flush=True)
        print(f"{subject}: {count:,} cases", flush=True)
    if failures:
        sys.exit(f"{failures} failed")


if __name__ == "__main__":
    main()
