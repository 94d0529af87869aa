# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Two processes use the same device memory, and events order their work.

pip install 'cudago[sim]' numpy
python examples/two_processes.py
"""

import multiprocessing as mp

import cudago as cu


def worker(buffer, ready, done):
    stream = buffer.device.create_stream()
    stream.wait(ready)
    buffer[:4].fill(2, stream=stream)
    stream.record(done)
    stream.sync()


if __name__ == "__main__":
    mp.set_start_method("spawn")  # a forked process cannot use CUDA
    device = cu.Device()
    stream = device.create_stream()
    pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True))
    buffer = pool.allocate(1024, stream=stream)
    ready, done = (device.create_event(ipc_enabled=True) for _ in range(2))
    process = mp.Process(target=worker, args=(buffer, ready, done))
    buffer.fill(1, stream=stream)
    stream.record(ready)
    process.start()
    process.join()
    stream.wait(done)
    print("the first bytes, of which the other process wrote four:")
    print(buffer[:8].view("u1").numpy(stream=stream))
