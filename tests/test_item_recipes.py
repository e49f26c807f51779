"""Promise: the recipes of docs/guides/items.md for other packages work, and batches made with them
are those of the contract, with any number of workers. Each runs where its package is installed.
"""

import re
from pathlib import Path

import contract
import numpy as np
import pytest

import onemodel as om
from onemodel.datasets import Items

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "items.md"

# What these packages warn of when they are imported is theirs.
pytestmark = [
    pytest.mark.skipif(not GUIDE.is_file(), reason="the source tree is not here"),
    pytest.mark.filterwarnings("ignore"),
]


def recipe(heading):
    """Run the code below a heading of the guide and return its names."""
    section = GUIDE.read_text(encoding="utf-8").split(f"### {heading}\n")[1]
    code = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL).group(1)
    names = {}
    exec(compile(code, f"{GUIDE.name}, {heading}", "exec"), names)
    return names


def pictures():
    pillow = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 32, 40, 3), dtype=np.uint8)
    return [(pillow.fromarray(each), k) for k, each in enumerate(pixels)]


def hold_to_the_contract(items):
    """Every way to build the steps gives the bytes of single steps."""

    def make(**options):
        return om.DataLoader(items, 4, shuffle=True, seed=3, **options)

    with make() as loader:
        expected = [loader.digest(g) for g in range(7)]
    assert len(set(expected)) == 7
    contract.check_stream(make, expected, starts=(0, 3), prefetch=(2,), workers=(0, 4))
    contract.check_single_steps(make, expected, workers=(2,))
    report = om.check_loader(make, steps=4, processes=False)
    assert report.is_pure, str(report)


def test_torchvision(needs_threads):
    try:
        import torchvision  # noqa: F401
    except Exception as error:  # also one that does not fit the installed torch
        pytest.skip(f"torchvision cannot be imported: {error}")
    augment = recipe("torchvision")["augment"]
    items = Items(pictures(), transform=augment)
    images, labels = om.DataLoader(items, 4)[0]
    assert (images.shape, images.dtype) == ((4, 3, 24, 24), np.float32)
    assert labels.tolist() == [0, 1, 2, 3]
    hold_to_the_contract(items)


def test_torch_tensors_and_datasets():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(8, 3), torch.arange(8))
    part = torch.utils.data.Subset(data, [1, 3, 5, 7])
    x, y = om.DataLoader(Items(part), 2, device="torch")[1]
    assert torch.equal(x, torch.tensor([[15.0, 16, 17], [21, 22, 23]]))
    assert y.tolist() == [5, 7]
    assert y.dtype == torch.int64


def test_albumentations(needs_threads):
    pytest.importorskip("albumentations")
    augment = recipe("Albumentations")["augment"]
    items = Items(pictures(), transform=augment)
    images, _ = om.DataLoader(items, 4)[0]
    assert (images.shape, images.dtype) == ((4, 24, 24, 3), np.uint8)
    hold_to_the_contract(items)


def test_hugging_face():
    pytest.importorskip("datasets")
    items = recipe("Hugging Face")["items"]
    batch = om.DataLoader(items, 2)[0]
    assert batch["x"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert batch["y"].tolist() == [0, 1]


def test_csv(tmp_path):
    images = pictures()
    rows = ["path,label"]
    for image, number in images:
        image.save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{number % 3}")
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    x, labels = om.DataLoader(Items(recipe("CSV")["Listed"](tmp_path / "labels.csv")), 5)[1]
    assert x.tolist() == [np.asarray(image).tolist() for image, _ in images[5:10]]
    assert labels.tolist() == [2, 0, 1, 2, 0]


def test_parquet(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    monkeypatch.chdir(tmp_path)
    parquet.write_table(
        pyarrow.table({"x": [[1, 2], [3, 4], [5, 6]], "y": [7, 8, 9]}), "rows.parquet"
    )
    batch = om.DataLoader(recipe("Parquet")["items"], 3)[0]
    assert batch["x"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert batch["y"].tolist() == [7, 8, 9]
