"""Promise: an `ImageTable` gives back what it was made of, from memory and from disk, or says why
it cannot; a directory that has a table's name holds a whole table.
"""

import array
import copy
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import image as twin_image
from reference import permutation as twin_permutation
from reference import rng as twin_rng
from support import assert_same_bytes

import onemodel
import onemodel.datasets._table.new_directory as new_directory
import onemodel.datasets._table.npy_files as npy_files
import onemodel.datasets.table_files as table_files
from onemodel._batch.key import BatchKey
from onemodel._collate.inputs import from_columns
from onemodel.datasets import DigitLines, ImageTable
from onemodel.datasets.columns import Columns
from onemodel.datasets.sample import Sample

COLUMNS = ("pixels", "offsets", "widths", "targets", "target_offsets", "labels")


def assert_same_sample(left, right):
    assert_same_bytes(left.image, right.image)
    assert np.asarray(left.target).tolist() == np.asarray(right.target).tolist()
    assert left.label == right.label


def assert_same_samples(left, right):
    assert len(left) == len(right)
    for i in range(len(left)):
        assert_same_sample(left[i], right[i])


def assert_same_table(left, right):
    for name in (*COLUMNS, "mean", "std", "scale", "shift"):
        assert_same_bytes(getattr(left, name), getattr(right, name))
    for name in ("channels", "height", "names"):
        assert getattr(left, name) == getattr(right, name)


def random_samples(seed, count, channels=2, height=3):
    rng = np.random.default_rng(seed)
    return [
        Sample(
            rng.standard_normal((channels, height, rng.integers(1, 9)), dtype=np.float32),
            rng.integers(-(2**31), 2**31, size=rng.integers(0, 4)),
            int(rng.integers(-(2**31), 2**31)),
        )
        for _ in range(count)
    ]


def gray_table():
    rng = np.random.default_rng(1)
    images = [rng.integers(0, 256, (4, width), dtype=np.uint8) for width in (3, 1, 7)]
    return ImageTable.from_arrays(
        images, targets=[[1, 2], [], [3]], labels=[5, -6, 7], mean=0.5, std=0.25
    )


# Made of samples and arrays


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 12),
    channels=st.integers(1, 3),
    height=st.integers(1, 4),
)
def test_samples_come_back(seed, count, channels, height):
    samples = random_samples(seed, count, channels, height)
    table = ImageTable.from_samples(samples)
    assert_same_samples(table, samples)
    assert_same_table(table, ImageTable.from_samples(iter(samples)))


def test_columns_are_as_described():
    table = ImageTable.from_samples(random_samples(3, 10))
    assert [str(getattr(table, name).dtype) for name in COLUMNS] == [
        "float32",
        "int64",
        "int64",
        "int32",
        "int64",
        "int32",
    ]
    for name in (*COLUMNS, "mean", "std", "scale", "shift"):
        column = getattr(table, name)
        assert type(column) is np.ndarray
        assert column.flags.c_contiguous
        assert not column.flags.writeable
    assert (table.channels, table.height) == (2, 3)
    assert table.offsets.tolist() == [0, *(np.cumsum(table.widths) * 6).tolist()]
    assert not table[4].image.flags.writeable


def test_samples_of_a_dataset_that_never_raises_index_error():
    class Endless:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return Sample(np.full((1, 2, 3), index, dtype=np.float32))

    assert len(ImageTable.from_samples(Endless())) == 3


def test_digit_lines_fit_in_uint8_without_loss():
    lines = DigitLines(40, seed=9)
    table = ImageTable.from_samples(lines, dtype=np.uint8, std=256 / 255)
    assert table.pixels.dtype == np.uint8
    assert_same_samples(table, lines)
    assert np.array_equal(table.widths, lines.widths)


def test_uint8_of_samples_takes_only_what_it_can_give_back():
    for value in (1 / 256, -1.0, 1.5, np.nan, np.inf, -0.0):
        image = np.zeros((1, 2, 2), dtype=np.float32)
        image[0, 1, 0] = value
        with pytest.raises(ValueError, match=r"sample 0: with dtype uint8 every value must be"):
            ImageTable.from_samples([Sample(image)], dtype=np.uint8)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.5, 0.25), (0.1307, 0.3081)])
def test_gray_becomes_float_as_gray8_to_planar(mean, std):
    pixels = np.arange(256, dtype=np.uint8).reshape(8, 32)
    table = ImageTable.from_arrays([pixels], mean=mean, std=std)
    assert_same_bytes(table[0].image, twin_image.gray8_to_planar(pixels, mean, std))
    scaled = pixels[np.newaxis].astype(np.float32) * table.scale[0] - table.shift[0]
    assert_same_bytes(table[0].image, scaled)


def test_colour_becomes_float_as_rgb8_to_planar():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    table = ImageTable.from_arrays([pixels, pixels[:, ::-1]], mean=mean, std=std)
    assert (table.channels, table.height) == (3, 5)
    assert_same_bytes(table[0].image, twin_image.rgb8_to_planar(pixels, mean, std))
    assert_same_bytes(table[1].image, twin_image.rgb8_to_planar(pixels[:, ::-1], mean, std))


def test_arrays_of_floats_and_one_stacked_array():
    images = np.random.default_rng(0).standard_normal((4, 2, 3, 5)).astype(np.float32)
    table = ImageTable.from_arrays(images[:, :, ::-1], labels=np.arange(4, dtype=np.uint8))
    for i in range(4):
        assert_same_bytes(table[i].image, images[i, :, ::-1])
    assert table.labels.tolist() == [0, 1, 2, 3]
    stacked = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert ImageTable.from_arrays(stacked).pixels.tolist() == list(range(24))


def test_indices():
    table = gray_table()
    assert_same_sample(table[-1], table[2])
    assert_same_sample(table[np.int64(1)], table[1])
    for index in (3, -4):
        with pytest.raises(IndexError, match=rf"index must be in \[-3, 3\), got {index}"):
            table[index]
    with pytest.raises(TypeError, match="index must be an integer"):
        table["a"]


def test_repr():
    assert repr(gray_table()) == "ImageTable(3 images, [1, 4, 1..7], uint8, 44 bytes of pixels)"


FLOATS = np.zeros((1, 2, 3), dtype=np.float32)
BYTES = np.zeros((2, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ImageTable.from_samples([]), "at least 1 image, got 0"),
        (lambda: ImageTable.from_arrays([]), "at least 1 image, got 0"),
        (lambda: ImageTable.from_samples([Sample(FLOATS)], dtype=np.float64), "dtype must be"),
        (lambda: ImageTable.from_samples([FLOATS]), "sample 0: must be a Sample, got ndarray"),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS), Sample(FLOATS.astype(np.float64))]),
            "sample 1: the image must have dtype float32, got float64",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS), Sample(FLOATS[0])]),
            r"sample 1: the image must be an array \[C, H, W\], got \[2, 3\]",
        ),
        (
            lambda: ImageTable.from_samples([Sample([[[1.0]]])]),
            r"sample 0: the image must be an array \[C, H, W\], got list",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS), Sample(FLOATS[:, :1])]),
            r"sample 1: C and H must be 1 and 2 as in the first image, got \[1, 1, 3\]",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS[:, :, :0])]),
            r"sample 0: the width must be in \[1, 2\*\*31\), got 0",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS[:, :0])]),
            r"sample 0: C and H must be at least 1, got \[1, 0, 3\]",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS, [1.5])]),
            "sample 0: the target must hold integers that fit in int32, got dtype float64",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS, [2**31])]),
            "sample 0: the target must fit in int32, got values from 2147483648",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS, [[1]])]),
            r"sample 0: the target must have one dimension, got shape \(1, 1\)",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS, (), 2**31)]),
            r"sample 0: the label must be in \[-2\*\*31, 2\*\*31\), got 2147483648",
        ),
        (lambda: ImageTable.from_arrays([BYTES], targets=[]), "targets must be one an image, 1"),
        (lambda: ImageTable.from_arrays([BYTES], labels=[1, 2]), "labels must be one an image, 1"),
        (lambda: ImageTable.from_arrays([BYTES, FLOATS]), "image 1: must have dtype uint8"),
        (
            lambda: ImageTable.from_arrays([BYTES.astype(np.int32)]),
            r"image 0: must be an array, .* got int32 \[2, 3\]",
        ),
        (
            lambda: ImageTable.from_arrays([np.zeros((2, 3, 4), dtype=np.uint8)]),
            r"image 0: must be an array, .* got uint8 \[2, 3, 4\]",
        ),
        (lambda: ImageTable.from_arrays([[[1]]]), "image 0: must be an array, .* got list"),
        (lambda: ImageTable.from_arrays(3), "images must be a sequence, one item an image, got 3"),
        (lambda: ImageTable.from_arrays(np.zeros(())), "images must be a sequence, one item an"),
        (
            lambda: ImageTable.from_arrays([np.ma.masked_array(BYTES)]),
            "image 0 must be an array without a mask",
        ),
        (
            lambda: ImageTable.from_arrays([BYTES], targets=[np.ma.masked_array([1])]),
            "image 0: the target must be an array without a mask",
        ),
        (
            lambda: ImageTable.from_samples([Sample(FLOATS)], dtype="nonsense"),
            "dtype must be uint8 or float32, got 'nonsense'",
        ),
        (lambda: ImageTable.from_arrays([BYTES], std=0.0), r"std must be above 0, got 0\.0"),
        (lambda: ImageTable.from_arrays([BYTES], std=np.nan), "std must be finite"),
        (lambda: ImageTable.from_arrays([BYTES], std=1e-44), "must fit in float32"),
        (lambda: ImageTable.from_arrays([BYTES], mean=1e39), "mean must be finite in float32"),
        (
            lambda: ImageTable.from_arrays([BYTES], mean=(0.1, 0.2)),
            r"mean must be one number or one for each of 1 channels, got \(0\.1, 0\.2\)",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


PIXELS = np.zeros(12, dtype=np.uint8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"widths": []}, "at least 1 image"),
        ({"widths": [0, 6]}, r"widths must be in \[1, 2\*\*31\), got 0 to 6"),
        ({"widths": [1.0, 5.0]}, "widths must hold integers that fit in int64, got dtype float64"),
        ({"widths": [[1, 5]]}, r"widths must have one dimension, got shape \(1, 2\)"),
        ({"widths": [1, 4]}, r"pixels must be flat, .* = 10 elements, got shape \(12,\)"),
        ({"pixels": PIXELS.reshape(3, 4)}, r"elements, got shape \(3, 4\)"),
        ({"pixels": np.zeros(24, dtype=np.uint8)[::2]}, "contiguous"),
        ({"pixels": PIXELS.astype(np.int8)}, "must be an array of uint8 or float32, got int8"),
        ({"channels": 0}, r"channels must be in \[1, 2\*\*31\), got 0"),
        ({"height": 0}, r"height must be in \[1, 2\*\*31\), got 0"),
        ({"offsets": [0, 2]}, r"offsets must have shape \(3,\), got shape \(2,\)"),
        ({"offsets": [1, 3, 13]}, r"offsets\[0\] must be 0, .* got 1"),
        ({"offsets": [0, 4, 12]}, r"offsets\[1\] must be 2, channels \* height .* got 4"),
        ({"targets": [1]}, "targets must hold 0 symbols, got 1"),
        ({"targets": [1], "target_offsets": [0, 2, 1]}, "target_offsets must not fall"),
        ({"targets": [1], "target_offsets": [0, 1, 2]}, "targets must hold 2 symbols, got 1"),
        ({"labels": [1]}, "labels must be one an image, 2, got 1"),
        ({"names": ["a"]}, "names must be one an image, 2, got 1"),
        ({"names": [1, 2]}, r"names\[0\] must be a string, got 1"),
        ({"names": "ab"}, "names must be strings, one an image, got 'ab'"),
        ({"names": 3}, "names must be strings, one an image, got 3"),
        ({"pixels": PIXELS.astype(">f4")}, "must be an array of uint8 or float32, got >f4"),
        ({"pixels": np.ma.masked_array(PIXELS)}, "pixels must be an array without a mask"),
        ({"pixels": "abc"}, "must be an array of uint8 or float32, got str"),
        ({"widths": np.ma.masked_array([1, 5], [True, False])}, "widths must be .* without a mask"),
        ({"widths": [10**400, 1]}, "widths must hold integers that fit in int64"),
        ({"widths": [[1], [2, 3]]}, "widths must be an array, got a list"),
        ({"widths": "15"}, "widths must be an array, got '15'"),
        ({"widths": np.array(["2020", "2021"], "M8[s]")}, "widths must hold integers"),
        ({"targets": [2**31], "target_offsets": [0, 1, 1]}, "targets must fit in int32"),
        ({"labels": [1j, 2]}, "labels must hold integers that fit in int32"),
        ({"labels": [True, False]}, "labels must hold integers that fit in int32, got dtype bool"),
        ({"channels": 10**400}, r"channels must be in \[1, 2\*\*31\)"),
        ({"height": "2"}, "height must be an integer"),
        ({"mean": 10**400}, "mean and std must fit in float32|mean must be"),
        ({"std": [1, [2]]}, "std must be"),
    ],
)
def test_bad_columns_are_named(arguments, message):
    usual = {"pixels": PIXELS, "widths": [1, 5], "channels": 1, "height": 2}
    assert len(ImageTable(**usual)) == 2
    with pytest.raises((TypeError, ValueError), match=message):
        ImageTable(**{**usual, **arguments})


# On disk


@pytest.mark.parametrize("memory_map", [True, False])
def test_saved_and_opened(tmp_path, memory_map):
    for name, table in (
        ("gray", gray_table()),
        ("floats", ImageTable.from_samples(random_samples(5, 30))),
        ("plain", ImageTable.from_arrays([BYTES])),
        (
            "named",
            ImageTable(PIXELS, [1, 5], channels=1, height=2, names=["ä/1.png", "\udc80\n"]),
        ),
    ):
        table.save(tmp_path / "new" / name)
        opened = ImageTable.open(tmp_path / "new" / name, memory_map=memory_map)
        assert_same_table(table, opened)
        assert_same_samples(opened, table)
        assert not opened.pixels.flags.writeable
    assert sorted(os.listdir(tmp_path)) == ["new"]
    assert sorted(os.listdir(tmp_path / "new")) == ["floats", "gray", "named", "plain"]


def test_numpy_alone_reads_it(tmp_path):
    table = gray_table()
    table.save(tmp_path / "table")
    pixels = np.load(tmp_path / "table" / "pixels.npy", mmap_mode="r")
    offsets = np.load(tmp_path / "table" / "offsets.npy")
    manifest = json.loads((tmp_path / "table" / "manifest.json").read_text())
    third = pixels[offsets[2] : offsets[3]].reshape(manifest["channels"], manifest["height"], -1)
    assert third.astype(np.float32).shape == table[2].image.shape
    assert manifest["images"] == 3
    assert manifest["files"]["pixels.npy"]["shape"] == [44]


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there exists already"):
        gray_table().save(tmp_path / "there")
    assert os.listdir(tmp_path / "there") == []


@pytest.mark.parametrize(
    ("module", "broken"),
    [
        (table_files, "write_pixels"),
        (table_files, "write_column"),
        (table_files, "write_manifest"),
        (new_directory, "publish"),
    ],
)
def test_a_save_that_fails_leaves_nothing(tmp_path, monkeypatch, module, broken):
    def fail(*arguments, **options):
        raise OSError("disk full")

    monkeypatch.setattr(module, broken, fail)
    with pytest.raises(OSError, match="disk full"):
        gray_table().save(tmp_path / "table")
    assert os.listdir(tmp_path) == []


def edit_manifest(**changes):
    def edit(directory):
        path = directory / "manifest.json"
        content = json.loads(path.read_text())
        content.update(changes)
        path.write_text(json.dumps(content))

    return edit


def edit_file_entry(name, **changes):
    def edit(directory):
        path = directory / "manifest.json"
        content = json.loads(path.read_text())
        content["files"][name].update(changes)
        path.write_text(json.dumps(content))

    return edit


def write(name, content):
    return lambda directory: (directory / name).write_bytes(content)


def replace(name, array):
    """Another array under a column's name, described truly in the manifest."""

    def edit(directory):
        path = directory / name
        np.save(path, array)
        entry = {
            "bytes": path.stat().st_size,
            "dtype": array.dtype.str,
            "shape": list(array.shape),
        }
        edit_file_entry(name, **entry)(directory)

    return edit


def truncate(name, by):
    return lambda directory: os.truncate(directory / name, (directory / name).stat().st_size - by)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, r"table: expected a directory, found none"),
        (lambda d: (d / "manifest.json").unlink(), r"manifest\.json: expected the manifest of an"),
        (lambda d: (d / "labels.npy").unlink(), r"labels\.npy: expected 140 bytes, found no file"),
        (truncate("manifest.json", 5), r"manifest\.json: expected JSON text, found"),
        (write("manifest.json", b"[1]"), r"expected format 'onemodel.ImageTable', found \[1\]"),
        (edit_manifest(format="other"), r"expected format 'onemodel.ImageTable', found 'other'"),
        (edit_manifest(version=2), r"manifest\.json: expected version 1, found version 2"),
        (edit_manifest(images=4), r"widths\.npy: expected 4 images as the manifest says"),
        (edit_manifest(images=0), r"expected images an integer of at least 1, found 0"),
        (edit_manifest(height=2), r"table: expected columns that fit together: pixels must be"),
        (edit_manifest(channels="1"), r"expected channels an integer of at least 1, found '1'"),
        (edit_manifest(mean=[0, 0]), r"expected mean a list of 1 numbers, found \[0, 0\]"),
        (edit_manifest(std=[0]), r"fit together: std must be above 0"),
        (edit_manifest(std=[10**400]), r"expected std a list of 1 numbers, found \[1000"),
        (edit_manifest(mean=[float("nan")]), r"expected mean a list of 1 numbers, found \[nan\]"),
        (edit_manifest(images=10**400), r"widths\.npy: expected 1000"),
        (edit_manifest(channels=2**31), r"expected mean a list of 2147483648 numbers"),
        (edit_manifest(height=10**400), r"fit together: height must be in"),
        (edit_manifest(height=True), r"expected height an integer of at least 1, found True"),
        (edit_manifest(files={}), r"manifest\.json: expected pixels\.npy of dtype .* found None"),
        (edit_manifest(files={"pixels.npy": []}), r"expected pixels\.npy of dtype .* found \[\]"),
        (edit_file_entry("pixels.npy", bytes="172"), r"pixels\.npy: expected '172' bytes"),
        (edit_file_entry("pixels.npy", shape=None), r"pixels\.npy: expected dtype .* shape None"),
        (write("manifest.json", b"[" * 100_000), r"manifest\.json: expected JSON text, found"),
        (write("manifest.json", b"1" * 5_000), r"manifest\.json: expected JSON text, found"),
        (write("manifest.json", b"\xff\xfe"), r"manifest\.json: expected JSON text, found"),
        (write("manifest.json", b"null"), r"expected format 'onemodel.ImageTable', found None"),
        (edit_manifest(files=[]), r"expected files, a description of each, found \[\]"),
        (edit_file_entry("labels.npy", dtype="<i8"), r"expected labels.npy of dtype <i4, found"),
        (edit_file_entry("labels.npy", shape=[4]), r"expected dtype <i4 and shape \[4\], found"),
        (truncate("pixels.npy", 1), r"pixels\.npy: expected 172 bytes, found 171 bytes"),
        (truncate("pixels.npy", 172), r"pixels\.npy: expected 172 bytes, found 0 bytes"),
        (write("pixels.npy", b"x" * 172), r"pixels\.npy: expected an \.npy file of format 1\.0"),
        (
            replace("offsets.npy", np.array([0, 12, 16, 45], np.int64)),
            r"table: expected columns that fit together: offsets\[3\] must",
        ),
        (
            replace("target_offsets.npy", np.array([0, 2, 1, 3], np.int64)),
            r"table: expected columns that fit together: target_offsets must",
        ),
        (
            replace("labels.npy", np.zeros((3, 1), dtype=np.int32)),
            r"table: expected columns that fit together: labels must have one dimension",
        ),
        (
            replace("widths.npy", np.array([3, 1, 7], dtype=np.int32)),
            r"manifest\.json: expected widths\.npy of dtype <i8, found",
        ),
    ],
)
def test_what_is_no_whole_table_is_named(tmp_path, damage, message):
    directory = tmp_path / "table"
    gray_table().save(directory)
    damage(directory)
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        ImageTable.open(directory)


def test_flags_are_flags(tmp_path):
    gray_table().save(tmp_path / "table")
    for flag in ("False", 1, None):
        with pytest.raises(TypeError, match="memory_map must be a bool, got"):
            ImageTable.open(tmp_path / "table", memory_map=flag)


def test_a_file_shorter_than_its_header_says(tmp_path):
    gray_table().save(tmp_path / "table")
    truncate("pixels.npy", 4)(tmp_path / "table")
    edit_file_entry("pixels.npy", bytes=168)(tmp_path / "table")
    with pytest.raises(ValueError, match=r"pixels\.npy: expected 172 bytes, found 168 bytes"):
        ImageTable.open(tmp_path / "table")


def test_names_at_odds(tmp_path):
    table = ImageTable(PIXELS, [1, 5], channels=1, height=2, names=["a", "b"])
    table.save(tmp_path / "table")
    size = (tmp_path / "table" / "names.json").stat().st_size
    (tmp_path / "table" / "names.json").write_bytes(b'["a"]'.ljust(size))
    with pytest.raises(ValueError, match=r"names\.json: expected a list of 2 strings"):
        ImageTable.open(tmp_path / "table")


def test_every_flipped_bit_of_what_describes_the_pixels_is_named(tmp_path):
    """Of the manifest and of each header: a ValueError, or something that `check_table` finds."""
    directory = tmp_path / "table"
    gray_table().save(directory)
    messages, problems = [], []
    for name, described in (("manifest.json", 200), ("pixels.npy", 72)):
        path = directory / name
        content = path.read_bytes()
        for position in range(described):
            damaged = bytearray(content)
            for bit in range(8):
                damaged[position] = content[position] ^ 1 << bit
                path.write_bytes(damaged)
                try:
                    ImageTable.open(directory)
                except ValueError as error:
                    messages.append(str(error))
                else:
                    problems.append(table_files.check_table(directory))
        path.write_bytes(content)
    assert all(str(directory) in message and "expected" in message for message in messages)
    assert all(len(problem) >= 1 for problem in problems)
    assert len(messages) > len(problems) > 0  # digits of mean, std and digests


def test_what_was_checked_is_what_is_read(tmp_path):
    """The columns are the table's own: no change of the caller's, or of a file, reaches them."""
    given = {
        "pixels": np.arange(12, dtype=np.float32),
        "widths": np.array([1, 5]),
        "offsets": np.array([0, 2, 12]),
        "targets": np.arange(3, dtype=np.int32),
        "target_offsets": np.array([0, 1, 3]),
        "labels": np.array([4, 5], np.int32),
    }
    table = ImageTable(**given, channels=1, height=2, mean=np.zeros(1, "f4"), std=np.ones(1, "f4"))
    table.save(tmp_path / "table")
    opened = ImageTable.open(tmp_path / "table")
    for name, column in given.items():
        if name != "pixels":
            column += 1 << 20
            content = (tmp_path / "table" / f"{name}.npy").read_bytes()
            (tmp_path / "table" / f"{name}.npy").write_bytes(content[:128].ljust(len(content)))
    for each in (table, opened):
        assert [each[k].image.tolist() for k in range(2)] == [
            [[[0], [1]]],
            [[[2, 3, 4, 5, 6], [7, 8, 9, 10, 11]]],
        ]
        assert [each[k].target.tolist() for k in range(2)] == [[0], [1, 2]]
        assert each.labels.tolist() == [4, 5]
        with onemodel.DataLoader(each, 2, collate=onemodel.ImageBatchCollator()) as loader:
            assert loader[0].images.shape == (2, 1, 2, 5)
    assert given["pixels"].flags.writeable


def test_nothing_of_a_table_can_be_set():
    table = gray_table()
    for name in (*COLUMNS, "mean", "std", "scale", "shift", "channels", "height", "names"):
        with pytest.raises(AttributeError):
            setattr(table, name, getattr(table, name))
    with pytest.raises(AttributeError):
        table.columns = None
    with pytest.raises(TypeError, match="cannot be changed"):
        table.__init__(PIXELS, [6], channels=1, height=2)
    assert len(table) == 3


class Forgetful(ImageTable):
    def __init__(self):
        pass


def test_a_subclass_must_call_init():
    for use in (len, repr, lambda t: t[0], lambda t: t.columns, lambda t: t.mean, pickle.dumps):
        with pytest.raises(TypeError, match=r"Forgetful\.__init__ must call super"):
            use(Forgetful())
    assert not hasattr(Forgetful(), "__getitems__")


# Pages of a mapped table


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="Linux tells of its mappings")
def test_nothing_is_read_ahead_of_a_mapped_table(tmp_path):
    gray_table().save(tmp_path / "table")
    opened = ImageTable.open(tmp_path / "table")
    lines = Path("/proc/self/smaps").read_text().splitlines()
    path = str(tmp_path / "table" / "pixels.npy")
    [start] = [number for number, line in enumerate(lines) if line.endswith(path)]
    flags = next(line for line in lines[start:] if line.startswith("VmFlags:"))
    assert "rr" in flags.split()  # a reader at random
    assert len(opened) == 3


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="pages cannot be given up here")
def test_batches_of_pages_that_are_not_in_memory(tmp_path):
    """Rows begin and end anywhere in a page; they are asked for whole, and read as they are."""
    generator = np.random.default_rng(1)
    images = [
        generator.integers(0, 256, (9, int(width)), np.uint8)
        for width in generator.integers(1, 900, 300)
    ]
    whole = ImageTable.from_arrays(images)
    whole.save(tmp_path / "table")
    opened = ImageTable.open(tmp_path / "table")
    loaders = [
        onemodel.DataLoader(table, 16, shuffle=True, collate=onemodel.ImageBatchCollator(), seed=2)
        for table in (whole, opened)
    ]
    with open(tmp_path / "table" / "pixels.npy", "rb") as file:
        for expected, found in zip(*(loader.steps(0, 60) for loader in loaders), strict=True):
            assert onemodel.digest(found) == onemodel.digest(expected)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# Digests


@pytest.mark.parametrize("name", [*(f"{name}.npy" for name in COLUMNS), "names.json"])
def test_check_finds_a_changed_byte(tmp_path, name):
    table = ImageTable(PIXELS, [1, 5], channels=1, height=2, labels=[1, 2], names=["a", "b"])
    table.save(tmp_path / "table")
    assert table_files.check_table(tmp_path / "table") == []
    path = tmp_path / "table" / name
    content = bytearray(path.read_bytes())
    if name == "targets.npy":  # which has no elements
        content += b"x"
    else:
        content[-3] ^= 1
    path.write_bytes(content)
    (problem,) = table_files.check_table(str(tmp_path / "table"))
    assert problem.startswith(f"{path}: expected ")


def test_check_finds_other_changes(tmp_path):
    directory = tmp_path / "table"
    gray_table().save(directory)
    edit_manifest(mean=[0.25])(directory)
    (problem,) = table_files.check_table(directory)
    assert "manifest.json: expected SHA-256" in problem
    (directory / "labels.npy").unlink()
    truncate("widths.npy", 8)(directory)
    problems = table_files.check_table(directory)
    assert len(problems) == 3
    (directory / "manifest.json").write_text("{}")
    (problem,) = table_files.check_table(directory)
    assert "manifest.json: expected format" in problem


def test_check_finds_a_manifest_without_its_own_digest(tmp_path):
    directory = tmp_path / "table"
    gray_table().save(directory)
    content = json.loads((directory / "manifest.json").read_text())
    del content["sha256"]
    (directory / "manifest.json").write_text(json.dumps(content))
    (problem,) = table_files.check_table(directory)
    assert "manifest.json: expected SHA-256 none" in problem


def test_a_table_without_digests_opens(tmp_path):
    directory = tmp_path / "table"
    gray_table().save(directory)
    content = json.loads((directory / "manifest.json").read_text())
    del content["sha256"]
    for described in content["files"].values():
        del described["sha256"]
    (directory / "manifest.json").write_text(json.dumps(content))
    assert_same_table(ImageTable.open(directory), gray_table())
    (problem,) = table_files.check_table(directory)
    assert problem.startswith("no digests are stored of pixels.npy, offsets.npy")
    truncate("pixels.npy", 1)(directory)
    assert len(table_files.check_table(directory)) == 2


# Byte order


def test_files_are_little_endian(tmp_path):
    foreign = np.arange(5, dtype=">f4")
    npy_files.write_array(tmp_path / "foreign.npy", foreign)
    np.save(tmp_path / "native.npy", np.arange(5, dtype="<f4"))
    assert (tmp_path / "foreign.npy").read_bytes() == (tmp_path / "native.npy").read_bytes()


@pytest.mark.parametrize("memory_map", [True, False])
def test_a_column_of_foreign_order_is_converted(tmp_path, memory_map):
    """As a little-endian file is on a big-endian machine."""
    np.save(tmp_path / "foreign.npy", np.arange(5, dtype=">f4"))
    header = npy_files.read_header(tmp_path / "foreign.npy", (">f4",))
    array = npy_files.read_array(tmp_path / "foreign.npy", header, memory_map=memory_map)
    assert_same_bytes(array, np.arange(5, dtype=np.float32))
    assert not array.flags.writeable


# Parts


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 9),
    indices=st.lists(st.integers(0, 8), min_size=1, max_size=9),
)
def test_a_part_holds_the_images_at_its_indices(seed, count, indices):
    table = ImageTable.from_samples(random_samples(seed, count))
    places = [index % count for index in indices]
    part = table.take(places)
    assert_same_samples(part, [table[place] for place in places])
    assert part.widths.tolist() == table.widths[places].tolist()
    assert np.shares_memory(part.pixels, table.pixels)
    assert_same_samples(part.take([len(part) - 1]), [part[-1]])


def test_a_slice_of_a_table_is_a_table():
    table = ImageTable(PIXELS, [1, 2, 3], channels=1, height=2, labels=[4, 5, 6], names=list("abc"))
    for cut in (slice(2), slice(1, None), slice(None, None, -1), slice(-1, 99), slice(None)):
        part = table[cut]
        assert_same_samples(part, [table[k] for k in range(3)[cut]])
        assert part.names == tuple("abc"[cut])
    assert repr(table[1:]) == "ImageTable(2 images, [1, 2, 2..3], uint8, 10 bytes of pixels)"
    with pytest.raises(ValueError, match="indices must be at least 1, got 0"):
        table[3:]


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([3], r"indices must be in \[0, 3\), got 3"),
        ([0, -1], r"indices must be in \[0, 3\), got -1"),
        ([0.5], "indices must be integers, got float64"),
        ([True], "indices must be integers, got bool"),
        ([[0]], r"indices must have one dimension, got shape \(1, 1\)"),
        ([10**400], "indices must be integers, got object"),
        (np.ma.masked_array([0, 1]), "indices must be an array without a mask"),
        ("01", "indices must be an array, got '01'"),
        ([], "indices must be at least 1, got 0"),
    ],
)
def test_indices_of_a_part_are_checked(indices, message):
    with pytest.raises((IndexError, TypeError, ValueError), match=message):
        gray_table().take(indices)


def test_a_part_is_saved_and_pickled_without_the_rest(tmp_path):
    table = ImageTable.from_samples(random_samples(8, 2_000))
    table.save(tmp_path / "whole")
    whole = ImageTable.open(tmp_path / "whole")
    part = whole.take([1_999, 3, 4, 5, 3])
    part.save(tmp_path / "part")
    for again in (ImageTable.open(tmp_path / "part"), pickle.loads(pickle.dumps(part))):
        assert_same_samples(again, part)
    assert len(pickle.dumps(part)) < 2_000  # the pixels by path
    assert_same_table(ImageTable.open(tmp_path / "part"), ImageTable.concatenate([part]))
    assert table_files.check_table(tmp_path / "part") == []


@pytest.mark.parametrize("fractions", [(0.7, 0.2, 0.1), (0.5,), (0.25, 0.75)])
def test_a_split_is_that_of_the_keyed_permutation(fractions):
    table = ImageTable.from_arrays(np.zeros((50, 1, 1), np.uint8), labels=np.arange(50))
    order = twin_permutation.KeyedPermutation(50, twin_rng.derive(9, 0, 0, 0, 8))
    parts = table.split(9, fractions)
    first, total = 0, 0.0
    for part, fraction in zip(parts, fractions, strict=True):
        total += fraction
        stop = int(50 * total + 1e-9)
        assert part.labels.tolist() == sorted(order[k] for k in range(first, stop))
        first = stop
    assert [part.labels.tolist() for part in table.split(8, fractions)] != [
        part.labels.tolist() for part in parts
    ]


@pytest.mark.parametrize(
    "fractions",
    [(), (0.0, 1.0), (-0.5,), (0.6, 0.5), (1e-3,), (float("nan"),), (10**400,), "12", 3],
)
def test_fractions_are_checked(fractions):
    with pytest.raises((TypeError, ValueError), match="fractions must"):
        gray_table().split(0, fractions)
    with pytest.raises(ValueError, match=r"seed must be in \[0, 2\*\*64\), got -1"):
        gray_table().split(-1, (1.0,))


def test_tables_are_put_together():
    tables = [ImageTable.from_samples(random_samples(seed, 4)) for seed in (1, 2)]
    whole = ImageTable.concatenate([tables[0], tables[1][::-1]])
    expected = [tables[0][k] for k in range(4)] + [tables[1][k] for k in (3, 2, 1, 0)]
    assert_same_samples(whole, expected)
    assert_same_table(whole, ImageTable.from_samples(expected))
    named = ImageTable(PIXELS, [6], channels=1, height=2, names=["a"])
    plain = ImageTable(PIXELS, [6], channels=1, height=2)
    assert ImageTable.concatenate([named, named]).names == ("a", "a")
    assert ImageTable.concatenate([named, plain]).names is None
    for wrong, message in (
        ([], "tables must be at least one, got none"),
        ([plain, 3], r"tables\[1\] must be an ImageTable, got int"),
        ([plain, gray_table()], r"tables\[1\] must have \(channels, height, dtype, mean, std\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ImageTable.concatenate(wrong)


def test_batches_of_a_part_are_made_of_columns():
    """The same bytes as those of its samples, and the loader asks for none of these."""

    class Asked(ImageTable):
        pass

    table = Asked(PIXELS, [1, 2, 3], channels=1, height=2, labels=[4, 5, 6])
    table.title = "kept"
    part = table[::-2]
    assert (type(part), part.title) == (Asked, "kept")
    samples = [part[k] for k in range(2)]
    digests = []
    for dataset in (part, samples):
        with onemodel.DataLoader(dataset, 2, collate=onemodel.ImageBatchCollator()) as loader:
            digests.append(loader.digest(0))
    assert digests[0] == digests[1]


# Pickle


class Pages(ImageTable):
    """At module level, so that it can be pickled."""


def test_a_pickle_gives_the_same_table():
    for table in (gray_table(), ImageTable.from_samples(random_samples(5, 30))):
        for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
            assert_same_table(again, table)
            assert_same_samples(again, table)


def test_a_subclass_keeps_class_and_attributes(tmp_path):
    pages = Pages(PIXELS, [1, 5], channels=1, height=2)
    pages.title = "a book"
    pages.save(tmp_path / "pages")
    opened = Pages.open(tmp_path / "pages")
    opened.title = "a book"
    for table in (pages, opened):
        again = pickle.loads(pickle.dumps(table))
        assert type(again) is Pages
        assert again.title == "a book"
        assert_same_table(again, table)


def test_an_opened_table_is_pickled_by_its_path(tmp_path, monkeypatch):
    ImageTable.from_samples(random_samples(5, 300)).save(tmp_path / "table")
    monkeypatch.chdir(tmp_path)
    opened = ImageTable.open("table")
    monkeypatch.chdir("/")
    content = pickle.dumps(opened)
    assert len(content) < 500
    again = pickle.loads(content)
    assert_same_samples(again, opened)
    assert len(pickle.dumps(again)) < 500
    shutil.rmtree(tmp_path / "table")
    with pytest.raises(FileNotFoundError, match="table: expected a directory"):
        pickle.loads(content)


# Of a folder


@pytest.fixture
def folder(tmp_path):
    """Four images in a folder of folders, and things that are no images."""
    image = pytest.importorskip("PIL.Image")
    place = tmp_path / "images"
    (place / "b").mkdir(parents=True)
    (place / ".hidden").mkdir()
    gray = np.arange(32 * 40, dtype=np.uint32).astype(np.uint8).reshape(32, 40)
    image.fromarray(gray).save(place / "b" / "1.png")
    image.fromarray(gray).resize((20, 16)).save(place / "a.PNG")
    image.fromarray(np.stack([gray, gray // 2, 255 - gray], axis=2)).save(place / "B.bmp")
    image.new("RGBA", (5, 32), (255, 0, 0, 0)).save(place / "c.png")
    image.fromarray(gray).save(place / ".hidden" / "x.png")
    (place / "notes.txt").write_text("no image")
    return place


def test_folder(folder):
    table = ImageTable.from_folder(folder)
    assert table.names == ("B.bmp", "a.PNG", "b/1.png", "c.png")
    assert table.widths.tolist() == [40, 40, 40, 5]
    assert (table.channels, table.height, table.pixels.dtype) == (1, 32, np.uint8)
    gray = np.arange(32 * 40, dtype=np.uint32).astype(np.uint8)
    assert np.array_equal(table.pixels[table.offsets[2] : table.offsets[3]], gray)
    assert (table.pixels[table.offsets[3] :] == 255).all()  # transparent is paper
    assert table.target_offsets.tolist() == [0] * 5


def test_folder_in_colour_and_another_height(folder):
    table = ImageTable.from_folder(folder, height=16, channels=3, mean=0.5, std=(0.1, 0.2, 0.3))
    assert (table.channels, table.height) == (3, 16)
    assert table.widths.tolist() == [20, 20, 20, 3]
    assert table.std.tolist() == np.array([0.1, 0.2, 0.3], dtype=np.float32).tolist()


def test_folder_with_labels(folder, tmp_path):
    labels = tmp_path / "labels.tsv"
    labels.write_text("a.PNG\tcab\t7\r\n\nb/1.png\t\nB.bmp\t b\t-1\nc.png\ta\nunused.png\tb\n")
    table = ImageTable.from_folder(folder, labels=labels, alphabet="abc ")
    assert [table[i].target.tolist() for i in range(4)] == [[4, 2], [3, 1, 2], [], [1]]
    assert table.labels.tolist() == [-1, 7, 0, 0]
    labels.write_text("B.bmp\t1 2 -3\na.PNG\t\nb/1.png\t4\nc.png\t5\n")
    table = ImageTable.from_folder(folder, labels=labels)
    assert table.targets.tolist() == [1, 2, -3, 4, 5]


@pytest.mark.parametrize(
    ("text", "alphabet", "message"),
    [
        ("a.PNG\tab\n", "ab", r"labels\.tsv: expected a line for every image, found none for 3 of"),
        ("a.PNG\n", None, r"labels\.tsv, line 1: expected a path, a target and perhaps a label"),
        ("a.PNG\t1\t2\t3\n", None, r"line 1: expected a path, .* found 4 fields"),
        ("a.PNG\t1\na.PNG\t1\n", None, r"line 2: expected each path once, found 'a\.PNG' again"),
        ("a.PNG\tx\n", None, r"line 1: invalid literal for int"),
        ("a.PNG\t4294967296\n", None, r"line 1: target must be in \[-2\*\*31, 2\*\*31\)"),
        ("a.PNG\t1\t3000000000\n", None, r"line 1: label must be in \[-2\*\*31, 2\*\*31\)"),
        ("a.PNG\taxb\n", "ab", r"line 1: expected characters of the alphabet, found 'x'"),
        ("a.PNG\ta\n", "aba", r"alphabet must hold each character once, got 'aba'"),
        ("a.PNG\ta\n", "", r"alphabet must hold each character once, got ''"),
        (b"a.PNG\t\xff\n", None, r"labels\.tsv: expected UTF-8 text"),
    ],
)
def test_labels_that_do_not_fit(folder, tmp_path, text, alphabet, message):
    labels = tmp_path / "labels.tsv"
    labels.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        ImageTable.from_folder(folder, labels=labels, alphabet=alphabet)


def test_folder_errors(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: expected a folder of images, found none"):
        ImageTable.from_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty: expected image files \(\.bmp"):
        ImageTable.from_folder(tmp_path / "empty")
    with pytest.raises(ValueError, match="channels must be 1 or 3, got 2"):
        ImageTable.from_folder(folder, channels=2)
    with pytest.raises(ValueError, match=r"height must be in \[1, 65537\), got 0"):
        ImageTable.from_folder(folder, height=0)
    with pytest.raises(ValueError, match="alphabet must come with a labels file"):
        ImageTable.from_folder(folder, alphabet="ab")
    with pytest.raises(FileNotFoundError, match="missing"):
        ImageTable.from_folder(folder, labels=tmp_path / "missing")


def test_images_that_cannot_be_read(folder):
    image = pytest.importorskip("PIL.Image")
    deep = np.full((32, 4), 40_000, dtype=np.uint16)
    image.fromarray(deep).save(folder / "deep.png")
    with pytest.raises(ValueError, match=r"deep\.png: cannot be read as an image: .* 8 bits"):
        ImageTable.from_folder(folder)
    (folder / "deep.png").write_bytes((folder / "b" / "1.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"deep\.png: cannot be read as an image"):
        ImageTable.from_folder(folder)


# In a loader


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("augmented", [False, True])
def test_batches_are_those_of_the_samples(tmp_path, workers, augmented):
    lines = DigitLines(60, seed=2, digits=(1, 4))
    floats = ImageTable.from_samples(lines)
    small = ImageTable.from_samples(lines, dtype=np.uint8, std=256 / 255)
    small.save(tmp_path / "table")
    augment = onemodel.augment.GainOffset((0.8, 1.2), (-0.1, 0.1)) if augmented else None

    def digests(dataset):
        with onemodel.DataLoader(
            dataset,
            sampler=onemodel.BucketedSampler(dataset.widths, 7, pool_batches=3),
            collate=onemodel.ImageBatchCollator(width_multiple=4, augment=augment),
            seed=11,
            workers=workers,
        ) as loader:
            return [onemodel.digest(batch) for batch in loader.steps(0, 12)]

    expected = digests(lines)
    for table in (floats, small, ImageTable.open(tmp_path / "table")):
        assert digests(table) == expected


# Columns, the arrays that a collator reads


def columns(**others):
    return {
        "pixels": np.zeros(6, np.float32),
        "offsets": np.array([0, 2, 6], np.int64),
        "widths": np.array([1, 2], np.int64),
        "targets": np.arange(3, dtype=np.int32),
        "target_offsets": np.array([0, 1, 3], np.int64),
        "labels": np.zeros(2, np.int32),
        "channels": 1,
        "height": 2,
        "scale": np.ones(1, np.float32),
        "shift": np.zeros(1, np.float32),
    } | others


def test_columns_are_arrays_and_made_once():
    with pytest.raises(TypeError, match="NumPy arrays"):
        Columns(**columns(target_offsets=array.array("q", [0, 1, 3])))
    made = Columns(**columns())
    with pytest.raises(TypeError, match="once"):
        made.__init__(**columns())
    unmade = Columns.__new__(Columns)
    with pytest.raises(ValueError, match="must"):
        unmade.__init__(**columns(labels=np.zeros(1000, np.int32)))
    with pytest.raises(IndexError):
        from_columns(unmade, BatchKey(0, 0, 0, 0, np.array([500], np.int64)))
