"""Promise: line i of `DigitLines` is the same everywhere, and it is a line of legible digits."""

import copy
import hashlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.digit_lines import DigitLines as Twin
from support import assert_same_bytes

from onemodel.datasets import DigitLines

ROOT = Path(__file__).parents[1]


def assert_same_sample(sample, twin):
    assert_same_bytes(sample.image, twin.image)
    assert list(sample.target) == list(twin.target)
    assert sample.label == twin.label


def test_lines_are_those_of_the_twin():
    lines, twin = DigitLines(12, seed=0), Twin(12, seed=0)
    for i in range(12):
        assert_same_sample(lines[i], twin[i])


@given(
    seed=st.integers(0, 2**64 - 1),
    index=st.integers(0, 2**31 - 2),
    least=st.integers(1, 4),
    more=st.integers(0, 2),
    height=st.integers(8, 48),
)
def test_any_line_is_that_of_the_twin(seed, index, least, more, height):
    arguments = {"seed": seed, "digits": (least, least + more), "height": height}
    lines = DigitLines(2**31 - 1, **arguments)
    assert_same_sample(lines[index], Twin(2**31 - 1, **arguments)[index])


def test_what_a_sample_holds():
    lines = DigitLines(300, seed=5, digits=(2, 6))
    lengths = set()
    for i in range(300):
        sample = lines[i]
        assert sample.image.dtype == np.float32
        assert sample.image.flags.c_contiguous
        assert sample.image.shape == (1, 32, lines.widths[i])
        assert sample.target.dtype == np.int32
        assert set(sample.target.tolist()) <= set(range(1, 11))
        assert sample.label == 0
        levels = sample.image * 256
        assert np.array_equal(levels, np.rint(levels))
        assert 0 == levels.min() < 160 <= levels.max() <= 255
        lengths.add(len(sample.target))
    assert lengths == {2, 3, 4, 5, 6}


@pytest.mark.parametrize("height", [8, 9, 13, 20, 31, 32, 33, 64, 100])
def test_no_ink_is_cut_off(height):
    # Ink that met an edge would be at full strength there; the fade of a stroke may touch it.
    lines = DigitLines(60, seed=height, digits=(1, 3), height=height)
    for i in range(60):
        image = lines[i].image[0]
        for edge in (image[0], image[-1], image[:, 0], image[:, -1]):
            assert edge.max() <= 0.75 * image.max()


def test_all_digits_come_about_equally_often():
    lines = DigitLines(1000, seed=1)
    counts = np.bincount(np.concatenate([lines[i].target for i in range(1000)]), minlength=11)
    assert counts[0] == 0
    assert counts[1:].min() > 0.8 * counts[1:].mean()


def test_lines_depend_on_index_and_seed_and_on_nothing_read_before():
    first = DigitLines(50, seed=3)
    backwards = {i: first[i].image.tobytes() for i in reversed(range(50))}
    assert len(set(backwards.values())) == 50
    again = DigitLines(99, seed=3)
    assert all(again[i].image.tobytes() == backwards[i] for i in range(50))
    assert DigitLines(50, seed=4)[0].image.tobytes() != backwards[0]


def test_a_line_cannot_be_changed():
    lines = DigitLines(2)
    with pytest.raises(ValueError, match="read-only"):
        lines[0].image[...] = 7


def test_the_dataset_cannot_be_changed():
    lines = DigitLines(3, seed=4)
    with pytest.raises(AttributeError):
        lines.widths = np.ones(3, np.int64)
    with pytest.raises(TypeError, match="cannot be changed"):
        lines.__init__(9)
    assert repr(lines) == "DigitLines(3, seed=4, digits=(3, 12), height=32)"


def test_a_subclass_must_call_init():
    class Forgetful(DigitLines):
        def __init__(self):
            pass

    for use in (len, repr, lambda lines: lines[0], lambda lines: lines.widths):
        with pytest.raises(TypeError, match=r"Forgetful\.__init__ must call super"):
            use(Forgetful())


class Slanted(DigitLines):
    """At module level, so that it can be pickled; with arguments of its own."""

    def __init__(self, angle):
        super().__init__(5, seed=3, digits=(1, 2), height=16)
        self.angle = angle


def test_a_pickle_holds_the_arguments():
    lines = DigitLines(10**6, seed=2**64 - 1, digits=(1, 2), height=8)
    content = pickle.dumps(lines)
    assert len(content) < 500
    assert_same_bytes(pickle.loads(content)[123].image, lines[123].image)
    for again in (pickle.loads(pickle.dumps(Slanted(7))), copy.deepcopy(Slanted(7))):
        assert type(again) is Slanted
        assert again.angle == 7
        assert repr(again) == repr(Slanted(7))


def test_threads_read_the_same_lines(needs_threads):
    lines = DigitLines(200, seed=8)
    with ThreadPoolExecutor(4) as threads:
        read = list(threads.map(lambda i: lines[i].image.tobytes(), range(200)))
        widths = list(threads.map(lambda _: DigitLines(200, seed=8).widths.tobytes(), range(4)))
    assert read == [lines[i].image.tobytes() for i in range(200)]
    assert set(widths) == {lines.widths.tobytes()}


def test_widths_cannot_be_changed():
    widths = DigitLines(3).widths
    assert (widths.dtype, widths.shape) == (np.int64, (3,))
    with pytest.raises(ValueError, match="read-only"):
        widths[0] = 1


def test_indices():
    lines = DigitLines(3)
    assert_same_bytes(lines[-1].image, lines[2].image)
    assert_same_bytes(lines[np.int32(1)].image, lines[1].image)
    for index in (3, -4, 2**70):
        with pytest.raises(IndexError, match=rf"index must be in \[-3, 3\), got {index}"):
            lines[index]
    with pytest.raises(TypeError, match=r"index must be an integer .* got 1\.5 of type float"):
        lines[1.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, r"count must be in \[1, 2\*\*31\), got 0"),
        ({"count": 2**31}, r"count must be in \[1, 2\*\*31\), got 2147483648"),
        ({"count": 2.0}, r"count must be an integer in .*, got 2\.0 of type float"),
        ({"seed": -1}, r"seed must be in \[0, 2\*\*64\), got -1"),
        ({"seed": 2**64}, r"seed must be in .*, got 18446744073709551616"),
        ({"height": 7}, r"height must be in \[8, 1025\), got 7"),
        ({"height": 1025}, r"height must be in \[8, 1025\), got 1025"),
        ({"digits": 5}, r"digits must be a pair \(least, most\), got 5"),
        ({"digits": (0, 3)}, r"digits\[0\] must be in \[1, 1025\), got 0"),
        ({"digits": (4, 3)}, r"digits\[1\] must be in \[4, 1025\), got 3"),
        ({"digits": (4, 1025)}, r"digits\[1\] must be in \[4, 1025\), got 1025"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DigitLines(**{"count": 10, **arguments})


def test_repr():
    assert repr(DigitLines(9, seed=2)) == "DigitLines(9, seed=2, digits=(3, 12), height=32)"


def test_data_file_is_the_one_described():
    content = resources.files("onemodel.data").joinpath("digits.npz").read_bytes()
    assert len(content) == 117_275
    assert hashlib.sha256(content).hexdigest() == DIGITS_SHA256


def test_data_file_comes_out_of_scikit_learn_again(needs_subprocess):
    pytest.importorskip("sklearn")
    tool = ROOT / "tools" / "make_digits.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


DIGITS_SHA256 = "7e8f8eb182466cd2f4a3da7e56d860196822a04fd079fc04938e09c8b56c5afb"
