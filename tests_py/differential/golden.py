# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Make golden files from the results of ``run.py FOLDER``: ``golden.py FOLDER``.

A family that the folder does not have keeps its file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from recorded import families, golden


def main(folder: Path) -> None:
    """Write the golden file of every family that a folder has."""
    recorded = json.loads((folder / "device.json").read_text())
    for family in families.FAMILIES:
        path = folder / f"{family}.npz"
        if path.exists():
            with np.load(path) as results:
                golden.write(family, recorded, dict(results), families.approximations(family))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
