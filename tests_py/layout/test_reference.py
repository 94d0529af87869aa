# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Public names, the native module's stub, documentation and the reference pages agree."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import cudago
import cudago.allocators
import cudago.compile_cache
import cudago.debug
import cudago.dlpack
import cudago.jax_ops
import cudago.nvtx
import cudago.sim
import cudago.testing
import cudago.torch_ops
import cudago.typing

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"
STUB = ROOT / "python" / "cudago" / "_core.pyi"
MODULES = (
    cudago,
    cudago.allocators,
    cudago.compile_cache,
    cudago.nvtx,
    cudago.debug,
    cudago.dlpack,
    cudago.jax_ops,
    cudago.sim,
    cudago.testing,
    cudago.torch_ops,
    cudago.typing,
)


# --- names ----------------------------------------------------------------------------------------


def listed(page: str) -> Iterator[str]:
    """Yield what a page of the reference documents, by its full name."""
    module = "cudago"
    for directive, name in re.findall(r"^\.\. ([\w:]+):: (.+)$", page, re.M):
        if directive == "currentmodule":
            module = name
        elif directive.startswith("auto"):
            yield f"{module}.{name}"


def test_every_public_name_is_on_one_page_of_the_reference():
    found = sorted(name for page in PAGES.glob("*.rst") for name in listed(page.read_text()))
    public = sorted(f"{m.__name__}.{name}" for m in MODULES for name in m.__all__)
    assert found == public


def test_every_page_of_the_reference_is_in_its_index():
    index = (PAGES / "index.rst").read_text()
    in_index = re.findall(r"^   (\w+)$", index, re.M)
    assert sorted(in_index) == sorted(p.stem for p in PAGES.glob("*.rst") if p.stem != "index")


def test_every_public_name_is_listed_by_the_file_that_has_it():
    files = [
        m
        for n, m in sys.modules.items()
        if re.fullmatch(r"cudago\._(?!core|gopy|command)[\w.]+", n)
    ]
    lists = [*(m.__all__ for m in files if hasattr(m, "__all__")), cudago.errors.__all__]
    assert sorted(name for names in lists for name in names) == sorted(cudago.__all__)


# --- the native module and its stub ---------------------------------------------------------------


def gendocs() -> ModuleType:
    """Return the generator of the native module's documentation strings."""
    spec = importlib.util.spec_from_file_location("gendocs", ROOT / "pyext" / "gendocs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENDOCS = gendocs()
IN_STUB = list(GENDOCS.documented(ast.parse(STUB.read_text()).body))


def test_the_generated_strings_are_those_of_the_stub():
    assert GENDOCS.HEADER.read_text() == GENDOCS.header(STUB.read_text()), "run make gen"


@pytest.mark.parametrize(("name", "node", "text"), IN_STUB, ids=[n for n, _, _ in IN_STUB])
def test_the_module_has_the_documentation_of_its_stub(name, node, text):
    found = cudago._core
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    assert inspect.cleandoc(found.__doc__) == inspect.cleandoc(text)
    if isinstance(node, ast.FunctionDef) and not GENDOCS.is_property(node):
        assert list(inspect.signature(found).parameters) == parameters_of(node)


def parameters_of(node):
    if GENDOCS.is_overload(node):
        return ["self", "args", "kwargs"]
    return [
        a.arg
        for a in (
            *node.args.posonlyargs,
            *node.args.args,
            *([node.args.vararg] if node.args.vararg else []),
            *node.args.kwonlyargs,
            *([node.args.kwarg] if node.args.kwarg else []),
        )
    ]


@pytest.mark.slow
def test_the_stub_is_that_of_the_module(tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("numpy")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy.stubtest", "cudago._core"),
            *("--ignore-disjoint-bases", "--ignore-unused-allowlist"),
            *("--allowlist", str(ROOT / "scripts" / "stubtest.txt")),
            *("--mypy-config-file", str(ROOT / "pyproject.toml")),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (run.returncode, "Success" in run.stdout) == (0, True), run.stdout + run.stderr


# --- documentation --------------------------------------------------------------------------------

# See "Built-in Validation Checks" in numpydoc's documentation. Left out: examples and extended
# summaries everywhere (EX01, ES01, SA01), and where the text begins (GL01, GL02).
CHECKS = {
    *("GL03", "GL05", "GL06", "GL07", "GL08"),  # known sections in order, a docstring at all
    *("SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),  # a summary: one line, a sentence
    *(f"PR{i:02}" for i in range(1, 11)),  # parameters: all of them, with types, as sentences
    *("RT01", "RT02", "RT03", "RT04", "RT05", "YD01"),  # what is returned or yielded
    *("SA02", "SA03", "SA04"),  # see also, with descriptions
}
# Users do not make these, nor protocols: their constructors' parameters are nobody's business.
MADE_BY_CUDAGO = {
    "cudago.BoundLaunch",
    "cudago.DeviceLimits",
    "cudago.GraphMemory",
    "cudago.DeviceMonitor",
    "cudago.DeviceProperties",
    "cudago.ExecNode",
    "cudago.Fork",
    "cudago.GraphFunction",
    "cudago.KernelAttributes",
    "cudago.Node",
    "cudago.ObjectCode",
    "cudago.Parameter",
    "cudago.SMPartition",
    "cudago.jax_ops.Residuals",
    "cudago.jax_ops.TracedArray",
    "cudago.jax_ops.TracedStream",
}


def members(cls: type) -> Iterator[str]:
    """Yield the names of a class's methods and properties, also those of its native base."""
    seen = set()
    for base in cls.__mro__:
        if base.__module__.split(".")[0] != "cudago":
            continue
        for name, value in vars(base).items():
            is_property = isinstance(value, property) or inspect.isgetsetdescriptor(value)
            is_method = callable(value) or isinstance(value, classmethod | staticmethod)
            if not name.startswith("_") and name not in seen and (is_property or is_method):
                seen.add(name)
                yield name


def documented() -> Iterator[str]:
    """Yield the full name of everything public."""
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if module is cudago.typing and not inspect.isclass(value):
                continue  # an alias, whose text is read from the source
            yield f"{module.__name__}.{name}"
            if inspect.isclass(value):
                yield from (f"{module.__name__}.{name}.{member}" for member in members(value))


DOCUMENTED = sorted(documented())


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documentation_passes_the_checks_of_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    errors = [f"{code}: {text}" for code, text in validate(name)["errors"] if code in CHECKS]
    if name in MADE_BY_CUDAGO or name.startswith("cudago.typing."):
        errors = [e for e in errors if not e.startswith("PR01")]
    assert errors == []
