# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Files that cudago writes are whole, or as they were: on a full disk too."""

from __future__ import annotations

import errno
import io
import os
import re
import resource
import signal
import stat
import struct
import subprocess
import sys
import types
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import cudago as cu
from cudago import _whole_file as whole_file
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


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def refuse(*_, **__):
    raise PermissionError(errno.EPERM, "refused")


@pytest.fixture(params=["unnamed", "named", "never named"])
def parts(request, monkeypatch):
    """File systems that have files without a name or none, and a system that gives them none."""
    if request.param == "named":
        monkeypatch.setattr(whole_file, "_UNNAMED", os.O_WRONLY | os.O_DIRECTORY)
    elif request.param == "never named":
        monkeypatch.setattr(whole_file.os, "link", refuse)
    return request.param


def access(path):
    """Return who may do what with a file that a test has made."""
    found = Path(path).stat()
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_who_may_read_a_file_stays(mode, tmp_path, parts):
    """From the moment there is something in the file, or of it in the folder."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    before = access(path)
    seen = set()

    def pieces():
        for piece in (b"new", b"er"):
            yield piece
            seen.update(access(entry) for entry in os.scandir(tmp_path))
            seen.update(access(f"/proc/self/fd/{fd}") for fd in descriptors(tmp_path))

    with umask(0o022):
        whole_file.write_whole(path, pieces())
    assert seen == {before} == {access(path)}
    assert path.read_bytes() == b"newer"


def descriptors(folder):
    """Return the files in a folder that this process has open, also those without a name."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if entry.readlink().is_relative_to(folder):
                found.append(int(entry.name))
    assert found
    return found


def test_new_files_are_as_the_umask_says(tmp_path, parts):
    for mask, mode in (0o022, 0o644), (0o077, 0o600), (0, 0o666):
        with umask(mask):
            whole_file.write_whole(tmp_path / "file", [b"new"])
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
        (tmp_path / "file").unlink()


def test_what_cannot_be_kept_is_taken_away(tmp_path, monkeypatch, parts):
    """A group that the process may not give files to: another one gets no more by it."""
    path = tmp_path / "file"
    real = os.fstat
    other = types.SimpleNamespace(st_uid=os.geteuid(), st_gid=-2)
    monkeypatch.setattr(whole_file.os, "fchown", refuse)
    for mode, left in (0o660, 0o600), (0o664, 0o644), (0o604, 0o600), (0o777, 0o777):
        path.write_bytes(b"old")
        path.chmod(mode)
        monkeypatch.setattr(whole_file.os, "fstat", lambda fd: other)
        whole_file.write_whole(path, [b"new"])
        monkeypatch.setattr(whole_file.os, "fstat", real)
        assert stat.S_IMODE(path.stat().st_mode) == left, oct(mode)


def acl(*entries):
    """Return an access control list as the system stores it (Linux, posix_acl_xattr.h)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def test_access_control_lists_stay(tmp_path, parts):
    """The group's bits of such a file's mode are those of all in the list, not of its group."""
    path, name, nobody = tmp_path / "file", "system.posix_acl_access", 0xFFFFFFFF
    path.write_bytes(b"old")
    mine = acl((1, 6, nobody), (2, 4, 4321), (4, 0, nobody), (16, 4, nobody), (32, 0, nobody))
    try:
        os.setxattr(path, name, mine)
    except OSError as e:
        pytest.skip(f"no access control lists here: {e}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    whole_file.write_whole(path, [b"new"])
    assert os.getxattr(path, name) == mine
    os.setxattr(tmp_path, "system.posix_acl_default", mine)
    path.unlink()
    path.write_bytes(b"old")
    os.removexattr(path, name)
    path.chmod(0o640)
    whole_file.write_whole(path, [b"new"])
    with pytest.raises(OSError, match="No data"):
        os.getxattr(path, name)


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, parts):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(*a, name=name, real=real, **k):
            done.append((name, (tmp_path / "file").read_bytes()))
            return real(*a, **k)

        monkeypatch.setattr(whole_file.os, name, noted)
    (tmp_path / "file").write_bytes(b"old")
    whole_file.write_whole(tmp_path / "file", [b"new"])
    times = 2 if parts == "never named" else 1
    assert done == [("fsync", b"old")] * times + [("replace", b"old")]
    assert (tmp_path / "file").read_bytes() == b"new"


KILLED = """
import os, signal, sys
from cudago import _whole_file
if sys.argv[2] == "named":
    _whole_file._UNNAMED = os.O_WRONLY | os.O_DIRECTORY
def pieces():
    yield b"new"
    os.kill(os.getpid(), signal.SIGKILL)
_whole_file.write_whole(sys.argv[1], pieces())
"""


def test_a_kill_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with suppress(OSError):
        os.close(os.open(tmp_path, os.O_WRONLY | os.O_TMPFILE))
        command = [sys.executable, "-c", KILLED, str(path), "unnamed"]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert names(tmp_path) == ["file"]
    command = [sys.executable, "-c", KILLED, str(path), "named"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    (left,) = set(names(tmp_path)) - {"file"}
    theirs = [".cudago-mine", ".cudago-0123456789abcdef.txt", f".cudago-{'1' * 16}"]
    for name in theirs[:2]:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / theirs[2]).mkdir()
    whole_file.write_whole(path, [b"new"])
    assert left in names(tmp_path)  # its writer may be slow
    for name in (left, *theirs):
        os.utime(tmp_path / name, (0, 0))
    whole_file.write_whole(path, [b"newer"])
    assert sorted(names(tmp_path)) == sorted(["file", *theirs])


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


def test_zip_files_can_be_unpacked():
    made = b"".join(zipped(members()))
    assert made == b"".join(zipped(members()))
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == {
            name: bytes(data) for name, data in members()
        }


@pytest.mark.parametrize("most", [0, 100, 1000])
def test_large_members(monkeypatch, most):
    """Sizes and places of more than 32 bits are in the fields that the format has for them."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", most)
    test_zip_files_can_be_unpacked()
