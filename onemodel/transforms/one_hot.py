"""OneHot: integer labels to rows of float32.

Source: docs/transforms.md, section "OneHot".
"""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from onemodel._batch.structure import field_of, name_of, replace, take
from onemodel._common.arguments import check_key
from onemodel._common.configured import Argument, Configured, configure
from onemodel._common.integers import check_integer
from onemodel._random.batch_rng import BatchRng
from onemodel.transforms.layout import rows_of

__all__ = ["OneHot"]


class OneHot(Configured):
    """Integer labels [n] to float32 rows [n, classes]: 1 at the label, 0 elsewhere.

    Draws: none.

    Args:
        classes: how many there are; labels are in [0, classes).
        key: which array; None for the second (of a dict: "y" where there is one).

    >>> import numpy as np
    >>> from onemodel._random.rng import SampleRng
    >>> OneHot(3)(SampleRng(0), (np.zeros(2), np.array([2, 0])))[1].tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    __slots__ = ()

    classes: Argument[int] = Argument("classes", "How many classes there are: the length of a row.")
    key: Argument[int | str | None] = Argument(
        "key", "Which array holds the labels; None: the usual one."
    )

    def __init__(self, classes: SupportsIndex, key: int | str | None = None) -> None:
        classes = check_integer("classes", classes, 1, 1 << 31)
        configure(self, OneHot, {"classes": classes, "key": check_key("key", key)})

    def __call__(self, rng: Any, batch: Any) -> Any:
        """Return the batch with its labels as rows.

        Raises:
            TypeError: if the labels are not integers [n].
            ValueError: if one is outside [0, classes), naming its row.
        """
        classes, key = self.classes, self.key
        field = field_of(batch, key, 1)
        labels = rows_of("labels", take(batch, field))
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise TypeError(
                f"{name_of(field)}, the labels, must be integers [n], got {labels.dtype} "
                f"{list(labels.shape)}"
            )
        shape = (len(labels), classes)
        rows = rng.rent(shape, np.float32) if isinstance(rng, BatchRng) else np.empty(shape, "f4")
        # an unsigned label past int64 turns negative here, which is out of range as well
        values = labels.astype(np.int64, copy=False)
        outside = (values < 0) | (values >= classes)
        if outside.any():
            bad = int(outside.argmax())
            raise ValueError(
                f"labels must be in [0, {classes}), got {labels[bad]} in row {bad} of the batch"
            )
        rows.fill(0)
        rows[np.arange(len(values)), values] = 1
        return replace(batch, field, rows)
