# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The situations, which a child process runs, and the recipes; make test-hostile does the rest."""

from __future__ import annotations

import pytest

from . import recipes
from .__main__ import options
from .order import SITUATIONS
from .parent import run

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


def test_everything_public_has_a_recipe(driver):
    assert recipes.missing() == []


def test_what_has_no_recipe_is_found(driver, monkeypatch):
    monkeypatch.delitem(recipes.VALUES, "fill.value")
    assert "Buffer.fill has a parameter 'value' without a recipe" in recipes.missing()
    monkeypatch.delitem(recipes.RECEIVERS, "Stream")
    assert any("Stream" in text for text in recipes.missing())


@pytest.fixture(scope="module")
def outcomes(driver) -> dict[str, str]:
    """What went wrong, by situation: a child runs them all, and another goes on after a crash."""
    chosen = options([])
    tally = run(chosen, [f"situation|{name}" for name in SITUATIONS])
    assert tally.units == len(SITUATIONS)
    return {f.case.removeprefix("situation|"): f"{f.kind}: {f.text}" for f in tally.failures}


@pytest.mark.parametrize("name", SITUATIONS)
def test_situation(name, outcomes, driver):
    assert outcomes.get(name, "") == ""
