# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A kernel, what it is launched with, and what NumPy says that it does."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest


@dataclass(frozen=True)
class Case:
    """A kernel, what it is launched with, and what NumPy says that it does.

    `reference` is called with copies of the arguments and does to them what the kernel does to
    the originals; all arrays are compared then, those that the kernel only reads too.
    """

    name: str
    kernel: Any
    args: Callable[[np.random.Generator], tuple]
    reference: Callable[..., None]
    grid: Any = 1
    block: Any = 64
    shared: int = 0
    rtol: float = 0
    atol: float = 0
    options: dict[str, Any] = field(default_factory=dict)

    def check(self, launch: Callable[[list], None]) -> None:
        """Launch through `launch`, and compare."""
        args = self.args(np.random.default_rng(zlib.crc32(self.name.encode())))
        want = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        with np.errstate(all="ignore"):
            self.reference(*want)
        launch(list(args))
        for i, (a, b) in enumerate(zip(args, want, strict=True)):
            if isinstance(a, np.ndarray):
                compare(a, b, self.rtol, self.atol, f"argument {i} of {self.name}")


def compare(got: np.ndarray, want: np.ndarray, rtol: float, atol: float, what: str) -> None:
    """Compare arrays: bit by bit without tolerances, but for the bits of a NaN."""
    if (rtol or atol) and got.dtype.names is None:
        wide = "c16" if got.dtype.kind == "c" else "f8"
        got, want = got.astype(wide), want.astype(wide)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def assign(function: Callable[..., Any]) -> Callable[..., None]:
    """Make a reference: the last array becomes what `function` makes of the arguments before it."""

    def reference(*args: Any) -> None:
        args[-1][...] = function(*args[:-1])

    return reference


def written(function: Callable[..., Any]) -> Callable[..., None]:
    """Make a reference: the last array becomes what `function` makes of the arrays before it."""

    def reference(*args: Any) -> None:
        *arrays, out = (a for a in args if isinstance(a, np.ndarray))
        out[...] = function(*arrays)

    return reference


Maker = Callable[[np.random.Generator], Any]


def make(*makers: Any) -> Maker:
    """Make arguments, by calling those that can be called."""
    return lambda rng: tuple(m(rng) if callable(m) else m for m in makers)


def uniform(low: float, high: float, dtype: Any, *shape: int) -> Maker:
    """Make floats: 300 unless a shape is given."""
    return lambda rng: rng.uniform(low, high, shape or 300).astype(dtype)


def whole(low: int, high: int, dtype: Any, *shape: int) -> Maker:
    """Make whole numbers below `high`: 300 unless a shape is given."""
    return lambda rng: rng.integers(low, high, shape or 300).astype(dtype)


def zeros(dtype: Any, *shape: int) -> Maker:
    """Make zeros: 300 unless a shape is given."""
    return lambda rng: np.zeros(shape or 300, dtype)


def missing(reason: str) -> None:
    """Skip; fail where the run was to have everything."""
    if os.environ.get("CUDAGO_REQUIRE_COMPILERS", "") not in ("", "0"):
        pytest.fail(f"CUDAGO_REQUIRE_COMPILERS is set, but {reason}", pytrace=False)
    pytest.skip(reason)
