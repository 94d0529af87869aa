# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A graph in the cache of a function: what it is for, and why it is what it is."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import CUDAError, GraphUpdateError
from .arguments import UNCHANGING, differences, is_same, keep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._stream.stream import Stream
    from .arguments import Known, Leaf
    from .exec import GraphExec
    from .graph import Graph


class Entry:
    """The graph of one signature, and the arguments that it is for."""

    def __init__(self) -> None:
        self.lock = Lock()  # of what follows, and of the executable: its update and its launch
        self.users: set[int] = set()  # threads that have the lock, or wait for it
        self.graph: Graph | None = None
        self.step: GraphExec | None = None
        self.known: list[Known] = []
        self.is_whole = False  # else an exception, such as Ctrl-C, came amid a change of these
        self.created = self._used = _core._tick()
        self.version = 0  # of known
        self.replay: _core.Replay | None = None  # launches the last call again
        self._launches = self.updates = self.remade = 0
        self.last_update = self.last_remade = ""

    def is_for(self, leaves: list[Leaf], version: int = 0) -> bool:
        step = self.step
        if step is None or step.is_closed or not self.is_whole:
            return False
        return version == self.version if version else is_same(self.known, leaves)

    @property
    def launches(self) -> int:
        """How often the graph was launched."""
        return self._launches + (self.replay.launches if self.replay is not None else 0)

    @property
    def used(self) -> int:
        """When it was launched last, as a number that grows."""
        return max(self._used, self.replay.used if self.replay is not None else 0)

    def set_replay(self, replay: _core.Replay | None) -> None:
        """Take another `replay`; the one from before launches no more. With the lock held."""
        before, self._launches, self._used = self.replay, self.launches, self.used
        self.replay = replay
        if before is not None:
            before.clear()

    def lines(self, number: int) -> Iterator[str]:
        """Yield why the graph is what it is."""
        graph = self.graph
        is_open = graph is not None and not graph.is_closed
        what = f"of {graph._count()} nodes" if graph and is_open else "(closed)"
        yield f"graph {number} {what}: launched {_times(self.launches)}"
        signature = ", ".join(f"{k.path}: {k.text}" for k in self.known)
        yield f"  captured because it was the first call with ({signature})"
        if self.updates:
            often = _times(self.updates)
            yield f"  captured again and updated {often}, last because {self.last_update}"
        if self.remade:
            yield f"  made anew {_times(self.remade)}, last because {self.last_remade}"

    def become(self, graph: Graph, leaves: list[Leaf], gone: Callable[[Any], None]) -> None:
        """Make the executable one of this graph: by an update, if that is possible."""
        held = [kept.object for kept in graph.retained]
        known = keep(leaves, held, gone)
        was_whole, self.is_whole = self.is_whole, False
        self.set_replay(None)
        try:
            self._change(graph, leaves)
        except CUDAError:  # the driver refused, and the executable is as it was
            self.is_whole = was_whole
            raise
        self.graph, self.known, self.version = graph, known, self.version + 1
        self.is_whole = True

    def _change(self, graph: Graph, leaves: list[Leaf]) -> None:
        """Make or update the executable."""
        if self.step is None:
            self.step = executable_of(graph)
        elif self.step.is_closed:
            self.step = executable_of(graph)
            self.remade, self.last_remade = self.remade + 1, "the device was reset"
        else:
            why = " and ".join(differences(self.known, leaves)) or "nothing that is known"
            try:
                self.step.update(graph)
                self.updates, self.last_update = self.updates + 1, why
            except GraphUpdateError as e:
                self.step = executable_of(graph)
                self.remade, self.last_remade = self.remade + 1, f"{why}: {e}"

    # These four are called with the lock held: by _core._locked, which Ctrl-C cannot keep from
    # letting go.

    def launch_for(self, stream: Stream, leaves: list[Leaf], version: int) -> int:
        """Launch the graph if it is for these arguments; return their version, or 0."""
        if not self.is_for(leaves, version):
            return 0
        self.launch(stream)
        return self.version

    def launch_as(
        self, stream: Stream, graph: Graph, leaves: list[Leaf], gone: Callable[[Any], None]
    ) -> None:
        """Launch the graph that was captured for these arguments."""
        if not self.is_for(leaves):  # else another thread was faster
            self.become(graph, leaves, gone)
        self.launch(stream)

    def replay_of(self, version: int, place: int, given: tuple[Any, ...]) -> _core.Replay | None:
        """Make what launches the last call again, if the graph is still of this version."""
        if self.step is None or not self.is_for([], version):
            return None
        replay = _core._replay(self.step, place, given, UNCHANGING)
        self.set_replay(replay)
        return replay

    def launch(self, stream: Stream) -> None:
        """Launch the graph."""
        assert self.step is not None
        self.step.launch(stream)
        self._launches += 1
        self._used = _core._tick()


def executable_of(graph: Graph) -> GraphExec:
    """Make an executable. What a call leaves allocated is freed before the next call."""
    allocates = any(kind == "alloc" for _, _, _, kind in graph._nodes())
    return graph.instantiate(auto_free=allocates)


def _times(count: int) -> str:
    return f"{count} time{'s' * (count != 1)}"
