"""Promise: a folder's images are taken with all their bits or refused with a reason; one file, link
or folder that fails stops nothing, and none is skipped in silence.
"""

import os
import re
import struct
import unicodedata
import zlib

import numpy as np
import pytest

from onemodel._cli.main import main
from onemodel._cli.pack import pack
from onemodel.datasets import ImageTable
from onemodel.datasets._folder import files
from onemodel.datasets.image_folder import Folder


@pytest.fixture
def folder(tmp_path):
    """Three gray images."""
    pytest.importorskip("PIL.Image")
    place = tmp_path / "images"
    for number in range(3):
        save(place / f"{number}.png", 20 + number)
    return place


def save(path, width=20, height=32):
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.new("L", (width, height), 77).save(path)


def left_out(folder, **options):
    """Pack a folder and return what was left out, by name."""
    report = pack(folder, folder.parent / "out", **options)
    assert len(ImageTable.open(report.directory)) == report.images
    return dict(report.unreadable)


def link(path, target):
    try:
        path.symlink_to(target)
    except (OSError, NotImplementedError):
        pytest.skip("no symbolic links here")


# Pixels


def png(bits, colour, size=(4, 4), extra=b""):
    """A PNG file of zeros, of a colour type of the PNG specification."""

    def chunk(kind, content):
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = (b"\0" + bytes(size[0] * channels * bits // 8)) * size[1]
    header = struct.pack(">IIBBBBB", *size, bits, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes([255, 0, 0])) if colour == 3 else b""
    transparency = chunk(b"tRNS", extra) if extra else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + palette
        + transparency
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def tiff(bits):
    """A TIFF file of one RGB pixel, uncompressed."""
    channels = 3
    entries = [
        (256, 3, 1, 1),
        (257, 3, 1, 1),
        (258, 3, channels, 8 + 2 + 9 * 12 + 4),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, 8 + 2 + 9 * 12 + 4 + 6),
        (277, 3, 1, channels),
        (278, 3, 1, 1),
        (279, 4, 1, channels * bits // 8),
    ]
    directory = struct.pack("<H", len(entries))
    for entry in entries:
        directory += struct.pack("<HHII", *entry)
    depth = struct.pack("<HHH", bits, bits, bits)
    return b"II*\0" + struct.pack("<I", 8) + directory + bytes(4) + depth + bytes(channels * 2)


DEEP = {
    "gray.png": png(16, 0),
    "rgb.png": png(16, 2),
    "rgb-transparent.png": png(16, 2, extra=bytes(6)),
    "gray-alpha.png": png(16, 4),
    "rgba.png": png(16, 6),
    "rgb.ppm": b"P6\n2 2\n65535\n" + bytes(24),
    "rgb-1023.ppm": b"P6\n2 2\n1023\n" + bytes(24),
    "rgb-text.ppm": b"P3\n1 1\n65535\n1 2 3\n",
    "gray.pgm": b"P5\n2 2\n65535\n" + bytes(8),
    "rgb.tif": tiff(16),
}
EIGHT = {
    "gray.png": png(8, 0),
    "rgb.png": png(8, 2),
    "palette.png": png(8, 3),
    "gray-alpha.png": png(8, 4),
    "rgba.png": png(8, 6),
    "rgb.ppm": b"P6\n2 2\n255\n" + bytes(12),
    "rgb-15.ppm": b"P6\n2 2\n15\n" + bytes(12),
    "rgb.tif": tiff(8),
}


@pytest.mark.parametrize("channels", [1, 3])
def test_more_than_8_bits_are_refused(folder, channels):
    for name, content in DEEP.items():
        (folder / name).write_bytes(content)
    reasons = left_out(folder, channels=channels)
    assert reasons.keys() == DEEP.keys()
    for name, reason in reasons.items():
        assert re.search(rf"{name}: cannot be read as an image: .* more than 8 bits", reason)


def test_8_bits_are_taken(folder):
    for name, content in EIGHT.items():
        (folder / name).write_bytes(content)
    assert left_out(folder) == {}


def test_what_is_transparent_is_laid_on_white(folder):
    (folder / "palette.png").write_bytes(png(8, 3, extra=b"\0"))
    (folder / "gray-alpha.png").write_bytes(png(8, 4))
    (folder / "rgba.png").write_bytes(png(8, 6))
    source = Folder(folder, channels=3)
    for name in ("palette.png", "gray-alpha.png", "rgba.png"):
        assert (source.decode(name) == 255).all()


def test_a_format_that_only_pretends_by_its_suffix(folder):
    image = pytest.importorskip("PIL.Image")
    image.new("L", (16, 16)).save(folder / "icon.tga")
    (folder / "icon.tga").rename(folder / "icon.png")
    assert "format TGA is none of its suffixes'" in left_out(folder)["icon.png"]


def test_a_small_file_cannot_make_a_table_of_gigabytes(folder):
    (folder / "wide.png").write_bytes(png(8, 0, size=(2_000_000, 1)))
    assert (folder / "wide.png").stat().st_size < 3_000
    reason = left_out(folder)["wide.png"]
    assert "its width at height 32 must be at most 65,536, got 64,000,000 (max_width)" in reason
    assert (folder.parent / "out" / "pixels.npy").stat().st_size < 10_000


def test_max_width_is_an_option(folder, tmp_path, capsys):
    pytest.importorskip("tqdm")
    out = tmp_path / "out"
    assert main(["pack", str(folder), str(out), "--max-width", "21"]) == 1
    assert "at most 21, got 22 (max_width)" in capsys.readouterr().err
    assert ImageTable.open(out).widths.tolist() == [20, 21]
    save(folder / "long.png", width=70_000)
    assert Folder(folder, max_width=70_000).decode("long.png").shape == (1, 32, 70_000)


def test_too_many_pixels_are_refused_before_they_are_decoded(folder, monkeypatch):
    monkeypatch.setattr("onemodel.datasets.image_folder.MAX_PIXELS", 21 * 32)
    assert left_out(folder).keys() == {"2.png"}


# Files


def test_links_that_lead_nowhere_stop_nothing(folder):
    link(folder / "dangling.png", "nowhere.png")
    link(folder / "loop.png", "loop.png")
    link(folder / "good.png", "0.png")
    reasons = left_out(folder)
    assert reasons.keys() == {"dangling.png", "loop.png"}
    assert re.search(r"dangling\.png: cannot be reached: ", reasons["dangling.png"])
    assert "good.png" in ImageTable.open(folder.parent / "out").names


def test_linked_folders_are_reported_and_not_followed(folder, tmp_path):
    save(tmp_path / "elsewhere" / "a.png")
    link(folder / "linked", tmp_path / "elsewhere")
    link(folder / "around", ".")
    reasons = left_out(folder)
    assert reasons.keys() == {"linked", "around"}
    assert reasons["linked"].endswith("linked: a link to a folder, which is not followed")


def test_a_folder_that_cannot_be_listed_is_reported(folder, monkeypatch):
    save(folder / "closed" / "a.png")
    scandir = os.scandir

    def closed(path):
        if os.path.basename(path) == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(files.os, "scandir", closed)
    reasons = left_out(folder)
    assert reasons.keys() == {"closed"}
    assert "closed: a folder that cannot be read: [Errno 13] Permission denied" in reasons["closed"]


def test_a_named_pipe_never_blocks(folder):
    try:
        os.mkfifo(folder / "pipe.png")
    except (AttributeError, OSError):
        pytest.skip("no named pipes here")
    source = Folder(folder, leave_out=True)
    assert [reason for _, reason in source.left_out] == [f"{folder}/pipe.png: not a regular file"]
    with pytest.raises(ValueError, match=r"pipe\.png: .*not a regular file"):
        source.decode("pipe.png")  # as if it had taken a file's place since then
    assert left_out(folder).keys() == {"pipe.png"}


def test_a_file_that_goes_away_during_the_run(folder, tmp_path):
    def progress(done, total):
        if done == 1:
            (folder / "1.png").unlink()

    report = pack(folder, tmp_path / "out", progress=progress)
    assert dict(report.unreadable).keys() == {"1.png"}
    assert report.images == 2


def test_an_interrupted_run_with_files_left_out_resumes_to_the_same_bytes(folder, tmp_path):
    class Stop(BaseException):
        pass

    def stop(done, total):
        if done == 3:
            raise Stop

    link(folder / "dangling.png", "nowhere.png")
    (folder / "1-deep.png").write_bytes(DEEP["rgba.png"])
    whole = pack(folder, tmp_path / "whole")
    with pytest.raises(Stop):
        pack(folder, tmp_path / "out", progress=stop)
    report = pack(folder, tmp_path / "out")
    assert report.kept == 3
    assert report.unreadable == whole.unreadable
    assert dict(report.unreadable).keys() == {"dangling.png", "1-deep.png"}
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes()


def test_the_command_names_all_that_was_left_out(folder, tmp_path, capsys):
    pytest.importorskip("tqdm")
    link(folder / "dangling.png", "nowhere.png")
    link(folder / "linked", ".")
    (folder / "bad.png").write_bytes(b"no image")
    assert main(["pack", str(folder), str(tmp_path / "out")]) == 1
    errors = capsys.readouterr().err
    assert errors.count("left out: ") == 3
    assert "3 files or folders were left out" in errors


def test_from_folder_stops_where_pack_leaves_out(folder):
    link(folder / "dangling.png", "nowhere.png")
    with pytest.raises(ValueError, match=r"dangling\.png: cannot be reached"):
        ImageTable.from_folder(folder)


# Labels


def test_folders_as_labels(tmp_path, capsys):
    pytest.importorskip("tqdm")
    place = tmp_path / "images"
    for name in ("cat/x.png", "ant/deep/b.png", "Bee/a.png", "ant/a.png"):
        save(place / name)
    (place / "bat").mkdir()  # no image yet: it has its number all the same
    (place / ".hidden").mkdir()
    assert main(["pack", str(place), str(tmp_path / "out"), "--labels", "folders"]) == 0
    table = ImageTable.open(tmp_path / "out")
    assert table.names == ("Bee/a.png", "ant/a.png", "ant/deep/b.png", "cat/x.png")
    assert table.labels.tolist() == [0, 1, 1, 3]
    printed = capsys.readouterr().out
    assert "label 0: 'Bee'\nlabel 1: 'ant'\nlabel 2: 'bat'\nlabel 3: 'cat'\n" in printed
    report = pack(place, tmp_path / "again", labels="folders")
    assert report.classes == ("Bee", "ant", "bat", "cat")


def test_folders_as_labels_want_every_image_in_a_class(folder):
    save(folder / "cat" / "x.png")
    with pytest.raises(ValueError, match=r"every image in a folder of its class, found 3 of 4 out"):
        pack(folder, folder.parent / "out", labels="folders")
    with pytest.raises(ValueError, match=r"alphabet must come with a labels file, got labels='fol"):
        pack(folder, folder.parent / "out", labels="folders", alphabet="ab")


@pytest.mark.parametrize(("on_disk", "in_file"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFC", "NFC")])
def test_names_in_another_unicode_form(folder, tmp_path, on_disk, in_file):
    name = "caf\u00e9.png"
    save(folder / unicodedata.normalize(on_disk, name))
    lines = [f"{number}.png\t{number}" for number in range(3)]
    lines.append(f"{unicodedata.normalize(in_file, name)}\t9")
    (tmp_path / "labels.tsv").write_text("\n".join(lines), encoding="utf-8")
    table = ImageTable.from_folder(folder, labels=tmp_path / "labels.tsv")
    assert table.targets.tolist() == [0, 1, 2, 9]


def test_one_line_serves_one_image(folder, tmp_path):
    names = [unicodedata.normalize(form, "caf\u00e9.png") for form in ("NFC", "NFD")]
    for name in names:
        save(folder / name)
    if len(os.listdir(folder)) != 5:
        pytest.skip("this file system takes both forms for one name")
    lines = "".join(f"{number}.png\t{number}\n" for number in range(3))
    (tmp_path / "labels.tsv").write_text(f"{lines}{names[0]}\t7\n", encoding="utf-8")
    with pytest.raises(ValueError, match="found none for 1 of 5"):
        ImageTable.from_folder(folder, labels=tmp_path / "labels.tsv")
    with open(tmp_path / "labels.tsv", "a", encoding="utf-8") as file:
        file.write(f"{names[1]}\t8\n")
    table = ImageTable.from_folder(folder, labels=tmp_path / "labels.tsv")
    found = dict(zip(table.names, table.targets.tolist(), strict=True))
    assert [found[name] for name in names] == [7, 8]


# Arguments


def test_out_is_checked_before_the_work(folder, tmp_path, monkeypatch):
    def work(*arguments, **options):
        raise AssertionError("the work began")

    monkeypatch.setattr("onemodel._cli.pack.Folder", work)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match=r"file exists already"):
        pack(folder, tmp_path / "file")
    with pytest.raises(NotADirectoryError, match=r"out must be in a directory, got .*: .*file is"):
        pack(folder, tmp_path / "file" / "out")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"out must be in a directory that can be written"):
        pack(folder, tmp_path / "new" / "out")
    link(tmp_path / "dangling", "nowhere")
    with pytest.raises(FileExistsError, match=r"dangling exists already"):
        pack(folder, tmp_path / "dangling")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file", "images"]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"folder": 3}, TypeError, "folder must be a path, got 3"),
        ({"out": None}, TypeError, "out must be a path, got None"),
        ({"out": "a\0b"}, ValueError, "out must be a path without NUL"),
        ({"labels": 5}, TypeError, "labels must be a path, got 5"),
        ({"labels": np.arange(3)}, TypeError, "labels must be a path, got array"),
        ({"height": "32"}, TypeError, r"height must be an integer in \[1, 65537\), got '32'"),
        ({"height": 0}, ValueError, r"height must be in \[1, 65537\), got 0"),
        ({"channels": True}, TypeError, "channels must be an integer, got the bool True"),
        ({"channels": 2}, ValueError, "channels must be 1 or 3, got 2"),
        ({"channels": 10**400}, ValueError, r"channels must be in \[1, 4\), got 1000"),
        ({"max_width": 0}, ValueError, r"max_width must be in \[1, 2\*\*31\), got 0"),
        ({"max_width": 1.5}, TypeError, r"max_width must be an integer"),
        ({"alphabet": "ab"}, ValueError, "alphabet must come with a labels file, got labels=None"),
        ({"progress": 1}, TypeError, "progress must be a callable or None, got 1"),
        ({"mean": "x"}, TypeError, "mean must be"),
        ({"std": float("nan")}, ValueError, "std must be"),
    ],
)
def test_arguments_of_the_function(folder, options, kind, message):
    given = {"folder": folder, "out": folder.parent / "out", **options}
    with pytest.raises(kind, match=message):
        pack(given.pop("folder"), given.pop("out"), **given)
    assert os.listdir(folder.parent) == ["images"]


def test_an_alphabet_that_is_no_text(folder, tmp_path):
    (tmp_path / "labels.tsv").write_text("")
    with pytest.raises(TypeError, match=r"alphabet must be text, got \['a'\]"):
        pack(folder, tmp_path / "out", labels=tmp_path / "labels.tsv", alphabet=["a"])
