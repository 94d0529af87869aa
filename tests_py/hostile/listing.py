# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Prints the names of all units, after checking that everything public has a recipe."""

from __future__ import annotations

from . import cases, order, recipes, together


def main() -> None:
    """Print the names, or say what is missing."""
    if missing := recipes.missing():
        raise SystemExit("no recipe in tests_py/hostile/recipes.py:\n" + "\n".join(missing))
    for name in order.SITUATIONS:
        print(f"situation|{name}")
    for unit in together.units():
        print(unit)
    for unit in cases.units():
        print(unit)


if __name__ == "__main__":
    main()
