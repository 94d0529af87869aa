# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a wheel for other machines promises, and what it says about its parts."""

from __future__ import annotations

import importlib
import platform
import re
import struct
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

import cudago as cu

from ..installed import PROJECT, ROOT

X86_64, AARCH64 = (b"\x7fELF".ljust(18, b"\0") + bytes([m, 0]) for m in (62, 183))
SYMBOLS = b"\0GLIBC_2.3.2\0GLIBC_2.16\0"


@pytest.fixture
def extension(monkeypatch) -> ModuleType:
    """The build of the shared library."""
    return hook("extension", monkeypatch)


def hook(name: str, monkeypatch) -> ModuleType:
    """Return a module of build_hooks that may import its neighbours."""
    monkeypatch.syspath_prepend(ROOT / "build_hooks")
    return importlib.import_module(name)


@pytest.mark.parametrize(
    ("machine", "head", "tag"),
    [
        ("", X86_64, "cp311-abi3-manylinux_2_17_x86_64"),
        ("x86_64", X86_64, "cp311-abi3-manylinux_2_28_x86_64"),
        ("aarch64", AARCH64, "cp311-abi3-manylinux_2_28_aarch64"),
    ],
)
def test_the_tag_is_of_the_file_and_promises_what_was_asked_for(
    machine, head, tag, extension, monkeypatch, tmp_path
):
    monkeypatch.setenv("CUDAGO_WHEEL_MACHINE", machine)
    module = tmp_path / "module.so"
    module.write_bytes(head + SYMBOLS)
    assert extension.wheel_tag(module) == tag
    module.write_bytes(head + SYMBOLS + b"\0GLIBC_2.34\0")
    assert extension.wheel_tag(module) == re.sub(r"2_(17|28)", "2_34", tag)


def test_other_machines_and_files_are_refused(extension, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDAGO_WHEEL_MACHINE", "riscv64")
    with pytest.raises(extension.BuildError, match="one of x86_64, aarch64; got 'riscv64'"):
        extension.wheel_machine()
    (tmp_path / "module.so").write_bytes(b"MZ" + bytes(30))
    with pytest.raises(extension.BuildError, match="x86_64 or aarch64; got the file b'MZ"):
        extension.built_for(tmp_path / "module.so")


def test_headers_of_another_kind_of_machine_are_refused(extension, monkeypatch, tmp_path):
    cc = extension.find_cc()
    if cc is None:
        pytest.skip("no C compiler here")
    extension.check_headers(cc, "x86_64")  # this machine's own headers fit
    (tmp_path / "Python.h").write_text('#include "pyconfig.h"\n')
    ours = (extension.python_headers() / "pyconfig.h").read_text()
    (tmp_path / "pyconfig.h").write_text(f"{ours}\n#undef SIZEOF_LONG\n#define SIZEOF_LONG 4\n")
    monkeypatch.setattr(extension, "python_headers", lambda: tmp_path)
    with pytest.raises(extension.BuildError, match=f"{tmp_path} does not fit aarch64"):
        extension.check_headers(cc, "aarch64")


@pytest.mark.parametrize(
    ("machine", "names", "chosen"),
    [
        ("", ["2_34_x86_64", "2_28_x86_64", "2_28_aarch64"], "2_34_x86_64"),
        ("", ["2_28_x86_64", "2_28_aarch64"], "2_28_x86_64"),
        ("x86_64", ["2_34_x86_64", "2_28_x86_64"], "2_28_x86_64"),
        ("aarch64", ["2_34_x86_64", "2_28_x86_64", "2_28_aarch64"], "2_28_aarch64"),
        ("x86_64", ["2_34_x86_64"], None),
    ],
)
def test_the_wheel_that_is_asked_for_is_checked(machine, names, chosen, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDAGO_WHEEL_MACHINE", machine)
    monkeypatch.syspath_prepend(ROOT / "scripts")
    check = importlib.import_module("wheel_check")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    wheels = {n: tmp_path / f"cudago-{cu.__version__}-cp311-abi3-manylinux_{n}.whl" for n in names}
    for wheel in wheels.values():
        wheel.touch()
    if chosen:
        assert check.wheel_to_check(tmp_path) == wheels[chosen].resolve()
    else:
        with pytest.raises(SystemExit, match=r"one wheel for x86_64 .* got 0"):
            check.wheel_to_check(tmp_path)


def test_a_wheel_is_built_with_what_is_named_by_hash(extension):
    lists = [ROOT / "build_hooks" / name for name in ("requirements.txt", "compilers.txt")]
    text = "".join(path.read_text() for path in lists).replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pinned = {}
    for line in lines:
        found = re.fullmatch(r"([\w-]+)==(\S+)((?: +--hash=sha256:[0-9a-f]{64})+) *", line)
        assert found, line
        pinned[found[1]] = found[2]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    for wanted in (*build["requires"], extension.GO_WHEEL, extension.CC_WHEEL):
        requirement = Requirement(wanted)
        assert requirement.specifier.contains(pinned[requirement.name]), wanted
    makefile = (ROOT / "Makefile").read_text()
    assert "--require-hashes --no-deps --only-binary :all: -r $<" in makefile
    assert re.findall(r"pip_steps.py wheel (--\S+)", makefile) == ["--no-build-isolation"]


def test_the_text_of_each_licence_is_in_the_wheel(monkeypatch):
    sbom = hook("sbom", monkeypatch)
    assert {file for _, file in sbom.LICENSES.values()} == {p.name for p in sbom.FOLDER.iterdir()}
    assert PROJECT["license-files"] == ["LICENSE", "licenses/*.txt"]
    words = set(PROJECT["license"].split(" AND "))
    assert words == {"Apache-2.0", *(name for name, _ in sbom.LICENSES.values())}


def test_a_host_runs_what_everybody_can_run():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    steps = re.findall(r"- run: (.*)", workflow)
    assert steps
    for step in steps:
        assert step.split()[0] == "make" and step.split()[1] in targets, step


def go_says(*lines: str):
    """Return a subprocess.run that answers as go version -m does."""
    head = "module.so: go1.26.8\n\tpath\tgithub.com/cudago/cudago/pyext\n"
    out = head + "".join(f"\t{line}\n" for line in lines)
    return lambda command, **options: subprocess.CompletedProcess(command, 0, out, "")


def test_the_list_names_what_is_linked_in(extension, monkeypatch, tmp_path):
    sbom = hook("sbom", monkeypatch)
    monkeypatch.setattr(sbom, "c_parts", list)
    dep = "dep\tgithub.com/go-python/gopy\tv0.5.0\th1:sum="
    monkeypatch.setattr(sbom.subprocess, "run", go_says(dep, "build\tGOARCH=amd64"))
    listed = sbom.describe(tmp_path / "module.so", "go")
    purls = ["pkg:golang/std@1.26.8", "pkg:golang/github.com/go-python/gopy@v0.5.0"]
    assert [part["purl"] for part in listed["components"]] == purls
    assert listed["dependencies"][0]["dependsOn"] == purls
    assert listed["components"][1]["properties"] == [{"name": "go.sum", "value": "h1:sum="}]


@pytest.mark.parametrize(
    ("path", "name", "version", "license"),
    [
        ("/usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a", "libgcc", "12", "GPL-3.0-or-later WITH"),
        (
            "/usr/lib/llvm-18/lib/clang/18/lib/linux/libclang_rt.builtins-x86_64.a",
            "compiler-rt",
            "18",
            "Apache-2.0 WITH",
        ),
    ],
)
def test_the_list_names_what_the_machines_compiler_links_in(
    path, name, version, license, extension, monkeypatch
):
    sbom = hook("sbom", monkeypatch)
    monkeypatch.setattr(sbom.extension, "find_cc", lambda: "cc -pipe")
    answer = subprocess.CompletedProcess([], 0, f"{path}\n", "")
    monkeypatch.setattr(sbom.subprocess, "run", lambda command, **options: answer)
    runtime, glibc = sbom.c_parts()
    assert (runtime["name"], runtime["version"]) == (name, version)
    assert runtime["licenses"][0]["license"]["name"].startswith(license)
    assert (glibc["name"], glibc["version"]) == ("glibc start files", platform.libc_ver()[1])
    answer.stdout = ""
    assert [part["name"] for part in sbom.c_parts()] == ["runtime of cc", "glibc start files"]
    monkeypatch.setattr(sbom.extension, "find_cc", lambda: "python3 -m ziglang cc -target x")
    answer.stdout = "0.17.1\n"
    assert [part["version"] for part in sbom.c_parts()] == ["0.17.1", extension.ZIG_GLIBC]


def test_the_list_is_right_about_this_machines_compiler(extension, monkeypatch):
    sbom = hook("sbom", monkeypatch)
    if extension.find_cc() is None:
        pytest.skip("no C compiler here")
    assert [part["version"][0].isdigit() for part in sbom.c_parts()] == [True, True]


class Elf:
    """What the dynamic loader reads of a shared library for 64 bits."""

    def __init__(self, text: bytes) -> None:
        at, size, count = (
            *struct.unpack_from("<Q", text, 32),
            *struct.unpack_from("<HH", text, 54),
        )
        heads = [struct.unpack_from("<IIQQQQQQ", text, at + i * size) for i in range(count)]
        self.segments = {kind: flags for kind, flags, *_ in heads}
        _, _, at, _, _, size, *_ = next(h for h in heads if h[0] == 2)  # PT_DYNAMIC
        self.dynamic = dict(struct.iter_unpack("<QQ", text[at : at + size]))


def test_the_module_is_hardened():
    text = Path(cu._core.__file__).read_bytes()
    elf = Elf(text)
    assert elf.dynamic[30] & 8, "DF_BIND_NOW"
    assert elf.dynamic[0x6FFFFFFB] & 1, "DF_1_NOW"
    assert 0x6474E552 in elf.segments, "PT_GNU_RELRO"
    assert not elf.segments[0x6474E551] & 1, "PT_GNU_STACK is executable"
    for name in (b"__stack_chk_fail", b"__memcpy_chk"):
        assert b"\0" + name + b"\0" in text
    assert b"asyncpreemptoff=1" in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dep\texample.com/new\tv1.0.0\th1:sum=", "example.com/new is linked in"),
        ("=>\texample.com/fork\tv1.0.0\th1:sum=", "replaced by another"),
    ],
)
def test_a_part_with_no_known_licence_stops_the_build(line, words, monkeypatch, tmp_path):
    sbom = hook("sbom", monkeypatch)
    monkeypatch.setattr(sbom.subprocess, "run", go_says(line))
    with pytest.raises(sbom.extension.BuildError, match=words):
        sbom.describe(tmp_path / "module.so", "go")
