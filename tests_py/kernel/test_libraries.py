# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where NVIDIA's libraries are found: in wheels and in environments of Conda."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudago import _libraries

FIND = """
import json
from cudago import _libraries
print(json.dumps(_libraries.folders_of("libnvrtc", _libraries.folders())))
"""


def touch(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


@pytest.fixture
def here(tmp_path) -> Path:
    """A folder with a library, laid out as in a wheel: the current one of `said`."""
    return touch(tmp_path / "nvidia" / "cu99" / "lib" / "libnvrtc.so.13").parent


def said(here: Path, *arguments: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=here.parents[2],
        env=os.environ | {"CUDAGO_DRIVER": "sim"} | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def test_what_lies_in_the_current_folder_is_not_opened(here, tmp_path):
    info = json.loads(said(here, "-m", "cudago", "info", "--json"))
    assert str(here) not in info["nvrtc"]["looked_in"]
    assert str(tmp_path) not in said(here, "-m", "cudago", "doctor", CUDAGO_CACHE="off")
    assert str(here) not in said(here, "-c", FIND)
    assert str(here) not in said(here, "-c", f"import os; os.chdir('/')\n{FIND}")


def test_what_lies_beside_a_program_or_in_its_path_is(here, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FIND)
    assert str(here) in said(here, str(program))
    assert str(here) in said(here, "-m", "cudago", "run", "program.py")
    elsewhere = here.parents[1] / "a" / "b" / "c"
    assert str(here) in said(elsewhere, "-c", FIND, PYTHONPATH=str(tmp_path))


@pytest.fixture
def environment(tmp_path, monkeypatch) -> Path:
    """The folder of an environment of Conda's, in which there is nothing else."""
    monkeypatch.setattr(_libraries, "_module_folders", list)
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(_libraries.sys, name, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("folder", ["lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"])
def test_environments_of_conda(folder, environment):
    for library in ("libnvrtc", "libnvJitLink"):
        file = touch(environment / folder / f"{library}.so.13")
        assert _libraries.folders_of(library, _libraries.folders()) == [str(file.parent)]
    file = touch(environment / "nvvm" / "lib64" / "libnvvm.so.4")
    assert _libraries.folders_of("libnvvm", _libraries.folders()) == [str(file.parent)]


def test_what_a_frozen_program_gets(environment, monkeypatch):
    for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libother.so"):
        touch(environment / "lib" / name)
        touch(environment / "targets" / "x86_64-linux" / "lib" / name)
    touch(environment / "nvvm" / "lib64" / "libnvvm.so.4")
    touch(environment / "nvvm" / "libdevice" / "libdevice.10.bc")
    at = "nvidia/environment"
    assert _libraries.to_freeze() == [
        (f"{environment}/lib/libnvrtc.so.13", f"{at}/lib"),
        (f"{environment}/lib/libnvrtc-builtins.so.13.0", f"{at}/lib"),
        (f"{environment}/nvvm/lib64/libnvvm.so.4", f"{at}/nvvm/lib64"),
        (f"{environment}/nvvm/lib64/../libdevice/libdevice.10.bc", f"{at}/nvvm/libdevice"),
    ]
    wheels = environment / "wheels"
    monkeypatch.setattr(_libraries, "_module_folders", lambda: [str(wheels)])
    touch(wheels / "nvidia" / "cu13" / "lib" / "libnvvm.so.4")
    touch(wheels / "nvidia" / "cu13" / "nvvm" / "libdevice" / "libdevice.10.bc")
    assert [place for _, place in _libraries.to_freeze()[2:]] == [
        "nvidia/cu13/lib",
        "nvidia/cu13/nvvm/libdevice",
    ]


def test_programs_are_compiled_by_a_library_of_conda(script, tmp_path):
    found = _libraries.folders_of("libnvrtc", _libraries.folders())
    if not found:
        pytest.skip("NVRTC is not installed as a package")
    (tmp_path / "targets" / "x86_64-linux").mkdir(parents=True)
    (tmp_path / "targets" / "x86_64-linux" / "lib").symlink_to(found[0])
    run = script(
        f"""
        import sys
        import cudago as cu
        from cudago import _libraries
        _libraries._module_folders = list
        sys.prefix = sys.base_prefix = {str(tmp_path)!r}
        print(_libraries.folders_of("libnvrtc", _libraries.folders()))
        cu.compile_cache.configure("off")
        print(cu.Program('extern "C" __global__ void f() {{}}').compile("ptx").kind)
        """,
        CUDAGO_DRIVER="sim",
    )
    assert run.stdout == f"['{tmp_path}/targets/x86_64-linux/lib']\nptx\n", run.stderr
