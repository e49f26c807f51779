"""Promise: `inspect_loader` counts what the sampler gives and what ranks get, and the commands
about a loader named by MODULE:MAKE_LOADER say it in words, pictures and exit codes.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from support import refused

import onemodel as om
from onemodel import inspect_loader
from onemodel._checks.targets import find_function, target_of
from onemodel._cli.main import main
from onemodel.datasets import DigitLines, ImageTable

HERE = Path(__file__).parent
PIPELINES = str(HERE / "pipelines.py")
WIDTHS = [3, 9, 4, 8, 5, 7, 6, 2]


def lines(widths=WIDTHS):
    return [om.Sample(np.zeros((1, 2, width), np.float32), [1], width) for width in widths]


class Fixed:
    """Given batches, the same in each epoch."""

    def __init__(self, *batches):
        self.batches = batches
        self.steps_per_epoch, self.batch_size = len(batches), len(batches[0])

    def batch_indices(self, seed, epoch, step):
        return np.array(self.batches[step])


def test_by_hand():
    sampler = Fixed([0, 1, 2, 3], [1, 1, 4, 5])
    collate = om.ImageBatchCollator(width_multiple=4)
    found = inspect_loader(
        om.DataLoader(lines(), sampler=sampler, collate=collate), epochs=2, ranks=2
    )
    assert found.draws.tolist() == [2, 6, 2, 2, 2, 2, 0, 0]
    assert found.never_drawn == 2
    # ranks pad their own: (3, 9) to 12, (4, 8) to 8; (9, 9) to 12, (5, 7) to 8
    assert found.rank_columns.tolist() == [2 * (24 + 24), 2 * (16 + 16)]
    assert found.padded.tolist() == pytest.approx([1 - 24 / 40, 1 - 30 / 40] * 2)
    assert found.padding_waste == pytest.approx(1 - 54 / 80)
    assert found.rank_widths.tolist() == pytest.approx([30 / 4, 24 / 4])
    assert (found.sampler, found.steps_per_epoch, found.batch_size) == ("Fixed", 2, 4)
    rows = dict(found.rows())
    assert rows["never drawn"] == "2"
    assert rows["draws an epoch, most"] == "3.000"
    assert rows["mean width of the ranks"] == "6.0 to 7.5"
    assert rows["pixel columns of the ranks"] == "80.0% to 120.0%"


def test_padding_is_what_the_batches_have():
    data = DigitLines(60)
    sampler = om.BucketedSampler(data.widths, 8, drop_last=False)
    loader = om.DataLoader(data, sampler=sampler, collate=om.ImageBatchCollator(width_multiple=4))
    found = inspect_loader(loader)
    assert found.padded.tolist() == pytest.approx([batch.padding_waste for batch in loader])
    assert found.padding_waste == pytest.approx(loader.stats.padding_waste)


def test_the_world_of_a_shard():
    table = ImageTable.from_samples(lines())
    loader = om.DataLoader(table, 4, collate=om.ImageBatchCollator(), shard=(1, 2))
    assert inspect_loader(loader).ranks == 2
    assert inspect_loader(loader).draws.tolist() == [1] * 8  # of the global batch
    assert inspect_loader(loader, ranks=1).ranks == 1


def test_arrays_have_no_widths():
    found = inspect_loader(om.DataLoader(om.ArrayDataset(np.zeros((9, 4))), 4))
    assert found.widths.size == found.padded.size == 0
    assert found.padding_waste == 0
    assert found.draws.tolist() == [1] * 9
    assert "padding" not in dict(found.rows())
    assert len(str(found).splitlines()) == len(found.rows())


def test_arguments():
    loader = om.DataLoader(lines(), 4, collate=om.ImageBatchCollator())
    for options in ({"epochs": 0}, {"ranks": 0}, {"ranks": 3}, {"ranks": 8}):
        with refused(ValueError, next(iter(options))):
            inspect_loader(loader, **options)
    with refused(TypeError, "loader"):
        inspect_loader(3)
    with refused(TypeError, "epochs"):
        inspect_loader(loader, epochs="1")


# Names


def test_names_are_found(tmp_path, monkeypatch):
    assert find_function("json:dumps").__name__ == "dumps"
    assert find_function("json:JSONDecoder.decode").__name__ == "decode"
    place = tmp_path / "pipeline_of_a_user.py"
    place.write_text("import json\ndef f():\n    return 3\nx = 4\n")
    assert find_function(f"{place}:f")() == 3
    monkeypatch.chdir(tmp_path)
    assert find_function("pipeline_of_a_user:f")() == 3
    for wrong in ("f", ":f", "json:", "json:nothing", "no_such_module:f", "none.py:f", "json.x:f"):
        with refused(ValueError, "MAKE_LOADER", repr(wrong)):
            find_function(wrong)
    with refused(ValueError, "MAKE_LOADER", "int"):
        find_function(f"{place}:x")


def test_a_file_takes_no_modules_place(tmp_path):
    import json

    place = tmp_path / "json.py"
    place.write_text("def f():\n    return 3\n")
    made = find_function(f"{place}:f")
    assert made() == 3
    assert sys.modules["json"] is json
    assert target_of(made) == f"{place}:f"
    sys.path.remove(str(tmp_path))
    before = find_function(f"{PIPELINES}:pure_samples")
    assert find_function(f"{PIPELINES}:pure_samples") is before


def test_what_a_module_raises_is_its_own(tmp_path):
    place = tmp_path / "imports_nothing.py"
    place.write_text("import a_module_that_is_not_there\n")
    with refused(ModuleNotFoundError, "a_module_that_is_not_there"):
        find_function(f"{place}:f")


def test_names_of_functions(tmp_path):
    import json

    assert target_of(json.dumps) == "json:dumps"
    assert target_of(lambda: None) is None
    assert target_of(test_by_hand) in (f"{__name__}:test_by_hand", f"{__file__}:test_by_hand")
    place = tmp_path / "known_by_its_path.py"
    place.write_text("def f():\n    return 3\n")
    found = find_function(f"{place}:f")
    sys.path.remove(str(tmp_path))
    assert target_of(found) == f"{place}:f"


# The commands


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_check_of_a_pure_loader(capsys):
    code, out, _ = run(
        capsys, "check", f"{PIPELINES}:pure_samples", "--steps", "2", "--no-processes"
    )
    assert code == 0
    assert out.endswith("pure_samples: no difference found\n")
    assert "process     not compared" in out


def test_check_of_an_impure_loader(capsys):
    code, out, _ = run(
        capsys, "check", f"{PIPELINES}:global_numpy", "--steps", "2", "--no-processes"
    )
    assert code == 1
    assert "order       DIFFERENT" in out
    assert "numpy_noise draws from np.random" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "no_module_of_this_name:f"), "no module no_module_of_this_name"),
        (("check", f"{PIPELINES}:nothing"), "has no nothing"),
        (("check", f"{PIPELINES}:no_loader"), "make_loader must return a DataLoader, got 3"),
        (("check", f"{PIPELINES}:broken", "--no-processes"), "OSError: no such file"),
        (("check", f"{PIPELINES}:pure_samples", "--steps", "0"), "--steps must be in [1"),
        (("inspect", "nothing"), "expected the directory of an ImageTable, or MODULE:FUNCTION"),
        (("inspect", f"{PIPELINES}:pure_samples", "--ranks", "3"), "ranks must divide"),
        (("inspect", f"{PIPELINES}:pure_samples", "--out", "x.jpg"), "--out must end in .png"),
        (("show", f"{PIPELINES}:pure_samples", "-1"), "G must be in [0, 2**64), got -1"),
        (("show", f"{PIPELINES}:pure_arrays", "0"), "must hold images"),
    ],
)
def test_what_cannot_run(capsys, tmp_path, monkeypatch, arguments, words):
    if "show" in arguments:
        pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert words in err
    assert ("Traceback" in err) == (words.startswith(("OSError", "make_loader", "ranks")))
    assert not list(tmp_path.iterdir())


def test_inspect_of_a_loader(capsys):
    code, out, _ = run(capsys, "inspect", f"{PIPELINES}:pure_table", "--epochs", "3")
    assert code == 0
    first, *rows = out.splitlines()
    assert first.split() == ["BucketedSampler"]
    assert "mean width of the ranks" in out
    assert all(len(row) == 48 for row in rows)


def test_inspect_of_a_table(capsys, tmp_path):
    images = pytest.importorskip("PIL.Image")
    ImageTable.from_samples(lines()).save(tmp_path / "table")
    out = tmp_path / "counts.png"
    code, text, _ = run(
        capsys, "inspect", str(tmp_path / "table"), "--batch-size", "4", "--out", str(out)
    )
    assert code == 0
    assert text.splitlines()[0].split() == [
        "SequentialSampler",
        "ShuffledSampler",
        "BucketedSampler",
    ]
    with images.open(out) as picture:
        assert picture.size[0] > 3 * 320
        assert len(np.unique(np.array(picture).reshape(-1, 3), axis=0)) > 2


@pytest.mark.parametrize(
    ("name", "step"), [("pure_samples", 3), ("pure_native_arrays", 1), ("on_a_device", 0)]
)
def test_show(capsys, tmp_path, name, step):
    images = pytest.importorskip("PIL.Image")
    out = tmp_path / "batch.png"
    code, text, _ = run(
        capsys, "show", f"{PIPELINES}:{name}", str(step), "--rows", "3", "--out", str(out)
    )
    assert code == 0
    loader = getattr(__import__("pipelines"), name)()
    for slot in loader.explain(step)["slots"][:3]:
        states = "; ".join(f"{key} {slot[key]:#018x}" for key in ("transform", "augment", "row"))
        assert f"slot {slot['slot']}, index {slot['index']}; {states}" in text
    assert f"3 of {len(loader.explain(step)['slots'])} slots: {out}" in text
    with images.open(out) as picture:
        assert picture.format == "PNG"


def test_show_draws_the_pixels_and_tints_the_padding(capsys, tmp_path, monkeypatch):
    images = pytest.importorskip("PIL.Image")
    place = tmp_path / "two_widths.py"
    place.write_text(
        "import numpy as np, onemodel as om\n"
        "def make():\n"
        "    white, black = np.ones((1, 32, 40), np.float32), np.zeros((1, 32, 64), np.float32)\n"
        "    data = [om.Sample(white, [7]), om.Sample(black, [8, 9])]\n"
        "    return om.DataLoader(data, 2, collate=om.ImageBatchCollator())\n"
    )
    out = tmp_path / "batch.png"
    code, text, _ = run(capsys, "show", f"{place}:make", "0", "--out", str(out))
    assert code == 0
    assert "target 7, " in text
    assert "target 8 9, " in text
    with images.open(out) as picture:
        colours = [tuple(colour) for colour in np.array(picture).reshape(-1, 3).tolist()]
    assert colours.count((190, 210, 245)) == 32 * 24
    assert colours.count((0, 0, 0)) >= 32 * 64


def test_pictures_need_pillow(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    for arguments in (("show", f"{PIPELINES}:broken", "0"), ("inspect", f"{PIPELINES}:broken")):
        code, _, err = run(capsys, *arguments, "--out", str(tmp_path / "x.png"))
        assert code == 2
        assert "pip install 'onemodel[images]'" in err
