# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""No pattern takes more time or memory than its text is long."""

from __future__ import annotations

import ast
import re
import re._constants as op
import re._parser as parser
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python"
CALLS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT)


def patterns():
    """Yield where a pattern is, and the pattern; `x` is what only a run knows."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and (node.func.value.id, node.func.attr in CALLS) == ("re", True)
            ):
                where = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                pattern = constant(node.args[0])
                if pattern is not None:
                    yield pytest.param(pattern, id=where)


def constant(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (p.value if isinstance(p, ast.Constant) else "x" for p in node.values)
        return "".join(parts)
    return None


def choices(tree, *, repeated=False):
    """Yield what stands in a repetition without end and can be matched in several ways.

    Each of its turns is remembered, in a hundred bytes, and tried again if what follows does not
    match. A possessive repetition, ``*+``, forgets them.
    """
    for code, value in tree:
        if code is op.BRANCH:
            if repeated:
                yield "an alternation"
            for one in value[1]:
                yield from choices(one, repeated=repeated)
        elif code in REPEATS:
            _, most, inside = value
            if most is not op.MAXREPEAT:
                yield from choices(inside, repeated=repeated)
                continue
            if repeated:
                yield "a repetition"
            yield from choices(inside, repeated=True)
        elif code is op.POSSESSIVE_REPEAT:
            yield from choices(value[2])
        elif code is op.ATOMIC_GROUP:
            yield from choices(value)
        elif code is op.SUBPATTERN:
            yield from choices(value[3], repeated=repeated)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from choices(value[1])


@pytest.mark.parametrize("pattern", [*patterns()])
def test_no_choice_is_repeated(pattern):
    assert not list(choices(parser.parse(pattern, re.VERBOSE if "\n    " in str(pattern) else 0)))


@pytest.mark.parametrize("wrong", [r'"(?:[^"\\]|\\.)*"', r"(a+)+b", r"(?:x\s*)*$", rb"(?:a|bc)+?d"])
def test_what_is_refused(wrong):
    assert list(choices(parser.parse(wrong)))


@pytest.mark.parametrize(
    "right", [r'"(?:[^"\\]|\\.)*+"', r"(?:a++)+b", r"a|b", r"(?:a|b){2}", r"a*b*"]
)
def test_what_is_not(right):
    assert not list(choices(parser.parse(right)))
