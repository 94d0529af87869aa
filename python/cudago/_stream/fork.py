# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams that take part in another stream's capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from ..errors import CUDAError

if TYPE_CHECKING:
    from .stream import Stream

__all__ = ["Fork"]


class Fork:
    """A stream that takes part in a capture until it is joined. Returned by `Graph.fork`.

    A context manager of the stream: leaving the ``with`` block joins it. Calls that take a stream
    take a fork too.

    Examples
    --------
    >>> x, y = device.allocate(4, stream=stream), device.allocate(4, stream=stream)
    >>> other = device.create_stream()
    >>> with stream.capture() as graph:
    ...     with graph.fork(other) as branch:
    ...         x.fill(1, stream=branch)
    ...     y.copy_from(x, stream=stream)
    >>> [(a.kind, b.kind) for a, b in graph.edges]
    [('memset', 'memcpy')]
    """

    __slots__ = ("_joined", "_origin", "_stream")

    def __init__(self, origin: Stream, branch: Stream) -> None:
        branch.wait(origin)
        self._origin = origin
        self._stream = branch
        self._joined = False

    @property
    def stream(self) -> Stream:
        """The stream that takes part."""
        return self._stream

    @property
    def is_joined(self) -> bool:
        """Whether `join` was called."""
        return self._joined

    def join(self) -> None:
        """Make the captured stream wait for this one. Joining twice is fine.

        Notes
        -----
        What the captured stream records later comes after what this stream has recorded.

        References
        ----------
        ``cuStreamWaitEvent``
        """
        if not self._joined:
            self._origin.wait(self._stream)
            self._joined = True

    def __enter__(self) -> Stream:
        """Return the stream."""
        return self._stream

    def __exit__(self, *args: object) -> None:
        """Join."""
        if not _core._is_open():
            return  # the interpreter is ending
        try:
            self.join()
        except CUDAError:
            if args[0] is None:  # else what the block raised says more
                raise

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return version and handle of the stream, for other libraries."""
        return self._stream.__cuda_stream__()

    def __repr__(self) -> str:
        return f"<cudago.Fork of {self._stream!r}{', joined' if self._joined else ''}>"
