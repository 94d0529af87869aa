# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled programs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

import cudago as cu
from cudago import compile_cache

np = pytest.importorskip("numpy")

SOURCE = 'extern "C" __global__ void set(int* p) { *p = VALUE; }'


def options(value: int, **more) -> cu.ProgramOptions:
    return cu.ProgramOptions(define_macro={"VALUE": value}, **more)


@pytest.fixture
def cache(driver, tmp_path: Path):
    """The cache, in an empty folder: its folder of entries."""
    compile_cache.configure(directory=tmp_path / "cache")
    compile_cache.clear()
    yield tmp_path / "cache" / "compiled"
    compile_cache.configure()


def result(code: cu.ObjectCode, stream: cu.Stream) -> int:
    out = cu.zeros(1, "i4", stream=stream)
    code["set"][1, 1, stream](out)
    return int(out.numpy(stream=stream)[0])


def hits() -> tuple[int, int, int]:
    found = compile_cache.statistics()
    return found.memory_hits, found.disk_hits, found.misses


def test_a_program_is_compiled_once(cache, stream):
    codes = [cu.Program(SOURCE, options=options(5)).compile() for _ in range(3)]
    assert hits() == (2, 0, 1)
    assert [result(code, stream) for code in codes] == [5, 5, 5]
    assert codes[0]["set"] is not codes[1]["set"]
    assert codes[1]["set"].parameter_names == ("p",)
    compile_cache.configure(directory=cache.parent)  # forgets what is in memory
    assert result(cu.Program(SOURCE, options=options(5)).compile(), stream) == 5
    assert hits() == (2, 1, 1)
    assert len(list(cache.iterdir())) == 1


def test_variables_are_not_shared(cache, stream):
    source = '__device__ int hits; extern "C" __global__ void hit() { hits++; }'
    first, second = (cu.Program(source).compile() for _ in range(2))
    assert hits() == (1, 0, 1)
    first["hit"][1, 1, stream]()
    assert first["hits"].view("i4").numpy(stream=stream) == 1
    assert second["hits"].view("i4").numpy(stream=stream) == 0


def test_what_differs_is_compiled(cache, stream):
    codes = [cu.Program(SOURCE, options=options(v)).compile() for v in (1, 2)]
    assert [result(code, stream) for code in codes] == [1, 2]
    assert cu.Program(SOURCE, options=options(1)).compile("ptx").kind == "ptx"
    cu.Program(SOURCE, options=options(1, arch="compute_80")).compile("ptx")
    cu.Program(SOURCE, options=options(1, name="other.cu")).compile("ptx")
    assert hits()[2] == (4 if cu.driver_name() == "sim" else 5)


def test_a_log_and_names_are_kept(cache):
    source = "template <class T> __global__ void f(T* p) { int unused; }"
    named = cu.ProgramOptions(name_expressions=["f<float>", "f<int>"])
    for _ in range(2):
        code = cu.Program(source, options=named).compile()
        assert "never referenced" in code.log
        assert code["f<int>"].signature == ("u64",)
    assert hits() == (1, 0, 1)


def test_errors_are_not_kept(cache):
    for _ in range(2):
        with pytest.raises(cu.CompileError, match="undefined"):
            cu.Program("__device__ int x = y;").compile()
    assert hits() == (0, 0, 2)
    assert compile_cache.statistics().disk_entries == 0


def test_included_files_count(cache, stream, tmp_path):
    header = tmp_path / "value.h"
    source = '#include "value.h"\n' + SOURCE
    program = cu.Program(source, options=cu.ProgramOptions(include_path=tmp_path))
    for value in (3, 4, 4):
        header.write_text(f"#define VALUE {value}\n")
        assert result(program.compile(), stream) == value
    assert hits() == (1, 0, 2)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "value.h").write_text("#define VALUE 7\n")
    paths = cu.ProgramOptions(include_path=[tmp_path / "first", tmp_path])
    assert result(cu.Program(source, options=paths).compile(), stream) == 7
    (tmp_path / "first" / "value.h").unlink()
    assert result(cu.Program(source, options=paths).compile(), stream) == 4
    (tmp_path / "first" / "value.h").write_text("#define VALUE 8\n")
    assert result(cu.Program(source, options=paths).compile(), stream) == 8
    assert hits() == (1, 0, 5)


def test_a_file_beside_the_program_counts(cache, stream, tmp_path, monkeypatch):
    source = '#include "value.h"\n' + SOURCE
    for value in (1, 2):
        folder = tmp_path / str(value)
        folder.mkdir()
        (folder / "value.h").write_text(f"#define VALUE {value}\n")
        monkeypatch.chdir(folder)
        assert result(cu.Program(source).compile(), stream) == value


def test_what_cannot_be_told_is_not_kept(cache):
    program = cu.Program("__device__ char built[] = __TIME__;")
    program.compile()
    program.compile()
    assert compile_cache.statistics().uncacheable == 2
    assert hits() == (0, 0, 2)


def test_cache_is_not_asked(cache, stream):
    program = cu.Program(SOURCE, options=options(5))
    for _ in range(2):
        assert result(program.compile(cache=False), stream) == 5
    assert hits() == (0, 0, 0)
    assert not cache.exists()


def test_ptx_source_is_not_kept(cache):
    text = cu.Program(SOURCE, options=options(5)).compile("ptx", cache=False).ptx
    cu.Program(text, "ptx").compile()
    assert hits() == (0, 0, 0)


def test_a_damaged_entry_is_made_anew(cache, stream):
    program = cu.Program(SOURCE, options=options(5))
    program.compile()
    (entry,) = cache.iterdir()
    good = entry.read_bytes()
    for damage in (b"", good[: len(good) // 2], good[:-9] + bytes(9), os.urandom(999)):
        entry.write_bytes(damage)
        compile_cache.configure(directory=cache.parent)
        before = compile_cache.statistics().damaged
        told = pytest.warns(cu.CUDAWarning, match="not used, and made anew")
        with nullcontext() if before else told:  # once for a file
            code = program.compile()
        assert result(code, stream) == 5
        assert compile_cache.statistics().damaged == before + 1
        assert entry.read_bytes() == good


def test_a_folder_that_others_can_change_is_not_used(cache, stream):
    program = cu.Program(SOURCE, options=options(5))
    program.compile()
    cache.chmod(0o777)
    compile_cache.configure(directory=cache.parent)
    with pytest.warns(cu.CUDAWarning, match="others can write to it"):
        assert result(program.compile(), stream) == 5
    with pytest.raises(OSError, match="others can write to it"):
        compile_cache.clear()
    cache.chmod(0o700)
    assert compile_cache.statistics().disk_entries == 1


def test_the_folder_that_is_named_is_checked_too(cache, stream):
    program = cu.Program(SOURCE, options=options(5))
    program.compile()
    cache.parent.chmod(0o777)
    compile_cache.configure(directory=cache.parent)
    with pytest.warns(cu.CUDAWarning, match=f"does not use {cache.parent}: others can write to it"):
        assert result(program.compile(), stream) == 5
    assert compile_cache.statistics().disk_hits == 0
    cache.parent.chmod(0o700)


def test_a_sound_entry_that_is_too_large_is_left(cache, stream):
    program = cu.Program(SOURCE, options=options(5))
    program.compile()
    compile_cache.configure(directory=cache.parent, max_bytes=100)
    before = compile_cache.statistics().damaged
    assert result(program.compile(), stream) == 5  # a warning would be an error
    assert compile_cache.statistics().damaged == before
    assert len(list(cache.iterdir())) == 1


def test_permissions(cache):
    cu.Program(SOURCE, options=options(5)).compile()
    assert cache.stat().st_mode & 0o777 == 0o700
    (entry,) = cache.iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600


def test_old_entries_make_room(cache):
    compile_cache.configure(directory=cache.parent, max_bytes=4000)
    for value in range(8):
        cu.Program(SOURCE, options=options(value)).compile("ptx")
    found = compile_cache.statistics()
    assert found.evicted > 0
    assert 0 < found.disk_bytes <= 4000
    assert sum(f.stat().st_size for f in cache.iterdir()) == found.disk_bytes
    compile_cache.clear()
    assert list(cache.iterdir()) == []


def test_a_folder_that_cannot_be_made(driver, stream, tmp_path):
    (tmp_path / "file").write_text("")
    try:
        compile_cache.configure(directory=tmp_path / "file" / "cache")
        assert result(cu.Program(SOURCE, options=options(6)).compile(), stream) == 6
        assert compile_cache.statistics().failed > 0
    finally:
        compile_cache.configure()


def test_kinds(cache):
    program = cu.Program(SOURCE, options=options(5))
    compile_cache.configure("off")
    program.compile()
    program.compile()
    assert hits() == (0, 0, 0)
    compile_cache.configure("memory")
    assert compile_cache.directory() is None
    program.compile()
    program.compile()
    assert hits() == (1, 0, 1)
    assert not cache.exists()


def test_refusals(cache):
    with pytest.raises(ValueError, match="'off', 'memory', 'disk', got 'ram'"):
        compile_cache.configure("ram")
    with pytest.raises(TypeError, match="directory must be a str or a path, not bytes"):
        compile_cache.configure(directory=b"x")
    for name in ("", "a\0b", "\udc80"):
        with pytest.raises(ValueError, match="directory must be"):
            compile_cache.configure(directory=name)
    with pytest.raises(ValueError, match="max_bytes must be at least 0, got -1"):
        compile_cache.configure(max_bytes=-1)
    with pytest.raises(OverflowError, match="max_bytes must be at most"):
        compile_cache.configure(max_bytes=1 << 70)
    assert compile_cache.directory() == str(cache.parent), "a refusal changes nothing"


def test_threads(cache, stream):
    """Threads compile the same programs while another clears the cache."""
    wrong: list[object] = []

    def compile_all() -> None:
        for value in range(6):
            code = cu.Program(SOURCE, options=options(100 + value)).compile("ptx")
            if f", {100 + value};" not in code.ptx:
                wrong.append(code.ptx)

    threads = [threading.Thread(target=compile_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        compile_cache.clear()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert compile_cache.statistics().damaged == 0


USE = f"""
import cudago as cu
codes = [cu.Program({SOURCE!r}, options=cu.ProgramOptions(define_macro={{"VALUE": v}})).compile("ptx") for v in range(5)]
assert all(f", {{v}};" in code.ptx for v, code in enumerate(codes))
found = cu.compile_cache.statistics()
print(found.disk_hits, found.misses, found.damaged, found.failed)
"""  # noqa: E501


def test_processes_share_the_folder(script, cache):
    command = script.command(USE)
    environment = script.environment | {"CUDAGO_CACHE_DIR": str(cache.parent)}
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in running:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        found, missed, damaged, failed = map(int, out.split())
        assert (found + missed, damaged, failed) == (5, 0, 0)
    done = script.run(command, CUDAGO_CACHE_DIR=str(cache.parent))
    assert done.stdout.split() == ["5", "0", "0", "0"], done.stderr


def test_environment(script, tmp_path):
    show = "import cudago as cu; print(cu.compile_cache.directory())"
    home = {"CUDAGO_CACHE_DIR": "", "HOME": str(tmp_path)}
    assert script(show, **home).stdout.strip() == str(tmp_path / ".cache" / "cudago")
    xdg = script(show, **home, XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert xdg.stdout.strip() == str(tmp_path / "xdg" / "cudago")
    other = script(show, **home | {"HOME": f"{tmp_path}/\udcff"})  # a name in another encoding
    assert (other.stdout, other.stderr) == ("None\n", "")
    assert script(show, CUDAGO_CACHE="memory").stdout.strip() == "None"
    assert script(show, CUDAGO_CACHE="off").stdout.strip() == "None"
    assert "CUDAGO_CACHE must be off or memory or disk" in script(show, CUDAGO_CACHE="on").stderr
    for size in ("large", "-1", "1e3"):
        assert "must be a number of bytes" in script(show, CUDAGO_CACHE_SIZE=size).stderr


def test_import_makes_no_folder(script, tmp_path):
    folder = tmp_path / "cache"
    done = script("import cudago", CUDAGO_CACHE_DIR=str(folder))
    assert done.returncode == 0
    assert not folder.exists()
    assert sys.modules["cudago.compile_cache"] is compile_cache


def test_what_another_thread_configures_amid_the_first_use_holds(cache, monkeypatch):
    monkeypatch.setattr(compile_cache, "_is_configured", False)
    of = compile_cache._default_directory

    def slow():
        monkeypatch.setattr(compile_cache, "_default_directory", of)
        thread = threading.Thread(target=compile_cache.configure, args=("memory",))
        thread.start()
        thread.join()
        return of()

    monkeypatch.setattr(compile_cache, "_default_directory", slow)
    assert compile_cache.directory() is None
