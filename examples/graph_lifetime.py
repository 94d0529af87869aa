# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A graph keeps what it was given, for exactly as long as it can use it.

pip install cudago numpy
python examples/graph_lifetime.py
"""

import gc
import weakref

import numpy as np

import cudago as cu
from cudago.testing import settle

N = 1 << 16
device = cu.Device()
stream = device.create_stream()


def numbers(first: int) -> np.ndarray:
    """Return N numbers, from `first` on."""
    return np.arange(first, first + N, dtype="i4")


def build() -> tuple[cu.GraphExec, weakref.ref]:
    """Return a graph that copies an array to the device and back. Nothing else knows the buffer."""
    host = numbers(first=7)
    buffer = device.allocate(host.nbytes, stream=stream)
    graph = cu.Graph()
    graph.memcpy(buffer, host, name="up").memcpy(np.empty_like(host), buffer, name="down")
    return graph.instantiate(), weakref.ref(host)


def replay(step: cu.GraphExec) -> np.ndarray:
    """Launch the graph from somewhere else, and return what came back."""
    result = np.zeros(N, "i4")
    step["down"].update(dst=result)
    step.launch(stream)
    stream.sync()
    return result


step, watched = build()  # the function has returned: array, buffer and graph have no name any more
gc.collect()
poison = [np.full(N, -1, "i4") for _ in range(8)]  # whatever memory is free now is used again
for memory in [device.allocate(4 * N, stream=stream) for _ in poison]:
    memory.fill(0xFF, stream=stream)
assert (replay(step) == numbers(first=7)).all()
for kept in step.retained:
    print(
        f"{kept.node:5} keeps {kept.operand}: {type(kept.object).__name__} of {kept.nbytes} bytes"
    )

assert watched() is not None
step["up"].update(src=numbers(first=100))  # nothing uses the first array any more ...
assert (replay(step) == numbers(first=100)).all()
settle()  # releases are prompt, but they happen on another thread
assert watched() is None  # ... and it is gone
step.close()
print("right both times; the first array was released when its last launch had ended")
