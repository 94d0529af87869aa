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
# Modules whose functions import it themselves, where the interpreter cannot be ending: others use
# cudago._numpy, and `with late` for anything else, whose errors say then that it is.
OPTIONAL_IN_FUNCTIONS = {
    "cudago._display.glance",
    "cudago._display.preview",
    "cudago._graph_file.loaded_memory",
}
# Module and what a function of it imports, and why `import cudago` is spared it.
SHARED = "loads multiprocessing; few programs share with other processes"
DEFERRED = {
    ("cudago._card", "cudago._display.glance"): "few programs print what memory holds",
    ("cudago._graph.builder", "cudago._tensor.array_copy"): "few graphs copy arrays",
    ("cudago._card", "cudago._display.html"): "only notebooks show cards and pictures",
    ("cudago._driver", "logging"): "loads traceback; it is told when a driver opens",
    ("cudago._kernel.kernel", "cudago._graph.bound"): "graphs are loaded when one is made",
    (
        "cudago._kernel.kernel",
        "cudago._kernel.info",
    ): "loads dataclasses; few kernels are asked",
    ("cudago._memory.buffer", "cudago._memory.ipc"): SHARED,
    ("cudago._memory.host_resource", "cudago._memory.ipc"): SHARED,
    ("cudago._memory.device", "cudago._stream.ipc"): SHARED,
    ("cudago._memory.resource", "cudago._memory.ipc"): SHARED,
    ("cudago._stream.event", "cudago._stream.ipc"): SHARED,
    ("cudago._memory.device", "cudago._memory.graph_memory"): "few look at it",
    ("cudago._memory.device", "cudago._memory.monitor"): "loads dataclasses; few programs ask",
    ("cudago._memory.summary", "cudago._graph.who"): "graphs are loaded when one is made",
    ("cudago._memory.device", "logging"): "loads traceback, and few devices are reset",
    ("cudago._memory.resource", "cudago._memory.pool"): "loads dataclasses, for options of pools",
    ("cudago._stream.stream", "cudago._graph"): "graphs are loaded when one is made",
    ("cudago._stream.stream", "cudago._graph.classes"): "graphs are loaded when one is made",
    ("cudago._graph.profile", "cudago._display.dot"): "few profiles are printed",
    ("cudago._graph.profile", "cudago._display.timed"): "few graphs are drawn",
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


def parents(module: str) -> set[str]:
    """Return the packages that an import of a module loads first, once it has the module's lock.

    The whole package is loaded by then; and the command line runs in a thread of its own.
    """
    found = {module.rpartition(".")[0]} & MODULES.keys()
    return found - {"cudago", "cudago._command"}


def test_no_module_imports_itself_by_way_of_others():
    """Two threads that import each a part of a circle wait for each other: both get half of it."""
    graph = {
        module: names & MODULES.keys() | parents(module)
        for module, names in loaded(inside=False).items()
    }
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


def unguarded(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the imports in functions that are not in a ``with late`` block."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.With) and ast.unparse(child.items[0]) == "late":
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        yield from unguarded(child)


def test_functions_import_where_an_end_of_the_interpreter_is_told():
    found = [
        f"{module}: {ast.unparse(node)}"
        for module, file in MODULES.items()
        if module not in OPTIONAL_IN_FUNCTIONS
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in unguarded(function)
    ]
    assert found == [], "put it into a block `with late`: see cudago._import_at_exit"


def test_what_is_optional_is_imported_where_its_absence_at_exit_is_told():
    found = {module for module, names in loaded(inside=True).items() if names & OPTIONAL}
    assert found == OPTIONAL_IN_FUNCTIONS


def test_what_names_load_is_what_type_checkers_see():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    seen, modules = {}, set()
    for guard in filter(is_guard, tree.body):
        for node in guard.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                seen |= {alias.name: node.module for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules |= {alias.name for alias in node.names}
    assert (seen, modules) == (cu._WHERE, cu._MODULES)


def test_all_names_are_found_when_they_are_used(script):
    done = script(
        """
        import sys
        import cudago as cu
        assert not [n for n in sys.modules if n.startswith("cudago._graph")]
        assert set(cu.__all__) | cu._MODULES <= set(dir(cu))
        assert not {"TYPE_CHECKING", "annotations", "atexit", "sys"} & set(dir(cu))
        assert all(getattr(cu, n) is getattr(cu, n) for n in (*cu.__all__, *cu._MODULES))
        for name in ("Nothing", "__wrong__"):
            try:
                getattr(cu, name)
            except AttributeError as e:
                print(e)
        namespace = {}
        exec("from cudago import *", namespace)
        print(set(cu.__all__) - set(namespace))
        """
    )
    assert done.stdout.splitlines() == [
        "module 'cudago' has no attribute 'Nothing'",
        "module 'cudago' has no attribute '__wrong__'",
        "set()",
    ], done.stderr


@pytest.mark.parametrize(
    "make",
    [
        "s.capture().__enter__()",
        "cu.Graph()",
        "cu.graph(print)",
        "cu.slot('name', bytearray(4))",
        "k.bind(cu.LaunchConfig(1, 1))",
    ],
)
def test_graphs_have_their_classes_however_the_first_is_made(script, make):
    done = script(
        f"""
        import os, sys
        import cudago as cu
        s = cu.Device().create_stream()
        text = ".version 7.0\\n.target sm_50\\n.address_size 64\\n.entry k() {{{{ ret; }}}}"
        k = cu.ObjectCode.from_ptx(text)["k"]
        assert "cudago._graph" not in sys.modules
        made = {make}
        if s.is_capturing:
            assert type(made) is cu.Graph
        else:
            node = cu.Graph().callback(print)
            assert type(node) is cu.Node and type(node.graph.instantiate()) is cu.GraphExec
        print("done", flush=True)
        os._exit(0)
        """
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_what_is_deferred_is_not_loaded_by_the_package(script):
    names = sorted({name for _, name in DEFERRED})
    done = script(f"import sys, cudago; print([n for n in {names} if n in sys.modules])")
    assert done.stdout.strip() == "[]"
