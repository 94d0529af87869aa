# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pass a struct to a kernel by value: as a NumPy scalar, or as bytes.

pip install 'cudago[sim]' numpy
python examples/structs.py
"""

import struct

import numpy as np

import cudago as cu

device = cu.Device()
stream = device.create_stream()
fall = cu.Program(
    r"""
struct World { float gravity; int steps; double dt; };

extern "C" __global__ void fall(World world, double* height, double* speed) {
    for (int i = 0; i < world.steps; i++) {
        speed[threadIdx.x] -= world.gravity * world.dt;
        height[threadIdx.x] += speed[threadIdx.x] * world.dt;
    }
}
"""
).compile()["fall"]
print(*fall.signature, sep="\n")

world = np.dtype([("gravity", "f4"), ("steps", "i4"), ("dt", "f8")], align=True)
earth = np.array((9.81, 1000, 0.001), world)[()]
moon = struct.pack("fid", 1.62, 1000, 0.001)

for name, where in {"earth": earth, "moon": moon}.items():
    height = cu.full((4,), 10.0, "f8", stream=stream)
    speed = cu.zeros((4,), "f8", stream=stream)
    cu.launch(stream, cu.LaunchConfig(grid=1, block=4), fall, where, height, speed)
    meters = float(height.numpy(stream=stream)[0])
    print(f"after 1 s on the {name}: {meters:.2f} m")
    assert 5 < meters < 9.5
