"""The numbers of the random streams; streams.pxd holds them."""

__all__ = [
    "AUGMENTATION_STREAM",
    "BUDGET_PLACE_STREAM",
    "DIGIT_LINES_STREAM",
    "GROUP_STREAM",
    "ITEM_STREAM",
    "MIXING_STREAM",
    "ORDER_STREAM",
    "PLACE_STREAM",
    "POOL_STREAM",
    "ROW_STREAM",
    "SLOT_STREAM",
    "SUBSTITUTE_STREAM",
    "TRANSFORM_STREAM",
    "WEIGHTED_ORDER_STREAM",
    "WEIGHTED_STREAM",
]
