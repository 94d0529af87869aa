# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is done after a test: wait for its work, so that what fails there fails it and no other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from . import settings

if TYPE_CHECKING:
    from collections.abc import Generator

    import cudago

FIXTURES = frozenset({"cu_device", "cu_stream", "cu_no_leaks"})
failed = pytest.StashKey[bool]()


def ours(item: pytest.Item) -> bool:
    """Whether a test is the plugin's business: its fixtures are used, or its options given."""
    return settings.active(item.config) or not FIXTURES.isdisjoint(
        getattr(item, "fixturenames", ())
    )


def mended(item: pytest.Item) -> Generator[None, object, object]:
    """Run a phase of a test; then wait for its work, and mend the devices that this broke."""
    __tracebackhide__ = True
    try:
        result = yield
    except BaseException as e:
        item.stash[failed] = not isinstance(e, pytest.skip.Exception)
        if (found := _wait(item)) is not None and type(found) is not type(e):
            e.add_note(f"after the test: {type(found).__name__}: {found}")
        elif found is not None:
            for note in getattr(found, "__notes__", ()):
                e.add_note(note)
        raise
    if (found := _wait(item)) is not None:
        item.stash[failed] = True
        text = f"work of the test failed: {type(found).__name__}: {found}"
        pytest.fail("\n".join([text, *getattr(found, "__notes__", ())]), pytrace=False)
    return result


def _wait(item: pytest.Item) -> cudago.CUDAError | None:
    """Wait for all devices in use, reset those that are broken, and return what went wrong."""
    cu = sys.modules.get("cudago")
    if cu is None or not hasattr(cu, "CUDAError") or not cu._core._is_open() or not ours(item):
        return None
    first: cudago.CUDAError | None = None
    for device in sys.modules["cudago._ordinal"].devices_in_use():
        try:
            device.sync()
        except cu.DeviceFaultError as e:
            first = first or e.with_traceback(None)
            first.add_note(_reset(device))
        except cu.CUDAError as e:
            first = first or e.with_traceback(None)
    return first


def _reset(device: cudago.Device) -> str:
    import cudago

    try:
        device.reset()
    except (cudago.CUDAError, ValueError) as e:
        return f"device {device.ordinal} could not be reset, and stays broken: {e}"
    return f"device {device.ordinal} was reset: what tests had there is lost"
