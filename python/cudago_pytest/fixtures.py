# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The fixtures: a device, a stream, and a look for leaks."""

from __future__ import annotations

import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from . import after, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    import cudago

_SHOWN = 3
_PATIENCE_S = 1.0


@pytest.fixture(scope="session")
def cu_device() -> cudago.Device:
    """Device 0 of the run's driver; the test is skipped where there is none."""
    settings.need_driver()
    import cudago

    return cudago.Device()


@pytest.fixture
def cu_stream(cu_device: cudago.Device) -> Iterator[cudago.Stream]:
    """A stream of `cu_device` that has nothing to do, closed after the test."""
    with cu_device.create_stream() as stream:
        yield stream


@pytest.fixture
def cu_no_leaks(request: pytest.FixtureRequest, cu_device: cudago.Device) -> None:
    """Fail a test that leaves objects of cudago open that were not open before, and name them."""
    counts, objects = _open()
    earlier = set(request.node.funcargs)
    # By weak references: what ends in the test may leave its address to another.
    seen = _Seen(earlier, counts, {id(o): weakref.ref(o) for o in objects})
    request.node.stash[_before] = request.session.stash[_looking] = seen


@dataclass
class _Seen:
    """What there was before a test."""

    arguments: set[str]
    counts: dict[str, int]
    known: dict[int, weakref.ref[Any]]


_before = pytest.StashKey[_Seen | None]()
_looking = pytest.StashKey[_Seen | None]()  # of the session: that of the test under way


@contextmanager
def left_out(session: pytest.Session) -> Iterator[None]:
    """Take what is opened in a block as there before: a fixture of several tests has it."""
    seen = session.stash.get(_looking, None)
    if seen is None:
        yield
        return
    counts, objects = _open_now()
    old = {id(o) for o in objects}
    session.stash[_looking] = None  # fixtures that it asks for are part of it
    try:
        yield
    finally:
        session.stash[_looking] = seen
    now, found = _open_now()
    for kind, count in now.items():
        seen.counts[kind] = seen.counts.get(kind, 0) + count - counts.get(kind, 0)
    seen.known.update({id(o): weakref.ref(o) for o in found if id(o) not in old})


def forget(item: pytest.Item) -> _Seen | None:
    """Return what was before a test, and look no more."""
    seen = item.stash.get(_before, None)
    item.stash[_before] = item.session.stash[_looking] = None
    return seen


def look(item: pytest.Item) -> None:
    """Do what `cu_no_leaks` is for, once the fixtures of a test are over."""
    __tracebackhide__ = True
    seen = forget(item)
    if seen is None or any(item.stash.get(key, False) for key in (after.failed, after.unready)):
        return  # its traceback still has them
    _let_go(item, seen.arguments)
    before, known = seen.counts, seen.known
    from cudago import _native

    now, objects = _open()
    new = dict[str, list[str]]()
    for found in objects:
        if id(found) not in known or known[id(found)]() is not found:
            new.setdefault(type(found).__name__, []).append(_native.shown(found))
    leaks = []
    for kind in sorted({*now, *new}):
        count, was = now.get(kind, 0), before.get(kind, 0)
        texts = new.get(kind, [])
        which = f" ({', '.join(texts[:_SHOWN])})" if texts else ""
        if count > was:
            leaks.append(f"{kind}: {was} before, {count} after{which}")
        elif texts:
            leaks.append(f"{kind}: {len(texts)} new{which}")
    if leaks:
        pytest.fail("the test leaves objects open: " + "; ".join(leaks), pytrace=False)


def _let_go(item: Any, earlier: set[str]) -> None:
    """Drop what pytest has of a test that is over: values of fixtures, and the instance."""
    for name in item.funcargs.keys() - earlier:
        del item.funcargs[name]
    # As pytest does where the class is a unittest.TestCase; a repetition makes another instance.
    if isinstance(item.parent, pytest.Class) and vars(item).get("_instance") is not None:
        item._obj = None
        del item._instance


def _open_now() -> tuple[dict[str, int], list[Any]]:
    """Return what is open while a test runs, whose work may wait for the test itself."""
    import cudago.testing

    with suppress(TimeoutError):
        cudago.testing.settle(_PATIENCE_S)
    return _found()


def _open() -> tuple[dict[str, int], list[Any]]:
    """Return what is open once all that nobody uses has gone."""
    import cudago.testing

    cudago.testing.settle()
    return _found()


def _found() -> tuple[dict[str, int], list[Any]]:
    """Return what is open: counts by kind, and objects."""
    import cudago
    import cudago.debug

    own = {id(o) for o in cudago.debug._own()}
    # The collector knows neither buffers, of which there is a list, nor tensors.
    found = (*cudago._core._all_buffers(), *cudago._core._objects_of(_kinds(), cudago.Tensor))
    objects = {id(o): o for o in found if id(o) not in own and not o.is_closed}
    return cudago.live_objects(), list(objects.values())


def _kinds() -> tuple[type, ...]:
    """Return the classes of what somebody has to close, or to let go."""
    import cudago

    public = [getattr(cudago, name) for name in cudago.__all__]
    kinds = [cls for cls in public if isinstance(cls, type) and hasattr(cls, "is_closed")]
    # Code is counted: cudago keeps some of its own for the rest of the process.
    return tuple(cls for cls in kinds if cls is not cudago.ObjectCode)
