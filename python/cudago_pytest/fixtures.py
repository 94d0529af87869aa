# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The fixtures: a device, a stream, and a look for leaks."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import pytest

from . import after, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    import cudago

_SHOWN = 3


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
def cu_no_leaks(request: pytest.FixtureRequest, cu_device: cudago.Device) -> Iterator[None]:
    """Fail a test that leaves objects of cudago open that were not open before, and name them."""
    before, objects = _open()
    earlier = set(request.node.funcargs)
    # By weak references: what ends in the test may leave its address to another.
    known = {id(o): weakref.ref(o) for o in objects}
    del objects
    yield
    if any(request.node.stash.get(key, False) for key in (after.failed, after.unready)):
        return  # its traceback still has them
    for name in request.node.funcargs.keys() - earlier:
        del request.node.funcargs[name]  # of a fixture that is over: pytest lets go of it later
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


def _open() -> tuple[dict[str, int], list[Any]]:
    """Return what is open once all that nobody uses has gone: counts by kind, and objects."""
    import cudago
    import cudago.debug
    import cudago.testing

    cudago.testing.settle()
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
