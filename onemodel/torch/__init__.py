"""onemodel in PyTorch and its trainers: views, tensors, pinned memory, copies to a device.

It knows loaders, tensors, streams and torch's worker processes.
It must not know how a batch is made. ``import onemodel.torch`` needs PyTorch.
"""

from onemodel._common.extras import require

require("torch", "torch")

from onemodel.torch.batches import pin_memory, to_device, to_tensors  # noqa: E402
from onemodel.torch.device_prefetcher import DevicePrefetcher  # noqa: E402
from onemodel.torch.loader_view import LoaderView  # noqa: E402
from onemodel.torch.pinned import pinned_pool  # noqa: E402

__all__ = [
    "DevicePrefetcher",
    "LoaderView",
    "pin_memory",
    "pinned_pool",
    "to_device",
    "to_tensors",
]
