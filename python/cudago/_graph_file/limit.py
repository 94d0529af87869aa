# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a graph file may take that it does not have: memory without contents, and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _zconstants as _z
from .._native import number_text, whole
from ..errors import OutOfMemoryError

if TYPE_CHECKING:
    from pathlib import Path

BODY = 1 << 19  # bytes that a graph in a conditional node counts as: GPUs set memory aside for each


class Limit:
    """Counts what is taken, before it is. Device memory is not counted: the device limits it."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most = path, whole(most, "memory_limit")
        if self._most < 0:
            raise ValueError(f"memory_limit must not be negative, got {number_text(most)}")
        self._left = self._most

    def take(self, nbytes: int, what: str) -> None:
        """Take bytes, or raise an error if that is more than is left."""
        if nbytes > self._left:
            error = OutOfMemoryError(
                f"loading {self._path}: {what} needs {nbytes} bytes that the file does not have, "
                f"and of a memory_limit of {self._most} there are {self._left} left: give a higher "
                "one if you trust the file, or bind memory of your own"
            )
            error.code, error.name = _z.CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"
            error.requested = nbytes
            raise error
        self._left -= nbytes
