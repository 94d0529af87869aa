# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of the guide's page about other compilers run as written."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/guide/other-compilers.rst"
BLOCK = re.compile(r"^\.\. code-block:: python\n   :name: (\w+)\n\n((?:   .*\n|\n)+)", re.M)
NEEDED = {"numba": "numba.cuda", "triton": "triton", "cub": "nvidia.cu13"}


@pytest.mark.parametrize("name", NEEDED)
def test_example_runs(script, driver, nvrtc, name):
    pytest.importorskip(NEEDED[name])
    if name == "cub":
        assert nvrtc.include_path  # which skips if there are no headers
    if driver != "sim":
        pytest.skip("the examples choose the simulated driver")
    source = textwrap.dedent(dict(BLOCK.findall(PAGE.read_text()))[name])
    run = script(source, TRITON_DEFAULT_FP_FUSION="1", TRITON_CACHE_DIR=str(script.directory))
    assert run.returncode == 0, run.stderr
