# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver gives the results that are in ``goldens/``, recorded on an H200."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .recorded import families, golden, values

RUN = Path(__file__).with_name("run.py")

# ptxas of CUDA 13.0 breaks these programs from -O1 or -O2 on. At -O0 they give what is recorded.
MISCOMPILED = {"0493", "0500", "1102", "1615"}


@pytest.fixture(scope="module")
def results(driver, device, tmp_path_factory) -> Path:
    """Run every family on a device that has all of their instructions."""
    folder = tmp_path_factory.mktemp("results")
    environment = os.environ | {"CUDAGO_DRIVER": driver, "CUDAGO_SIM": "cc=9.0,steps=1e6"}
    done = subprocess.run(
        [sys.executable, RUN, folder],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("family", families.FAMILIES)
def test_as_recorded(family, driver, device, results):
    recorded = golden.read(family)
    with np.load(results / f"{family}.npz") as file:
        here = dict(file)
    expected = set(recorded["exact"]) | set(recorded["approximate"])
    if driver == "nvidia":
        if device.compute_capability < (9, 0):
            expected &= set(here)
        if family == "programs":
            expected -= MISCOMPILED
    assert expected <= set(here)
    assert driver == "nvidia" or set(here) == expected
    wrong = [
        name
        for name in sorted(expected & set(recorded["exact"]))
        if golden.checksums(here[name]) != recorded["exact"][name]
    ]
    assert not wrong, f"{len(wrong)} of {len(expected)}"


def test_approximations_are_within_their_bounds(driver, results):
    recorded = golden.read("floats")["approximate"]
    with np.load(results / "floats.npz") as file:
        here = {name: file[name] for name in recorded}
    cases = {c.name: c for c in families.cases_of("floats") if c.tolerance is not None}
    assert set(cases) == set(recorded)
    for name, case in cases.items():
        raw = here[name][: golden.KEPT]
        ours = values.as_floats(case.result, raw)
        theirs = values.as_floats(case.result, golden.unpack(recorded[name], raw.dtype))
        with np.errstate(invalid="ignore"):
            bound = case.tolerance.absolute + case.tolerance.relative * np.abs(theirs)
            near = (ours == theirs) | (np.abs(ours - theirs) <= bound)
        near |= np.isnan(ours) & np.isnan(theirs)
        assert near.all(), f"{name}: {ours[~near][:4]}, recorded {theirs[~near][:4]}"


def test_goldens_say_where_they_were_recorded():
    for family in families.FAMILIES:
        recorded = golden.read(family)["recorded"]
        assert set(recorded) == {"device", "driver", "date"}
        assert "nvidia" in recorded["driver"]
