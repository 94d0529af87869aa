# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is imported when it is first used.

That may be while the interpreter is ending, as in a ``__del__``. Python imports nothing then, with
an ImportError that would hide the ClosedError which every other call raises there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import _core


class _Late:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *args: object) -> None:
        if kind is not None and issubclass(kind, ImportError):
            _core._check_usable()


late = _Late()  # each import inside a function stands in `with late`


def imported(name: str) -> Any:
    """Return a module; ClosedError if it cannot be imported because the interpreter is ending."""
    with late:
        return import_module(name)
