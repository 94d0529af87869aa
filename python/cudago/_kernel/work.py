# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What cudago's own kernels do: their arguments describe memory together, and none changes alone.

A fill, a copy or a conversion walks over strides, which are among its arguments. What an expression
made goes over elements, whose number is its last argument; before it is the memory that is written.
Where it goes over strides too, these follow the number, which is called n, and the numbers of the
user's before it are all that changes. What sets a condition reads as many bytes as its value has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .kernel import Kernel

COUNTED = ("elements", "reduction")
WALKED = ("strided elements", "strided reduction")
WORKS = ("fill", "copy", "conversion", "condition", *COUNTED, *WALKED)


def set_work(kernel: Kernel, work: str) -> None:
    """Say what a new kernel does, so that updates of nodes keep its arguments together."""
    kernel._set_work(work, work in COUNTED)
