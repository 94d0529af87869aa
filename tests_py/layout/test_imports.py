# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Modules of the package stand in layers: what one imports at its top never imports it back.

Most stand in rooms, which are subpackages: a room imports only rooms before it in the table of
ARCHITECTURE.md.

What ``if TYPE_CHECKING`` guards is for checkers alone, which take circles. An import inside a
function hides a circle, so each is in a list, with what it saves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import cudago as cu

PACKAGE = Path(cu.__file__).parent
MODULES = {
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts): file
    for file in PACKAGE.rglob("*.py")
    if file.parent.name != "_gopy"  # generated, and nothing in it imports the rest
}
MODULES = {name.removesuffix(".__init__"): file for name, file in MODULES.items()}

OPTIONAL = {"numpy", "ml_dtypes"}
# Module and what a function of it imports, and why `import cudago` is spared it.
DEFERRED = {
    ("cudago._card", "cudago._display.glance"): "few programs print what memory holds",
    ("cudago._card", "cudago._display.html"): "only notebooks show cards and pictures",
    ("cudago._graph.shown", "cudago._display.picture"): "few graphs are drawn",
    ("cudago._graph.shown", "cudago._display.tree"): "few graphs are printed",
    ("cudago._graph.stored", "cudago._graph_file.load"): "loads zipfile, and few graphs are saved",
    ("cudago._graph.stored", "cudago._graph_file.save"): "loads zipfile, and few graphs are saved",
    ("cudago.debug", "tracemalloc"): "loads pickle, and few programs are traced",
}


def is_guard(node: ast.stmt) -> bool:
    """Whether a statement is ``if TYPE_CHECKING``."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports(
    body: list[ast.stmt], inside: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the imports that run, and whether a function runs them."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, inside
        within = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for block in ("body", "orelse", "finalbody"):
            if not (block == "body" and is_guard(node)):
                yield from imports(getattr(node, block, []), within)
        for handler in getattr(node, "handlers", []):
            yield from imports(handler.body, within)


def targets(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield what an import loads, by its full name."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    base = base.rsplit(".", node.level - 1)[0] if node.level else ""
    source = f"{base}.{node.module or ''}".strip(".")
    if node.module:
        yield source
    yield from (f"{source}.{a.name}" for a in node.names if f"{source}.{a.name}" in MODULES)


def loaded(inside: bool) -> dict[str, set[str]]:
    """Return what each module loads at its top, or in its functions."""
    return {
        module: {
            target
            for node, within in imports(ast.parse(file.read_text()).body)
            if within == inside
            for target in targets(module, node)
        }
        for module, file in MODULES.items()
    }


def test_no_module_imports_itself_by_way_of_others():
    graph = {module: names & MODULES.keys() for module, names in loaded(inside=False).items()}
    assert sum(map(len, graph.values())) > len(graph), "the imports were not found"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as e:
        pytest.fail(f"a circle of imports: {' <- '.join(e.args[1])}")


def rooms() -> list[str]:
    """Return the rooms in their order."""
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
    section = text.partition("## The rooms of python/cudago\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(_\w+)` \|", section, re.M)


def room_of(module: str) -> str:
    """Return a module's room; empty for one at the top of the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in rooms() else ""


def test_the_table_of_rooms_is_complete():
    outside = {"_command", "_gopy", "__pycache__"}
    assert sorted(rooms()) == sorted(
        p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name not in outside
    )


def test_a_room_imports_only_rooms_before_it():
    order = ["", *rooms()]
    wrong = [
        f"{module} imports {name}"
        for module, names in loaded(inside=False).items()
        for name in names & MODULES.keys()
        if room_of(module) and order.index(room_of(name)) > order.index(room_of(module))
    ]
    assert wrong == []


def test_a_room_has_at_most_forty_files():
    sizes = {d: len([*d.glob("*.py")]) for d in {file.parent for file in MODULES.values()}}
    assert max(sizes.values()) <= 40, sizes


def test_functions_import_what_is_optional_or_listed():
    found = {
        (module, name)
        for module, names in loaded(inside=True).items()
        for name in names
        if name.split(".")[0] not in OPTIONAL
    }
    assert found - DEFERRED.keys() == set(), "import it at the top of the module"
    assert DEFERRED.keys() - found == set(), "nobody imports it in a function any more"


def test_what_is_deferred_is_not_loaded_by_the_package(script):
    names = sorted({name for _, name in DEFERRED})
    done = script(f"import sys, cudago; print([n for n in {names} if n in sys.modules])")
    assert done.stdout.strip() == "[]"
