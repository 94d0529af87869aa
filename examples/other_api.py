# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A renderer and a kernel take turns on the same memory, ordered by a timeline on the device.

Here a thread plays the renderer, so that the example runs anywhere; with Vulkan, the two file
descriptors come from ``vkGetMemoryFdKHR`` and ``vkGetSemaphoreFdKHR``, and the rest stays.

pip install 'cudago[sim]'
python examples/other_api.py
"""

import threading

import cudago as cu

N, FRAMES = 4096, 3
SOURCE = r"""
extern "C" __global__ void invert(unsigned char* pixels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) pixels[i] = 255 - pixels[i];
}
"""


def render(memory: cu.sim.ExportedMemory, turn: cu.sim.ExportedSemaphore) -> None:
    """Draw frames, and show what the kernel made of them."""
    for frame in range(FRAMES):
        memory.view[:] = bytes([frame]) * N
        turn.signal(2 * frame + 1)
        turn.wait(2 * frame + 2)
        print(f"frame {frame}: pixels of {frame} became {memory.view[0]}")


def main() -> None:
    """Launch one graph for each frame; the host waits for none."""
    cu.init(driver="sim")  # NVIDIA's driver imports what Vulkan exports, not a stand-in
    device = cu.Device()
    stream = device.create_stream()
    exported, timeline = cu.sim.create_memory(N), cu.sim.create_semaphore()
    turn = cu.ExternalSemaphore.from_fd(device, timeline)
    with cu.ExternalMemory.from_fd(device, exported, N) as memory:
        pixels = memory.map(stream=stream)

    invert = cu.Program(SOURCE, "c++").compile()["invert"]
    graph = cu.Graph(device)
    drawn = graph.wait(turn, 1, name="drawn")
    shown = drawn.launch(cu.LaunchConfig(grid=N // 256, block=256), invert, pixels, N)
    shown.signal(turn, 2, name="inverted")
    step = graph.instantiate()

    renderer = threading.Thread(target=render, args=(exported, timeline))
    renderer.start()
    for frame in range(FRAMES):
        step["drawn"].update(value=2 * frame + 1)
        step["inverted"].update(value=2 * frame + 2)
        step.launch(stream)
    renderer.join()
    stream.sync()


if __name__ == "__main__":
    main()
