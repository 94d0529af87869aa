# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory that processes share, sent by multiprocessing."""

from __future__ import annotations

import os
import pickle
import textwrap
from collections.abc import Callable
from itertools import pairwise
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

import cudago as cu

PAGE = 1 << 21  # the granularity of the simulated device, and of GPUs so far

SHARED = """
PAGE = 1 << 21

def files():
    kept = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            kept.append((fd, os.readlink(f"/proc/self/fd/{fd}")))
        except FileNotFoundError:  # that of the listing itself
            continue
    return sum("anon_inode:[event" not in name for _, name in kept)  # Go's own, once it polls

def grown(*sizes):
    device = cu.Device()
    stream = device.create_stream()
    resource = cu.VirtualMemoryResource(device, ipc_enabled=True)
    buffer = resource.allocate(sizes[0], stream=stream)
    for size in sizes[1:]:
        buffer.grow(size)
    buffer.fill(5, stream=stream)
    stream.sync()
    return device, stream, resource, buffer
"""


@pytest.fixture(autouse=True)
def is_shared(driver, device: cu.Device):
    try:
        cu.VirtualMemoryResource(device, ipc_enabled=True).close()
    except cu.UnsupportedError as e:
        pytest.skip(str(e))


@pytest.fixture
def pair(two) -> Callable[..., list[str]]:
    """Run two processes that share virtual memory."""
    return lambda source: two(SHARED + textwrap.dedent(source))


@pytest.fixture
def shared(device: cu.Device):
    with cu.VirtualMemoryResource(device, ipc_enabled=True) as resource:
        yield resource


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_grown_buffer_is_the_same_memory_in_one_range(pair):
    assert pair(
        """
        def child(pipe, buffer):
            stream = buffer.device.create_stream()
            seen = buffer.view("u1").numpy(stream=stream)
            assert (seen == 5).all() and seen.size == buffer.size == 3 * PAGE + 12
            assert (buffer.kind, buffer.is_closed) == ("device", False)
            pipe.send("imported")
            pipe.recv()
            for at in 0, PAGE - 2, 3 * PAGE - 2, 3 * PAGE + 8:
                assert (buffer[at : at + 4].view("u1").numpy(stream=stream) == 6).all(), at
                buffer[at : at + 4].fill(7, stream=stream)
            stream.sync()
            pipe.send("filled")

        def parent():
            device, stream, resource, buffer = grown(100, PAGE + 4, 3 * PAGE + 12)
            assert resource.is_ipc_enabled
            process, pipe = main(child, buffer)
            pipe.recv()
            buffer.fill(6, stream=stream)
            stream.sync()
            pipe.send("fill")
            pipe.recv()
            seen = buffer.view("u1").numpy(stream=stream)
            at = [0, 3, PAGE - 2, PAGE + 1, 3 * PAGE - 2, 3 * PAGE + 1, 3 * PAGE + 11]
            process.join()
            print(process.exitcode, seen[at], (seen == 7).sum())
        """
    ) == ["0 [7 7 7 7 7 7 7] 16"]


def test_kernels_run_across_the_pieces(pair):
    assert pair(
        """
        ADD = '''
        extern "C" __global__ void add(int *p, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) p[i] += i;
        }'''

        def child(pipe, words):
            stream = words.device.create_stream()
            source = cu.Program(ADD).compile(device=words.device)
            add = source["add"]
            config = cu.LaunchConfig(grid=words.size // 64, block=64)
            cu.launch(stream, config, add, words, words.size)
            stream.sync()
            pipe.send("added")

        def parent():
            device, stream, resource, buffer = grown(PAGE, 2 * PAGE)
            buffer.fill(0, stream=stream)
            stream.sync()
            process, pipe = main(child, buffer[PAGE - 4096 : PAGE + 4096].view("i4"))
            pipe.recv()
            process.join()
            seen = buffer.view("i4").numpy(stream=stream)
            first = (PAGE - 4096) // 4
            print(process.exitcode, (seen[first : first + 2048] == np.arange(2048)).all(),
                seen[:first].any() or seen[first + 2048 :].any())
        """
    ) == ["0 True False"]


def test_parts_and_tensors_of_one_buffer_in_one_message(pair):
    assert pair(
        """
        def child(pipe, whole, part, tensor, again):
            stream = whole.device.create_stream()
            assert (whole.size, part.size, again.size) == (3 * PAGE, 16, 3 * PAGE)
            assert tensor.shape == (8, 4) and not tensor.is_contiguous
            part.fill(np.int32(9), stream=stream)
            tensor.fill(8, stream=stream)
            stream.sync()
            seen = whole.view("i4").numpy(stream=stream)
            pipe.send((seen == 9).sum())
            pipe.send((again.view("i4").numpy(stream=stream) == 8).sum())
            pipe.recv()
            a, b = pipe.recv()
            assert b.size == 64
            b.fill(np.int32(3), stream=stream)
            stream.sync()
            pipe.send(a.view("i4").numpy(stream=stream)[[0, 15]])

        def parent():
            device, stream, resource, buffer = grown(PAGE, 2 * PAGE, 3 * PAGE)
            words = buffer.view("i4")
            half = PAGE // 4
            tensor = words[half - 16 : half + 48].reshape(8, 8)[:, ::-2]
            process, pipe = main(child, buffer, buffer[2 * PAGE - 8 : 2 * PAGE + 8], tensor, buffer)
            print(pipe.recv(), pipe.recv())
            seen = tensor.numpy(stream=stream)
            around = words.numpy(stream=stream)[2 * half - 3 : 2 * half + 3]
            print((seen == 8).all(), around.tolist())
            pipe.send("more")
            pipe.send((buffer, buffer[:64]))
            print(pipe.recv())
            process.join()
            print(process.exitcode)
        """
    ) == ["4 32", "True [84215045, 9, 9, 9, 9, 84215045]", "[3 3]", "0"]


def test_growing_later_changes_nothing_for_who_has_received_it(pair):
    assert pair(
        """
        def child(pipe, buffer):
            stream = buffer.device.create_stream()
            raises(TypeError, "its memory is imported, and only the process that allocated it",
                lambda: buffer.grow(4 * PAGE))
            raises(ValueError, "only the process that allocated it", lambda: buffer.ipc_descriptor)
            raises(TypeError, "cannot send this memory", lambda: pipe.send(buffer))
            with stream.capture() as graph:
                buffer.fill(1, stream=stream)
            graph.close()
            pipe.send("imported")
            larger = pipe.recv()
            assert (buffer.size, larger.size) == (PAGE + 4, 3 * PAGE)
            buffer.fill(2, stream=stream)
            stream.sync()
            assert (larger.view("u1").numpy(stream=stream)[: PAGE + 4] == 2).all()
            larger[2 * PAGE :].fill(3, stream=stream)
            stream.sync()
            pipe.send("filled")

        def parent():
            device, stream, resource, buffer = grown(PAGE, PAGE + 4)
            process, pipe = main(child, buffer)
            pipe.recv()
            at = buffer.handle
            buffer.grow(3 * PAGE)
            pipe.send(buffer)
            pipe.recv()
            process.join()
            seen = buffer.view("u1").numpy(stream=stream)
            print(process.exitcode, at == buffer.handle, seen[[0, PAGE + 3, 3 * PAGE - 1]])
        """
    ) == ["0 True [2 2 3]"]


def test_each_process_closes_its_own(pair):
    assert pair(
        """
        def child(pipe, buffer):
            stream = buffer.device.create_stream()
            pipe.send("imported")
            pipe.recv()
            assert (buffer.view("u1").numpy(stream=stream) == 5).all()
            graph = cu.Graph()
            graph.memset(buffer, np.int32(3))
            step = graph.instantiate()
            graph.close()
            view = buffer.view("i4")
            buffer.close()
            settle()
            step.launch(stream)
            stream.sync()
            step.close()
            print((view.numpy(stream=stream) == 3).all(), flush=True)
            del view
            settle()
            pipe.send(cu.live_objects())

        def parent():
            device, stream, resource, buffer = grown(PAGE, 3 * PAGE)
            process, pipe = main(child, buffer)
            pipe.recv()
            buffer.close()
            resource.close()
            settle()
            print(cu.live_objects(), flush=True)
            pipe.send("closed")
            print(pipe.recv())
            process.join()
            print(process.exitcode)
        """
    ) == ["{'Stream': 1}", "True", "{'Stream': 1}", "0"]


def test_what_was_sent_may_be_closed_before_it_is_received(pair):
    assert pair(
        """
        def child(pipe):
            pipe.recv()
            buffer = pipe.recv()
            stream = buffer.device.create_stream()
            pipe.send((buffer.view("u1").numpy(stream=stream) == 5).all())

        def parent():
            process, pipe = main(child)
            device, stream, resource, buffer = grown(PAGE, 2 * PAGE)
            pipe.send("wait")
            pipe.send(buffer)
            buffer.close()
            settle()
            print(pipe.recv())
            process.join()
            print(process.exitcode)
        """
    ) == ["True", "0"]


def test_no_file_stays_open(pair):
    assert pair(
        """
        def child(pipe, first):
            first.close()
            settle()
            with pipe.recv():  # what is opened once is open from here on
                pass
            settle()
            pipe.send("ready")
            before = files()
            for _ in range(3):
                buffer = pipe.recv()
                kept = files() - before  # four came; the driver may have one of its own for each
                assert kept <= 4, "closed once they are imported"
                view = buffer[4:]
                buffer.close()
                view.close()
                settle()
                pipe.send("closed")
            pipe.send(files() - before)

        def parent():
            device, stream, resource, first = grown(PAGE, 2 * PAGE)
            before = files()
            process, pipe = main(child, first)
            pipe.send(first)
            pipe.recv()
            first.close()
            del first
            settle()
            during = files()
            for i in range(3):
                buffer = resource.allocate(PAGE, stream=stream)
                for n in range(2, 5):
                    buffer.grow(n * PAGE)
                pipe.send(buffer)
                pipe.recv()
                buffer.close()
                settle()
                assert files() <= during, (i, files(), during)
            print(pipe.recv())
            process.join()
        """
    ) == ["0"]


def test_a_child_that_does_not_start_leaves_no_file_open(pair):
    assert pair(
        """
        def child(buffer, tensor, more):
            pass

        def starts(*more):
            process = mp.Process(target=child, args=more)
            process.start()
            process.join()
            code = process.exitcode
            process.close()
            return code

        def parent():
            mp.set_start_method("spawn")
            device, stream, resource, buffer = grown(PAGE, 3 * PAGE)
            assert starts(1, 2, 3) == 0  # what is opened once is open from here on
            before = files()
            for _ in range(2):
                raises((AttributeError, pickle.PicklingError), "local object",
                    lambda: starts(buffer, buffer.view("u1"), lambda: None))
                assert files() == before, (files(), before)
            mp.set_executable("/nowhere/python")
            for _ in range(2):
                try:
                    assert starts(buffer, buffer.view("u1"), 0) != 0
                except BrokenPipeError:  # since 3.14, if the child has ended before it is told
                    pass
                assert files() == before, (files(), before)
            mp.set_executable(sys.executable)
            print(starts(buffer, buffer.view("u1"), 0), files() == before)
            buffer.close()
            settle()
            print(cu.live_objects(), files() - before < 0)
        """
    ) == ["0 True", "{'MemoryResource': 1, 'Stream': 1} True"]


def test_exit_with_open_imports(pair):
    assert pair(
        """
        def child(pipe, buffer, tensor):
            global kept
            stream = buffer.device.create_stream()
            buffer.fill(1, stream=stream)
            kept = buffer[8:], tensor, stream
            pipe.send("imported")

        def parent():
            device, stream, resource, buffer = grown(100, PAGE + 100)
            process, pipe = main(child, buffer, buffer.view("u1"))
            pipe.recv()
            process.join()
            buffer.grow(4 * PAGE)
            buffer.fill(2, stream=stream)
            print(process.exitcode, (buffer.view("u1").numpy(stream=stream) == 2).all())
        """
    ) == ["0 True"]


def test_a_process_that_dies_takes_nothing_along(pair):
    assert pair(
        """
        def child(pipe, buffer):
            pipe.send("imported")
            pipe.recv()

        def parent():
            device, stream, resource, buffer = grown(PAGE, 2 * PAGE)
            process, pipe = main(child, buffer)
            pipe.recv()
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            print((buffer.view("u1").numpy(stream=stream) == 5).all())
        """
    ) == ["True"]


def test_a_device_that_is_not_there(two_processes):
    assert two_processes(
        """
        def child(pipe):
            files = len(os.listdir("/proc/self/fd"))
            for _ in range(2):
                raises(ValueError, "no device here has the UUID", pipe.recv)
            pipe.send(len(os.listdir("/proc/self/fd")) - files)

        def parent():
            device = cu.Device(1)
            resource = cu.VirtualMemoryResource(device, ipc_enabled=True)
            buffer = resource.allocate(5, stream=device.default_stream)
            os.environ["CUDAGO_SIM"] = "devices=1"
            process, pipe = main(child)
            pipe.send(buffer)
            pipe.send(buffer.view("u1"))
            print(pipe.recv())
            process.join()
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="devices=2",
    ) == ["0"]


def test_each_growth_has_one_file_until_the_memory_ends(shared, stream):
    shared.allocate(PAGE, stream=stream).close()  # what is opened once is open from here on
    cu.testing.settle()
    before = open_files()
    plain = cu.VirtualMemoryResource(shared.device)
    assert not plain.is_ipc_enabled
    with plain, plain.allocate(PAGE, stream=stream):  # a device may have one file for all
        for_all = open_files()
        with plain.allocate(PAGE, stream=stream) as buffer:
            buffer.grow(2 * PAGE)
            assert open_files() == for_all
    cu.testing.settle()
    counts = []
    with shared.allocate(PAGE, stream=stream) as buffer:
        for n in range(1, 5):
            buffer.grow(n * PAGE)
            counts.append(open_files() - before)
        assert len({b - a for a, b in pairwise([0, *counts])}) == 1, counts
    cu.testing.settle()
    assert open_files() == before


def test_what_cannot_be_sent_says_so(shared, device, stream):
    with (
        cu.VirtualMemoryResource(device) as plain,
        plain.allocate(64, stream=stream) as buffer,
        shared.allocate(64, stream=stream) as own,
        shared.allocate(0, stream=stream) as empty,
    ):
        for memory in buffer, buffer[4:8], buffer.view("u1"):
            with pytest.raises(TypeError, match=r"cannot send this memory.*ipc_enabled=True"):
                ForkingPickler.dumps(memory)
        for nothing in empty, own[4:4]:
            with pytest.raises(TypeError, match=r"cannot send this memory.*no bytes"):
                ForkingPickler.dumps(nothing)
        with pytest.raises(TypeError, match=r"cannot pickle.*VirtualMemoryResource with ipc_ena"):
            pickle.dumps(own)
        with pytest.raises(TypeError, match="cannot pickle"):
            ForkingPickler.dumps(shared)
        for one in buffer, own:
            with pytest.raises(ValueError, match="VirtualMemoryResource has no descriptor"):
                _ = one.ipc_descriptor
        part = own.view("float4_e2m1fn")[1:]
        with pytest.raises(TypeError, match="begins within a byte"):
            ForkingPickler.dumps(part)
    with pytest.raises(cu.ClosedError):
        ForkingPickler.dumps(own)


def test_other_descriptors_and_resources_are_refused(shared, device, stream):
    with shared.allocate(64, stream=stream):
        bad = cu.IPCBufferDescriptor(bytes(64), bytes(16), 64, 0, 0, 64)
        with pytest.raises(TypeError, match="must be a DeviceMemoryResource"):
            cu.Buffer.from_ipc_descriptor(shared, bad, stream=stream)


def test_a_file_is_no_memory(device, stream):
    from cudago import _core

    options = cu.PoolOptions(ipc_enabled=True)
    with cu.DeviceMemoryResource(device, pool=options) as pool:
        handle = pool.get_allocation_handle()
        read, write = os.pipe()
        for fd in read, handle.fileno(), handle.leases, 1 << 20:
            with pytest.raises(cu.CUDAError, match=r"cuMemImportFromShareableHandle|cuMemMap"):
                _core._virtual_import(stream, [(fd, PAGE)], 0, PAGE)
        os.close(read)
        os.close(write)
    for pieces, offset, size in (
        ([], 0, 1),
        ([(0, PAGE)], 0, PAGE + 1),
        ([(0, PAGE)], PAGE, 1),
        ([(0, PAGE)], 0, 0),
        ([(0, PAGE), (0, (1 << 63) - 1)], 0, 1),
        ([(-1, PAGE)], 0, 1),
    ):
        with pytest.raises(ValueError, match=r"descriptor has|fd must"):
            _core._virtual_import(stream, pieces, offset, size)


def test_a_forked_child_keeps_no_memory(script, driver):
    """Its copies of the descriptors would keep it as long as the child runs."""
    done = script(
        """
        import os
        import cudago as cu
        from cudago import _core
        device = cu.Device()
        stream = device.create_stream()
        resource = cu.VirtualMemoryResource(device, ipc_enabled=True)
        buffers = [resource.allocate(1 << 21, stream=stream) for _ in range(70)]
        buffers[0].grow(3 << 21)

        def descriptors():
            return [fd for b in buffers for fd, _ in _core._virtual_export(b)[0]]

        def is_open(fd):
            try:
                os.fstat(fd)
            except OSError:
                return False
            return True

        gone = descriptors()[1:9]
        for buffer in buffers[:4]:
            buffer.close()
        del buffers[:4]
        cu.testing.settle()
        files = [os.open("/dev/null", os.O_RDONLY) for _ in gone]
        assert set(files) & set(gone)
        mine = descriptors()
        pid = os.fork()
        if not pid:
            os._exit(10 * any(map(is_open, mine)) + all(map(is_open, files)))
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 1, status
        assert all(map(is_open, mine + files))
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
