# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The build says in sentences what it does and what is missing."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
import sys
from types import ModuleType

import pytest

from ..installed import ROOT


def load(folder: str, name: str) -> ModuleType:
    """Return a module of a folder that is not on the path."""
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def extension() -> ModuleType:
    """The build of the shared library."""
    return load("build_hooks", "extension")


def test_an_old_python_is_refused_before_anything_is_built(extension, monkeypatch, tmp_path):
    def step(*args):
        pytest.fail("something was built")

    monkeypatch.setattr(extension, "step", step)
    monkeypatch.setattr(extension.host, "OLDEST_PYTHON", (9, 11))
    with pytest.raises(extension.BuildError) as e:
        extension.build(tmp_path / "module.so")
    got = platform.python_version()
    assert str(e.value) == f"cudago needs Python 9.11 or newer, got {got} ({sys.executable})"


def test_the_oldest_python_is_that_of_the_project(extension):
    oldest = ".".join(map(str, extension.host.OLDEST_PYTHON))
    assert f'requires-python = ">={oldest}"' in (ROOT / "pyproject.toml").read_text()


def listed(extension, go: str, modules, cache) -> int:
    """Return the exit status of what looks at all Go files of the build, without any network."""
    variables = extension.module_variables(modules, "off") | {"GOFLAGS": "-modcacherw"}
    variables |= {"GOMODCACHE": str(cache), "GOTOOLCHAIN": "local", "GOPRIVATE": "*"}
    command = [go, "list", "-buildvcs=false", "-deps", *extension.PACKAGE]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, check=False
    ).returncode


def test_a_source_distribution_has_the_go_modules_that_it_needs(extension, tmp_path):
    go = extension.find_go()
    if go is None:
        pytest.skip("there is no Go here")
    modules = tmp_path / "modules of Go"
    extension.gather_modules(go, modules)
    kinds = {path.suffix for path in modules.rglob("*") if path.is_file()}
    assert kinds == {".mod", ".zip"}
    assert listed(extension, go, modules, tmp_path / "cache") == 0
    for module in modules.rglob("*.zip"):
        away = module.rename(tmp_path / "away")
        assert listed(extension, go, modules, tmp_path / module.stem) != 0, module
        away.rename(module)


def test_the_build_takes_them(extension, monkeypatch, tmp_path):
    seen = []

    def step(name, command, env):
        seen.append(env.get("GOPROXY"))
        return 1

    monkeypatch.setattr(extension, "step", step)
    monkeypatch.setenv("GOPROXY", "https://proxy.example")
    if extension.find_go() is None or extension.find_cc() is None:
        pytest.skip("there is no Go, or no C compiler, here")
    for folder in (tmp_path / "none", tmp_path):
        monkeypatch.setattr(extension, "GO_MODULES", folder)
        with pytest.raises(extension.BuildError):
            extension.build(tmp_path / "out" / "module.so")
    assert seen == ["https://proxy.example", tmp_path.as_uri()]


@pytest.mark.parametrize(("status", "outcome"), [(0, "took"), (3, "failed after")])
def test_a_step_is_printed_with_its_time(status, outcome, extension, capfd):
    command = [sys.executable, "-c", f"import sys; sys.exit({status})"]
    assert extension.step("thinking", command, dict(os.environ)) == status
    said = capfd.readouterr().err
    assert re.fullmatch(
        rf"cudago: building: thinking \.\.\.\ncudago: building: {outcome} \d+\.\d s\n", said
    )


def test_what_pip_says_is_shown_where_it_fails(capfd):
    assert load("scripts", "pip_steps").main(["download", "--no-such-option"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("cudago: pip download --no-such-option ...\n")
    assert "no such option: --no-such-option" in said
    assert re.search(r"\ncudago: pip failed after \d+\.\d s\n$", said)


def test_headers_that_debian_splits_by_machine_are_found(extension, tmp_path, monkeypatch):
    monkeypatch.setattr(extension.sysconfig, "get_config_var", lambda name: "some-linux-gnu")
    include = tmp_path / "python3.11"
    assert extension.include_flags(include) == f"-I{include}"
    split = tmp_path / "some-linux-gnu" / "python3.11"
    split.mkdir(parents=True)
    (split / "pyconfig.h").touch()
    assert extension.include_flags(include) == f"-I{include} -idirafter {tmp_path}"


@pytest.mark.parametrize(
    ("status", "said", "verdict"),
    [
        (0, "No vulnerabilities found.", "ok"),
        (
            0,
            "Name Skip\nodd  Dependency not found on PyPI and could not be audited: odd (1)",
            "NOT ASKED about what the service does not have: odd",
        ),
        (3, "Vulnerability #1: GO-2026-1234", "FAILED"),
        (1, "govulncheck: no go.mod file", "FAILED"),
        (
            1,
            "govulncheck: Get x: dial tcp: lookup vuln.go.dev: no such host\n",
            "NOT ASKED, so nothing is known: the service could not be reached: govulncheck: Get x: "
            "dial tcp: lookup vuln.go.dev: no such host",
        ),
    ],
)
def test_an_audit_that_could_not_ask_says_so(status, said, verdict):
    assert load("scripts", "audit").judge(status, said) == verdict


def test_an_audit_without_answers_is_no_success(monkeypatch, capsys):
    audit = load("scripts", "audit")
    offline = "import sys; print('lookup vuln.go.dev: no such host'); sys.exit(1)"
    asked = [("one", [sys.executable, "-c", ""]), ("two", [sys.executable, "-c", offline])]
    monkeypatch.setattr(audit, "questions", lambda: iter(asked))
    assert audit.main() == 2
    out = capsys.readouterr().out
    assert "audit: one: ok\n" in out
    assert "audit: two: NOT ASKED" in out
    monkeypatch.setattr(audit, "questions", lambda: iter(asked[:1]))
    assert audit.main() == 0
