# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that are captured at their first call, and launched as graphs from then on."""

from __future__ import annotations

import inspect
import operator
from functools import partial, update_wrapper
from threading import get_ident
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, overload
from weakref import ref

from .. import _core
from .._native import number_text, whole
from .._stream.stream import stream_of
from .arguments import Recent, class_of, leaves_of, signature_of
from .entry import Entry, executable_of
from .turns import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Self

    from .._stream.stream import Stream
    from .arguments import Leaf
    from .graph import Graph

__all__ = ["GraphFunction", "graph"]

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_REFUSED: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (inspect.iscoroutinefunction, "an async function"),
    (inspect.isasyncgenfunction, "an async generator"),
    (inspect.isgeneratorfunction, "a generator"),
)


class _Lines(str):
    """Text that notebooks and prompts show as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class GraphFunction(Generic[_P]):
    """A function whose work is launched as a graph. Made by `graph`.

    Examples
    --------
    >>> @cudago.graph
    ... def fill(s, x, value):
    ...     x.fill(value, stream=s)
    >>> x = cudago.zeros(4, "int32", stream=stream)
    >>> fill(stream, x, 1)
    >>> fill(stream, x, 1)
    >>> fill(stream, x, 7)
    >>> print(fill.explain())
    fill: 1 of at most 16 graphs
    graph 0 of 1 nodes: launched 3 times
      captured because it was the first call with (x: int32[4] on device 0, value: int)
      captured again and updated 1 time, last because value was 1 and is 7
    >>> x.numpy(stream=stream)
    array([7, 7, 7, 7], dtype=int32)
    """

    def __init__(self, func: Callable[_P, None], max_graphs: int) -> None:
        _check(func)
        update_wrapper(self, func)
        self.__name__: str = getattr(func, "__name__", type(func).__name__)
        self.__qualname__: str = getattr(func, "__qualname__", self.__name__)
        self._func = func
        self._max_graphs = max_graphs
        self._entries: dict[Hashable, Entry] = {}
        self._dropped = 0
        self._recent: tuple[int, int, Recent, ref[Entry], int] | None = None
        self._replay_last: _core.Replay | None = None
        try:
            self._signature: inspect.Signature | None = inspect.signature(
                func, follow_wrapped=False
            )
        except (TypeError, ValueError):  # some builtin functions have none
            self._signature = None
        self._names = _positional(self._signature)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Run the function's work: launch its graph, after capturing it if need be.

        Parameters
        ----------
        *args, **kwargs
            Those of the function. The first one, or the first one after ``self``, is the stream.

        Notes
        -----
        Stream-ordered on that stream. While it is capturing, the function is called and becomes
        part of that capture. Blocks while the graph is instantiated, and while another thread
        captures into the stream or launches the same graph.

        References
        ----------
        ``cuGraphLaunch``, ``cuStreamBeginCapture_v2``, ``cuGraphExecUpdate``
        """
        last = self._replay_last
        if last is not None and not kwargs and last.launch(args):
            return
        given: Any = args
        if kwargs and _stream_at(args) is None:
            given, kwargs = self._by_position(args, kwargs)
        place = _place_of_stream(self.__name__, given)
        stream = stream_of(given[place])
        if stream.is_capturing or not in_turn(stream, self._launch, stream, place, given, kwargs):
            self._run(given, kwargs)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graphs that are cached now, in the order in which their signatures came."""
        return tuple([e.graph for e in self._in_order() if e.graph is not None])

    def explain(self) -> str:
        """Say why each graph was made, and how often it was launched.

        Returns
        -------
        str
            Lines: for each graph in the cache its signature, and what made the function be captured
            again.
        """
        lines = [f"{self.__name__}: {len(self._entries)} of at most {self._max_graphs} graphs"]
        if self._dropped:
            lines[0] += f"; {self._dropped} dropped, because others were used more recently"
        for number, entry in enumerate(self._in_order()):
            lines += entry.lines(number)
        return _Lines("\n".join(lines))

    def clear(self) -> None:
        """Forget all graphs, and with them what they keep alive. Launches under way complete.

        Notes
        -----
        Call it when something has changed that is not an argument: a global variable, an attribute.

        References
        ----------
        ``cuGraphExecDestroy``, ``cuGraphDestroy``
        """
        self._entries = {}  # a call under way stores what it captures in the other one
        self._forget_last()

    def _forget_last(self) -> None:
        """Have the next call look its graph up."""
        self._recent = self._replay_last = None

    # --- how a call is made -----------------------------------------------------------------------

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call the function, into a capture."""
        result: Any = self._func(*args, **kwargs)
        if result is None:
            return
        if inspect.iscoroutine(result):
            result.close()  # without the warning that nobody has waited for it
        raise TypeError(
            f"{self.__name__}() must return None, not {type(result).__name__}: later calls do not "
            "run it. Write results into arguments"
        )

    def _by_position(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the same arguments, by position where that can be: the stream has a name."""
        if self._signature is None:
            return args, kwargs
        bound = self._bound(args, kwargs)
        return bound.args, bound.kwargs

    def _bound(self, args: Any, kwargs: Any) -> inspect.BoundArguments:
        assert self._signature is not None
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{self.__name__}() got wrong arguments: {e}") from None

    def _arguments(
        self, place: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        """Return the arguments with their defaults, and again by name, without the stream."""
        if not kwargs and len(args) == len(self._names):  # as most calls are: binding takes long
            named = dict(zip(self._names, args, strict=True))
            del named[self._names[place]]
            return args, kwargs, named
        if self._signature is None:
            named = {str(i): given for i, given in enumerate(args) if i != place}
            return args, kwargs, {**named, **kwargs}
        bound = self._bound(args, kwargs)
        bound.apply_defaults()
        named = dict(bound.arguments)
        for at, (name, parameter) in enumerate(self._signature.parameters.items()):
            if parameter.kind is parameter.VAR_POSITIONAL:
                named[name] = named[name][: place - at] + named[name][place - at + 1 :]
                break
            if at == place:
                del named[name]
                break
        return bound.args, bound.kwargs, named

    def _launch(
        self, stream: Stream, place: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Launch the graph of the call, and capture it first where that is needed."""
        if stream.is_capturing:  # another thread has begun that before this turn
            return False
        given = args[:place] + args[place + 1 :]
        recent = self._recent
        if recent is not None and not kwargs and recent[:2] == (stream._ordinal, place):
            _, _, objects, its_entry, version = recent
            entry = its_entry()
            if entry and objects.are(given) and self._replay(entry, stream, [], version):
                return True
        entries = self._entries
        all_args, all_kwargs, named = self._arguments(place, args, kwargs)
        leaves = leaves_of(named)
        key = (stream._ordinal, place, tuple(named), *signature_of(leaves))
        found = entries.get(key)
        version = self._replay(found, stream, leaves) if found is not None else 0
        if found is None or not version:
            self._capture(entries, key, stream, leaves, all_args, all_kwargs)
        elif not kwargs and (remembered := Recent.of(given, leaves)):
            try:
                self._recent = (stream._ordinal, place, remembered, ref(found), version)
                self._remember(found, version, place, given)
            finally:
                if self._entries.get(key) is not found:  # another thread has dropped it
                    self._forget_last()
        return True

    def _replay(self, entry: Entry, stream: Stream, leaves: list[Leaf], version: int = 0) -> int:
        """Launch the graph of an entry if it is for these arguments; return their version, or 0."""
        me = get_ident()
        if me in entry.users:  # a signal's handler, amid a call of this function
            return 0
        try:
            entry.users.add(me)
            return _core._locked(entry.lock, entry.launch_for, stream, leaves, version)
        finally:
            entry.users.discard(me)

    def _remember(self, entry: Entry, version: int, place: int, given: tuple[Any, ...]) -> None:
        """Have this call launched natively when it comes again."""
        me = get_ident()
        if me in entry.users:
            return
        try:
            entry.users.add(me)
            replay = _core._locked(entry.lock, entry.replay_of, version, place, given)
            if replay is not None:
                self._replay_last = replay
        finally:
            entry.users.discard(me)

    def _capture(
        self,
        entries: dict[Hashable, Entry],
        key: Hashable,
        stream: Stream,
        leaves: list[Leaf],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Capture the function, and launch the graph."""
        with stream.capture("thread_local") as graph:
            self._run(args, kwargs)
        entry = entries.setdefault(key, Entry())
        me = get_ident()
        if me in entry.users:
            with executable_of(graph) as step:
                step.launch(stream)
            return
        try:
            entry.users.add(me)
            gone = partial(_forget, ref(self), key)
            _core._locked(entry.lock, entry.launch_as, stream, graph, leaves, gone)
        finally:
            entry.users.discard(me)
            if entry.step is None and entries.get(key) is entry:
                entries.pop(key, None)
        self._make_room(entry)

    def _make_room(self, newest: Entry) -> None:
        """Drop the graphs whose last use is longest ago, if there are too many."""
        while len(self._entries) > self._max_graphs:
            others = [(e.used, k) for k, e in list(self._entries.items()) if e is not newest]
            if not others:
                return
            _, key = min(others, key=operator.itemgetter(0))
            if self._entries.pop(key, None) is not None:
                self._dropped += 1
                self._forget_last()  # it may be of that graph

    def _in_order(self) -> list[Entry]:
        return sorted(list(self._entries.values()), key=lambda e: e.created)

    # --- what functions have ----------------------------------------------------------------------

    @overload
    def __get__(self, obj: None, owner: type | None = None) -> Self: ...
    # Of an instance it is a bound method, which has all of this too. Type checkers see the latter.
    @overload
    def __get__(
        self: GraphFunction[Concatenate[Any, _Q]], obj: object, owner: type | None = None
    ) -> GraphFunction[_Q]: ...
    @overload
    def __get__(self, obj: object, owner: type | None = None) -> GraphFunction[...]: ...
    def __get__(self, obj: object, owner: type | None = None) -> Any:
        return self if obj is None else MethodType(self, obj)

    def __reduce__(self) -> str:
        return self.__qualname__  # as functions are pickled

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<cudago.GraphFunction {self.__qualname__}: {len(self._entries)} graphs>"


@overload
def graph(func: Callable[_P, None], /, *, max_graphs: int = 16) -> GraphFunction[_P]: ...
@overload
def graph(
    func: None = None, /, *, max_graphs: int = 16
) -> Callable[[Callable[_P, None]], GraphFunction[_P]]: ...
def graph(func: Any = None, /, *, max_graphs: int = 16) -> Any:
    """Make a function capture its work at the first call, and launch it as a graph from then on.

    Used as ``@cudago.graph`` or ``@cudago.graph(max_graphs=4)``. The function's first argument is a
    stream, for methods the first one after ``self``.

    Parameters
    ----------
    func : callable
        Queues work on the stream that it gets, and returns None. Not a generator, and not async.
    max_graphs : int
        Size of the cache, at least 1. If another graph is needed, the one whose last use is longest
        ago is dropped; its launches under way complete.

    Returns
    -------
    GraphFunction
        Called as the function is.

    See Also
    --------
    Stream.capture : Captures once.
    slot : Names the operands that change in a graph.

    Notes
    -----
    There is one graph for each signature: for memory its kind, element type, shape, strides, size
    and device; for numbers the type; for strings, booleans and launch configurations the value; for
    all other objects which one it is. Lists, tuples and dicts count item by item. A call with a
    known signature

    - launches the graph if all arguments are the same: the same memory, equal numbers;
    - otherwise calls the function again, captures it and updates the executable, or replaces it
      where the work differs in more than parameters. `GraphFunction.explain` says why.

    So the function may use its arguments in any way. Everything else that it reads counts as of its
    last capture: globals, attributes of its arguments, contents of arrays. If these change, call
    `GraphFunction.clear`. What it does besides queuing work happens only when it is captured.

    Memory that the function allocates on the stream belongs to the graph. What a call leaves
    allocated is freed before the next one.

    The cached graphs keep their operands alive as all graphs do, until they are dropped, replaced
    or cleared. The cache itself keeps no memory alive, and drops a graph when an object dies which
    its signature names, such as ``self``.

    The function is captured in the mode ``"thread_local"``. If it raises an exception, the capture
    is discarded and the stream can be used. Threads can call it at the same time; in one stream
    they take turns. Other work that a thread queues in the stream while another thread's call is
    captured becomes part of that graph, as in any capture: give it a stream of its own, or make
    the first calls before the threads start.

    References
    ----------
    ``cuStreamBeginCapture_v2``, ``cuGraphInstantiateWithParams``, ``cuGraphExecUpdate``,
    ``cuGraphLaunch``

    Examples
    --------
    >>> source = 'extern "C" __global__ void add(int* x, int value) { *x += value; }'
    >>> kernel, one = cudago.Program(source).compile()["add"], cudago.LaunchConfig(1, 1)
    >>> @cudago.graph
    ... def step(s, x, value):
    ...     cudago.launch(s, one, kernel, x, value)
    ...     cudago.launch(s, one, kernel, x, 10 * value)
    >>> x = cudago.zeros(1, "int32", stream=stream)
    >>> for value in (1, 1, 2):
    ...     step(stream, x, value)
    >>> x.numpy(stream=stream), len(step.graphs)
    (array([44], dtype=int32), 1)
    """
    size = whole(max_graphs, "max_graphs")
    if size < 1:
        raise ValueError(f"max_graphs must be at least 1, got {number_text(size)}")
    if func is None:
        return partial(GraphFunction[Any], max_graphs=size)
    return GraphFunction[Any](func, size)


def _positional(signature: inspect.Signature | None) -> tuple[str, ...]:
    """Return the names of the parameters, if all can be passed by position; else none."""
    parameters = signature.parameters.values() if signature is not None else ()
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        return ()
    return tuple([p.name for p in parameters])


def _check(func: Any) -> None:
    if isinstance(func, staticmethod | classmethod):
        raise TypeError(f"write @{class_of(func).__name__} above @cudago.graph, not below it")
    if isinstance(func, type) or not callable(func):
        what = "a class" if isinstance(func, type) else type(func).__name__
        raise TypeError(f"graph takes a function, not {what}")
    for is_so, what in _REFUSED:
        if is_so(func):
            raise TypeError(
                f"graph takes a function, not {what}: it has to run to its end in a capture"
            )


def _stream_at(args: tuple[Any, ...]) -> int | None:
    for place, given in enumerate(args[:2]):
        cls = class_of(given)
        if hasattr(cls, "__cuda_stream__") or hasattr(cls, "cuda_stream"):
            return place
    return None


def _place_of_stream(name: str, args: tuple[Any, ...]) -> int:
    """Return which argument is the stream: the first, or the one after ``self``."""
    place = _stream_at(args)
    if place is not None:
        return place
    got = f"got {type(args[0]).__name__}" if args else "got no positional argument"
    raise TypeError(f"the first argument of {name}() must be a stream, {got}")


def _forget(function: ref[Any], key: Hashable, gone: Any) -> None:
    """Drop a graph, because an object that its signature names has died."""
    of: GraphFunction[Any] | None = function()
    entry = of._entries.get(key) if of is not None else None
    if entry is not None and any(known.same is gone for known in entry.known):
        assert of is not None
        of._entries.pop(key, None)
        of._forget_last()
