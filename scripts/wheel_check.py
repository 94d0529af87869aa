# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Check the wheel before it is published: ``python scripts/wheel_check.py [DIST]``.

It is built again from the source distribution, in another folder, and must be the same bytes. With
CUDAGO_WHEEL_MACHINE it is the wheel for that machine. What is checked is in CHECKS.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build_hooks"))
import extension

LARGEST = 12 << 20  # bytes
# Tests that end soon under an emulator. It does not emulate the processes that a test starts.
EMULATED = (
    "memory/test_virtual.py",
    "memory/test_pointer.py",
    "stream/test_semaphore.py",
    "stream/test_stream_work.py",
    "kernel/test_launch.py",
    "graph/test_exec.py",
)
STARTS_PROCESSES = ("exit_with_open_buffers", "destroyed_after_its_work")
# All that QEMU emulates, but with cheap signatures: Debian's programs sign each function's return
# address, and with the architecture's own arithmetic everything takes ten times as long.
EMULATED_CPU = "max,pauth-impdef=on"
# A kernel and a graph that need no compiler, on the simulated driver.
SMOKE = extension.ROOT / "scripts" / "wheel_smoke.py"


class CheckError(Exception):
    """The wheel must not be published; the text says why."""


def run(command: list[str | Path], **options: object) -> str:
    """Run a command and return its output, which is the error's text if the command fails."""
    done = subprocess.run(  # type: ignore[call-overload]
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    if done.returncode:
        words = " ".join(map(str, command))
        raise CheckError(f"{words}: exit status {done.returncode}\n{done.stdout}")
    return str(done.stdout)


def environment(folder: Path, *wheels: str | Path) -> Path:
    """Return the Python of a new environment with these wheels, and nothing else."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run([python, "-m", "pip", "install", "-q", *wheels])
    return python


def same_bytes(wheel: Path, folder: Path) -> str:
    """Build it from the source distribution, somewhere else, with no Go modules but its own."""
    python = environment(folder / "build-env", "build")
    run([python, "-m", "build", "--sdist", "-o", folder, extension.ROOT])
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "elsewhere", filter="data")
    (source,) = (folder / "elsewhere").iterdir()
    again = folder / "again"
    builder = Path(sys.prefix) / "builders" / "bin" / "python"  # Makefile
    alone = {"GOPROXY": "off", "GOMODCACHE": str(folder / "modules"), "GOFLAGS": "-modcacherw"}
    pip = [builder, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", again]
    run([*pip, source], env={**os.environ, **alone})
    first, second = wheel, again / wheel.name
    if not second.exists():
        raise CheckError(f"the second build is called {[p.name for p in again.iterdir()]}")
    if first.read_bytes() != second.read_bytes():
        raise CheckError(f"two builds differ in {differing(first, second)}")
    return f"sha256 {hashlib.sha256(first.read_bytes()).hexdigest()}"


def differing(first: Path, second: Path) -> list[str]:
    """Return the names of the files that two wheels do not share byte by byte."""
    with ZipFile(first) as a, ZipFile(second) as b:
        names = sorted({*a.namelist(), *b.namelist()})
        held = [{n: z.read(n) for n in z.namelist()} for z in (a, b)]
    return [n for n in names if held[0].get(n) != held[1].get(n)] or ["the archive's own fields"]


def size(wheel: Path, folder: Path) -> str:
    """Check the wheel's size."""
    got = wheel.stat().st_size
    if got > LARGEST:
        raise CheckError(f"a wheel has at most {LARGEST} bytes, got {got}")
    return f"{got / (1 << 20):.1f} MiB"


def documents(wheel: Path, folder: Path) -> str:
    """Look for the licences of what is linked in, and the list of it."""
    with ZipFile(wheel) as z:
        names = [n.partition(".dist-info/")[2] for n in z.namelist()]
    texts = {f"licenses/licenses/{p.name}" for p in (extension.ROOT / "licenses").iterdir()}
    missing = {"licenses/LICENSE", "sboms/cudago.cdx.json", *texts} - {*names}
    if missing:
        raise CheckError(f"the wheel lacks {sorted(missing)}")
    return f"{len(texts) + 1} licences, sboms/cudago.cdx.json"


def glibc(wheel: Path, folder: Path) -> str:
    """Ask auditwheel whether it runs where its name promises."""
    python = environment(folder / "audit-env", "auditwheel")
    said = run([python, "-m", "auditwheel", "show", wheel])
    found = re.search(r'platform tag:\s+"manylinux_(\d+)_(\d+)_(\w+)"', said)
    promised = re.search(r"manylinux_(\d+)_(\d+)_(\w+)\.whl$", wheel.name)
    if not found or not promised or found[3] != promised[3]:
        raise CheckError(f"auditwheel was asked for manylinux of {wheel.name}; it says\n{said}")
    verdict, name = ((int(m[1]), int(m[2])) for m in (found, promised))
    if verdict > name:
        raise CheckError(f"{wheel.name} promises glibc {name}; auditwheel finds {verdict}")
    return f"auditwheel: manylinux_{found[1]}_{found[2]}_{found[3]}"


def works(wheel: Path, folder: Path) -> str:
    """Install it alone, and run a kernel and a graph."""
    if not wheel.name.endswith(f"{platform.machine()}.whl"):
        return emulated(wheel, folder)
    python = environment(folder / "use-env", wheel)
    run([python, "-m", "pip", "check"])
    run([python.with_name("cudago"), "info"], env={**os.environ, "CUDAGO_DRIVER": "sim"})
    command = [python, "-P", "-W", "error", SMOKE]
    return run(command, env={**os.environ, "CUDAGO_DRIVER": "sim"}, cwd=folder).strip()


def emulated(wheel: Path, folder: Path) -> str:
    """Do the same for another machine, whose programs QEMU runs, and run the tests in EMULATED."""
    machine = extension.wheel_machine() or platform.machine()
    qemu = shutil.which(f"qemu-{machine}")
    if not qemu:
        return f"not run: this machine is {platform.machine()} and has no qemu-{machine}"
    root = emulated_root(machine)
    python = [qemu, "-cpu", EMULATED_CPU, "-L", str(root), f"{root}/usr/bin/python3"]
    # Without what Python compiles of its modules each start takes longer.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "CUDAGO_DRIVER": "sim"}
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = run([*python, "-I", "-c", ask], env=env).strip()
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder / "packages")]
    pip += ["--only-binary=:all:", "--python-version", version]
    pip += [f"--platform=manylinux{name}_{machine}" for name in ("_2_28", "_2_27", "2014", "_2_17")]
    run([*pip, f"{wheel}[sim]", "numpy", "pytest"])
    env |= {"PYTHONPATH": str(folder / "packages"), "CUDAGO_REQUIRE_GPU": ""}
    run([*python, "-P", "-m", "cudago", "info"], env=env, cwd=folder)
    said = run([*python, "-P", "-W", "error", SMOKE], env=env, cwd=folder).strip()
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    pytest += ["-k", f"not ({' or '.join(STARTS_PROCESSES)})"]
    tests = [extension.ROOT / "tests_py" / name for name in EMULATED]
    tested = run([*python, "-P", *pytest, *tests], env=env).strip().splitlines()[-1]
    return f"{said}; {tested}, emulated by {qemu}"


def emulated_root(machine: str) -> Path:
    """Return a folder with that machine's Python and C library, made where there is none."""
    if given := os.environ.get("CUDAGO_EMULATED_ROOT"):
        return Path(given)
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = caches / "cudago" / f"emulated-{machine}"
    script = extension.ROOT / "scripts" / "debian_pythons.sh"
    try:
        run([script, kept, extension.GO_ARCH[machine]])  # which Debian's are called as Go's
    except CheckError as e:
        wish = f"CUDAGO_EMULATED_ROOT can name a folder with usr/bin/python3 for {machine}"
        raise CheckError(f"{wish}; {e}") from None
    return kept / "system"


CHECKS: dict[str, Callable[[Path, Path], str]] = {
    "size": size,
    "licences": documents,
    "glibc": glibc,
    "installed": works,
    "same bytes": same_bytes,
}


def wheel_to_check(folder: Path) -> Path:
    """Return the wheel that is asked for, of a folder that `make wheel` and `make wheels` share."""
    machine = extension.wheel_machine() or platform.machine()
    found = sorted(folder.glob(f"cudago-{extension.version()}-*_{machine}.whl"))
    for_others = f"manylinux_{extension.ZIG_GLIBC.replace('.', '_')}_{machine}.whl"
    if extension.wheel_machine():
        found = [w for w in found if w.name.endswith(for_others)]
    elif len(found) > 1:
        found = [w for w in found if not w.name.endswith(for_others)]
    if len(found) != 1:
        raise SystemExit(f"cudago: one wheel for {machine} in {folder}, got {len(found)}: {found}")
    return found[0].resolve()


def main() -> None:
    """Check a wheel."""
    wheel = wheel_to_check(Path(sys.argv[1] if sys.argv[1:] else extension.ROOT / "dist"))
    failed = 0
    for name, check in CHECKS.items():
        with tempfile.TemporaryDirectory(prefix="cudago-wheel-") as tmp:
            try:
                print(f"wheel: {name}: ok: {check(wheel, Path(tmp))}", flush=True)
            except CheckError as e:
                failed += 1
                print(f"wheel: {name}: FAILED: {e}", flush=True)
    if failed:
        raise SystemExit(f"wheel: {failed} checks failed")


if __name__ == "__main__":
    main()
