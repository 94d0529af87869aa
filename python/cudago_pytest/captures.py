# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Captures that a test leaves open: while there are any, no device can be waited for.

A capture may be a fixture's, which ends it in the teardown, so what is open is judged only then.
One that a fixture of a module or a session began is left to that fixture.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import cudago

# Of the session: begun outside of tests. Weak: a graph must not stay for having been captured.
_kept = pytest.StashKey[list["weakref.ref[cudago.Graph]"]]()


def are_open() -> bool:
    """Whether there is a capture, of any test or thread."""
    core = sys.modules.get("cudago._core")
    return core is not None and core._is_open() and core._captures_open() > 0


def graphs() -> list[cudago.Graph]:
    """Return the graphs that are being captured."""
    if not are_open():
        return []
    import cudago

    found = cudago._core._objects_of((cudago.Graph,), None)
    return [graph for graph in found if graph._captured_stream is not None]


def keep(session: pytest.Session, others: list[cudago.Graph]) -> None:
    """Leave to others the captures of graphs."""
    if others:
        session.stash.setdefault(_kept, []).extend(map(weakref.ref, others))


def left(session: pytest.Session) -> list[cudago.Graph]:
    """Return the graphs whose captures are open now, and are not left to others."""
    kept = [ref() for ref in session.stash.get(_kept, [])]
    return [graph for graph in graphs() if not any(graph is other for other in kept)]


def names(open: list[cudago.Graph]) -> list[str]:
    """Return the streams of captures that are open."""
    return [repr(graph._captured_stream) for graph in open]


def told(names: list[str]) -> str:
    """Say that a test has left captures open, of streams."""
    what = "a capture" if len(names) == 1 else f"{len(names)} captures"
    return f"the test leaves {what} open, of {', '.join(names)}"


def end(session: pytest.Session, open: list[cudago.Graph]) -> str:
    """Discard what captures have recorded; return what hinders that, and is then left alone."""
    import cudago

    hindered: list[str] = []
    for graph in open:
        try:
            cudago._core._capture_end(graph, True)
        except (cudago.CUDAError, ValueError) as e:  # it is another thread's, or is ending there
            if graph._captured_stream is not None:
                hindered.append(f"it stays open, and no device can be waited for: {e}")
                keep(session, [graph])
    return "; ".join(hindered)
