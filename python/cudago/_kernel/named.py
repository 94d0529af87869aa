# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kernel import Kernel


def no_parameters(kernel: Kernel, *names: str) -> str:
    """Return what is wrong with naming parameters of a kernel that has none."""
    return f"kernel {kernel.name} has no parameters, and so none called {', '.join(names)}"


def arranged(kernel: Kernel, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments in the order of the parameters."""
    known = kernel.parameter_names
    if not known and not kernel.signature:
        raise TypeError(no_parameters(kernel, *named))
    if not known:
        raise TypeError(
            f"the names of the parameters of kernel {kernel.name} are not known: give "
            f"{', '.join(named)} by position"
        )
    given = dict(zip(known, args, strict=False))
    for name in named:
        if name not in known:
            raise TypeError(
                f"kernel {kernel.name} has no parameter {name!r}; it has {', '.join(known)}"
            )
        if name in given:
            raise TypeError(
                f"parameter {known.index(name)} of kernel {kernel.name}, {name!r}, is given by "
                f"position and by name; the parameters are {', '.join(known)}"
            )
    if missing := [name for name in known if name not in given and name not in named]:
        raise TypeError(
            f"kernel {kernel.name} needs {', '.join(missing)} too; its parameters are "
            f"{', '.join(known)}"
        )
    given |= named
    # What is given by position beyond the parameters is counted by whoever takes them.
    return (*(given[name] for name in known), *args[len(known) :])


def _arranged(kernel: Kernel, args: Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Arrange arguments of which the last have names. Called by the native module."""
    first = len(args) - len(names)
    return arranged(kernel, args[:first], dict(zip(names, args[first:], strict=True)))
