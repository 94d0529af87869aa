# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The fixtures: a device, a stream, and a look for leaks."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

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
    """Fail a test that leaves more objects of cudago open than it found, and name them."""
    before, objects = _open()
    known = {id for texts in objects.values() for id in texts}
    yield
    if request.node.stash.get(after.failed, False):
        return  # its traceback still has them
    now, objects = _open()
    leaks = []
    for kind, count in sorted(now.items()):
        if count > before.get(kind, 0):
            new = [text for id, text in objects.get(kind, {}).items() if id not in known]
            which = f" ({', '.join(new[:_SHOWN])})" if new else ""
            leaks.append(f"{kind}: {before.get(kind, 0)} before, {count} after{which}")
    if leaks:
        pytest.fail("the test leaves objects open: " + "; ".join(leaks), pytrace=False)


def _open() -> tuple[dict[str, int], dict[str, dict[int, str]]]:
    """Return what is open once all that nobody uses has gone: counts, and objects, by kind."""
    import cudago
    import cudago.testing

    cudago.testing.settle()
    objects: dict[str, dict[int, str]] = {}
    # The collector does not know buffers, of which there is a list.
    for found in (*cudago._core._all_buffers(), *gc.get_objects()):
        kind = type(found)
        if kind.__module__.partition(".")[0] == "cudago" and hasattr(kind, "is_closed"):
            objects.setdefault(kind.__name__, {})[id(found)] = repr(found)
    return cudago.live_objects(), objects
