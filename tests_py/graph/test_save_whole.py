# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Files that cudago writes are whole, or as they were: on a full disk too."""

from __future__ import annotations

import errno
import io
import os
import re
import resource
import stat
import subprocess
import sys
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

import cudago as cu
from cudago._graph_file import zipped as zipped_module
from cudago._graph_file.zipped import zipped

from .saving import code  # noqa: F401


@contextmanager
def most_of_a_file(size):
    """A limit of files' sizes: the write that reaches it is short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder):
    return [path.name for path in folder.iterdir()]


def writers(device, stream, code):  # noqa: F811
    """What writes files, each into a path."""
    graph = cu.Graph(device)
    x = cu.zeros(300, "i4", stream=stream)
    graph.memset(x, 7, name="fill").memcpy(x, np.arange(300, dtype="i4"), name="upload")
    stream.sync()
    profile = graph.instantiate().profile(stream)
    return [
        lambda path: graph.save(path, contents=True),
        graph.save,
        code.save,
        profile.to_chrome_trace,
    ]


def test_full_disk(tmp_path, device, stream, code):  # noqa: F811
    for write in writers(device, stream, code):
        path = tmp_path / "file"
        write(path)
        whole = path.read_bytes()
        path.unlink()
        for limit in [0, 1, 29, 30, 60, *range(100, len(whole), len(whole) // 37), len(whole) - 1]:
            path.write_bytes(b"old")
            with most_of_a_file(limit), pytest.raises(OSError) as e:
                write(path)
            assert e.value.errno == errno.EFBIG
            assert str(e.value).endswith(f": {str(path)!r}")
            assert path.read_bytes() == b"old"
            assert names(tmp_path) == ["file"]
        with most_of_a_file(len(whole)):
            write(path)
        assert path.read_bytes() == whole
        assert names(tmp_path) == ["file"]


def test_what_the_path_names(tmp_path, device, stream, code):  # noqa: F811
    for write in writers(device, stream, code):
        (tmp_path / "real").write_bytes(b"old")
        (tmp_path / "real").chmod(0o600)
        (tmp_path / "link").symlink_to("real")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").stat().st_size > 3
        assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600
        with pytest.raises(FileNotFoundError, match=r"nowhere/file'$"):
            write(tmp_path / "nowhere" / "file")
        with pytest.raises(IsADirectoryError, match=rf"{tmp_path}'$"):
            write(tmp_path)
        with pytest.raises(OSError, match=r"No space left on device: '/dev/full'$"):
            write("/dev/full")
        read_end, write_end = os.pipe()
        with os.fdopen(read_end, "rb") as pipe:
            write(f"/dev/fd/{write_end}")
            os.close(write_end)
            assert pipe.read() == (tmp_path / "real").read_bytes()
        write(tmp_path / ("n" * 255))
        for name in ("real", "link", "n" * 255):
            (tmp_path / name).unlink()
        assert not names(tmp_path)


def test_links_that_lead_nowhere_stay(tmp_path, device, stream, code):  # noqa: F811
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "folder").symlink_to("missing/")
    (tmp_path / "new").symlink_to("file")
    before = sorted(names(tmp_path))
    for write in writers(device, stream, code):
        for name in ("loop", "a"):
            with pytest.raises(OSError, match=rf"{name}'$") as e:
                write(tmp_path / name)
            assert e.value.errno == errno.ELOOP
        for name in ("missing/", "folder", ".", "..", ""):
            with pytest.raises((IsADirectoryError, FileNotFoundError)):
                write(f"{tmp_path}/{name}" if name else name)
        assert sorted(names(tmp_path)) == before
        write(tmp_path / "new")
        assert (tmp_path / "file").stat().st_size > 3
        (tmp_path / "file").unlink()
        assert sorted(names(tmp_path)) == before


OWN_OUTPUT = """
import os, sys
import cudago as cu
code = cu.Program('extern "C" __global__ void f(int* x) { *x = 1; }').compile()
os.symlink("/dev/stdout", sys.argv[1])
print("before", flush=True)
own = "/proc/self/fd/1", "/proc/thread-self/fd/1", f"/proc/{os.getpid()}/fd/1"
for path in "/dev/stdout", *own, sys.argv[1]:
    code.save(path)
    print(f"after {path}", len(code.code), flush=True)
os.dup2(os.open(os.devnull, os.O_RDONLY), 1)  # were it closed, a file of Go's could take its number
try:
    code.save("/dev/stdout")
except OSError as e:
    print(e, file=sys.stderr)
"""


def test_the_output_of_the_program_is_not_replaced(tmp_path):
    """What it has written stays, and what it writes later comes after it."""
    path, link = tmp_path / "out", tmp_path / "link"
    with path.open("wb") as out:
        command = [sys.executable, "-c", OWN_OUTPUT, str(link)]
        environment = os.environ | {"CUDAGO_DRIVER": "sim"}  # no word of a driver's choice
        ended = subprocess.run(
            command, env=environment, stdout=out, stderr=subprocess.PIPE, text=True, check=True
        )
    first, *parts = re.split(rb"after .* (\d+)\n", path.read_bytes())
    assert first.startswith(b"before\n")
    assert [len(first) - len("before\n"), *map(len, parts[1::2])] == [int(parts[0])] * 5 + [0]
    assert link.is_symlink()
    assert ended.stderr == "[Errno 9] Bad file descriptor: '/dev/stdout'\n"


def members():
    yield "graph.json", b"{}"
    yield "memory/0", b""
    yield "memory/1", memoryview(bytes(range(256)) * 300)


def test_zip_files_are_those_of_zipfile():
    theirs = io.BytesIO()
    with zipfile.ZipFile(theirs, "w") as archive:
        for name, data in members():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            archive.writestr(info, bytes(data))
    ours = b"".join(zipped(members()))
    assert len(ours) == len(theirs.getvalue())
    with zipfile.ZipFile(io.BytesIO(ours)) as archive:
        assert archive.testzip() is None
        infos = archive.infolist()
    theirs_infos = zipfile.ZipFile(theirs).infolist()
    for name in ("filename", "CRC", "file_size", "header_offset", "external_attr", "date_time"):
        assert [getattr(i, name) for i in infos] == [getattr(i, name) for i in theirs_infos]


@pytest.mark.parametrize("most", [0, 100, 1000])
def test_large_zip_files(monkeypatch, most):
    """Sizes and places of more than 32 bits are in the fields that the format has for them."""
    monkeypatch.setattr(zipped_module, "_MOST", most)
    with zipfile.ZipFile(io.BytesIO(b"".join(zipped(members())))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == {
            name: bytes(data) for name, data in members()
        }


def test_many_members():
    names = [f"memory/{n}" for n in range(70_000)]
    with zipfile.ZipFile(io.BytesIO(b"".join(zipped((n, b"x") for n in names)))) as archive:
        assert archive.namelist() == names
