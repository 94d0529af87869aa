# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago run``: which arguments are the script's, and what a check finds."""

from __future__ import annotations

import os
import py_compile
import re
import shlex
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = [sys.executable, "-W", "error", "-m", "cudago"]
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.rst"))]
COMMAND = r"(?:python -m )?cudago run "
INLINE = re.compile(rf"`({COMMAND}[^`]+)`")
LINE = re.compile(rf"^ +({COMMAND}.+)$", re.M)

# Reads memory that nobody wrote, waits for nothing, and says what it was given.
DEFECT = """
import sys, cudago as cu
device = cu.Device()
stream = device.create_stream()
code = cu.Program('extern "C" __global__ void copy(int* x, int* y) { *y = *x; }').compile()
x, y = (device.allocate(4, stream=stream) for _ in range(2))
cu.launch(stream, cu.LaunchConfig(grid=1, block=1), code["copy"], x, y)
print(sys.argv)
"""
FOUND = "cudago: uninitialized read in kernel copy"


def documented() -> list[str]:
    """Return every spelling of the command in the documentation that asks for checks."""
    texts = [path.read_text() for path in TEXTS]
    found = {spelled for text in texts for spelled in INLINE.findall(text) + LINE.findall(text)}
    return sorted(" ".join(s.split()) for s in found if "--check" in s)


def test_something_is_documented():
    assert "python -m cudago run script.py --driver sim --check" in documented()


@pytest.mark.parametrize("spelled", documented())
def test_documented_spelling_checks(spelled, script):
    (script.directory / "package").mkdir()
    for file in ("script.py", "package/train.py"):
        (script.directory / file).write_text(DEFECT)
    words = shlex.split(spelled)
    run = script.run([*MODULE, *words[words.index("run") :]], CUDAGO_DRIVER="sim", CUDAGO_SIM="")
    assert run.returncode == 1, run.stderr
    file = str(script.directory / "package/train.py") if "-m" in words[3:] else "script.py"
    assert run.stdout.startswith(f"['{file}'")
    assert FOUND in run.stderr


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("--driver sim --check main.py", []),
        ("main.py --check --driver=sim", []),
        ("--driver sim main.py --check", []),
        ("main.py --epochs 3 --check --driver sim", ["--epochs", "3"]),
        ("--driver sim --check -- main.py --check --driver x", ["--check", "--driver", "x"]),
        ("main.py a --driver sim --check -- --driver=x -- b", ["a", "--driver=x", "--", "b"]),
    ],
)
def test_options_stand_on_both_sides(line, given, script):
    (script.directory / "main.py").write_text(DEFECT)
    run = script.run([*MODULE, "run", *line.split()], CUDAGO_DRIVER="", CUDAGO_SIM="")
    assert (run.returncode, run.stdout) == (1, f"{['main.py', *given]}\n"), run.stderr
    assert run.stderr.startswith(FOUND)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "the following arguments are required: script"),
        ("--chek main.py", "unrecognized arguments: --chek"),
        ("main.py --driver", "argument --driver: expected one argument"),
        ("nowhere.py", "the script 'nowhere.py' does not exist"),
        (".", "the folder '.' has no __main__.py to run"),
        ("--check=races main.py", "ignored explicit argument 'races'"),
        ("main.py --driver gpu", "argument --driver: invalid choice: 'gpu'"),
        ("--driver sim main.py --driver nvidia", "--driver must be given once, got 'sim' and"),
        ("--driver nvidia --check main.py", "--check is of the simulated driver: add --driver sim"),
    ],
)
def test_mistakes(line, said, script):
    run = script.run([*MODULE, "run", *line.split()])
    assert (run.returncode, run.stdout) == (2, "")
    assert said in run.stderr.splitlines()[-1]


def test_run(script, driver, tmp_path):
    (tmp_path / "beside.py").write_text("value = 42\n")
    file = tmp_path / "main.py"
    file.write_text(
        "import sys, os, beside, cudago\n"
        "print(__name__, sys.argv[1:], beside.value, cudago.driver_name(),"
        " os.environ.get('CUDAGO_SIM', ''))\n"
    )
    command = [*MODULE, "run", "--driver", driver, str(file), "--epochs", "3"]
    run = script.run(command, CUDAGO_SIM="")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"__main__ ['--epochs', '3'] 42 {driver} \n"


@pytest.mark.parametrize("more", [[], ["--last-calls"]])
@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no paths")
def test_a_script_may_be_a_pipe(more, script):
    there, mine = os.pipe()
    with os.fdopen(mine, "w") as written:
        written.write("from __future__ import generator_stop\nprint(__name__, __file__)\n")
    os.set_inheritable(there, True)
    command = [*MODULE, "run", *more, f"/dev/fd/{there}"]
    run = subprocess.run(
        command, env=script.environment, close_fds=False, capture_output=True, text=True, check=True
    )
    os.close(there)
    assert run.stdout == f"__main__ /dev/fd/{there}\n"


AFTER = """
import atexit, pickle, sys, threading
class Mine: pass
def tell():
    import __main__
    print(type(pickle.loads(pickle.dumps(Mine()))) is Mine, vars(__main__) is globals())
def later():
    threading.main_thread().join()
    tell()
threading.Thread(target=later).start()
atexit.register(tell)
"""


@pytest.mark.parametrize("how", [["main.py"], ["-m", "main"], ["."], ["main.py", "--check"]])
def test_main_stays_when_the_last_line_has_run(how, script):
    for name in ("main.py", "__main__.py"):
        (script.directory / name).write_text(AFTER)
    run = script.run([*MODULE, "run", "--driver", "sim", *how])
    assert (run.returncode, run.stdout, run.stderr) == (0, "True True\n" * 2, "")


def test_the_path_begins_as_by_python(script):
    text = "import sys; print(sys.path[0], 'CURRENT' in [p[-7:] for p in sys.path], sys.argv)"
    for name in ("CURRENT", "tools", "app"):
        (script.directory / name).mkdir()
    for name in ("tools/main.py", "app/__main__.py"):
        (script.directory / name).write_text(text)
    with zipfile.ZipFile(script.directory / "app.zip", "w") as packed:
        packed.writestr("__main__.py", text)
    lines = [[str(script.directory / name), "a"] for name in ("tools/main.py", "app", "app.zip")]
    script.directory /= "CURRENT"
    for flags in ([], ["-P"]):
        for line in lines:
            by_python = script.run([sys.executable, *flags, *line])
            run = script.run([sys.executable, *flags, *MODULE[1:], "run", *line])
            assert by_python.stdout
            assert (run.stdout, run.stderr) == (by_python.stdout, "")


SPAWNS = """
import multiprocessing, sys
def double(x): return 2 * x
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]), __spec__, __file__, __builtins__)
"""


def test_a_script_may_spawn(script):
    file = script.directory / "main.py"
    file.write_text(SPAWNS)
    run = script.run([*MODULE, "run", "main.py"])
    assert run.stdout == f"[2, 4] None {file} <module 'builtins' (built-in)>\n", run.stderr


def test_compiled_code_runs(script):
    (script.directory / "main.py").write_text("print(__file__)")
    file = py_compile.compile(str(script.directory / "main.py"), script.directory / "main.pyc")
    assert script.run([*MODULE, "run", "main.pyc"]).stdout == f"{file}\n"


@pytest.fixture
def package(script):
    """A package with relative imports, in the folder where the command runs."""
    folder = script.directory / "pack"
    (folder / "inner").mkdir(parents=True)
    for name in ("", "inner/"):
        (folder / f"{name}__init__.py").write_text("")
    (folder / "part.py").write_text("value = 42\n")
    (folder / "defect.py").write_text(DEFECT)
    said = "import sys\nfrom .part import value\nprint(value, __name__, __package__, sys.argv)\n"
    (folder / "tool.py").write_text(said)
    (folder / "__main__.py").write_text(said)
    (folder / "exits.py").write_text("import sys; sys.exit(7)")
    (folder / "needs.py").write_text("import nowhere_at_all")
    return folder


@pytest.mark.parametrize(
    ("line", "file", "given"),
    [
        ("--driver sim -m pack.tool a --b", "tool.py", ["a", "--b"]),
        ("--driver sim -mpack.tool a --b", "tool.py", ["a", "--b"]),
        ("--driver sim -mpack --check -m x -my", "__main__.py", ["-m", "x", "-my"]),
        ("--last-calls --driver sim -mpack -- -mx", "__main__.py", ["-mx"]),
        ("-m pack --driver sim -m x", "__main__.py", ["-m", "x"]),
        ("--check -m pack.tool --driver sim -- --check", "tool.py", ["--check"]),
        ("--driver sim --last-calls -m pack.tool -- -m x", "tool.py", ["-m", "x"]),
    ],
)
def test_modules_run_as_by_python(package, line, file, given, script):
    run = script.run([*MODULE, "run", *line.split()], CUDAGO_DRIVER="", CUDAGO_SIM="")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"42 __main__ pack {[str(package / file), *given]}\n"


def test_modules_are_checked_and_exit(package, script):
    command = [*MODULE, "run", "--driver", "sim", "--check", "-m"]
    run = script.run([*command, "pack.defect"], CUDAGO_SIM="")
    assert (run.returncode, run.stderr.startswith(FOUND)) == (1, True)
    assert script.run([*command, "pack.exits"], CUDAGO_SIM="").returncode == 7


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "no module named 'nowhere' that can be run"),
        ("pack.nowhere", "no module named 'pack.nowhere' that can be run"),
        ("nowhere.else", "no module named 'nowhere.else' that can be run"),
        ("pack.inner", "no module named 'pack.inner' that can be run"),
        ("pack.part.x", "no module named 'pack.part.x' that can be run"),
        ("..", "no module named '..' that can be run"),
        ("", "the following arguments are required: script"),
        (None, "argument -m: expected one argument"),
    ],
)
def test_modules_that_are_not_there(package, name, said, script):
    run = script.run([*MODULE, "run", "-m", *([name] if name is not None else [])])
    assert (run.returncode, run.stdout) == (2, "")
    assert said in run.stderr.splitlines()[-1]


RAISES = "def f():\n    raise KeyError('own')\nf()\n"


@pytest.mark.parametrize("how", [["main.py"], ["-m", "main"], ["--last-calls", "main.py"]])
@pytest.mark.parametrize("text", [RAISES, "x = = 1\n", "import nowhere_at_all\n"])
def test_a_traceback_begins_with_the_script(how, text, script):
    (script.directory / "main.py").write_text(text)
    run = script.run([*MODULE, "run", "--driver", "sim", *how])
    told = run.stderr.splitlines()
    assert run.returncode == 1
    frames = [line for line in told if line.startswith("  File ")]
    assert [Path(line.split('"')[1]).name for line in frames] == ["main.py"] * len(frames)
    assert len(frames) == (2 if text is RAISES else 1)
    assert (told[0] == "Traceback (most recent call last):") == ("= =" not in text)


def test_a_traceback_of_a_module_that_lacks_another(package, script):
    run = script.run([*MODULE, "run", "-m", "pack.needs"])
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'nowhere_at_all'"
    assert "runpy" not in run.stderr


def test_an_interrupt_ends_the_script(script):
    (script.directory / "main.py").write_text("raise KeyboardInterrupt")
    run = script.run([*MODULE, "run", "main.py"])
    assert run.returncode == -signal.SIGINT
    assert "runpy" not in run.stderr


def test_checks_are_added_to_settings(script, tmp_path):
    file = tmp_path / "main.py"
    file.write_text("import os, cudago; cudago.Device(); print(os.environ['CUDAGO_SIM'])\n")
    run = script.run([*MODULE, "run", "--driver", "sim", "--check", str(file)], CUDAGO_SIM="seed=7")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "seed=7,check=full\n")


IN_THREAD = f"""
import threading, time
def work():
    time.sleep(0.2)
    exec({DEFECT!r}, {{}})
threading.Thread(target=work).start()
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)\n"])
def test_what_threads_do_after_the_script_is_checked(end, script):
    (script.directory / "main.py").write_text(IN_THREAD + end)
    run = script.run([*MODULE, "run", "main.py", "--driver", "sim", "--check"])
    assert (run.returncode, run.stderr.startswith(FOUND)) == (1, True), run.stderr


def test_an_exception_is_shown_before_threads_are_over(script):
    text = "import threading\nthreading.Thread(target=input).start()\n"
    (script.directory / "main.py").write_text(f"import cudago\ncudago.Device()\n{text}1 / 0\n")
    command = [*MODULE, "run", "main.py", "--driver", "sim", "--check"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=script.directory,
        env=script.environment,
    ) as run:
        assert "ZeroDivisionError: division by zero\n" in iter(run.stderr.readline, "")
        run.stdin.write("\n")


FORKING = """
import os, sys, warnings, cudago
cudago.Device()
warnings.simplefilter("ignore")  # Python 3.12 warns of forks where there are threads
if os.fork() == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_child_that_the_script_forks_has_no_findings(script):
    (script.directory / "main.py").write_text(FORKING)
    run = script.run([*MODULE, "run", "main.py", "--driver", "sim", "--check"])
    assert (run.returncode, run.stdout, run.stderr) == (0, "3\n", "")


def test_findings_are_reported_along_with_an_exception(script):
    (script.directory / "main.py").write_text(DEFECT + "raise KeyError('own')\n")
    run = script.run([*MODULE, "run", "main.py", "--driver", "sim", "--check"])
    assert run.returncode == 1
    assert run.stderr.startswith(FOUND)
    assert run.stderr.endswith("KeyError: 'own'\n")


FAULT = """
import cudago as cu
source = 'extern "C" __global__ void store(int* p) { *p = 1; }'
store = cu.Program(source).compile()["store"]
stream = cu.Device().create_stream()
cu.launch(stream, cu.LaunchConfig(1, 1), store, 64)
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)\n"])
def test_a_fault_that_the_script_does_not_wait_for_is_reported(end, script):
    (script.directory / "main.py").write_text(FAULT + end)
    run = script.run([*MODULE, "run", "main.py", "--driver", "sim", "--check"])
    assert run.returncode == 1, run.stderr
    assert re.fullmatch(
        r"cudago: cu\w+: CUDA_ERROR_ILLEGAL_ADDRESS: .* in kernel store, .*\n", run.stderr
    )
    assert script.run([*MODULE, "run", "main.py", "--driver", "sim"]).returncode == 0


@pytest.mark.gpu
def test_checks_without_effect_are_reported(script, device):
    (script.directory / "main.py").write_text(DEFECT)
    run = script.run([*MODULE, "run", "main.py", "--check"], CUDAGO_DRIVER="auto")
    assert run.returncode == 1
    assert "--check has checked nothing: the driver is 'nvidia'" in run.stderr


def test_exit_code_of_a_script(script, tmp_path):
    file = tmp_path / "main.py"
    file.write_text("raise SystemExit(3)\n")
    assert script.run([*MODULE, "run", "--driver", "sim", str(file)]).returncode == 3


@pytest.mark.parametrize("text", [DEFECT, "import sys\n"])
def test_a_message_at_exit_is_printed_once_beside_findings(text, script):
    (script.directory / "main.py").write_text(text + "sys.exit('too bad')\n")
    run = script.run([*MODULE, "run", "main.py", "--driver", "sim", "--check"], CUDAGO_SIM="")
    told = run.stderr.splitlines()
    assert (run.returncode, told[0]) == (1, "too bad")
    assert [line.startswith(FOUND) for line in told[1:]] == ([True] if text is DEFECT else [])


CRASH = """
import os, signal, sys, cudago as cu
device = cu.Device()
with device.create_stream() as stream, device.allocate(64, stream=stream) as buffer:
    for i in range(30):
        buffer.fill(i, stream=stream)
    print(sys.argv[1:], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_last_calls_before_a_crash(script):
    (script.directory / "main.py").write_text(CRASH)
    run = script.run(
        [*MODULE, "run", "main.py", "--last-calls", "-v"], CUDAGO_DRIVER="sim", CUDAGO_SIM=""
    )
    assert (run.returncode, run.stdout) == (137, "['-v']\n")
    told = run.stderr.splitlines()
    assert told[0] == "cudago: SIGKILL; the last driver calls:"
    assert len(told) == 21
    numbers = [int(line.split()[0]) for line in told[1:]]
    assert numbers == list(range(numbers[0], numbers[0] + 20))
    assert any(" cuMemsetD8Async(" in line and " = CUDA_SUCCESS, " in line for line in told)


def test_the_child_has_the_options_of_the_interpreter(script):
    (script.directory / "main.py").write_text("import sys; print(sys.flags, sys.warnoptions)")
    options = [sys.executable, "-OO", "-Werror", "-Xdev", "-P", *MODULE[1:], "run"]
    run = script.run([*options, "main.py"])
    assert run.stdout, run.stderr
    assert script.run([*options, "--last-calls", "main.py"]).stdout == run.stdout


def test_a_script_that_does_not_crash_says_nothing_of_calls(script):
    (script.directory / "main.py").write_text("import sys; sys.exit(3)")
    run = script.run([*MODULE, "run", "--last-calls", "main.py"])
    assert (run.returncode, run.stdout, run.stderr) == (3, "", "")


@pytest.mark.parametrize(
    ("name", "why"),
    [("no/such/file", "a file that can be written: "), ("\udcff", "a name in UTF-8")],
)
def test_a_file_of_last_calls_that_cannot_be_written(script, name, why):
    text = "import cudago as cu\ntry: cu.Device()\nexcept ValueError as e: print(e)"
    (script.directory / "main.py").write_text(text)
    run = script.run([sys.executable, "main.py"], CUDAGO_DRIVER="sim", CUDAGO_LAST_CALLS=name)
    assert run.stdout.startswith(f"CUDAGO_LAST_CALLS must be {why}"), run.stderr
