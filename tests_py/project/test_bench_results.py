# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmark results are kept with what they depend on, and the page shows the latest."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path

import pytest

from ..installed import ROOT


@pytest.fixture
def results(monkeypatch):
    """The module benchmarks/results.py."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "results", raising=False)
    import results

    yield results
    del sys.modules["results"]


FIGURES = {
    "facts": {
        "date": "2026-03-04",
        "commit": "abc1234",
        "device": "NVIDIA Test (1)",
        "driver": "nvidia",
        "NVIDIA driver": "600.1",
        "driver's CUDA": "14.0",
        "python": "3.12.0",
        "machine": "x86_64",
        "cudago": "9.9",
    },
    "notes": ["torch was not measured"],
    "unit": "ns per call",
    "results": [
        {
            "operation": operation,
            "library": library,
            "median": median,
            "p99": 2 * median,
            "calls_per_batch": 100,
            "batch_means": [median, median],
        }
        for operation, library, median in [
            ("call", "C floor", 200.0),
            ("call", "cudago", 250.0),
            ("other", "cudago", 30.0),
        ]
    ],
}


def test_a_run_is_kept_and_shown(results, tmp_path: Path) -> None:
    path = results.keep(FIGURES, tmp_path)
    assert path.name == "2026-03-04-nvidia-test-1-abc1234.json"
    kept = json.loads(path.read_text())
    assert kept["driver"] == "600.1" and kept["cuda"] == "14.0"
    assert kept["results"][0] == {
        "operation": "call",
        "library": "C floor",
        "median": 200.0,
        "p99": 400.0,
        "calls_per_batch": 100,
        "batches": 2,
    }
    page = results.page(results.latest(tmp_path))
    assert "   * - call\n     - 200 / 400\n     - 250 / 500\n     - 1.25\n" in page
    assert "   * - other\n     -\n     - 30 / 60\n     -\n" in page
    for fact in ("2026-03-04", "NVIDIA Test (1)", "600.1", "abc1234", "torch was not measured"):
        assert fact in page


def test_the_latest_is_that_of_the_last_date(results, tmp_path: Path) -> None:
    for date, device in [("2026-03-04", "B"), ("2026-11-01", "A"), ("2026-05-01", "C")]:
        figures = copy.deepcopy(FIGURES)
        figures["facts"] |= {"date": date, "device": device}
        results.keep(figures, tmp_path)
    assert results.latest(tmp_path)["date"] == "2026-11-01"


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"driver": "sim"}, "kept are figures of driver nvidia, not of sim"),
        ({"commit": "", "NVIDIA driver": ""}, "does not say its commit, NVIDIA driver"),
        ({"commit": "abc1234-dirty"}, "commit abc1234-dirty had changes"),
    ],
)
def test_what_says_too_little_is_not_kept(results, tmp_path: Path, facts, says) -> None:
    figures = copy.deepcopy(FIGURES)
    figures["facts"] |= facts
    with pytest.raises(results.ResultError, match=re.escape(says)):
        results.keep(figures, tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_kept_result_is_named_by_what_it_says(results) -> None:
    files = sorted(results.KEPT.glob("*.json"))
    assert files
    for file in files:
        result = json.loads(file.read_text())
        assert result["format"] == results.FORMAT
        assert file.name == results.name_of(result)


def test_the_page_is_that_of_the_latest(results) -> None:
    assert results.PAGE.read_text() == results.page(results.latest())
