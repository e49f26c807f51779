from onemodel._builders.indices import IndexPlan

__all__ = ["Lane"]

class Lane:
    @property
    def plan(self) -> IndexPlan: ...
