"""The random streams: the last coordinate of `derive`, one number for each use.

A batch's bytes depend on them; docs/specification.md, section "Random numbers", lists them. These
are constants for kernels, and integers of the same names for Python.
"""

cpdef enum:
    TRANSFORM_STREAM = 0        # the loader's transform
    AUGMENTATION_STREAM = 1     # the collator's augmentation
    ROW_STREAM = 2              # rows of the array face's native transforms
    ITEM_STREAM = 3             # the transform of single items
    SUBSTITUTE_STREAM = 4       # what stands in the place of a broken item
    DIGIT_LINES_STREAM = 7      # what the lines of DigitLines show
    ORDER_STREAM = 101          # the order of a shuffled epoch
    MIXING_STREAM = 102         # mixing: the choice of source and item
    POOL_STREAM = 103           # bucketing: which items are sorted together
    PLACE_STREAM = 104          # bucketing: the place of a sorted batch in the epoch
    SLOT_STREAM = 105           # bucketing: the slots of a batch's items, where they are shuffled
    WEIGHTED_STREAM = 106       # weighted, with replacement: the item of a slot
    WEIGHTED_ORDER_STREAM = 107     # weighted, without replacement: the order of an epoch
    GROUP_STREAM = 108          # budget: which items of a group share a batch
    BUDGET_PLACE_STREAM = 109   # budget: the place of a batch in the epoch
