"""The digest of a batch. Source: `tests/golden/README.md`, "The digest"."""

import hashlib
import json

import numpy as np


def digest(batch):
    """SHA-256 of a batch that is a dict of arrays, in the dict's own order."""
    sha = hashlib.sha256()
    for name, array in batch.items():
        little = np.asarray(array)
        little = little.astype(little.dtype.newbyteorder("<"))
        sha.update(name.encode("ascii"))
        sha.update(json.dumps([little.dtype.str, list(little.shape)]).encode("ascii"))
        sha.update(little.tobytes(order="C"))
    return sha.hexdigest()
