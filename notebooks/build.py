# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Run the texts in ``source``, and write them as notebooks with what their cells show.

A text is Markdown; its blocks of Python are the cells of code, in their order. Each text has a
process of its own, on the simulated driver unless CUDAGO_DRIVER chooses another. As in Jupyter,

- what a cell prints is shown as it comes;
- the value of a last line that is an expression is shown, unless it is None or a semicolon ends the
  line: as text, and as HTML and SVG where the value has ``_repr_html_`` and ``_repr_svg_``;
- a cell that raises ends the run. No notebook is written then.

    python notebooks/build.py [--out FOLDER] [NAME ...]
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import linecache
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Cell = dict[str, Any]

_CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
_COMMENT = re.compile(r"\A(?:<!--.*?-->\s*)+", re.S)
_FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def read(text: str) -> list[Cell]:
    """Return the cells of a text."""
    cells = []
    parts = _CODE.split(_COMMENT.sub("", text))
    for kind, part in zip(["markdown", "code"] * len(parts), parts, strict=False):
        if not part.strip():
            continue
        cell = {"cell_type": kind, "id": f"cell-{len(cells) + 1}", "metadata": {}}
        cells.append(cell | {"source": lines(part.strip("\n"))})
    return cells


def lines(text: str) -> list[str]:
    """Return a text as notebooks keep it."""
    return text.splitlines(keepends=True)


class Stream(io.TextIOBase):
    """Collects what a cell prints; what was printed before to the same name goes on."""

    def __init__(self, name: str, outputs: list[Cell]) -> None:
        self.name, self.outputs = name, outputs

    def write(self, text: str) -> int:
        if not self.outputs or self.outputs[-1].get("name") != self.name:
            self.outputs.append({"name": self.name, "output_type": "stream", "text": []})
        joined = "".join(self.outputs[-1]["text"]) + text
        self.outputs[-1]["text"] = lines(joined)
        return len(text)


def run(cells: list[Cell]) -> None:
    """Run the cells of code, and put in what they show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, 1):
        outputs: list[Cell] = []
        with (
            redirect_stdout(Stream("stdout", outputs)),
            redirect_stderr(Stream("stderr", outputs)),
        ):
            value = evaluate("".join(cell["source"]), f"cell {count}", names)
        cell |= {"execution_count": count, "outputs": outputs}
        if value is not None:
            shown = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
            outputs.append(shown | {"data": forms(value)})


def evaluate(source: str, file: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return the value of its last line if that is to be shown."""
    linecache.cache[file] = (len(source), None, lines(source), file)  # for tracebacks
    tree = ast.parse(source, file)
    last = tree.body[-1]
    if source.rstrip().endswith(";") or not isinstance(last, ast.Expr):
        exec(compile(tree, file, "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), file, "exec"), names)
    return eval(compile(ast.Expression(last.value), file, "eval"), names)


def plain(value: Any) -> str:
    """Return a value as IPython prints it."""
    if not hasattr(value, "_repr_pretty_"):
        return repr(value)
    printed = io.StringIO()
    printed.text = printed.write  # type: ignore[attr-defined]
    value._repr_pretty_(printed, False)
    return printed.getvalue()


def forms(value: Any) -> dict[str, list[str]]:
    """Return what is shown of a value, by kind."""
    shown = {"text/plain": lines(plain(value))}
    for kind, method in _FORMS.items():
        make = getattr(value, method, None)
        if make is not None and (text := make()) is not None:
            shown[kind] = lines(text)
    return shown


def notebook(cells: list[Cell]) -> str:
    """Return the notebook, as JSON."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> int:
    """Build the notebooks that are named, or all; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="without an ending; all by default"
    )
    parser.add_argument("--out", type=Path, default=HERE, metavar="FOLDER")
    parser.add_argument("--this-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or sorted(p.stem for p in (HERE / "source").glob("*.md"))
    if options.this_process:
        (name,) = names
        cells = read((HERE / "source" / f"{name}.md").read_text(encoding="utf-8"))
        run(cells)
        (options.out / f"{name}.ipynb").write_text(notebook(cells), encoding="utf-8")
        return 0
    failed = []
    for name in names:
        command = [sys.executable, str(HERE / "build.py"), name, "--this-process"]
        command += ["--out", str(options.out.resolve())]
        # In the root of the file system, whose name is the same everywhere: reports have it.
        env = {"CUDAGO_DRIVER": "sim"} | os.environ
        if subprocess.run(command, env=env, cwd="/", check=False).returncode:
            failed.append(name)
    print(f"{len(names) - len(failed)} notebooks built" + "".join(f", {n} FAILED" for n in failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
