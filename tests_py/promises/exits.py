# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The process ends while a kernel uses memory of each kind, which nobody else has any more."""

from __future__ import annotations

import cudago as cu
from promises.kinds import KINDS, make
from promises.world import ONE, World

TURNS = 1_000_000 if cu.driver_name() == "sim" else 50_000_000


def main() -> int:
    """Queue the work, and end."""
    w = World(cu.Device(), cu.Device())
    memory = [
        make(w, kind) for kind in KINDS if kind not in ("imported", "imported virtual", "external")
    ]
    while memory:
        cu.launch(w.work, ONE, w.code["slow"], memory[-1], w.n, TURNS)
        del memory[-1]
    print("queued")
    return 0
