# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""No lock of the package is taken by a with statement, which Ctrl-C can keep from letting go.

CPython 3.14 runs handlers of signals between ``__enter__`` and the protected block.
``_core._locked(lock, function, ...)`` takes, calls and lets go in one native call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cudago as cu

SOURCES = sorted(
    file
    for package in ("cudago", "cudago_pytest")
    for file in (Path(cu.__file__).parents[1] / package).rglob("*.py")
)
PRIMITIVES = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "allocate_lock"}
LOCK_NAMED = re.compile(r"(^|_)r?locks?(_|$)|mutex", re.IGNORECASE)
# Has acquire() as its way of waiting, in a thread of its own, where no handlers run.
WAITS = {("timeline.py", "_open")}


def name_of(node: ast.expr) -> str:
    """Return the last name of an expression: ``lock`` of ``self.entry.lock`` or ``lock()``."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    if isinstance(node, ast.Subscript):
        return name_of(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def names_of_locks(trees: list[ast.Module]) -> set[str]:
    """Return the names that anything assigns a new lock to."""
    found = set()
    for tree in trees:
        for node in ast.walk(tree):
            value = getattr(node, "value", None)
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and any(
                isinstance(part, ast.Call) and name_of(part) in PRIMITIVES
                for part in (ast.walk(value) if value else ())
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {name_of(target) for target in targets}
    return found


def taken(tree: ast.Module, locks: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each lock that Python code takes itself."""
    for node in ast.walk(tree):
        at = []
        if isinstance(node, (ast.With, ast.AsyncWith)):
            at = [item.context_expr for item in node.items]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "acquire":
                at = [node.func.value]
            elif node.func.attr == "enter_context":
                at = node.args
        for of in at:
            name = name_of(of)
            if name in locks | PRIMITIVES or LOCK_NAMED.search(name):
                yield of.lineno, name


def test_no_lock_is_taken_by_python_code():
    trees = {file: ast.parse(file.read_bytes()) for file in SOURCES}
    locks = names_of_locks(list(trees.values()))
    assert {"_lock", "_first", "lock", "_open"} <= locks
    found = [
        f"{file.name}:{line}: {name}: use _core._locked"
        for file, tree in trees.items()
        for line, name in taken(tree, locks)
        if (file.name, name) not in WAITS
    ]
    assert not found, "\n".join(found)


def test_what_is_found():
    tree = ast.parse(
        """
_first = threading.RLock()
self.opening: Any = Lock()
with _first: pass
with this, other.opening as o: pass
with lock_of((1,)): pass
with entry.lock: pass
stack.enter_context(_first)
_first.acquire()
with blocked(), late: pass
_core._locked(_first, f)
"""
    )
    found = list(taken(tree, names_of_locks([tree])))
    assert sorted(line for line, _ in found) == [4, 5, 6, 7, 8, 9]
