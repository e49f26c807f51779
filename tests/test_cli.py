"""Promise: the commands say what they found, in words and in the exit code: 0 all well, 1 a
difference, 2 not run, 130 interrupted.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onemodel._cli.main import main
from onemodel.datasets import ImageTable

ROOT = Path(__file__).parents[1]


def test_usage(capsys):
    for arguments in ([], ["unknown"], ["pack"], ["pack", "a", "b", "--std", "x"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert "usage: onemodel" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.match(r"onemodel \d+\.\d+\.\d+, NumPy \d", capsys.readouterr().out)


def test_as_a_process(tmp_path, needs_subprocess):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "onemodel",
            "pack",
            str(tmp_path / "none"),
            str(tmp_path / "o"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "expected a folder of images, found none" in done.stderr
    assert "Traceback" not in done.stderr


# check


@pytest.fixture
def table(tmp_path):
    """A table on disk."""
    pixels = np.arange(5 * 32 * 40, dtype=np.uint32).astype(np.uint8)
    made = ImageTable.from_arrays(list(pixels.reshape(5, 32, 40)), labels=[1, 2, 3, 4, 5])
    made.save(tmp_path / "table")
    return tmp_path / "table"


def test_check_of_a_table_that_is_whole(table, capsys):
    assert main(["check", str(table)]) == 0
    assert capsys.readouterr().out == f"{table}: every byte is as it was written\n"


@pytest.mark.parametrize("name", ["pixels.npy", "labels.npy"])
def test_check_finds_one_changed_byte(table, capsys, name):
    content = bytearray((table / name).read_bytes())
    content[-5] ^= 1
    (table / name).write_bytes(content)
    assert main(["check", str(table)]) == 1
    *problems, last = capsys.readouterr().out.splitlines()
    assert any(name in problem for problem in problems)
    assert last == f"{table}: problems found: {len(problems)}"


def test_check_of_no_table(tmp_path, capsys):
    assert main(["check", str(tmp_path / "none")]) == 2
    assert "none: expected the directory of an ImageTable" in capsys.readouterr().err
