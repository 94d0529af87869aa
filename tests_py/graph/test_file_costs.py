# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Loading a file takes time and memory as its size, whatever is in it."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
import zipfile
from contextlib import suppress

import pytest

import cudago as cu


def quoted(middle):
    return b'"' + middle + b'"'


# Texts that are no graphs, of about n bytes. What is quadratic takes 16 times as long at 4n.
TEXTS = {
    "quotes that do not end": lambda n: b'"' + b'\\"' * (n // 2),
    "and a backslash": lambda n: b'"' + b'\\"' * (n // 2) + b"\\",
    "backslashes": lambda n: b"\\" * n,
    "quotes": lambda n: b'"' * n,
    "a text": lambda n: quoted(b"a" * n),
    "a text of escapes": lambda n: quoted(b"\\u0041" * (n // 6)),
    "wide characters": lambda n: quoted("\U0001f600".encode() * (n // 4)),
    "spaces": lambda n: b" " * n,
    "digits": lambda n: b"9" * n,
    "a long fraction": lambda n: b"[0." + b"9" * n + b"]",
    "minus": lambda n: b"-" * n,
    "begun lists": lambda n: b"[" * n,
    "ended lists": lambda n: b"]" * n,
    "lists": lambda n: b"[" + b"[]," * (n // 3) + b"0]",
    "objects": lambda n: b"[" + b'{"a":0},' * (n // 8) + b"0]",
    "keys": lambda n: b"{" + b",".join(b'"%d":0' % i for i in range(n // 10)) + b"}",
    "one key": lambda n: b"{" + b'"a":0,' * (n // 6) + b'"a":0}',
}


def graph(nodes, **more):
    return {
        "format": "cudago graph",
        "version": 2,
        "maker": "a test",
        "code": [],
        "kernels": [],
        "memory": [],
        "conditions": [],
        "events": 0,
        "nodes": nodes,
    } | more


def node(name, after=(), kind="empty", **more):
    return {"name": str(name), "kind": kind, "after": list(after), **more}


def inside(name, *graphs):
    return node(name, kind="child graph", graphs=list(graphs))


def in_each_other(n):
    nodes = [node(i) for i in range(n // 8)]
    for _ in range(64):
        nodes = [inside("c", nodes)]
    return graph(nodes)


def conditionals(n):
    nodes = []
    for i in range(n):
        inner = [nodes.pop()] if i % 50 else []
        name = f"n{i}"
        nodes.append(node(name, kind="conditional", type="if", condition=i, graphs=[inner]))
    return graph(nodes, conditions=[1] * n)


def fills(n, kind):
    memory = {"kind": kind, "size": 1, "lead": 0, "contents": False}
    dst = {"offset": 0, "size": 1}
    fill = {"kind": "memset", "width": 1, "value": 0}
    return graph(
        [node(i, **fill, dst={"memory": i, **dst, "slot": f"s{i}"}) for i in range(n)],
        memory=[memory] * n,
    )


# Graphs of about n nodes or edges.
GRAPHS = {
    "nodes": lambda n: graph([node(i) for i in range(n)]),
    "a chain": lambda n: graph([node(i, [i - 1] if i else []) for i in range(n)]),
    "a chain backwards": lambda n: graph([node(i, [i + 1] * (i + 1 < n)) for i in range(n)]),
    "a circle": lambda n: graph([node(i, [(i + 1) % n]) for i in range(n)]),
    "one for all": lambda n: graph([node(i, [0] if i else []) for i in range(n)]),
    "all for one": lambda n: graph([node(i, range(n) if i == n else []) for i in range(n + 1)]),
    "one name": lambda n: graph([node(0) for _ in range(n)]),
    "in a long name": lambda n: graph([inside("x" * n * 30, [node(i) for i in range(n)])]),
    "in a long path": lambda n: graph([inside("x" * 4000, [node(i) for i in range(n)])]),
    "children": lambda n: graph([inside(i, [node(0)]) for i in range(n)]),
    "in each other": in_each_other,
    "conditionals": conditionals,
    "events": lambda n: graph(
        [node(i, kind="event record", event=i) for i in range(n)], events=1 << 32
    ),
    "host functions": lambda n: graph([node(i, kind="host") for i in range(n)]),
    "allocations": lambda n: graph([node(i, kind="alloc", size=1) for i in range(n)]),
    "fills": lambda n: fills(n, "device"),
    "pinned fills": lambda n: fills(n, "pinned"),
}
BYTES, NODES = 50_000, 250


def written(path, text):
    data = text if isinstance(text, bytes) else json.dumps(text).encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("graph.json", data)
    return len(data)


def load(path):
    with suppress(cu.GraphFileError, cu.OutOfMemoryError, ValueError):
        cu.Graph.load(path).close()


def seconds(path):
    """Seconds of this process for a load: the fewer of two."""
    took = []
    for _ in range(2):
        gc.collect()
        start = time.process_time()
        load(path)
        took.append(time.process_time() - start)
    return min(took)


def peak_bytes(path):
    """The most that Python has at a time during a load."""
    gc.collect()
    tracemalloc.start()
    try:
        load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("of", "name"), [(TEXTS, t) for t in TEXTS] + [(GRAPHS, g) for g in GRAPHS]
)
def test_four_times_as_much_takes_four_times_as_much(device, tmp_path, of, name):
    n = BYTES if of is TEXTS else NODES
    small, large = tmp_path / "small", tmp_path / "large"
    written(small, of[name](n))
    size = written(large, of[name](4 * n))
    load(small)  # what the first load does is not measured
    # Quadratic is 16 times as long, and seconds: what is linear takes hundredths of them.
    assert seconds(large) < 8 * seconds(small) + 0.25
    peak = peak_bytes(large)
    assert peak < 8 * peak_bytes(small) + (1 << 18)
    assert peak < 64 * size + (1 << 20)
