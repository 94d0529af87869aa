# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Run every case on the driver in use, and write the results: ``run.py FOLDER [FAMILY ...]``.

``FOLDER/<family>.npz`` then holds an array for each case, raw bits, and ``FOLDER/device.json`` says
where it was made.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

import numpy as np
from recorded import families

import cudago as cu


def device(stream: cu.Stream) -> dict[str, str]:
    """Return what golden files say of their origin."""
    major, minor = stream.device.compute_capability
    return {
        "device": f"{stream.device.name}, compute capability {major}.{minor}",
        "driver": f"{cu.driver_name()}, CUDA {'.'.join(map(str, cu.driver_version()))}",
        "date": datetime.date.today().isoformat(),
    }


def main(folder: Path, chosen: list[str]) -> None:
    """Run families, and write a file for each."""
    with cu.Device().create_stream() as stream:
        (folder / "device.json").write_text(json.dumps(device(stream)))
        for family in chosen or families.FAMILIES:
            np.savez_compressed(folder / f"{family}.npz", **families.results(family, stream))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
