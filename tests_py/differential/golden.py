# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a GPU computed, kept as text: ``golden.py FOLDER`` makes it of what ``run.py FOLDER`` left.

An exact result is kept as checksums, an approximation as its first values.
The files stand in ``goldens/``, one for each family, and say where they were recorded.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).with_name("goldens")
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


def main(folder: Path) -> None:
    """Make golden files of every family that a folder has."""
    import run

    GOLDENS.mkdir(exist_ok=True)
    recorded = json.loads((folder / "device.json").read_text())
    for family in run.FAMILIES:
        path = folder / f"{family}.npz"
        if path.exists():
            with np.load(path) as results:
                write(family, recorded, dict(results), run.approximations(family))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
