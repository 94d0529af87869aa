# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The promises, kind by kind: memory is handed over or let go while a stream that uses it is held.

    python -m promises.matrix --kind pinned --devices two

writes a line for each cell, as JSON: its kind, view, way and what came of it. What should come of
it says expected.py.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterator

import numpy as np

import cudago as cu
from cudago.testing import settle
from promises.exporter import Exporter
from promises.kinds import EXPORTED, KINDS, VIEWS, make
from promises.ways import ENDS, KEPT, ORDER
from promises.world import NEW, OLD, World

REFUSALS = (BufferError, ValueError, TypeError, AttributeError, RuntimeError, cu.CUDAError)


class Theirs:
    """Another library's tensor over memory, on which that library itself has no work."""

    def __init__(self, x: object) -> None:
        self._x = x

    def __dlpack__(self, **keywords):
        return self._x.__dlpack__(**{**keywords, "stream": -1})

    def __dlpack_device__(self):
        return self._x.__dlpack_device__()


def _refusal(e: BaseException) -> str:
    if isinstance(e, cu.DeviceFaultError):
        raise e
    return f"refused: {type(e).__name__}: {str(e).splitlines()[0]}"


def order(w: World, kind: str, view: str, way: str) -> str:
    """Hand memory over while a kernel is still to write it."""
    w.views = [make(w, kind)]
    w.views.append(VIEWS[view](w.views[0]))
    w.theirs = Theirs(w.views[1])
    np.frombuffer(w.result, "u1")[:] = 0
    settle()  # the driver may free host memory only when no stream is held
    call = ORDER[way]
    try:
        with w.held(w.work) as asked:
            w.asked = asked
            try:
                w.put(w.work, w.views[1], NEW, w.n)
            except REFUSALS as e:
                return _refusal(e)
            if way not in ("memoryview(x)", "cudago.finalize(x, f, stream=s)"):
                asked.set()
            w.theirs = w.theirs if "another library's" in way else None
            try:
                got = call(
                    w, w.views[1] if way != "cudago.finalize(x, f, stream=s)" else w.views.pop()
                )
            except ImportError as e:
                return f"absent: {e}"
            except REFUSALS as e:
                return _refusal(e)
    finally:
        w.views = []
        w.theirs = None
        w.settle()
    return {NEW: "ordered", OLD: "not ordered"}.get(got, f"wrong: {got}") + w.blocked


def _close(things: object) -> None:
    for thing in things if isinstance(things, list | tuple) else [things]:
        close = getattr(thing, "close", None)
        if close and not isinstance(thing, cu.Pointer):
            close()


def _queue(w: World, kind: str, view: str, way: str, end: str) -> str | None:
    buffer = make(w, kind)
    x = VIEWS[view](buffer)
    try:
        rest = KEPT[way](w, x)
    except REFUSALS as e:
        return _refusal(e)
    if end == "closed":
        _close([x, buffer])
        _close(rest)
    return None


def _again(w: World, kind: str) -> object:
    """Memory of the same kind, with other numbers: that of a cell, if it has gone back too
    early."""
    if kind in ("variable", "imported", "imported virtual", "external"):
        return None  # the same memory, or never given back to be given again
    if KINDS[kind].on_host and cu.driver_name() != "sim":
        return None  # NVIDIA's driver may wait for the stream, which waits for this thread
    own, w.own = w.own, w.near  # the stream of the memory that was let go may have to wait now
    try:
        again = KINDS[kind].make(w)
    finally:
        w.own = own
    w.put(w.near, again, 99, w.n)
    w.near.sync()
    return again


def _counts() -> object:
    settle()
    return cu.live_objects(), [t[0] for t in cu._core._tallies(False)]


def kept(w: World, kind: str, view: str, way: str, end: str) -> str:
    """Let memory go while a kernel or a copy is still to read it."""
    w.other = cu.PinnedMemoryResource().allocate(w.n)
    np.frombuffer(w.other, "u1")[:] = OLD
    before = _counts()
    np.frombuffer(w.result, "u1")[:] = 0
    with w.away.create_stream() as w.fresh:
        with w.held(w.work) as asked:
            refused = _queue(w, kind, view, way, end)
            gc.collect()
            again = _again(w, kind) if not refused else None
            asked.set()
        del again
    w.settle()
    if refused:
        return refused
    if w.taken != OLD:
        return f"wrong: {w.taken}"
    after = _counts()
    return (
        "kept" if after == before else f"not released once: {before} before, {after} after"
    ) + w.blocked


def cells(w: World, kind: str) -> Iterator[tuple[str, str, str]]:
    """Run all cells of a kind: view, way and what came of it."""
    for way in ORDER:
        for view in EXPORTED:
            yield view, way, order(w, kind, view, way)
    for way in KEPT:
        for view in VIEWS:
            for end in ENDS:
                yield view, f"{way}, {end}", kept(w, kind, view, way, end)


def main() -> int:
    """Run the cells of some kinds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--devices", choices=("one", "two", "apart"), default="one")
    parser.add_argument("--way")
    given = parser.parse_args()
    devices = cu.Device.all()
    home, away = devices[0], devices[0 if given.devices == "one" else 1]
    w = World(home, away, peers=given.devices == "two")
    w.exporter = None
    gc.collect()
    gc.freeze()  # the collections of the cells look at what the cells have made
    for kind in given.kind or KINDS:
        if kind.startswith("imported") and not w.exporter:
            w.exporter = Exporter(home)
        if given.way:
            globals()["ORDER"] = {k: v for k, v in ORDER.items() if given.way in k}
            globals()["KEPT"] = {k: v for k, v in KEPT.items() if given.way in k}
        for view, way, got in cells(w, kind):
            print(json.dumps([kind, view, way, got], ensure_ascii=False), flush=True)
    if w.exporter:
        settle()
        w.exporter.close()
    w.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
