# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Values that threads replace without locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
R = TypeVar("R")


class _Version(Generic[T]):
    __slots__ = ("next", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.next: list[_Version[T]] = []  # appending is atomic: the first one is the next version


class Replaced(Generic[T]):
    """A value that is replaced as a whole, by any thread and by what the collector runs.

    The collector may run an allocation amid an allocation of the same thread: a lock would then
    wait for itself, and without one the two would mix. Ctrl-C leaves one value or the next.
    """

    __slots__ = ("_latest",)

    def __init__(self, value: T) -> None:
        self._latest = _Version(value)

    def _now(self) -> _Version[T]:
        version = self._latest
        while version.next:
            version = version.next[0]
        self._latest = version  # an older one does no harm: the latest is found from there
        return version

    @property
    def value(self) -> T:
        """The value."""
        return self._now().value

    def change(self, how: Callable[[T], tuple[T, R]]) -> R:
        """Replace the value by what a function makes of it, and return what it says besides.

        The function is called again if another change came in between.
        """
        while True:
            now = self._now()
            value, result = how(now.value)
            made = _Version(value)
            now.next.append(made)
            if now.next[0] is made:
                return result
