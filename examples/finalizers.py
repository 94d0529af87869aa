# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Run code when an object has died, and when the device no longer needs what it had.

pip install 'cudago[sim]' numpy
python examples/finalizers.py
"""

import numpy as np

import cudago as cu
from cudago.testing import hold, settle

device = cu.Device()
stream = device.create_stream()
told = []


class Weights:
    """Numbers on the device."""

    def __init__(self, name: str) -> None:
        self.buffer = device.allocate(1 << 12, stream=stream)
        self.buffer.copy_from(np.ones(1 << 10, "f4"), stream=stream)
        cu.finalize(self, told.append, f"{name}: nobody has it")
        cu.finalize(self, told.append, f"{name}: the stream is done with it", stream=stream)


weights = Weights("first")
with hold(stream):  # the stream is busy
    weights.buffer.fill(0, stream=stream)
    del weights
    assert told == ["first: nobody has it"]
settle()
assert told[1:] == ["first: the stream is done with it"]
print(*told, sep="\n")

last = Weights("last")
cu.finalize(last, print, "last: at the interpreter's exit, as with weakref.finalize")
