"""Promise: `demo` shows the same digests for every number of workers, and says before the work what
would fail after it.
"""

import re
import sys

import pytest

from onemodel._cli.demo import demo
from onemodel._cli.main import main


def test_demo(tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("tqdm")
    out = tmp_path / "new" / "folder"
    assert main(["demo", "--out", str(out), "--count", "200", "--batch-size", "16"]) == 0
    captured = capsys.readouterr()
    rows = {line[:20].strip(): line[20:].split("  ") for line in captured.out.splitlines()}
    for step in (0, 1, 1000):
        shuffled, bucketed, table = (cell for cell in rows[f"digest of step {step}"] if cell)
        assert bucketed == table
        assert shuffled != bucketed
    assert {"batches/s", "images/s", "padding", "waited for batches"} <= rows.keys()
    with image.open(out / "contact-sheet.png") as sheet:
        assert sheet.width > 200
        assert sheet.height == 17 * 40 + 8
        assert (190, 210, 245) in {colour for _, colour in sheet.getcolors(2**16)}
    assert "shuffled" in captured.err  # the progress bar


def test_demo_digests_do_not_depend_on_workers(tmp_path, capsys):
    pytest.importorskip("PIL")
    pytest.importorskip("tqdm")
    found = []
    for workers in ("0", "2"):
        main(["demo", "--out", str(tmp_path), "--count", "64", "--workers", workers])
        found.append(re.findall("digest .*", capsys.readouterr().out))
    assert found[0] == found[1]
    assert len(found[0]) == 3


@pytest.mark.parametrize("missing", ["tqdm", "PIL"])
def test_demo_names_the_extra_that_is_missing(tmp_path, capsys, monkeypatch, missing):
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 2
    assert "pip install 'onemodel[demo]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_demo_with_arguments_out_of_range(tmp_path, capsys):
    pytest.importorskip("PIL")
    pytest.importorskip("tqdm")
    assert main(["demo", "--out", str(tmp_path), "--count", "0"]) == 2
    assert "onemodel demo: count must be in [1, 2**31), got 0" in capsys.readouterr().err


def test_demo_checks_where_the_sheet_goes_before_the_work(tmp_path, capsys, monkeypatch):
    def work(*arguments, **options):
        raise AssertionError("the work began")

    monkeypatch.setattr("onemodel._cli.demo.DigitLines", work)
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "contact-sheet.png").mkdir(parents=True)
    for out, message in [
        ("file", "directory must be in a directory, got"),
        ("file/deeper/still", "file is none"),
        ("taken", "contact-sheet.png must be a file, got a directory"),
    ]:
        assert main(["demo", "--out", str(tmp_path / out)]) == 2
        assert message in capsys.readouterr().err
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert main(["demo", "--out", str(tmp_path / "new")]) == 2
    assert "must be in a directory that can be written into" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"directory": 3}, TypeError, r"directory must be a path, got 3"),
        ({"directory": "a\0b"}, ValueError, r"directory must be a path without NUL"),
        ({"count": "5"}, TypeError, r"count must be an integer in \[1, 2\*\*31\), got '5'"),
        ({"count": 0}, ValueError, r"count must be in \[1, 2\*\*31\), got 0"),
        ({"count": 10**400}, ValueError, r"count must be in \[1, 2\*\*31\), got 1000"),
        ({"batch_size": True}, TypeError, r"batch_size must be an integer, got the bool True"),
        ({"count": 4, "batch_size": 5}, ValueError, r"batch_size must be in \[1, 5\), got 5"),
        ({"workers": -1}, ValueError, r"workers must be in \[0, 65536\), got -1"),
        ({"seed": 2**64}, ValueError, r"seed must be in \[0, 2\*\*64\), got"),
        ({"seed": 1.5}, TypeError, r"seed must be an integer"),
        ({"output": "x"}, TypeError, r"output must be a text file or None, got 'x'"),
    ],
)
def test_arguments_of_the_function(options, kind, message):
    with pytest.raises(kind, match=message):
        demo(**options)
