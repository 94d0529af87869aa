# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every notebook agrees with its text, and every cell runs and shows what it showed before."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
BUILD = NOTEBOOKS / "build.py"
NAMES = sorted(p.stem for p in NOTEBOOKS.glob("*.ipynb"))
LARGEST = 64 << 10

pytest.importorskip("numpy")


def load(file: Path) -> list[dict]:
    """Return the cells of a notebook, and check its frame."""
    made = json.loads(file.read_text(encoding="utf-8"))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert made["metadata"]["kernelspec"]["name"] == "python3"
    return made["cells"]


def build(script, *arguments: str):
    """Build notebooks in a folder of the test, on the simulated driver."""
    command = [sys.executable, str(BUILD), "--out", ".", *arguments]
    return script.run(command, CUDAGO_DRIVER="sim", CUDAGO_SIM="")


class Text(HTMLParser):
    """What HTML says, without the names of its colors and sizes."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.said: list[str] = []
        self.feed(markup)

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def shown(cell: dict) -> list:
    """Return what a cell shows, to be compared: without addresses, and HTML by its text.

    Of findings their kinds: lines of PTX are those of the compiler that is there.
    """
    said = []
    for output in cell["outputs"]:
        text = "".join(output.get("text", []))
        if "CUDAGO_CHECK_FAILED" in text:
            text = repr(sorted(set(re.findall(r"^.*? of kernel \w+", text, re.M))))
        data = {kind: "".join(lines) for kind, lines in output.get("data", {}).items()}
        html = "".join(Text(data.pop("text/html", "")).said)
        whole = [output["output_type"], output.get("name"), text, html, sorted(data.items())]
        said.append(re.sub(r"0x[0-9a-f]{6,}", "0x", repr(whole)))
    return said


def test_there_is_a_notebook_of_each_text():
    assert sorted(p.stem for p in (NOTEBOOKS / "source").glob("*.md")) == NAMES
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_notebook(name, script):
    kept = load(NOTEBOOKS / f"{name}.ipynb")
    code = [cell for cell in kept if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(output["output_type"] != "error" for cell in code for output in cell["outputs"])
    assert all(output.get("name") != "stderr" for cell in code for output in cell["outputs"])
    if "sklearn" in str(kept) and find_spec("sklearn") is None:
        pytest.skip("scikit-learn, which ships the digits, is not installed")
    run = build(script, name)
    assert (run.returncode, run.stderr) == (0, "")
    again = load(script.directory / f"{name}.ipynb")
    assert [cell["source"] for cell in again] == [cell["source"] for cell in kept], "make notebooks"
    for cell in again:
        if cell["cell_type"] == "code" and "import torch" not in "".join(cell["source"]):
            assert shown(cell) == shown(code[cell["execution_count"] - 1])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_small(name):
    assert (NOTEBOOKS / f"{name}.ipynb").stat().st_size < LARGEST


def test_the_rule_of_what_is_shown():
    spec = spec_from_file_location("build_notebooks", BUILD)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    codes = ("print('a')\nprint('b')\n1 + 1", "x = 5", "x;", "None", "import math\nmath")
    blocks = "".join(f"```python\n{code}\n```\n\n" for code in codes)
    cells = module.read(f"<!-- a comment -->\n# Title\n\nText.\n\n{blocks}")
    module.run(cells)
    assert cells[0]["source"] == ["# Title\n", "\n", "Text."]
    assert [len(cell["outputs"]) for cell in cells[1:]] == [2, 0, 0, 0, 1]
    printed, value = cells[1]["outputs"]
    assert printed["text"] == ["a\n", "b\n"]
    assert value["data"] == {"text/plain": ["2"]}

    class Both:
        def _repr_html_(self):
            return "<b>"

        def _repr_svg_(self):
            return None

    assert sorted(module.forms(Both())) == ["text/html", "text/plain"]


def test_a_cell_that_raises_ends_the_build(tmp_path, script):
    folder = tmp_path / "notebooks"
    (folder / "source").mkdir(parents=True)
    copy = folder / "build.py"
    copy.write_text(BUILD.read_text())
    for name, code in (("bad", "raise ValueError('on purpose')"), ("good", "1")):
        (folder / "source" / f"{name}.md").write_text(f"```python\n{code}\n```\n")
    run = script.run([sys.executable, str(copy)])
    assert run.returncode == 1
    assert "1 notebooks built, bad FAILED" in run.stdout
    assert "ValueError: on purpose" in run.stderr and 'File "cell 1", line 1' in run.stderr
    assert [p.name for p in folder.glob("*.ipynb")] == ["good.ipynb"]
