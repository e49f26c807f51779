"""Promise: `DevicePrefetcher` gives the batches of its source, in order, on their device.

A batch on the host is released only when the event behind its copy has fired, also where the pass
is broken off; the stream that computes waits for that event; and the state is that of the last
batch that was handed out, though one more was taken. Streams and events are false ones here; with
a device the last test runs the real ones.
"""

import gc
import weakref

import numpy as np
import pytest
from support import refused

import onemodel as om

torch = pytest.importorskip("torch", reason="torch is not installed")
import onemodel.torch  # noqa: E402  it needs torch
from onemodel.torch import DevicePrefetcher, LoaderView, device_prefetcher  # noqa: E402


class Event:
    """Fires when the test says so, or when it is waited for."""

    def __init__(self, log, number, fired):
        self.log, self.number, self.fired = log, number, fired

    def query(self):
        return self.fired

    def synchronize(self):
        if not self.fired:
            self.log.append(f"host waits for {self.number}")
        self.fired = True


class SideStream:
    """In place of the real one: copies are done at once, their events when the test says so."""

    made: "SideStream"
    at_once = False

    def __init__(self, device):
        self.device, self.log, self.events, self.sources = device, [], [], []
        SideStream.made = self

    def copy(self, batch):
        event = Event(self.log, len(self.events), self.at_once)
        self.events.append(event)
        self.sources.append(weakref.ref(batch))
        self.log.append(f"copy {event.number}")
        return batch.number, event

    def wait(self, moved, event):
        self.log.append(f"stream waits for {event.number}")

    def held(self):
        gc.collect()
        return [k for k, ref in enumerate(self.sources) if ref() is not None]


class Batch:
    def __init__(self, number):
        self.number = number


def batches(count):
    return (Batch(number) for number in range(count))


@pytest.fixture(params=[False, True], ids=["slow copies", "copies done at once"])
def at_once(request, monkeypatch):
    monkeypatch.setattr(device_prefetcher, "_SideStream", SideStream)
    monkeypatch.setattr(SideStream, "at_once", request.param)
    return request.param


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.usefixtures("at_once")
def test_every_batch_comes_once_and_in_order(count):
    assert list(DevicePrefetcher(batches(count), "cuda")) == list(range(count))
    assert SideStream.made.held() == []
    assert SideStream.made.device == torch.device("cuda")
    log = SideStream.made.log
    for number in range(count):
        assert log.count(f"copy {number}") == log.count(f"stream waits for {number}") == 1
        assert log.index(f"copy {number}") < log.index(f"stream waits for {number}")


@pytest.mark.usefixtures("at_once")
def test_the_next_copy_begins_before_a_batch_is_handed_out():
    run = iter(DevicePrefetcher(batches(3), "cuda"))
    assert next(run) == 0
    assert SideStream.made.log[:3] == ["copy 0", "copy 1", "stream waits for 0"]


def test_a_batch_is_held_until_its_event_has_fired(at_once):
    if at_once:
        pytest.skip("about copies that take time")
    run = iter(DevicePrefetcher(batches(9), "cuda"))
    next(run)
    side = SideStream.made
    assert side.held() == [0, 1]
    side.events[0].fired = True
    next(run)
    assert side.held() == [1, 2]
    # as fast as the host is, it holds no more than a few
    next(run)
    assert side.held() == [2, 3]
    assert "host waits for 1" in side.log
    # what is behind an open event stays, though its own has fired
    side.events[3].fired = True
    next(run)
    assert side.held() == [3, 4] or side.held() == [4]
    assert side.events[2].fired


def test_a_batch_whose_copy_is_done_is_released_at_the_next(at_once):
    if not at_once:
        pytest.skip("about copies that take no time")
    run = iter(DevicePrefetcher(batches(9), "cuda"))
    for _ in range(4):
        next(run)
        assert SideStream.made.held() == []


@pytest.mark.usefixtures("at_once")
def test_a_pass_that_is_broken_off_waits_for_its_copies():
    run = iter(DevicePrefetcher(batches(9), "cuda"))
    next(run)
    run.close()
    assert all(event.fired for event in SideStream.made.events)
    assert SideStream.made.held() == []


@pytest.mark.usefixtures("at_once")
def test_an_error_of_the_source_is_raised_after_its_copies():
    def broken():
        yield Batch(0)
        yield Batch(1)
        raise OSError("the disk is gone")

    run = iter(DevicePrefetcher(broken(), "cuda"))
    assert next(run) == 0
    with pytest.raises(OSError, match="the disk is gone"):
        next(run)
    assert all(event.fired for event in SideStream.made.events)


@pytest.mark.usefixtures("at_once")
def test_the_state_does_not_count_the_batch_that_was_taken_ahead(monkeypatch):
    def copy(self, batch):
        return batch.clone(), Event(self.log, 0, True)

    monkeypatch.setattr(SideStream, "copy", copy)

    def make():
        return om.DataLoader(om.ArrayDataset(np.arange(20)), 2, shuffle=True, device="torch")

    loader = make()
    ahead = DevicePrefetcher(loader, "cuda")
    assert ahead.state_dict()["next_step"] == 0
    seen = []
    for batch in ahead:
        seen.append(batch.tolist())
        assert ahead.state_dict()["next_step"] == len(seen)
        iter(ahead)  # a peek changes nothing
        if len(seen) == 4:
            break
    assert loader.state_dict()["next_step"] == 5
    other = DevicePrefetcher(make(), "cuda")
    other.load_state_dict(ahead.state_dict())
    assert other.state_dict()["next_step"] == 4
    seen += [batch.tolist() for batch in other]
    assert seen == [make()[g].tolist() for g in range(10)]
    ahead.set_epoch(3)
    assert ahead.state_dict()["next_step"] == 30


def test_on_the_cpu_batches_are_handed_through_as_tensors():
    loader = om.DataLoader(om.ArrayDataset(np.arange(4)), 2)
    ahead = DevicePrefetcher(loader, "cpu")
    assert len(ahead) == 2
    assert ahead.device == torch.device("cpu")
    run = iter(ahead)
    assert loader.epoch == 0
    assert torch.equal(next(run), torch.tensor([0, 1]))
    assert ahead.state_dict()["next_step"] == 1
    ahead.load_state_dict(loader.state_dict(step=0))
    assert [batch.tolist() for batch in DevicePrefetcher(LoaderView(loader), "cpu")] == [[2, 3]]


def test_arguments():
    with refused(TypeError, "batches", "iterable", 3):
        DevicePrefetcher(3, "cpu")
    for wrong in ("gpu", "cuda:x", None, []):
        with refused(ValueError, "device", "torch"):
            DevicePrefetcher([], wrong)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
def test_a_real_device_gets_the_bytes():
    images = np.random.default_rng(0).random((4096, 64), np.float32)
    pool = om.torch.pinned_pool()
    loader = om.DataLoader(om.ArrayDataset(images), 256, shuffle=True, workers=2, pool=pool)
    for _ in range(3):
        epoch = loader.epoch
        for step, batch in enumerate(DevicePrefetcher(loader, "cuda")):
            assert batch.is_cuda
            expected = loader[epoch * len(loader) + step]
            assert np.array_equal((batch * 2).cpu().numpy(), expected * 2)
    loader.close()
    gc.collect()
    assert pool.stats.returned == pool.stats.rented
