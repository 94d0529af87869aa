# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Load graph files that were changed at random: ``fuzz_graph_file.py SECONDS [SEED]``.

Each is loaded, or is refused with one of a few exceptions, in a time and in memory as it has bytes.
What fails is written to a file, whose name the error says.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["CUDAGO_DRIVER"] = "sim"
import cudago as cu

SOURCE = """.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 x) {
    .reg .u64 %rd<2>; .reg .f32 %f<2>;
    ld.param.u64 %rd1, [x];
    ld.global.f32 %f1, [%rd1]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd1], %f1;
    ret;
}
"""
REFUSED = (cu.GraphFileError, cu.OutOfMemoryError, cu.PTXError, cu.UnsupportedError)
VALUES: list[Any] = [None, True, -1, 0, 1, 2, 7, 1 << 31, 1 << 40, 1 << 60, 1 << 64, 0.5, "", "x"]
VALUES += ["memset", "kernel", "alloc", "child graph", "conditional", [], [0], {}, [[]], "\ud800"]
PIECES = [b'"', b"\\", b"[", b"]", b"{", b"}", b",", b"0", b"9" * 30, b"\\u0000", b"\xff", b"e9"]
SLOW = 20.0  # seconds of this process: hundreds of times what the slowest file took
LARGE = 64 << 20
MEASURED = 16  # of so many files one is measured, which takes several times as long


def good(path: Path) -> None:
    """Write a file that has something of most kinds."""
    device = cu.Device()
    code = cu.ObjectCode.from_ptx(SOURCE)
    with device.create_stream() as stream, cu.Graph(device) as graph, cu.Graph(device) as inner:
        x = cu.zeros(4, "f4", stream=stream)
        inner.memset(x[1:], 1.0, name="fill")
        node = graph.memcpy(x, cu.slot("source", bytes(16)), name="up")
        node = node.launch(cu.LaunchConfig(1, 1), code["twice"], x, name="twice")
        node = node.embed(inner, name="inner").record(device.create_event(), name="mark")
        again = node.if_then(graph.condition(1), name="if")
        again.body.memset(x, 0.0, name="zero")
        made = again.allocate(16, name="alloc")
        made.memset(made.buffer, 1, name="scratch").free(made.buffer, name="free")
        stream.sync()
        graph.save(path, contents=True)


def places(at: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where in a text there are values."""
    items = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
    return [p for key, value in items for p in [(*path, key), *places(value, (*path, key))]]


def other_text(text: Any, rng: random.Random) -> bytes:
    """Return a text with other values at a few places, or with other bytes."""
    made = json.loads(json.dumps(text))
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        *path, last = rng.choice(places(text))
        at = made
        try:
            for key in path:
                at = at[key]
            kind = rng.randrange(3)
            if kind == 0:
                del at[last]
            elif kind == 1 and isinstance(at, list):
                at.insert(last, at[rng.randrange(len(at))])
            else:
                at[last] = rng.choice(VALUES)
        except (KeyError, IndexError, TypeError, ValueError):
            continue
    data = bytearray(json.dumps(made).encode())
    if rng.random() < 0.3:
        for _ in range(rng.choice([1, 2, 8])):
            start = rng.randrange(len(data))
            end = min(len(data), start + rng.choice([0, 1, 1, 8, 100]))
            data[start:end] = rng.choice(PIECES) * rng.choice([1, 1, 2, 1000, 100_000])
    return bytes(data)


def write(path: Path, members: dict[str, bytes], rng: random.Random) -> None:
    """Write a file, of which some bytes may be others or may be missing."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    if rng.random() < 0.2:
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])])


def load(path: Path) -> str:
    """Load a file, and return the name of the exception that refuses it."""
    try:
        with cu.Graph.load(path) as graph:
            graph.instantiate().close()
    except REFUSED as e:
        return type(e).__name__
    except cu.CUDAError as e:
        if e.name not in ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_SUPPORTED"):
            raise
        return e.name
    except ValueError as e:
        if "bind one to each host node" not in str(e):
            raise
        return "ValueError"
    return "loaded"


def main(seconds: float, seed: int) -> int:
    """Try files for so many seconds; print what became of them."""
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    slowest = 0.0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        good(path)
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        text = json.loads(members["graph.json"])
        while time.monotonic() < end:
            write(path, members | {"graph.json": other_text(text, rng)}, rng)
            size = path.stat().st_size
            measured = seen.total() % MEASURED == 0
            start = time.process_time()
            if measured:
                tracemalloc.start()
            try:
                seen[load(path)] += 1
                peak = tracemalloc.get_traced_memory()[1]
                took = time.process_time() - start
                if took > SLOW or (measured and peak > 64 * size + LARGE):
                    raise MemoryError(f"{took:.1f} s and {peak} bytes for a file of {size}")
            except BaseException:
                kept = Path(f"graph-file-{seed}-{seen.total()}.cudago").resolve()
                kept.write_bytes(path.read_bytes())
                print(f"fuzz: {kept} fails", file=sys.stderr)
                raise
            finally:
                tracemalloc.stop()
            slowest = max(slowest, took)
    told = ", ".join(f"{name} {count}" for name, count in seen.most_common())
    print(f"fuzz: {seen.total()} graph files, seed {seed}, the slowest {slowest:.2f} s: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int((sys.argv[2:] or ["1"])[0])))
