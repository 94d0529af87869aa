# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago graph``."""

from __future__ import annotations

import sys

import cudago as cu

COMMAND = [sys.executable, "-W", "error", "-m", "cudago", "graph", "file"]
SOURCE = r"""
extern "C" __device__ void
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
__device__ int hits;
extern "C" __global__ void stop(cudaGraphConditionalHandle go, double d, int* x) {
    hits++;
    cudaGraphSetConditional(go, 0);
}
"""
EXPECTED = """\
up: memcpy
  dst: int32[2] in memory {x} from 8
  src: slot 'source', 8 bytes in memory {host}
loop: while condition 0, 1 at the start
  stop: kernel stop, grid 2 x 3, block 32, shared memory 16
    0 go: condition 0
    1 d: -0.5
    2 x: int32[8] in memory {x}
tmp: alloc of 16 bytes
fill: memset 0x07
  dst: 16 bytes in what tmp allocates
free: free tmp
call\\x1b[2J: host after free, up
mark: event record 0 at once
memory
"""


def test_a_graph(script, driver, device, stream):
    code = cu.Program(SOURCE).compile()
    with cu.Graph(device) as graph:
        x = cu.zeros(8, "i4", stream=stream)
        up = graph.memcpy(x[2:4], cu.slot("source", bytes(8)), name="up")
        go = graph.condition(1)
        loop = up.while_loop(go, name="loop")
        config = cu.LaunchConfig((2, 3), 32, shared_memory=16)
        loop.body.launch(config, code["stop"], go, -0.5, x, name="stop")
        tmp = loop.allocate(16, name="tmp")
        free = tmp.memset(tmp.buffer, 7, name="fill").free(tmp.buffer, name="free")
        graph.add_edge(up, free.callback(print, name="call\x1b[2J"))
        graph.record(device.create_event(), name="mark")
        graph.save(script.directory / "file", contents=True)
    done = script.run(COMMAND, CUDAGO_DRIVER="nonsense")
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines(keepends=True)
    assert first.startswith("file: 7 nodes, by cudago ")
    assert first.endswith(f"{driver} driver, {device.name}\n")
    memory = {line.split(": ")[1]: line.split(":")[0].strip() for line in lines[15:18]}
    x = memory["32 bytes, device, with contents\n"]
    host = memory["8 bytes, host, with contents\n"]
    assert "".join(lines[:15]) == EXPECTED.format(x=x, host=host)
    assert "4 bytes, variable hits of code 0, with contents\n" in memory
    assert lines[-1] == f"  0: {len(code.ptx)} bytes of ptx: stop\n"


def test_no_graph(script, driver):
    (script.directory / "file").write_text("what?")
    done = script.run(COMMAND)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "file is not a graph file: it does not begin like one\n"
    (script.directory / "file").unlink()
    done = script.run(COMMAND)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "file cannot be read: No such file or directory\n"


def test_names_that_the_encoding_of_the_terminal_lacks(script, driver):
    with cu.Graph() as graph:
        graph.join(name="Größe")
        graph.save(script.directory / "file")
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    run = script.run(COMMAND, **ascii_only)
    assert (run.returncode, run.stderr) == (0, "")
    assert "\nGr\\xf6\\xdfe: join\n" in run.stdout
