# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Names for parts of a program, which profilers such as Nsight Systems show beside the work.

They are those of NVIDIA's package ``nvtx``, which is loaded when the first name is used. Where it
is not installed, nothing happens, at no cost: `is_available` says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Self, TypeVar

from ._native import number_text

__all__ = ["is_available", "mark", "range"]

_F = TypeVar("_F", bound=Callable[..., Any])


_found: list[Any] = []  # NVIDIA's package, or None; empty until it was looked for


def _package() -> Any:
    """Return NVIDIA's package; None if it is not installed."""
    if not _found:
        try:
            _found.append(importlib.import_module("nvtx"))
        except ImportError:
            _found.append(None)
    return _found[0]


def is_available() -> bool:
    """Whether NVIDIA's package ``nvtx`` is installed; without it, names go nowhere.

    Returns
    -------
    bool
        True if ranges and marks reach a profiler that is attached.

    Examples
    --------
    >>> cudago.nvtx.is_available() in (True, False)
    True
    """
    return _package() is not None


def _options(
    message: str, color: str | int | None, domain: str | None
) -> dict[str, str | int | None]:
    """Check what the package would not, so that a mistake shows without it, too."""
    if not isinstance(message, str):
        raise TypeError(f"message must be a str, not {type(message).__name__}")
    if isinstance(color, bool) or not isinstance(color, str | int | None):
        raise TypeError(f"color must be a name or 0xAARRGGBB, not {type(color).__name__}")
    if isinstance(color, int) and not 0 <= color <= 0xFFFFFFFF:
        raise ValueError(f"color must be 0 to 0xFFFFFFFF, got {number_text(color)}")
    if not isinstance(domain, str | None):
        raise TypeError(f"domain must be a str, not {type(domain).__name__}")
    return {"message": message, "color": color, "domain": domain}


def mark(message: str, *, color: str | int | None = None, domain: str | None = None) -> None:
    """Name a moment.

    Parameters
    ----------
    message : str
        The name.
    color : str or int, optional
        Colour in which it is shown: a name such as "green", or 0xAARRGGBB.
    domain : str, optional
        Group of names that are shown together.

    See Also
    --------
    range : Names a part of the program.

    Notes
    -----
    The moment is the host's, not that of work on a stream.

    Examples
    --------
    >>> cudago.nvtx.mark("epoch", color="green")
    """
    options = _options(message, color, domain)
    if (package := _package()) is not None:
        package.mark(**options)


class range:
    """Name a part of the program: a ``with`` block, or a function that it decorates.

    Parameters
    ----------
    message : str
        The name.
    color : str or int, optional
        Colour in which it is shown: a name such as "green", or 0xAARRGGBB.
    domain : str, optional
        Group of names that are shown together.

    See Also
    --------
    mark : Names a moment.
    cudago.profiler : Has a profiler collect a part of the program.

    Notes
    -----
    The time is the host's: that of queuing work, unless the part also waits for it. Profilers
    show the work itself beside the range in which it was queued.

    Examples
    --------
    >>> with cudago.nvtx.range("zeros", color="green"):
    ...     t = cudago.zeros(4, stream=stream)
    >>> @cudago.nvtx.range("step")
    ... def step(): ...
    """

    __slots__ = ("_annotation",)

    def __init__(
        self, message: str, *, color: str | int | None = None, domain: str | None = None
    ) -> None:
        options = _options(message, color, domain)
        package = _package()
        self._annotation: Any = None if package is None else package.annotate(**options)

    def __enter__(self) -> Self:
        if self._annotation is not None:
            self._annotation.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        if self._annotation is not None:
            self._annotation.__exit__(*args)

    def __call__(self, function: _F) -> _F:
        """Return a function whose calls have the name; without the package, the function itself.

        Parameters
        ----------
        function : callable
            Function to decorate.

        Returns
        -------
        callable
            With the function's name and documentation.
        """
        if not callable(function):
            raise TypeError(f"function must be callable, not {type(function).__name__}")
        if self._annotation is None:
            return function
        decorated: _F = self._annotation(function)
        return decorated
