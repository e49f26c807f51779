"""Promise: a dataset longer than `len` can say is refused by its length, not by an overflow.

`len` gives what fits in a pointer: less than 2**31 in a browser, less than 2**63 elsewhere.
"""

import re
import sys

import pytest

from onemodel import DataLoader, SequentialSampler

BITS = sys.maxsize.bit_length()


class Long:
    """A dataset that computes its items, and says any length."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, indices):
        return {"index": indices}


def test_a_length_that_does_not_fit_is_refused_by_its_value():
    said = f"len(dataset) must be in [1, 2**{BITS}) in a Python of {BITS + 1} bits, got {2**BITS}"
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        DataLoader(Long(2**BITS), batch_size=4)


def test_the_longest_that_fits_is_loaded():
    loader = DataLoader(Long(2**BITS - 1), sampler=SequentialSampler(2**BITS - 1, 4))
    assert loader[1]["index"].tolist() == [4, 5, 6, 7]


def test_a_length_that_grows_too_long_is_refused_too():
    dataset = Long(8)
    loader = DataLoader(dataset, batch_size=4)
    dataset.length = 2**BITS
    with pytest.raises(ValueError, match=f"got {2**BITS}"):
        loader[0]


def test_an_overflow_of_the_dataset_itself_is_its_own():
    class Failing(Long):
        def __len__(self):
            raise OverflowError("mine")

    with pytest.raises(OverflowError, match="mine"):
        DataLoader(Failing(1), batch_size=4)
