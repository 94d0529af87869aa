# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every public name is documented in numpydoc's form, and every example in it runs.

What holds for most calls stands once, in the introduction of the reference: a docstring does not
repeat it, and says where a call deviates from it.
"""

from __future__ import annotations

import doctest
import inspect
import json
import os
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import cudago as cu
import cudago.testing

numpy = pytest.importorskip("numpy")

SECTIONS = [
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
]
# Python's own, with Python's meaning.
USUAL = {
    "add_note",
    "args",
    "characters_written",
    "errno",
    "filename",
    "strerror",
    "with_traceback",
}


def members(owner: type) -> dict[str, object]:
    """Return the public attributes of a class of ours, also those that native classes define."""
    found: dict[str, object] = {}
    for cls in owner.__mro__:
        if cls.__module__.split(".")[0] != "cudago":
            continue
        for name, value in vars(cls).items():
            if not name.startswith("_"):
                found.setdefault(name, value)
    return found


def is_plain(value: object) -> bool:
    """Whether an attribute is data, which its class documents."""
    return not (callable(value) or isinstance(value, (property, classmethod, staticmethod))) and (
        not inspect.isgetsetdescriptor(value)
    )


def documented() -> dict[str, object]:
    """Return all that needs a docstring, by its full name."""
    found: dict[str, object] = {"cudago": cu, "cudago.testing": cudago.testing}
    public = {f"cudago.{n}": getattr(cu, n) for n in cu.__all__}
    public |= {f"cudago.testing.{n}": getattr(cudago.testing, n) for n in cudago.testing.__all__}
    for name, thing in public.items():
        found[name] = thing
        if inspect.isclass(thing):
            for member, value in members(thing).items():
                if member not in USUAL and not is_plain(value):
                    found[f"{name}.{member}"] = value
    return found


DOCUMENTED = documented()


def text(thing: object) -> str:
    """Return a docstring without its indentation; that of native code without its signature."""
    doc = inspect.getdoc(thing) or ""
    return doc.split("--\n\n", 1)[-1]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstring(name):
    doc = text(DOCUMENTED[name])
    assert doc, "no docstring"
    summary, _, rest = doc.partition("\n")
    assert re.match(r"[A-Z`*].*\.$", summary), "the first line is a sentence, with a full stop"
    assert rest == "" or rest.startswith("\n"), "an empty line follows the first"
    headings = re.findall(r"^(.+)\n-{3,}$", doc, re.M)
    assert [h for h in headings if h not in SECTIONS] == []
    assert headings == sorted(headings, key=SECTIONS.index), "the order of numpydoc"
    for heading in headings:
        assert f"\n\n{heading}\n{'-' * len(heading)}\n" in doc, "underlined by as many dashes"


def parameters(thing: object) -> list[str]:
    """Return the names of the parameters of a function or class."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return []
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        kinds.get(p.kind, "") + p.name
        for p in signature.parameters.values()
        if p.name not in ("self", "cls") and not p.name.startswith("_")
    ]


FUNCTIONS = [
    name
    for name, thing in DOCUMENTED.items()
    if inspect.isfunction(thing) or inspect.ismethod(thing) or isinstance(thing, classmethod)
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_documented(name):
    thing = DOCUMENTED[name]
    doc = text(thing)
    function = thing.__func__ if isinstance(thing, classmethod) else thing
    wanted = parameters(function)
    _, _, section = doc.partition("\nParameters\n----------\n")
    section = re.split(r"\n\n\w[\w ]*\n-{3,}\n", section)[0]
    given = [
        n.strip()
        for line in re.findall(r"^(\S.*?)(?: :.*)?$", section, re.M)
        for n in line.split(",")
    ]
    if not doc.count("\n") or wanted == ["*args", "**kwargs"]:
        return  # one line says it all; or what is given depends on the object
    assert given == wanted or set(given) == set(wanted)


# --- defaults, and what deviates from them --------------------------------------------------------

ROOT = Path(__file__).parents[2]
DEFAULTS = re.compile(
    r"not stream-ordered|returns? (?:at once|before completion)|captures? (?:is|are) not affected"
    r"|the GIL (?:is )?released|^ +If the driver refuses\.$|^ +If .* (?:is|are) closed\.$",
    re.I | re.M,
)
STREAMS = {"stream", "upload"}
NOT_ORDERED = {
    "cudago.finalize": "it waits for the stream",
    "cudago.from_dlpack": "the producer orders the stream",
    "cudago.ExternalMemory.map": "it is mapped at once",
    "cudago.testing.hold": "it holds the stream",
    "cudago.OpaqueArray": "an array is allocated at once",
    "cudago.MipmappedArray": "an array is allocated at once",
}
NOT_ORDERED["cudago.Finalizer"] = NOT_ORDERED["cudago.finalize"]
# Claims that the probe does not see.
UNSEEN = {
    "cudago.Device.reset": "the probe still needs the device",
    "cudago.ManagedMemoryResource.allocate": "it is said of device memory",
    "cudago.PinnedMemoryResource.allocate": "it is said of device memory",
    "cudago.Stream.record": "no node is captured",
}


def test_the_reference_states_the_defaults():
    text = (ROOT / "docs" / "reference" / "index.rst").read_text()
    stated = re.findall(r"^(\w+)\n   \S", text, re.M)
    assert stated == ["Order", "Blocking", "Capture", "Lifetime", "Errors"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_defaults_are_not_repeated(name):
    assert DEFAULTS.findall(text(DOCUMENTED[name])) == []


def test_what_orders_its_work_on_a_stream_says_so():
    ordered = {n for n, thing in DOCUMENTED.items() if STREAMS & set(parameters(thing))}
    assert "cudago.Buffer.copy_from" in ordered
    silent = {n for n in ordered if not re.search(r"[Ss]tream-ordered on", text(DOCUMENTED[n]))}
    assert silent == set(NOT_ORDERED)


@pytest.fixture(scope="module")
def deviations(tmp_path_factory):
    """What deviates, by what a probe of everything public has seen on the simulated driver."""
    probe = Path(__file__).with_name("probe.py")
    paths = [ROOT / "tests_py", ROOT / "python"]
    done = subprocess.run(
        [sys.executable, str(probe)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "CUDAGO_DRIVER": "sim",
            "CUDAGO_SIM": "devices=2,cc=10.0",  # tensor maps need it
        },
        cwd=tmp_path_factory.mktemp("probe"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WORDS = {"captured": "captur", "waiting": r"\bblocks?\b"}


@pytest.mark.parametrize("kind", WORDS)
def test_what_deviates_says_so(deviations, kind):
    others = {"GraphExec.__call__", "profiler.__enter__"}  # which are launch and start
    seen = [n for n in deviations[kind] if n not in others]
    assert seen
    silent = [n for n in seen if not re.search(WORDS[kind], text(attrgetter(n)(cu)), re.I)]
    assert silent == []


def test_captures_do_what_is_said(deviations):
    claim = re.compile(r"captured as |not allowed while `?\w+`? (?:\w+ )?is capturing", re.I)
    claimed = {n for n, thing in DOCUMENTED.items() if claim.search(" ".join(text(thing).split()))}
    seen = {f"cudago.{n}" for n in deviations["captured"]}
    assert claimed - seen == set(UNSEEN)


EXAMPLES = [name for name, thing in DOCUMENTED.items() if ">>>" in text(thing)]


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_example(name, device, stream):
    names = {"cudago": cu, "numpy": numpy, "device": device, "stream": stream}
    parsed = doctest.DocTestParser().get_doctest(text(DOCUMENTED[name]), names, name, None, None)
    out: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(parsed, out=out.append)
    assert not runner.failures, "".join(out)


def test_the_main_nouns_have_examples():
    nouns = "Device Stream Event Buffer Program LaunchConfig Graph Tensor DeviceMemoryResource"
    assert {f"cudago.{n}" for n in nouns.split()} <= set(EXAMPLES)


def test_all_is_what_there_is():
    assert list(cu.__all__) == sorted(cu.__all__)
    assert len(set(cu.__all__)) == len(cu.__all__)
    for name in cu.__all__:
        assert getattr(cu, name).__module__.startswith("cudago"), name
