"""Promise: `check_ctc` finds exactly the targets that CTC cannot align: one frame for each symbol,
and one between two equal neighbours, have to fit into `width // downsample`.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import refused

import onemodel as om
from onemodel import check_ctc
from onemodel.datasets import DigitLines, ImageTable


def fits(target, frames):
    """Whether a path of so many frames collapses to the target, by trying them frame by frame."""
    states = {0}  # how many symbols are done, with the last frame showing the last of them
    blank = set()  # likewise, with a blank as the last frame
    for _ in range(frames):
        after = {k + 1 for k in blank if k < len(target)}
        after |= {
            k + 1 for k in states if k < len(target) and (k == 0 or target[k] != target[k - 1])
        }
        blank, states = states | blank, after | (states - {0})
    return len(target) in states | blank or not target


def line(width, target):
    return om.Sample(np.zeros((1, 2, width), np.float32), target)


LINES = st.lists(
    st.tuples(st.integers(1, 12), st.lists(st.integers(1, 3), max_size=7)), min_size=1, max_size=8
)


@given(LINES, st.integers(1, 4))
def test_what_is_found_is_what_no_path_fits(lines, downsample):
    samples = [line(*each) for each in lines]
    expected = [
        k for k, (width, target) in enumerate(lines) if not fits(target, width // downsample)
    ]
    for dataset in (samples, tuple(samples), ImageTable.from_samples(samples)):
        report = check_ctc(dataset, downsample=downsample)
        assert report.indices.tolist() == expected
        assert len(report) == len(expected)
        assert report.checked == len(lines)
        for index, needed, available in zip(
            report.indices, report.needed, report.available, strict=True
        ):
            width, target = lines[index]
            repeats = sum(a == b for a, b in itertools.pairwise(target))
            assert needed == len(target) + repeats
            assert available == width // downsample < needed


def test_neighbours_of_two_targets_do_not_count():
    lines = [line(2, [5, 5]), line(1, [5]), line(3, []), line(1, [5])]
    assert check_ctc(ImageTable.from_samples(lines)).indices.tolist() == [0]


def test_a_part_of_a_table():
    table = ImageTable.from_samples([line(2, [5, 5]), line(9, [1]), line(3, [4, 4, 4])])
    report = check_ctc(table.take([2, 1, 0]))
    assert report.indices.tolist() == [0, 2]
    assert report.needed.tolist() == [5, 3]


def test_real_lines_fit_and_too_few_frames_are_listed():
    lines = DigitLines(50)
    assert len(check_ctc(lines, downsample=4)) == 0
    report = check_ctc(lines, downsample=10_000)
    assert len(report) == 50
    text = str(report)
    assert text.startswith("50 of 50 targets do not fit\nindex 0: needs ")
    assert text.endswith("and 40 more")
    assert report.indices.dtype == report.needed.dtype == report.available.dtype == np.int64


@pytest.mark.parametrize(
    ("dataset", "options", "error", "words"),
    [
        ([], {"downsample": 0}, ValueError, ("downsample", 0)),
        ([], {"downsample": 2.0}, TypeError, ("downsample",)),
        ([], {"downsample": True}, TypeError, ("downsample",)),
        (3, {}, TypeError, ("dataset", "len")),
        ([3], {}, TypeError, ("dataset", "Samples", "index 0")),
        ([om.Sample(np.zeros((2, 2)))], {}, ValueError, ("dataset", "[2, 2]")),
        ([om.Sample(np.zeros((1, 2, 2)), [[1]])], {}, ValueError, ("dataset", "[1, 1]")),
    ],
)
def test_arguments(dataset, options, error, words):
    with refused(error, *words):
        check_ctc(dataset, **options)


def test_no_samples():
    assert len(check_ctc([])) == 0
