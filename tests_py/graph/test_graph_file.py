# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are no graphs, or no whole ones, end in an error, and leave nothing."""

from __future__ import annotations

import copy
import json
import os
import random
import struct
import sys
import zipfile

import pytest

import cudago as cu
from cudago.testing import no_leaks

np = pytest.importorskip("numpy")

SOURCE = r"""
extern "C" __device__ void
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
__device__ int hits;
extern "C" __global__ void add(float a, const float* x, float* y) { *y += a * *x; hits++; }
extern "C" __global__ void set(cudaGraphConditionalHandle c) { cudaGraphSetConditional(c, 0); }
"""
ONE = cu.LaunchConfig(1, 1)


@pytest.fixture(scope="module")
def good(device, tmp_path_factory):
    """The members of a file that has something of everything."""
    path = tmp_path_factory.mktemp("good") / "graph"
    code = cu.Program(SOURCE).compile()
    with device.create_stream() as stream, cu.Graph(device) as graph, cu.Graph(device) as inner:
        x, y = cu.zeros(4, "f4", stream=stream), cu.zeros(4, "f4", stream=stream)
        inner.memset(x[1:], 1.0, name="fill")
        up = graph.memcpy(x, cu.slot("source", np.ones(4, "f4")), name="up")
        add = up.launch(ONE, code["add"], 2.0, x, y, name="add").callback(print, name="call")
        go = graph.condition(1)
        loop = add.embed(inner, name="inner").while_loop(go, name="loop")
        loop.body.launch(ONE, code["set"], go, name="set")
        tmp = loop.record(device.create_event(), name="mark").allocate(16, name="alloc")
        filled = tmp.memset(tmp.buffer, 1, name="scratch").free(tmp.buffer, name="free")
        rows = cu.zeros((4, 4), "i4", stream=stream)
        graph.memcpy(rows[:, :2], cu.zeros((4, 2), "i4", stream=stream), name="rows")
        graph.join(filled, name="end")
        graph.save(path, contents=True)
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


@pytest.fixture
def load(tmp_path):
    """A function that writes members into a file and loads that."""

    def load(members):
        path = tmp_path / "graph"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return cu.Graph.load(path, bind={"call": print})

    return load


def changed(good, *changes):
    """Return the members with other values at some places of the text."""
    text = json.loads(good["graph.json"])
    for place, value in changes:
        *path, last = place.split("/")
        at = text
        for key in path:
            at = at[index(at, key)]
        if value is GONE:
            del at[last]
        else:
            at[index(at, last)] = value
    return {**good, "graph.json": json.dumps(text).encode()}


def index(at, key):
    """Return the index of a node by its name, of an element by its number, or the key."""
    if not isinstance(at, list):
        return key
    return int(key) if key.isdigit() else [node["name"] for node in at].index(key)


GONE = object()
EMPTY = {
    "format": "cudago graph",
    "version": 1,
    "maker": "a test",
    "code": [],
    "kernels": [],
    "memory": [],
    "conditions": [],
    "events": 0,
    "nodes": [],
}
DEEP = "[" * 100_000 + "]" * 100_000
BIG = 1 << 60

WRONG = {
    "another format": (("format", "zip"), "its format is not 'cudago graph'"),
    "a later version": (
        ("version", 3),
        "it is of version 3, and this cudago reads versions 1 to 2",
    ),
    "no version": (("version", GONE), "graph.json has no 'version'"),
    "true is no number": (("version", True), "version of graph.json must be a whole number"),
    "something unknown": (
        ("later", 1),
        "graph.json has a 'later', which this cudago does not know",
    ),
    "unknown in a node": (("nodes/up/colour", 1), "node 'up' has a 'colour', which"),
    "no nodes": (("nodes", {}), "nodes of graph.json must be a list"),
    "a node is no object": (("nodes/up", 1), "node 0 must be an object"),
    "unknown kind": (("nodes/up/kind", "batch memory operation"), "which this cudago cannot load"),
    "no name": (("nodes/up/name", ""), "name of node 0 must be a text"),
    "half a surrogate pair": (("nodes/up/name", "\ud800"), "name of node 0 must be Unicode"),
    "two of a name": (("nodes/add/name", "up"), "two nodes are called 'up'"),
    "a cycle": (("nodes/up/after", [2]), "node 'up' waits for itself, or for nodes that do"),
    "waits for itself": (("nodes/up/after", [0]), "node 'up' waits for itself"),
    "waits for none": (("nodes/up/after", [1000]), "must be a whole number from 0 to"),
    "waits twice": (("nodes/add/after", [0, 0]), "node 'add' waits twice for the same node"),
    "negative": (("nodes/add/after", [-1]), "must be a whole number from 0 to"),
    "beyond its memory": (("nodes/up/dst/offset", 1), "dst of node 'up' ends 1 bytes after its"),
    "too far": (("nodes/up/dst/offset", BIG * 2), "offset of dst of node 'up' must be a whole"),
    "no memory": (("nodes/up/dst/memory", 1000), "memory of dst of node 'up' must be a whole"),
    "memory later allocated": (
        ("nodes/up/dst", {"alloc": 7, "offset": 0, "size": 1}),
        "no node be",
    ),
    "a number for memory": (("nodes/up/dst", {"int": 1}), "dst of node 'up' is not memory"),
    "another shape": (("nodes/up/dst/shape", [5]), r"16 bytes cannot be float32 of shape \(5,\)"),
    "another type": (("nodes/up/dst/dtype", "object"), "cannot be object of shape"),
    "a type's other name": (("nodes/up/dst/dtype", "f4"), "cannot be f4 of shape"),
    "too much memory": (("memory/0/size", BIG), "does not have the 1152921504606846976 bytes"),
    "other memory": (("memory/0/kind", "texture"), "must be one of device, pinned, managed, host"),
    "no code": (("nodes/add/kernel", 9), "kernel of node 'add' must be a whole number"),
    "other code": (("code/0/kind", "so"), "must be one of ptx, cubin, fatbin"),
    "no such kernel": (("kernels/0/entry", "sub"), 'node .add.: .*no kernel "sub"'),
    "too few arguments": (("nodes/add/args", []), "node 'add': kernel add takes 3 argument"),
    "another argument": (("nodes/add/args/0", {"bytes": "00"}), "node 'add': parameter 0"),
    "half a byte": (("nodes/add/args/0", {"bytes": "0"}), "must be hexadecimal"),
    "a float of 7 bytes": (("nodes/add/args/0", {"float": "0" * 14}), "must have 8 bytes, not 7"),
    "an int beyond 64 bits": (
        ("nodes/add/args/0", {"int": 1 << 64}),
        "must be a number of 64 bits",
    ),
    "an argument of no kind": (("nodes/add/args/0", {}), "has no 'null'"),
    "no grid": (("nodes/add/config/grid", [0, 1, 1]), "node 'add': "),
    "a grid in 4 dimensions": (("nodes/add/config/grid", [1] * 4), "must be a list of 3"),
    "too much shared memory": (("nodes/add/config/shared_memory", 1 << 30), "node 'add': "),
    "a fill of 3 bytes": (("nodes/scratch/width", 3), "must be one of 1, 2, 4"),
    "a wide value": (("nodes/scratch/value", 256), "must be a whole number from 0 to 255"),
    "rows beyond": (("nodes/rows/box/1", 9), "node 'rows': the rows of dst are not inside"),
    "a slot of rows": (("nodes/rows/dst/slot", "x"), "copies rows, for which slots cannot be"),
    "a slot inside": (("nodes/inner/graphs/0/fill/dst/slot", "x"), "only the outermost graph can"),
    "no event": (("nodes/mark/event", 1), "event of node 'mark' must be a whole number"),
    "no graph": (("nodes/inner/graphs", []), "node 'inner' must have one graph"),
    "graphs of a copy": (("nodes/up/graphs", []), "node 'up' has a 'graphs'"),
    "memory inside": (("nodes/inner/graphs/0/fill/kind", "alloc"), "cannot load there"),
    "frees nothing": (
        ("nodes/free/alloc", 0),
        "node 'free' frees what no node before it allocates",
    ),
    "no condition": (
        ("nodes/loop/condition", 1),
        "condition of node 'loop' must be a whole number",
    ),
    "a condition for nobody": (("conditions", [1, 1]), "a condition controls no node"),
    "two bodies of a loop": (("nodes/loop/graphs", [[], []]), "of type while, has 2 bodies"),
    "a default beyond 32 bits": (("conditions/0", 1 << 32), "must be a whole number from 0 to"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_texts(good, load, name):
    change, message = WRONG[name]
    with no_leaks():
        with pytest.raises(cu.GraphFileError, match=message) as e:
            load(changed(good, change))
        assert "graph" in str(e.value)
        del e


def test_the_good_one_loads(good, load):
    with load(good) as graph:
        assert len(graph.nodes) == 11
        graph.instantiate().close()


TEXTS = {
    "no JSON": (b"\x80\x04]", "graph.json is not JSON"),
    "no Unicode": (b'{"a": "\xff"}', "graph.json is not JSON"),
    "a list": (b"[]", "graph.json must be an object"),
    "nested": (DEEP.encode(), "nested too deeply"),
    "a long number": (
        b'{"version": ' + b"9" * 10_000 + b"}",
        "graph.json has a number of more than 20 digits",
    ),
    "a key twice": (b'{"format": 1, "format": 1}', "an object has a key twice"),
    "not a number": (b'{"version": NaN}', "NaN is not JSON"),
    "nothing": (b"", "graph.json is not JSON"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_texts(good, load, name):
    text, message = TEXTS[name]
    with no_leaks(), pytest.raises(cu.GraphFileError, match=message):
        load({**good, "graph.json": text})


def test_graphs_inside_each_other_without_end(good, load):
    text = json.loads(good["graph.json"])
    nodes = []
    for _ in range(100):
        nodes = [{"name": "n", "kind": "child graph", "after": [], "graphs": [nodes]}]
    text["nodes"], text["conditions"], text["code"], text["kernels"] = nodes, [], [], []
    text["memory"] = []
    with pytest.raises(cu.GraphFileError, match="more than 64 graphs inside each other"):
        load({"graph.json": json.dumps(text).encode()})


def test_members(good, load):
    contents = max(name for name in good if name.startswith("memory/"))
    for change, message in (
        ({"../evil": b"x"}, r"a member is called '\.\./evil'"),
        ({"/etc/evil": b"x"}, r"a member is called '/etc/evil'"),
        ({"code/01": b"x"}, "a member is called 'code/01'"),
        ({"code/\u0661": b"x"}, "a member is called"),
        ({"code/7": b"x"}, "nothing refers to its member code/7"),
        ({"memory/77": b"x"}, "nothing refers to its member memory/77"),
        ({contents: good[contents] + b"x"}, f"member {contents} does not have the"),
        ({"code/0": b"what"}, "graph|PTX"),
    ):
        with no_leaks():
            with pytest.raises(ValueError, match=message) as e:
                load({**good, **change})
            assert isinstance(e.value, cu.GraphFileError | cu.PTXError)
            del e
    for gone, message in (
        ("graph.json", "it has no graph.json"),
        ("code/0", "it has no member code/0"),
        (contents, "does not have the"),
    ):
        with pytest.raises(cu.GraphFileError, match=message):
            load({name: data for name, data in good.items() if name != gone})


def test_a_member_twice_or_compressed(good, tmp_path):
    path = tmp_path / "graph"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("graph.json", "code/0", "code/0"):
            with pytest.warns() if name in archive.namelist() else no_leaks():
                archive.writestr(name, good[name])
    with pytest.raises(cu.GraphFileError, match="there are two members code/0"):
        cu.Graph.load(path)
    for data in (good["graph.json"], bytes(1 << 24)):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("graph.json", data)
        with pytest.raises(cu.GraphFileError, match=r"graph\.json is compressed or encrypted"):
            cu.Graph.load(path)


def test_members_that_overlap(good, tmp_path):
    """More bytes than the file has, in members that are the same bytes."""
    path = tmp_path / "graph"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("graph.json", good["graph.json"])
        info = archive.getinfo("graph.json")
        for i in range(10):
            other = copy.copy(info)
            other.filename = other.orig_filename = f"code/{i}"
            archive.filelist.append(other)
    with pytest.raises(cu.GraphFileError, match=r"is too small for|not a whole graph file"):
        cu.Graph.load(path)


def test_truncated_and_damaged_files(good, tmp_path, device):
    """At every length; and with every byte of the structure changed."""
    path = tmp_path / "graph"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in good.items():
            archive.writestr(name, data)
    whole = path.read_bytes()
    begin = whole.index(b"PK\x01\x02")
    with zipfile.ZipFile(path) as archive:
        ends = [(i.header_offset + 30 + len(i.filename), i.file_size) for i in archive.infolist()]
    rng = random.Random(1)
    with no_leaks():
        for length in {*range(64), *range(begin - 8, len(whole), 37)}:
            path.write_bytes(whole[:length])
            with pytest.raises(cu.GraphFileError):
                cu.Graph.load(path, bind={"call": print})
        for _ in range(300):
            at = rng.randrange(len(whole))
            damaged = bytearray(whole)
            damaged[at] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            try:
                cu.Graph.load(path, bind={"call": print}).close()
            except cu.GraphFileError:
                continue
            assert not any(first <= at < first + size for first, size in ends), (
                "a checksum is wrong"
            )


def test_random_changes(good, load, tmp_path):
    """Whatever is changed, the file loads or the error is one of a few."""
    rng = random.Random(7)
    text = json.loads(good["graph.json"])
    places = list(_places(text))
    values = [None, True, -1, 0, 1, 3, 1 << 32, BIG, "", "x", "kernel", "memset", [], {}, [1]]
    with no_leaks():
        for _ in range(300):
            made = copy.deepcopy(text)
            for place in rng.sample(places, 2):
                at = made
                try:
                    for key in place[:-1]:
                        at = at[key]
                    at[place[-1]] = copy.deepcopy(rng.choice(values))
                except (KeyError, IndexError, TypeError):
                    continue
            try:
                load({**good, "graph.json": json.dumps(made).encode()}).close()
            except (cu.GraphFileError, cu.OutOfMemoryError):
                continue
            except KeyError as e:
                assert "'call'" in str(e), "the node has another name"


def _places(at, path=()):
    items = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _places(value, (*path, key))


def test_memory_that_nobody_has(good, load):
    """Without contents, a small file can ask for much memory."""
    text = json.loads(good["graph.json"])
    for memory in text["memory"]:
        memory["contents"] = False
        if memory["kind"] == "device":
            memory["size"] = BIG
    members = {"graph.json": json.dumps(text).encode(), "code/0": good["code/0"]}
    with no_leaks(), pytest.raises(cu.OutOfMemoryError):
        load(members)


@pytest.mark.parametrize("kind", ["pinned", "managed", "host"])
def test_host_memory_that_a_file_has_no_contents_of_is_limited(device, tmp_path, kind):
    size = 1 << 20
    memory = {"kind": kind, "size": size, "lead": 0, "contents": False}
    dst = {"memory": 0, "offset": 0, "size": 1}
    nodes = [{"name": "n", "kind": "memcpy", "after": [], "dst": dst, "src": dst}]
    path = tmp_path / "graph"

    def write(size, contents=b""):
        text = EMPTY | {"memory": [memory | {"size": size}], "nodes": nodes}
        text["memory"][0]["contents"] = bool(contents)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("graph.json", json.dumps(text))
            if contents:
                archive.writestr("memory/0", contents)

    write(1 << 40)
    with no_leaks():
        with pytest.raises(cu.OutOfMemoryError, match=f"{kind} memory 0 needs") as e:
            cu.Graph.load(path)
        assert e.value.name == "CUDA_ERROR_OUT_OF_MEMORY"
        assert e.value.requested > 1 << 40
        del e
    write(size)
    with pytest.raises(cu.OutOfMemoryError, match="memory_limit of 1048576"):
        cu.Graph.load(path, memory_limit=size)
    cu.Graph.load(path, memory_limit=2 * size).close()
    write(size, bytes(size))
    cu.Graph.load(path, memory_limit=0).close()
    for wrong, error in ((-1, ValueError), (1.5, TypeError), (None, TypeError)):
        with pytest.raises(error):
            cu.Graph.load(path, memory_limit=wrong)


def test_graphs_in_conditional_nodes_are_limited(device, tmp_path):
    """For each of them a GPU sets memory aside: a small file can have thousands."""
    nodes = [
        {
            "name": f"n{i}",
            "kind": "conditional",
            "after": [],
            "type": "if",
            "condition": i,
            "graphs": [[], []],
        }
        for i in range(300)
    ]
    path = tmp_path / "graph"
    with zipfile.ZipFile(path, "w") as archive:
        text = EMPTY | {"conditions": [1] * 300, "nodes": nodes}
        archive.writestr("graph.json", json.dumps(text))
    with no_leaks(), pytest.raises(cu.OutOfMemoryError, match="conditional node 'n256' needs"):
        cu.Graph.load(path)
    cu.Graph.load(path, memory_limit=600 << 19).close()


def test_names_that_are_too_long_for_a_file(device, tmp_path):
    with cu.Graph(device) as graph:
        graph.join(name="n" * 4096)
        graph.save(tmp_path / "graph")
        cu.Graph.load(tmp_path / "graph").close()
        graph.join(name="m" * 4097)
        with pytest.raises(ValueError, match="more than 4096 characters"):
            graph.save(tmp_path / "graph")


def test_what_is_bound_is_not_allocated(device, stream, tmp_path):
    with cu.Graph(device) as graph, device.allocate(4, stream=stream) as buffer:
        graph.memset(cu.slot("x", buffer), 1, name="fill")
        graph.save(tmp_path / "graph")
        with zipfile.ZipFile(tmp_path / "graph") as archive:
            text = json.loads(archive.read("graph.json"))
        text["memory"][0]["size"] = text["nodes"][0]["dst"]["size"] = BIG
        with zipfile.ZipFile(tmp_path / "graph", "w") as archive:
            archive.writestr("graph.json", json.dumps(text))
        with pytest.raises(cu.OutOfMemoryError):
            cu.Graph.load(tmp_path / "graph")
        with cu.Graph.load(tmp_path / "graph", bind={"x": buffer}) as loaded:
            assert loaded["fill"].params.dst is buffer


def test_no_files(tmp_path):
    for data in (b"", b"PK", b"PK\x03\x04", b"\x7fELF" + bytes(100), b"PK\x05\x06" + bytes(18)):
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(cu.GraphFileError):
            cu.Graph.load(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        cu.Graph.load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        cu.Graph.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(cu.GraphFileError, match="is not a file"):
        cu.Graph.load(tmp_path / "pipe")
    for wrong in (None, 3, b"bytes"):
        with pytest.raises(TypeError):
            cu.Graph.load(wrong)


def test_a_large_directory_of_members(good, tmp_path):
    """The size of the directory is said to be more than there is."""
    path = tmp_path / "graph"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("graph.json", good["graph.json"])
    whole = bytearray(path.read_bytes())
    for offset, value in ((8, 0xFFFF), (10, 0xFFFF), (12, 0xFFFFFFF0), (16, 0xFFFFFFF0)):
        damaged = bytearray(whole)
        form = "<H" if value == 0xFFFF else "<I"
        struct.pack_into(form, damaged, len(whole) - 22 + offset, value)
        path.write_bytes(damaged)
        with pytest.raises(cu.GraphFileError):
            cu.Graph.load(path)


def test_machine_code_on_the_simulated_driver(good, load, driver):
    if driver != "sim":
        pytest.skip("this driver runs machine code")
    cubin = cu.Program(SOURCE).compile("cubin").code
    members = changed(good, ("code/0/kind", "cubin"))
    with no_leaks():
        with pytest.raises(cu.CUDAError) as e:
            load({**members, "code/0": cubin})
        assert "add" in "".join([str(e.value), *e.value.__notes__])
        assert "PTX" in str(e.value)
        del e


def test_no_recursion_limit_lets_a_text_use_up_the_stack(good, load):
    deep = b'{"a": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1 << 30)
    try:
        with pytest.raises(cu.GraphFileError, match="nested too deeply"):
            load(good | {"graph.json": deep})
    finally:
        sys.setrecursionlimit(limit)
