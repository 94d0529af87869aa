# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Variables of the code whose kernels a graph launches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import _core
from ..errors import KernelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._kernel.kernel import Kernel
    from .._memory.buffer import Buffer
    from .._memory.device import Device

_DECLARED = re.compile(
    r"^[ \t]*+(?:\.(?:visible|weak|common)\s+)*+\.(?:global|const)\s+"
    r"(?:\.\w+(?:\([^)]*\))?\s+(?:\d+\s+)?)*+([A-Za-z_$%][\w$]*)",
    re.M | re.A,
)


class Variables:
    """The variables of some code on a device; only PTX tells their names."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._code: list[tuple[int, Kernel, str]] = []
        self._found: dict[int, tuple[int, str, Buffer]] | None = None

    def add(self, number: int, kernel: Kernel, ptx: str) -> None:
        """Add the code of a kernel, and its PTX if that is known."""
        self._code.append((number, kernel, ptx))

    def _by_address(self) -> dict[int, tuple[int, str, Buffer]]:
        if self._found is None:
            self._found = {}
            for number, kernel, ptx in self._code:
                for name, buffer in self._of(kernel, ptx):
                    self._found[buffer.handle] = number, name, buffer
        return self._found

    def _of(self, kernel: Kernel, ptx: str) -> Iterator[tuple[str, Buffer]]:
        for name in dict.fromkeys(_DECLARED.findall(ptx)):
            try:
                buffer = _core._code_variable(kernel._code.id, name, self._device)
            except KernelNotFoundError:  # the driver has left it out
                continue
            if buffer.size:
                yield name, buffer

    def all(self) -> Iterator[tuple[int, str, Buffer]]:
        """Yield the number of the code, the name and the memory of each variable."""
        yield from self._by_address().values()

    def at(self, address: int) -> tuple[int, str] | None:
        """Return the number of the code and the name of the variable that begins there.

        None if it is not a variable of this code: then no kernel here uses it by its name.
        """
        found = self._by_address().get(address)
        if found is None and not all(ptx for _, _, ptx in self._code):
            raise ValueError("it may be a variable of code whose PTX is not known")
        return None if found is None else found[:2]
