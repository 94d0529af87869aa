# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a GPU computed, kept as text: a file of ``goldens/`` for each family.

An exact result is kept as checksums, an approximation as its first values. The files say where they
were recorded.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).parents[1] / "goldens"
KEPT = 1024


def checksums(result: np.ndarray) -> str:
    """Return checksums, of a long result one for each sixteenth."""
    parts = result.reshape(16 if result.size >= KEPT else 1, -1)
    return " ".join(f"{zlib.crc32(part.tobytes()):08x}" for part in parts)


def pack(result: np.ndarray) -> str:
    """Return the first values of a result as text."""
    return base64.b64encode(zlib.compress(result[:KEPT].tobytes(), 9)).decode()


def unpack(text: str, dtype: np.dtype) -> np.ndarray:
    """Return what `pack` was given."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)


def read(family: str) -> dict:
    """Return the golden file of a family: recorded, exact, approximate."""
    return json.loads((GOLDENS / f"{family}.json").read_text())


def write(
    family: str, recorded: dict, results: dict[str, np.ndarray], approximate: set[str]
) -> None:
    """Write the golden file of a family."""
    exact = {n: checksums(r) for n, r in results.items() if n not in approximate}
    kept = {n: pack(r) for n, r in results.items() if n in approximate}
    golden = {"recorded": recorded, "exact": exact, "approximate": kept}
    (GOLDENS / f"{family}.json").write_text(json.dumps(golden, indent=0, sort_keys=True) + "\n")
