# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Let a buffer grow under a graph that uses it: its address stays, and nothing is copied.

pip install 'cudago[sim]' numpy
python examples/growing.py
"""

import numpy as np

import cudago as cu

PAGE = 1 << 21
device = cu.Device()
stream = device.create_stream()
log = cu.VirtualMemoryResource(device, reserve=64 * PAGE).allocate(PAGE, stream=stream)

graph = cu.Graph()
graph.memset(log[:PAGE], 7, name="clear")
step = graph.instantiate()

start = log.ptr
for pages in (2, 4, 8):
    log.grow(pages * PAGE)
    log[(pages // 2) * PAGE :].fill(pages, stream=stream)
    step.launch(stream)
assert log.ptr == start

found = np.empty(log.size, "u1")
log.copy_to(found, stream=stream)
stream.sync()
assert [int(found[page * PAGE]) for page in range(8)] == [7, 2, 4, 4, 8, 8, 8, 8]
print(f"{log.size // PAGE} pages at {start}")
