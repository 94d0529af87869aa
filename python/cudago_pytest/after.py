# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is done after a test: wait for its work, so that what fails there fails it and no other."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, NoReturn

import pytest

from . import captures, settings

if TYPE_CHECKING:
    from collections.abc import Generator

    import cudago

_NEEDED = ("cudago._core", "cudago._ordinal", "cudago.errors")
# For what a test has queued, before its fixtures end; and after them, if it has failed.
_SOON_S, _LATE_S = 2.0, 30.0
FIXTURES = frozenset({"cu_device", "cu_stream", "cu_no_leaks"})
failed = pytest.StashKey[bool]()
unready = pytest.StashKey[bool]()  # a fixture has failed, or skips the test
_streams = pytest.StashKey[list[str]]()  # of captures that were open after the test itself
_told = pytest.StashKey[bool]()  # its failure says that it left captures open


def ours(item: pytest.Item) -> bool:
    """Whether a test is the plugin's business: its fixtures are used, or its options given."""
    if settings.active(item.config):
        return True
    # Those that a test declares, and with its request those that it got by their names.
    asked = (item, getattr(item, "_request", None))
    return any(not FIXTURES.isdisjoint(getattr(it, "fixturenames", ())) for it in asked)


def begin(item: pytest.Item) -> None:
    """Forget what an earlier run of the same test has left, as plugins that repeat tests do it."""
    item.stash[failed] = item.stash[unready] = item.stash[_told] = False
    item.stash[_streams] = []


def prepared(item: pytest.Item) -> Generator[None, object, object]:
    """Run the fixtures of a test, and remember if one fails."""
    __tracebackhide__ = True
    try:
        return (yield)
    except BaseException as e:
        item.stash[unready] = True
        item.stash[failed] = not isinstance(e, pytest.skip.Exception)
        raise


def mended(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test; then wait for its work, and mend the devices that this broke."""
    __tracebackhide__ = True
    before = [weakref.ref(graph) for graph in captures.graphs()]
    try:
        result = yield
    except (KeyboardInterrupt, pytest.exit.Exception):
        raise  # the run ends: what it waited for may be what is interrupted
    except BaseException as e:
        item.stash[failed] = not isinstance(e, pytest.skip.Exception)
        if began := [g for g in _captures_left(item) if not any(ref() is g for ref in before)]:
            item.stash[_told] = True
            e.add_note(f"after the test: {captures.told(captures.names(began))}")
        _note(e, _wait(item, _SOON_S))
        raise
    item.stash[_streams] = captures.names(_captures_left(item))  # which fixtures may close
    if (found := _wait(item, _SOON_S)) is not None:
        _fail(item, found)
    return result


def ended(item: pytest.Item) -> Generator[None, object, object]:
    """Run the teardown of a test; then do the same, and end captures that are open still."""
    __tracebackhide__ = True
    try:
        result = yield
    except (KeyboardInterrupt, pytest.exit.Exception):
        raise
    except BaseException as e:
        if text := _end_captures(item):
            e.add_note(f"after the test: {text}")
        _note(e, _wait(item, _LATE_S))
        item.stash[failed] = not isinstance(e, pytest.skip.Exception)
        raise
    text = _end_captures(item)
    patience_s = _LATE_S if item.stash.get(failed, False) else None
    if (found := _wait(item, patience_s)) is not None:
        _fail(item, found, text)
    if text:
        item.stash[failed] = True
        pytest.fail(text, pytrace=False)
    return result


def _note(e: BaseException, found: cudago.CUDAError | ValueError | None) -> None:
    """Add to the failure of a test what its work has brought."""
    if found is None:
        return
    if type(found) is not type(e):
        e.add_note(f"after the test: {type(found).__name__}: {found}")
        return
    for note in getattr(found, "__notes__", ()):
        e.add_note(note)


def _fail(item: pytest.Item, found: cudago.CUDAError | ValueError, *more: str) -> NoReturn:
    __tracebackhide__ = True
    item.stash[failed] = True
    text = f"work of the test failed: {type(found).__name__}: {found}"
    lines = [text, *getattr(found, "__notes__", ()), *filter(None, more)]
    pytest.fail("\n".join(lines), pytrace=False)


def _captures_left(item: pytest.Item) -> list[cudago.Graph]:
    return captures.left(item.session) if ours(item) else []


def _end_captures(item: pytest.Item) -> str:
    """End the captures that nothing else of a test can end; say which, unless that is known."""
    if not (left := _captures_left(item)):
        return ""
    streams = item.stash.get(_streams, [])
    text = captures.told(streams if len(streams) == len(left) else captures.names(left))
    if hindered := captures.end(item.session, left):
        return f"{text}: {hindered}"
    return "" if item.stash.get(_told, False) else text


def _wait(item: pytest.Item, patience_s: float | None) -> cudago.CUDAError | ValueError | None:
    """Wait for all devices in use, reset those that are broken, and return what went wrong.

    What is not over in time may wait for a fixture. If it is not over after those either, nothing
    can be waited for any more, and the run stops.
    """
    core, ordinal, errors = map(sys.modules.get, _NEEDED)  # a test may have put others there
    if not (core and ordinal and errors and core._is_open() and ours(item)):
        return None
    if captures.are_open():
        return None  # of a fixture, mostly: the wait after the teardown finds the same
    first: cudago.CUDAError | ValueError | None = None
    for device in ordinal.devices_in_use():
        try:
            if not _is_over(device, patience_s) and patience_s == _LATE_S:
                item.session.shouldstop = (
                    f"work of {item.nodeid} is not over after {_LATE_S:g} s, "
                    f"and device {device.ordinal} cannot be waited for"
                )
        except errors.DeviceFaultError as e:
            first = first or e.with_traceback(None)
            first.add_note(_reset(device))
        except (errors.CUDAError, ValueError) as e:  # ValueError: another library's capture is open
            first = first or e.with_traceback(None)
    return first


def _is_over(device: cudago.Device, patience_s: float | None) -> bool:
    """Wait for a device, for ever or some time; whether its work is over."""
    if patience_s is None:
        device.sync()
        return True
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            device.sync()
        except BaseException as e:
            raised.append(e)

    thread = threading.Thread(target=wait, name="cudago-pytest", daemon=True)
    thread.start()
    thread.join(patience_s)
    if raised:
        raise raised[0]
    return not thread.is_alive()


def _reset(device: cudago.Device) -> str:
    import cudago

    try:
        device.reset()
    except (cudago.CUDAError, ValueError) as e:
        return f"device {device.ordinal} could not be reset, and stays broken: {e}"
    return f"device {device.ordinal} was reset: what tests had there is lost"
