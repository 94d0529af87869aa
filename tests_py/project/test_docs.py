# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The README's example and the documentation's pages run as written, with what they name.

A block that does not run says so by an option: a program of another library has the class
``elsewhere``, which readers see too, and one that needs a framework a name, by which
tests_py/interop runs it.
"""

from __future__ import annotations

import ast
import codeop
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from ..installed import BLOCK, ROOT, command, python_blocks

ELSEWHERE = ":class: elsewhere"
NAMED = {
    "guide/other-compilers.rst": ["numba", "triton", "nvvm", "cub"],
    "guide/from-pytorch.rst": ["torch-kernel"],
    "guide/torch-operator.rst": ["torch-operator"],
    "guide/jax-operator.rst": ["jax-operator"],
    "guide/several-devices.rst": ["nccl", "distributed"],
}
MARKDOWN = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]


def code(page: Path) -> str:
    """Return a page's Python blocks as one script."""
    text = page.read_text()
    if page.suffix == ".md":
        return "\n".join(map(textwrap.dedent, MARKDOWN.findall(text)))
    return "\n".join(python_blocks(text))


def run_with(text: str, source: str, script) -> subprocess.CompletedProcess[str]:
    """Run a script with what `text` names, on the simulated driver."""
    file = script.directory / "program" / "page.py"
    file.parent.mkdir()
    file.write_text(source)
    installed = command(text, file, script.directory / "installed")
    return script.run(installed, CUDAGO_DRIVER="sim", PYTHONPATH="")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if code(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_page_runs_with_what_it_names(page: Path, script) -> None:
    # A process each: a page may choose the driver, which is done once.
    run = run_with(page.read_text(), code(page), script)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/five-minutes.rst"])
def test_blocks_can_be_pasted_into_a_prompt(page) -> None:
    # Where an empty line ends a function or a loop, and nothing else does. This compiles alone.
    typed: list[str] = []
    for line in [*code(ROOT / page).splitlines(), ""]:
        typed.append(line)
        if codeop.compile_command("\n".join(typed)) is not None:
            typed = []
    assert typed == []


def test_the_picture_of_the_landing_page_is_that_of_its_program(script) -> None:
    index = ROOT / "docs" / "index.rst"
    # Where the program is does not matter.
    source = "import cudago\ncudago.debug.record_origins(False)\n" + code(index)
    source += "\nprint(g.to_svg(), end='')\n"
    run = run_with(index.read_text(), source, script)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (ROOT / "docs" / "_static" / "graph.svg").read_text()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`pip install 'cudago[sim]'`", "numpy"),
        ("`pip install cudago numpy`", "nvidia"),
        ("    pip install -U numpy", "cudago"),
        ("no more than Python", "pytest"),
    ],
)
def test_an_environment_lacks_what_is_not_named(text, missing, script):
    run = run_with(text, f"import {missing}", script)
    assert run.returncode == 1
    raised = run.stderr.splitlines()[-1]  # to which newer Pythons add advice
    assert raised.startswith(f"ModuleNotFoundError: No module named '{missing}'")


def test_every_block_runs_or_says_why_not() -> None:
    left_out = {}
    for page in PAGES:
        options = [had.strip() for _, had, _ in BLOCK.findall(page.read_text())]
        assert len(options) == page.read_text().count(".. code-block:: python\n"), page
        if names := [o.removeprefix(":name: ") for o in options if o not in ("", ELSEWHERE)]:
            left_out[str(page.relative_to(ROOT / "docs"))] = names
    assert left_out == NAMED


def test_a_program_of_another_library_is_python_and_has_nothing_of_ours() -> None:
    blocks = [b for p in PAGES for b in python_blocks(p.read_text(), ELSEWHERE)]
    assert blocks
    for block in blocks:
        names = {n.id for n in ast.walk(ast.parse(block)) if isinstance(n, ast.Name)}
        assert not names & {"cu", "cudago"}, block


def test_each_of_thirty_questions_has_the_other_spelling_a_program_and_a_page() -> None:
    page = ROOT / "docs" / "guide" / "how-do-i.rst"
    parts = re.split(r"^(\d+)\. (How do I .*\?)\n~+\n", page.read_text(), flags=re.M)[1:]
    assert list(map(int, parts[::3])) == list(range(1, 31))
    for question, answer in zip(parts[1::3], parts[2::3], strict=True):
        assert "\nElsewhere: " in answer, question
        assert python_blocks(answer), question
        pages = re.findall(r":doc:`([^<`]+)`", answer.partition("\nMore: ")[2])
        assert pages, question
        for name in pages:
            at = ROOT / "docs" / name[1:] if name.startswith("/") else page.parent / name
            assert at.with_suffix(".rst").is_file(), name


# What the rows of the table for users of cuda.core speak of.
SPOKEN_OF = """
import numpy as np
import cudago as cu
device = cu.Device()
stream = device.create_stream()
mr = cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True))
buffer = mr.allocate(4096, stream=stream)
tensor = x = cu.zeros((1, 8, 8, 16), "f4", stream=stream)
y = cu.zeros_like(x, stream=stream)
box, lower, upper, first, last, c, n = (1, 1, 8, 16), (0, 0), (0, 0), 0, 0, 4, 8
shape, dtype = (4, 8), "f4"
array = cu.OpaqueArray(shape, dtype, stream=stream, surfaces=True)
ir = more = 'target triple = "nvptx64-nvidia-cuda"'
source = 'extern "C" __global__ void k() {}'
program, options = cu.Program(source), cu.ProgramOptions()
code = program.compile()
kernel = code["k"]
graph = cu.Graph(device)
graph.memcpy(cu.zeros_like(x, stream=stream), x, name="name")
step = graph.instantiate()
start, end = (stream.record(device.create_event(timing_enabled=True)) for _ in range(2))
stream.sync()
owner, f, size, theirs = buffer, print, 64, device.create_stream()
dst, src, scratch = (device.allocate(size, stream=stream) for _ in range(3))
address = src.handle
big = cu.VirtualMemoryResource(device).allocate(size, stream=stream)
shared = device.create_event(ipc_enabled=True)

def run(code, shared, may_lack):
    global descriptor
    descriptor = shared.ipc_descriptor
    try:
        exec(code, globals())
    except cu.UnsupportedError:
        assert may_lack, code
    except ValueError as e:  # another process would
        assert "allocated the memory itself" in str(e), (code, e)
"""


def test_rows_for_users_of_cuda_core_run(script) -> None:
    text = (ROOT / "docs" / "guide" / "from-cuda-core.rst").read_text()
    rows = re.findall(r"^   \* - (.*?)^     - (.*?)(?=^   \* -|^\S|\Z)", text, re.M | re.S)
    assert len(rows) > 15
    lines = [SPOKEN_OF]
    for _, ours in rows[1:]:
        for code in re.findall(r"``(.+?)``", ours, re.S):
            if "=" in code and "(" not in code:
                continue  # an argument
            kind = "shared" if "Event" in code else "buffer"
            called = f"{code}: pass" if code.startswith("with ") else code
            lines.append(f"run({called!r}, {kind}, {'wide' in code})")
    run = script("\n".join(lines), CUDAGO_DRIVER="sim", CUDAGO_SIM="cc=10.0")
    assert (run.returncode, run.stderr) == (0, ""), run.stderr
