"""Promise: `TarItems` gives the samples of tar files as WebDataset writes them, by index, in the
order of the files, to any number of threads.
"""

import gzip
import io
import pickle
import tarfile

import numpy as np
import pytest
from support import refused

import onemodel as om
from onemodel._engine.prefetch import call_on_threads
from onemodel.datasets import Items, TarItems


def write_tar(path, files, format=tarfile.PAX_FORMAT):
    with tarfile.open(path, "w", format=format) as tar:
        for name, content in files:
            if content is None:
                entry = tarfile.TarInfo(name)
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
                continue
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


@pytest.fixture
def tars(tmp_path):
    long = "folder/" + 30 * "very-long-name-" + "7"
    first = [
        ("a", None),
        ("a/0.npy", b"zero"),
        ("a/0.cls", b"0"),
        ("a/1.seg.PNG", b""),
        ("a/1.cls", b"1"),
    ]
    second = [
        (".hidden", b"no"),
        ("README", b"no"),
        (f"{long}.txt", b"long"),
        ("0.cls", 1000 * b"x"),
    ]
    return [write_tar(tmp_path / "0.tar", first), write_tar(tmp_path / "1.tar", second)], long


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_samples(tars, tmp_path, format):
    paths, long = tars
    items = TarItems(paths)
    expected = [
        {"__key__": "a/0", "npy": b"zero", "cls": b"0"},
        {"__key__": "a/1", "seg.png": b"", "cls": b"1"},
        {"__key__": long, "txt": b"long"},
        {"__key__": "0", "cls": 1000 * b"x"},
    ]
    assert [items[k] for k in range(len(items))] == expected
    assert items[-1] == expected[-1]
    assert items[np.int64(1)] == expected[1]
    again = write_tar(tmp_path / "again.tar", [(f"{long}.txt", b"1")], format)
    assert TarItems(again)[0] == {"__key__": long, "txt": b"1"}
    for index in (4, -5):
        with refused(IndexError, "index", index):
            items[index]


def test_decode_and_copies(tars):
    items = TarItems(tars[0], decode=len_of_cls)
    assert items[3] == 1000
    again = pickle.loads(pickle.dumps(items))
    assert (len(again), again[3], again.paths) == (4, 1000, items.paths)
    assert "4 samples of 2 files" in repr(items)
    with refused(TypeError, "TarItems"):
        items.__init__(tars[0])


def len_of_cls(item):
    return len(item["cls"])


def test_a_pickle_reads_no_headers_again(tars, monkeypatch):
    data = pickle.dumps(TarItems(tars[0]))
    monkeypatch.setattr(tarfile, "open", None)
    assert pickle.loads(data)[0]["npy"] == b"zero"


def test_many_threads(tars, needs_threads):
    items = TarItems(tars[0])
    expected = [items[k] for k in range(4)]
    found = call_on_threads([lambda: [items[k] for _ in range(20) for k in range(4)]] * 4)
    assert found == [expected * 20] * 4


@pytest.mark.parametrize("workers", [0, 2])
def test_in_a_loader(tmp_path, workers):
    files = []
    for k in range(10):
        files += [(f"{k:03}.bin", bytes([k] * 4)), (f"{k:03}.cls", str(k).encode())]
    path = write_tar(tmp_path / "x.tar", files)

    def decode(item):
        return {"x": np.frombuffer(item["bin"], np.uint8), "y": int(item["cls"])}

    def brighten(rng, item):
        return {**item, "x": item["x"] + np.uint8(rng.next_int(3))}

    dataset = Items(TarItems(path, decode=decode), transform=brighten)
    with om.DataLoader(dataset, 4, shuffle=True, workers=workers, seed=1) as loader:
        batches = list(loader)
    assert sorted(np.concatenate([batch["y"] for batch in batches]).tolist()) == list(range(10))
    for batch in batches:
        added = batch["x"] - batch["y"][:, None].astype(np.uint8)
        assert (added < 3).all()
        assert (added == added[:, :1]).all()


def test_what_is_no_tar(tmp_path):
    text = tmp_path / "x.tar"
    text.write_bytes(b"no tar at all")
    zipped = tmp_path / "x.tar.gz"
    plain = write_tar(tmp_path / "y.tar", [("0.txt", b"1")])
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (text, zipped):
        with refused(ValueError, path, "compressed"):
            TarItems(path)
    with refused(ValueError, "none"):
        TarItems(write_tar(tmp_path / "empty.tar", [("README", b"1")]))
    with refused(ValueError, "0", ".txt"):
        TarItems(write_tar(tmp_path / "two.tar", [("0.txt", b"1"), ("0.TXT", b"2")]))
    with pytest.raises(FileNotFoundError):
        TarItems(tmp_path / "none.tar")
    for wrong in (3, [3], None):
        with refused(TypeError, "paths"):
            TarItems(wrong)
    with refused(ValueError, "paths", "none"):
        TarItems([])
    with refused(TypeError, "decode"):
        TarItems(plain, decode=3)


def test_a_file_that_became_shorter(tmp_path):
    path = write_tar(tmp_path / "x.tar", [("0.txt", 2000 * b"1")])
    items = TarItems(path)
    path.write_bytes(path.read_bytes()[:1000])
    with refused(ValueError, path, "2000 bytes"):
        items[0]
