# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A device is reset while another one's kernel reads memory of it that nobody else has any more."""

from __future__ import annotations

import argparse
import gc

import numpy as np

import cudago as cu
from promises.kinds import KINDS, make
from promises.ways import KEPT
from promises.world import OLD, World


def main() -> int:
    """Run it for a kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, required=True)
    kind = parser.parse_args().kind
    # Pinned memory, as that of the gate, belongs to the first device.
    away, home = cu.Device.all()[:2]
    w = World(home, away, peers=True)
    np.frombuffer(w.result, "u1")[:] = 0
    with w.held(w.work) as asked:
        x = make(w, kind)
        KEPT["launch(s, …, x)"](w, x)
        del x
        w.kept.clear()
        gc.collect()
        asked.set()
        home.reset()
    print("kept" if w.taken == OLD else f"wrong: {w.taken}")
    w.work.close()
    return 0
