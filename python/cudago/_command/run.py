# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago run``: a script or a module, on a chosen driver, with every check on."""

from __future__ import annotations

import argparse
import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import itertools
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import cudago as cu

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType

_DRIVER, _CHECK, _LAST_CALLS = "--driver", "--check", "--last-calls"
_FLAGS = (_CHECK, _LAST_CALLS)
_PROCESS = os.getpid()
_WITH_VALUE = tuple(f"{option}=" for option in (_DRIVER, *_FLAGS))


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a script or a module on a chosen driver",
        usage="%(prog)s [OPTIONS] (SCRIPT | -m MODULE) [OPTIONS] [ARGUMENTS]",
        description="Run a script or a module. Options may stand before and after it; what follows "
        "-- is the script's, and so is every argument that is none of these options.",
        allow_abbrev=False,
    )
    parser.add_argument(_DRIVER, action=_Once, choices=("auto", "nvidia", "sim"))
    parser.add_argument(
        _CHECK,
        action="store_true",
        help="switch on every check of the simulated driver; what is found makes the exit status 1",
    )
    parser.add_argument(
        _LAST_CALLS,
        action="store_true",
        help="run the script in a process of its own; if that crashes, print the driver calls that "
        "came last",
    )
    parser.add_argument("-m", dest="module", help="run a module of this name, as python -m does")
    parser.add_argument("script", nargs="?")
    parser.set_defaults(main=main, fail=parser.error)


class _Once(argparse.Action):
    """An option that the script may have too: if it is given twice, its owner is unclear."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Store the value."""
        if (before := getattr(namespace, self.dest)) is not None:
            parser.error(
                f"{option_string} must be given once, got {before!r} and {values!r}; "
                "put what is the script's after --"
            )
        setattr(namespace, self.dest, values)


def split_arguments(given: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments for argparse, and those of the script.

    argparse gives all that follows a script to the script, or nothing that looks like an option.
    """
    ours: list[str] = []
    theirs: list[str] = []  # the script first
    module: list[str] = []  # or -m and its name, in place of the script
    rest = iter(given)
    for argument in rest:
        if argument == "--":
            theirs += rest
        elif argument == _DRIVER:
            ours += [argument, *([value] if (value := next(rest, None)) is not None else [])]
        elif argument in _FLAGS or argument.startswith(_WITH_VALUE):
            ours.append(argument)
        elif theirs or module or not argument.startswith("-"):
            theirs.append(argument)
        elif argument == "-m":
            module = [argument, *itertools.islice(rest, 1)]
        elif argument.startswith("-m"):
            module = ["-m", argument[2:]]
        else:  # an unknown option before the script is an error, left to argparse
            ours.append(argument)
    if module:
        return [*ours, *module], theirs
    return [*ours, "--", *theirs[:1]], theirs[1:]


def main(options: argparse.Namespace) -> int:
    """Run the script or module, and return its exit status."""
    if options.driver:
        os.environ["CUDAGO_DRIVER"] = options.driver
    if options.check:
        if os.environ.get("CUDAGO_DRIVER") == "nvidia":
            options.fail("--check is of the simulated driver: add --driver sim")
        os.environ["CUDAGO_SIM"] = ",".join(
            filter(None, (os.environ.get("CUDAGO_SIM"), "check=full"))
        )
    run = _module(options) if options.module else _script(options)
    if options.last_calls:
        return _in_a_child(options)
    shown = sys.excepthook
    sys.excepthook = lambda kind, e, tb: shown(kind, e.with_traceback(_theirs(tb)), _theirs(tb))
    try:
        run()
    except SystemExit as e:
        if not options.check:
            raise
        if e.code is not None and not isinstance(e.code, int):
            print(e.code, file=sys.stderr)  # as Python does, which what is found prevents
            e.code = 1
        if _found_at_end():
            return 1
        raise
    except BaseException:
        if options.check:
            _found()
        raise
    return 1 if options.check and _found_at_end() else 0


def _script(options: argparse.Namespace) -> Callable[[], object]:
    """Return what runs a script."""
    script = Path(options.script or options.fail("the following arguments are required: script"))
    if not script.exists():
        options.fail(f"the script {options.script!r} does not exist")
    if script.is_dir() and not any(script.glob("__main__.py*")):
        options.fail(f"the folder {options.script!r} has no __main__.py to run")

    def run() -> None:
        sys.argv = [options.script, *options.arguments]
        if pkgutil.get_importer(options.script) is not None:  # of a folder, or a zip file
            _begin_path_with(options.script)
            _run_module("__main__", alter_argv=False)
            return
        if not sys.flags.safe_path:
            _begin_path_with(str(script.resolve().parent))
        file = str(script.absolute())
        code, main = _code(file), _new_main()
        main.__file__ = file
        main.__dict__["__cached__"] = None
        if script.is_file():  # what finds the source, if it can be read again
            main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
        exec(code, main.__dict__)

    return run


def _begin_path_with(folder: str) -> None:
    """Put a folder first in the path, in place of what Python has put there for this command."""
    sys.path[: 0 if sys.flags.safe_path else 1] = [folder]


def _code(file: str) -> CodeType:
    """Return the code of a script, compiled or not, which is read once: it may be a pipe."""
    with io.open_code(file) as opened:
        text = opened.read()
    code: CodeType | None = pkgutil.read_code(io.BytesIO(text))
    return code or compile(text, file, "exec", dont_inherit=True)


def _new_main() -> ModuleType:
    """Return a new module ``__main__``.

    It stays when the script's last line has run, for threads, ``atexit`` and ``pickle``; the one
    of `runpy.run_path` does not.
    """
    made = sys.modules["__main__"] = ModuleType("__main__")
    made.__dict__["__builtins__"] = builtins
    return made


def _run_module(name: str, *, alter_argv: bool) -> None:
    """Run a module as the interpreter does, which leaves it in ``__main__``."""
    _new_main()
    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]


def _module(options: argparse.Namespace) -> Callable[[], object]:
    """Return what runs a module; it is looked for only then, which runs what contains it."""

    def run() -> None:
        sys.argv = [options.module, *options.arguments]
        if not sys.flags.safe_path:
            _begin_path_with(str(Path.cwd()))
        if not _is_found(options.module):
            options.fail(f"no module named {options.module!r} that can be run")
        _run_module(options.module, alter_argv=True)

    return run


def _is_found(module: str) -> bool:
    """Whether there is a module, or a package with one called ``__main__``."""
    if module.startswith("."):  # of no package
        return False
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
    except ModuleNotFoundError as e:
        if e.name is None or not f"{module}.".startswith(f"{e.name}."):
            raise  # what a package itself imports
        return False
    except ValueError:  # such as an empty name
        return False
    return spec is not None


_BETWEEN = ("runpy", "importlib.util", "importlib._bootstrap", "importlib._bootstrap_external")


def _theirs(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without what is before the script's own code."""
    at = traceback
    while at is not None and at.tb_frame.f_code is not main.__code__:
        at = at.tb_next
    if at is None:  # of something else
        return traceback
    ours = (*_BETWEEN, __name__)
    while at is not None and at.tb_frame.f_globals.get("__name__") in ours:
        at = at.tb_next
    return at


def _in_a_child(options: argparse.Namespace) -> int:
    """Run the script in a child, and return its exit status as a shell does."""
    # With -O, -W, -X and such, as the script would have had them here.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    command: list[str] = [sys.executable, *flags, "-m", "cudago", "run", *[_CHECK] * options.check]
    what, rest = ([], [options.script, *options.arguments])
    if options.module:
        what, rest = ["-m", options.module], options.arguments
    with tempfile.TemporaryDirectory(prefix="cudago-") as directory:
        calls = Path(directory) / "calls"
        child = subprocess.Popen(
            [*command, *what, "--", *rest],
            env={**os.environ, "CUDAGO_LAST_CALLS": str(calls)},
            close_fds=False,  # those that the shell gave for the script, which may be one itself
        )
        while True:
            try:
                status = child.wait()
                break
            except KeyboardInterrupt:  # the terminal has sent it to the child too
                continue
        if status >= 0:
            return status
        named = {s.value: s.name for s in signal.Signals}
        how = named.get(-status, f"signal {-status}")
        print(f"cudago: {how}; the last driver calls:", file=sys.stderr)
        lines = calls.read_text(errors="replace").splitlines() if calls.exists() else []
        for line in sorted(filter(str.strip, lines)):  # they are a ring, and numbered
            print(f"  {line.rstrip()}", file=sys.stderr)
        return 128 - status


def _found() -> bool:
    """Print what the checks found once all work is done, or that they could not run."""
    if os.getpid() != _PROCESS:  # a child that the script has forked, which cannot ask
        return False
    if not cu._core._is_open():
        return False
    if cu.driver_name() != "sim":
        print(
            f"cudago: --check has checked nothing: the driver is {cu.driver_name()!r}, "
            "and checks are of the simulated one; add --driver sim",
            file=sys.stderr,
        )
        return True
    faults = _faults()
    found = [*cu.sim.reports(), *faults]
    for report in found:
        print(f"cudago: {report}", file=sys.stderr)
    return bool(found)


def _faults() -> list[str]:
    """Wait for all devices, and return their faults that are no findings of checks."""
    faults: list[str] = []
    with contextlib.suppress(cu.CUDAError):
        for device in cu.Device.all():
            try:
                device.sync()
            except cu.CheckError:  # which is in the reports
                pass
            except cu.DeviceFaultError as e:  # of a kernel that the script has not waited for
                faults.append(str(e))
    return faults


def _found_at_end() -> bool:
    """Do so once the script's threads are over.

    Python waits for them later, when the status can change no more; and not before it has shown
    what the script raises, with which this waits for none.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    return _found()
