"""OneHot: integer labels to rows of float32.

Source: docs/transforms.md, section "OneHot".
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

import numpy as np

from onemodel.batch_rng cimport BatchRng
from onemodel.checks import integer
from onemodel.rows cimport address
from onemodel.structure import field_of, name_of, put, take

__all__ = ["OneHot"]


cdef class OneHot:
    """Integer labels [n] to float32 rows [n, classes]: 1 at the label, 0 elsewhere.

    Draws: none.

    Args:
        classes: how many there are; labels are in [0, classes).
        key: which array; None for the second (of a dict: "y" where there is one).

    >>> import numpy as np
    >>> from onemodel.rng import SampleRng
    >>> OneHot(3)(SampleRng(0), (np.zeros(2), np.array([2, 0])))[1].tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    cdef readonly object classes
    cdef readonly object key

    def __init__(self, classes, key=None):
        self.classes = integer("classes", classes, 1, 1 << 31)
        self.key = key

    def __repr__(self):
        return f"OneHot(classes={self.classes}, key={self.key!r})"

    def __reduce__(self):
        return OneHot, (self.classes, self.key)

    def __call__(self, rng, batch):
        """Return the batch with its labels as rows.

        Raises:
            TypeError: if the labels are not integers [n].
            ValueError: if one is outside [0, classes), naming its row.
        """
        field = field_of(batch, self.key, 1)
        labels = np.asarray(take(batch, field))
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise TypeError(
                f"{name_of(field)}, the labels, must be integers [n], got {labels.dtype} "
                f"{list(labels.shape)}"
            )
        cdef int64_t classes = self.classes
        shape = (len(labels), self.classes)
        if isinstance(rng, BatchRng):
            rows = rng.rent(shape, np.float32)
        else:
            rows = np.empty(shape, np.float32)
        # an unsigned label past int64 turns negative here, which is out of range as well
        cdef const int64_t[::1] values = np.ascontiguousarray(labels).astype(np.int64, copy=False)
        cdef float *target = <float *>address(rows)
        cdef int64_t k, bad = -1
        with nogil:
            memset(target, 0, <size_t>(values.shape[0] * classes) * sizeof(float))
            for k in range(values.shape[0]):
                if not 0 <= values[k] < classes:
                    bad = k
                    break
                target[k * classes + values[k]] = 1.0
        if bad >= 0:
            raise ValueError(
                f"labels must be in [0, {classes}), got {labels[bad]} in row {bad} of the batch"
            )
        return put(batch, field, rows)
