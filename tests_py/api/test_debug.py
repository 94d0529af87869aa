# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is open, who made it, and what died open."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
import weakref
from functools import partial
from types import SimpleNamespace

import pytest

import cudago as cu
from cudago import debug
from cudago.testing import no_leaks


@pytest.fixture
def traced(device):
    """Run a test with Python's trace of allocations, which begins after much has come and gone."""
    with device.create_stream() as stream:
        for _ in range(40):
            cu.zeros(4, "f4", stream=stream).close()
            device.allocate(4, stream=stream).close()
    tracemalloc.start(5)
    yield
    tracemalloc.stop()


@pytest.fixture
def warned():
    """The warnings of a test, with one for each object that dies open."""
    debug.resource_warnings()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found
    debug.resource_warnings(False)


def kinds(leaks) -> list[str]:
    """Return the kinds of leaks."""
    return sorted(leak.kind for leak in leaks)


def test_leaks_names_what_is_open_and_where_it_was_made(device, traced):
    before = {id(leak.object) for leak in debug.leaks()}
    stream = device.create_stream()
    kept = [
        device.allocate(64, stream=stream),
        device.create_event(),
        cu.Graph(),
        cu.zeros(4, "f4", stream=stream),
    ]
    kept.append(kept[2].instantiate())
    stream.sync()  # a repr shows values only where no work is pending
    new = [leak for leak in debug.leaks() if id(leak.object) not in before]
    assert kinds(new) == ["Buffer", "Event", "Graph", "GraphExec", "Stream", "Tensor"]
    for leak in new:
        assert leak.where[0].startswith(f"{__file__}:"), leak.where
        assert str(leak) == f"{leak.object!r}, made at {leak.where[0]}"
    assert len({leak.where[0] for leak in new}) == 6
    for thing in [*reversed(kept), stream]:
        thing.close()
    assert {id(leak.object) for leak in debug.leaks()} <= before


@pytest.mark.parametrize(
    "put",
    [
        lambda x: {"a": x},
        lambda x: (x,),
        lambda x: {"a": ((x, 1),)},
        lambda x: partial(print, x),
    ],
)
def test_leaks_finds_tensors_that_are_in_what_the_collector_does_not_know(device, put):
    with device.create_stream() as stream:
        holder = SimpleNamespace(held=put(cu.zeros(4, "f4", stream=stream)))
        assert kinds(debug.leaks()).count("Tensor") == 1
        del holder.held
        assert kinds(debug.leaks()).count("Tensor") == 0


def test_leaks_without_a_trace_says_what_but_not_where(device):
    with device.create_stream() as stream:
        (leak,) = (leak for leak in debug.leaks() if leak.object is stream)
        assert (leak.kind, leak.where, str(leak)) == ("Stream", (), repr(stream))


def test_leaks_asks_nothing_of_other_peoples_objects(device):
    class Liar:
        @property
        def __class__(self):
            raise RuntimeError("asked for its class")

    class Gone:
        pass

    gone = Gone()
    kept = [Liar(), weakref.proxy(gone)]
    del gone
    assert isinstance(debug.leaks(), tuple)
    del kept


class Unshown(cu.MemoryResource):
    def allocate(self, size, *, stream):
        raise NotImplementedError

    def __repr__(self):
        raise RuntimeError("shows nothing")


@pytest.mark.parametrize("make", [Unshown, Unshown.__new__])
def test_leaks_shows_what_cannot_be_shown(make, device):
    kept = make(Unshown) if make is not Unshown else make()
    (leak,) = (leak for leak in debug.leaks() if leak.object is kept)
    assert leak.text == object.__repr__(kept)


@pytest.mark.parametrize(
    ("cls", "given", "error"),
    [
        (cu.ArenaMemoryResource, (cu.PinnedMemoryResource(), 0), ValueError),
        (cu.TrackingMemoryResource, ("x",), TypeError),
        (cu.allocators.ForeignMemoryResource, (3,), TypeError),
    ],
)
def test_leaks_shows_what_was_not_made(cls, given, error, device):
    with pytest.raises(error) as raised:
        cls(*given)
    texts = [leak.text for leak in debug.leaks() if leak.kind == cls.__name__]
    assert texts == [f"<{cls.__module__.partition('._')[0]}.{cls.__name__}: not made>"]
    del raised


def test_leaks_does_not_keep_what_it_found(device):
    stream = device.create_stream()
    number = id(stream)
    assert any(leak.object is stream for leak in debug.leaks())
    del stream
    assert number not in {id(leak.object) for leak in debug.leaks()}


def test_a_devices_own_objects_are_no_leaks(device):
    own = (device.default_stream, device.memory_resource)
    assert not [leak for leak in debug.leaks() if leak.object in own]


def test_what_a_block_frees_is_no_leak(device, stream):
    old = [device.allocate(64, stream=stream) for _ in range(2)]
    event = device.create_event()
    with no_leaks():
        old.pop().close()
    with pytest.raises(AssertionError, match=r"differ: Buffer: \d+ before, \d+ after$"), no_leaks():
        event.close()
        old += [device.allocate(64, stream=stream) for _ in range(2)]
    for buffer in old:
        buffer.close()


def test_what_dies_open_is_a_warning(device, stream, warned):
    device.create_stream()
    device.create_event()
    graph = cu.Graph()
    graph.instantiate()
    del graph
    device.allocate(64, stream=stream)
    gc.collect()
    told = sorted(str(w.message).split()[1].split(":")[0] for w in warned)
    categories = {w.category for w in warned}
    warned.clear()  # a warning keeps the object that it is about
    assert told == [
        "<cudago.Buffer",
        "<cudago.Event",
        "<cudago.Graph",
        "<cudago.GraphExec",
        "<cudago.Stream",
    ]
    assert categories == {ResourceWarning}


def test_a_warning_says_where_the_object_was_made(device, traced, warned):
    device.create_stream()
    (warning,) = warned
    lines = [f.filename for f in tracemalloc.get_object_traceback(warning.source)]
    warned.clear()
    assert __file__ in lines


def test_a_buffer_that_a_warning_keeps_is_open_and_warned_of_once(device, stream, warned):
    device.allocate(64, stream=stream)
    kept = warned[0].source
    warned.clear()
    assert (kept.size, kept.is_closed) == (64, False)
    died = weakref.ref(kept)
    del kept
    assert died() is None
    assert not warned


def test_views_and_closed_objects_are_no_warning(device, stream, warned):
    with device.allocate(64, stream=stream) as buffer:
        buffer[:8]
        buffer.view("i4")
        buffer.ptr + 4
    device.create_stream().close()
    gc.collect()
    assert not warned


def test_warnings_can_be_switched_off_again(device, warned):
    debug.resource_warnings(False)
    debug.resource_warnings(False)
    device.create_stream()
    assert not warned
    assert "__del__" not in vars(cu.Stream)


def test_the_log_has_levels(driver, script):
    run = script(
        """
        import logging, sys
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(message)s")
        import cudago as cu
        device = cu.Device()
        options = cu.ProgramOptions(name="mine")
        cu.Program('extern "C" __global__ void f() {}', options=options).compile()
        device.reset()
        """
    )
    assert run.returncode == 0, run.stderr
    opened, compiled, reset = run.stderr.splitlines()
    assert opened.startswith(f"INFO driver {driver}, CUDA 1")
    assert compiled.startswith("DEBUG compiled 'mine' to ")
    assert reset == "INFO device 0 was reset"
