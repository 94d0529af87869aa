# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The guide's programs with PyTorch and JAX run as written, with what their pages name."""

from __future__ import annotations

import pytest

from ..installed import ROOT, command, python_blocks

PROGRAMS = {
    "torch-kernel": ("from-pytorch", "torch"),
    "torch-operator": ("torch-operator", "torch"),
    "jax-operator": ("jax-operator", "jax"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_with_a_framework_runs(name, script, driver):
    page, framework = PROGRAMS[name]
    if framework == "jax" and driver == "nvidia":
        pytest.skip("the page installs JAX for the CPU")
    pytest.importorskip(framework)
    text = (ROOT / "docs" / "guide" / f"{page}.rst").read_text()
    file = script.directory / "program" / "page.py"
    file.parent.mkdir()
    file.write_text("".join(python_blocks(text, f":name: {name}")))
    installed = command(text, file, script.directory / "installed")
    at = installed.index("-W")
    del installed[at : at + 2]  # PyTorch warns of itself
    run = script.run(installed, CUDAGO_DRIVER=driver, PYTHONPATH="")
    assert run.returncode == 0, run.stderr
