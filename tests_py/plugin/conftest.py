# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of pytest with the plugin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import cudago as cu

from ..installed import ROOT


@pytest.fixture
def project(pytester, monkeypatch):
    """Runs pytest with the plugin in a process, on files that are made before."""
    for name in ("CUDAGO_SIM", "CUDAGO_REQUIRE_GPU", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDAGO_DRIVER", "sim")
    # pytest does not load it a second time where it finds it by itself.
    path = [str(Path(cu.__file__).parents[1]), str(ROOT / "python"), os.environ.get("PYTHONPATH")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))

    def run(*arguments):
        # Hypothesis, where it is installed, is imported at the end of every run.
        options = ["-p", "cudago_pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
        options.append("-ra")
        return pytester.runpytest_subprocess(*options, *arguments)

    return run
