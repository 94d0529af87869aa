# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of the guide's page about other compilers run as written, with what it names."""

from __future__ import annotations

import re

import pytest

import cudago as cu

from ...installed import ROOT, command, python_blocks
from .cases import missing

TEXT = (ROOT / "docs/guide/other-compilers.rst").read_text()
NEEDED = {"numba": "numba.cuda", "triton": "triton", "cub": "nvidia.cu13", "nvvm": "nvidia.cu13"}


def nvvm_is_there() -> None:
    """Skip where libnvvm is not installed."""
    try:
        cu.Program("", "nvvm").compile()
    except cu.CompileError as e:
        if "was not found" in str(e):
            missing(str(e).partition("\n")[0])


@pytest.mark.parametrize("name", NEEDED)
def test_example_runs(name, script, driver, nvrtc):
    pytest.importorskip(NEEDED[name])
    if name == "cub":
        assert nvrtc.include_path  # which skips if there are no headers
    if name == "nvvm":
        nvvm_is_there()
    if driver != "sim":
        pytest.skip("the examples choose the simulated driver")
    file = script.directory / "program" / "page.py"
    file.parent.mkdir()
    file.write_text("".join(python_blocks(TEXT, f":name: {name}")))
    (needs,) = re.findall(rf"^The program needs (.*)\n\n.*\n   :name: {name}$", TEXT, re.M)
    installed = command(needs, file, script.directory / "installed")
    run = script.run(
        installed,
        PYTHONPATH="",
        TRITON_DEFAULT_FP_FUSION="1",
        TRITON_CACHE_DIR=str(script.directory),
    )
    assert run.returncode == 0, run.stderr
