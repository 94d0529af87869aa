# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The command line as such: subcommands, help, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import cudago as cu
from cudago import _command

ROOT = Path(__file__).resolve().parents[2]
MODULE = [sys.executable, "-W", "error", "-m", "cudago"]


def test_it_is_a_script():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"cudago": "cudago._command:main"}
    for installed in entry_points(group="console_scripts", name="cudago"):
        assert installed.load() is _command.main


@pytest.mark.parametrize(
    ("called", "name"), [("/bin/cudago", "cudago"), ("__main__.py", "python -m cudago")]
)
def test_it_says_how_it_was_called(called, name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [called, "--help"])
    with pytest.raises(SystemExit):
        _command.main()
    assert capsys.readouterr().out.startswith(f"usage: {name} ")


def test_version(script):
    run = script.run([*MODULE, "--version"])
    assert (run.returncode, run.stdout, run.stderr) == (0, f"cudago {cu.__version__}\n", "")


def test_every_command_is_documented(script):
    run = script.run([*MODULE, "--help"])
    commands = re.search(r"{([\w,]+)}", run.stdout)[1].split(",")
    page = (ROOT / "docs" / "guide" / "command-line.rst").read_text()
    assert sorted(re.findall(r"^``cudago (\w+)", page, re.M)) == sorted(commands)


def test_unknown_commands(script):
    run = script.run([*MODULE, "help"])
    assert run.returncode == 2
    assert "invalid choice: 'help'" in run.stderr


@pytest.mark.parametrize("words", [["--help"], ["info"], ["info", "--json"], ["doctor"]])
@pytest.mark.parametrize("together", [False, True])
def test_a_reader_that_leaves_is_no_error(words, together, script):
    """As in ``cudago info | head -1``, and with ``2>&1``."""
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [*MODULE, *words],
        # Unbuffered, argparse passes over a failed write of its help by itself.
        env=script.environment | {"CUDAGO_DRIVER": "sim", "PYTHONUNBUFFERED": ""},
        stdout=writer,
        stderr=subprocess.STDOUT if together else subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (run.returncode, run.stderr or b"") == (128 + 13, b"")  # a shell's exit code for SIGPIPE


def test_without_an_output(script):
    run = script.run(["sh", "-c", '"$@" >&-', "sh", *MODULE, "info"], CUDAGO_DRIVER="sim")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_example_of_a_ptx_file(script):
    page = (ROOT / "docs" / "guide" / "command-line.rst").read_text()
    example = re.search(r"code-block:: text\n\n((?:      .*\n|\n)+)", page)[1]
    expected = re.sub(r"^      ", "", example, flags=re.M).strip()
    (script.directory / "file.ptx").write_text(
        ".version 8.6\n.target sm_75\n.address_size 64\n.visible .entry good(.param .u64 p,"
        " .param .f32 a, .param .align 8 .b8 s[24]) { ret; }\n"
    )
    run = script.run([*MODULE, "ptx", "file.ptx"], CUDAGO_DRIVER="sim", CUDAGO_SIM="")
    assert run.stdout.strip() == expected
