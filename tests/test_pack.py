"""Promise: `pack` makes the table of a folder; it can be cut off anywhere and loses nothing, and
whatever it leaves out it names with a reason, in the report and in the exit code.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_image_table import assert_same_table

from onemodel._cli.main import main
from onemodel._cli.pack import pack
from onemodel.datasets import ImageTable

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path):
    """Twelve gray images of several sizes, and labels for them."""
    image = pytest.importorskip("PIL.Image")
    place = tmp_path / "images"
    place.mkdir()
    rng = np.random.default_rng(0)
    lines = []
    for number in range(12):
        shape = int(rng.integers(10, 50)), int(rng.integers(20, 90))
        image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(
            place / f"{number:02}.png"
        )
        lines.append(f"{number:02}.png\t{number}\t{number % 3}\n")
    (tmp_path / "labels.tsv").write_text("".join(lines))
    return place


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_pack_makes_the_table_of_the_folder(folder, tmp_path, capsys):
    pytest.importorskip("tqdm")
    labels, out = tmp_path / "labels.tsv", tmp_path / "new" / "out"
    options = ["--height", "24", "--mean", "0.5", "--std", "0.25", "--labels", str(labels)]
    assert main(["pack", str(folder), str(out), *options]) == 0
    captured = capsys.readouterr()
    assert f"{out}: ImageTable(12 images, [1, 24, " in captured.out
    expected = ImageTable.from_folder(folder, height=24, labels=labels, mean=0.5, std=0.25)
    assert_same_table(ImageTable.open(out), expected)
    assert os.listdir(out.parent) == ["out"]
    expected.save(tmp_path / "saved")
    assert contents(out).keys() == contents(tmp_path / "saved").keys()
    assert out.joinpath("pixels.npy").stat().st_size == 128 + expected.pixels.nbytes


def test_pack_in_colour_with_text(folder, tmp_path):
    pytest.importorskip("tqdm")
    labels = tmp_path / "text.tsv"
    labels.write_text("".join(f"{n:02}.png\t{'ab'[n % 2]}\n" for n in range(12)))
    options = ["--channels", "3", "--labels", str(labels), "--alphabet", "ab"]
    options += ["--mean", "0.1,0.2,0.3"]
    assert main(["pack", *options, str(folder), str(tmp_path / "out")]) == 0
    table = ImageTable.open(tmp_path / "out")
    assert table.channels == 3
    assert table.targets.tolist() == [1, 2] * 6
    assert table.mean.tolist() == np.array([0.1, 0.2, 0.3], dtype=np.float32).tolist()


class Stop(BaseException):
    """What interrupts a run in the tests, as Ctrl-C does."""


def stop_after(count):
    def progress(done, total):
        assert total == 12
        if done == count:
            raise Stop

    return progress


@pytest.mark.parametrize("stops", [[0], [1], [5, 9], [12], [3, 3, 12]])
def test_pack_goes_on_where_it_was_stopped(folder, tmp_path, stops):
    pack(folder, tmp_path / "whole")
    out = tmp_path / "out"
    for stop in stops:
        with pytest.raises(Stop):
            pack(folder, out, progress=stop_after(stop))
        assert not out.exists()
    seen = []
    report = pack(folder, out, progress=lambda done, total: seen.append(done))
    assert seen == list(range(stops[-1], 13))
    assert (report.kept, report.images, report.unreadable) == (stops[-1], 12, ())
    assert contents(out) == contents(tmp_path / "whole")
    assert not (tmp_path / "out.partial").exists()


def test_pack_survives_a_kill(folder, tmp_path, monkeypatch, needs_subprocess):
    code = (
        "import os, sys\n"
        "import onemodel._cli.pack\n"
        "onemodel._cli.pack._FILES_PER_CHECKPOINT = 4\n"
        "def progress(done, total):\n"
        "    if done == 10: os._exit(9)\n"
        "onemodel._cli.pack.pack(sys.argv[1], sys.argv[2], progress=progress)\n"
    )
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", code, str(folder), str(out)], cwd=ROOT)
    assert killed.returncode == 9
    assert not out.exists()
    report = pack(folder, out)
    assert report.kept == 8  # up to the last checkpoint
    pack(folder, tmp_path / "whole")
    assert contents(out) == contents(tmp_path / "whole")


def damage_journal(partial):
    path = partial / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-9])


def damage_pixels(partial):
    os.truncate(partial / "pixels.npy", (partial / "pixels.npy").stat().st_size - 1)


def lose_pixels(partial):
    (partial / "pixels.npy").unlink()


@pytest.mark.parametrize(
    ("damage", "kept"), [(damage_journal, 5), (damage_pixels, 5), (lose_pixels, 0)]
)
def test_pack_keeps_only_what_is_whole(folder, tmp_path, damage, kept):
    with pytest.raises(Stop):
        pack(folder, tmp_path / "out", progress=stop_after(6))
    damage(tmp_path / "out.partial")
    assert pack(folder, tmp_path / "out").kept == kept
    pack(folder, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_pack_notices_a_folder_that_changed(folder, tmp_path):
    with pytest.raises(Stop):
        pack(folder, tmp_path / "out", progress=stop_after(8))
    (folder / "03.png").write_bytes((folder / "11.png").read_bytes())
    assert pack(folder, tmp_path / "out").kept == 3
    pack(folder, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_pack_cut_off_while_it_writes_the_columns(folder, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr("onemodel.datasets.table_files.write_manifest", fail)
        with pytest.raises(OSError, match="disk full"):
            pack(folder, tmp_path / "out")
    assert pack(folder, tmp_path / "out").kept == 12
    pack(folder, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_pack_with_other_settings_than_it_was_begun_with(folder, tmp_path):
    with pytest.raises(Stop):
        pack(folder, tmp_path / "out", progress=stop_after(6))
    with pytest.raises(ValueError, match=r"out\.partial: was begun with height 32, not 16; use"):
        pack(folder, tmp_path / "out", height=16)


def test_pack_alone_at_one_place(folder, tmp_path):
    pytest.importorskip("fcntl")

    def progress(done, total):
        if done == 5:
            with pytest.raises(ValueError, match=r"out\.partial: another process is packing"):
                pack(folder, tmp_path / "out")

    assert pack(folder, tmp_path / "out", progress=progress).images == 12


def test_pack_reports_what_it_could_not_read(folder, tmp_path, capsys):
    pytest.importorskip("tqdm")
    (folder / "04.png").write_bytes(b"no image")
    (folder / "07.png").write_bytes((folder / "07.png").read_bytes()[:90])
    out = tmp_path / "out"
    labels = str(tmp_path / "labels.tsv")
    assert main(["pack", str(folder), str(out), "--labels", labels]) == 1
    errors = capsys.readouterr().err
    assert re.search(r"left out: .*04\.png: cannot be read as an image: Unidentified", errors)
    assert re.search(r"left out: .*07\.png: cannot be read as an image: ", errors)
    assert "2 files or folders were left out" in errors
    table = ImageTable.open(out)
    assert len(table) == 10
    assert table.targets.tolist() == [0, 1, 2, 3, 5, 6, 8, 9, 10, 11]
    assert "04.png" not in table.names


def test_pack_of_nothing_readable(tmp_path, capsys):
    pytest.importorskip("PIL")
    pytest.importorskip("tqdm")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"no image")
    assert main(["pack", str(tmp_path / "images"), str(tmp_path / "out")]) == 2
    assert "none of 1 files could be read, first a.png" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_pack_never_overwrites(folder, tmp_path, capsys):
    pytest.importorskip("tqdm")
    (tmp_path / "out").mkdir()
    assert main(["pack", str(folder), str(tmp_path / "out")]) == 2
    assert "out exists already" in capsys.readouterr().err
    assert os.listdir(tmp_path / "out") == []


def test_pack_says_how_to_go_on_after_ctrl_c(folder, tmp_path, capsys, monkeypatch):
    pytest.importorskip("tqdm")

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("onemodel._cli.pack.pack", interrupted)
    assert main(["pack", str(folder), str(tmp_path / "out")]) == 130
    assert "interrupted; run it again to go on from here" in capsys.readouterr().err
