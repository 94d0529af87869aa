# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Calls everything public with numbers of thousands of digits, and None, in the place of numbers.

Run in a process of its own, which prints as JSON how many calls were made, and which errors do not
say which argument is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import cudago as cu
from hostile.cases import arguments, call, resolve, variants
from hostile.recipes import all_targets
from hostile.surface import Target
from hostile.world import UnavailableError, World

HUGE = 10**5000  # Python refuses to write it
NUMBERS = (int, float, np.number)
# They end what others need, or wait for so long.
LEFT_OUT = {"Device.reset", "init", "sim.cancel", "testing.settle", "testing.hold"}
# What Python and NumPy say of an argument that was used before it was looked at.
UNNAMED = re.compile(
    "Exceeds the limit|int too large to convert|int too big to convert|unsupported operand|"
    "not supported between|bad operand|'NoneType' object cannot be interpreted"
)


def others(value: Any) -> list[Any]:
    """Return what takes the place of a value that is a number, or several, or None."""
    if isinstance(value, tuple | list):
        if not value or not all(isinstance(n, NUMBERS) for n in value):
            return []
        return [type(value)([n] * len(value)) for n in (HUGE, -HUGE, None)]
    if isinstance(value, bool) or not (value is None or isinstance(value, NUMBERS)):
        return []
    return [HUGE, -HUGE, *([] if value is None else [None])]


def attempt(target: Target, variant: str, parameter: str, which: int) -> str | None:
    """Return what a call raises; None if there is no such call."""
    resource, world = cu.Device().memory_resource, World()
    left: list[Any] = []

    def place(name: str, value: Any) -> Any:
        if name != parameter:
            return value
        left.extend(others(value)[which:])
        return left[0] if left else value

    try:
        on = resolve(target, world)
        positional, keywords = arguments(target, variant, world, place)
        if not left:
            return None
        call(target, on, positional, keywords)
    except (UnavailableError, cu.UnsupportedError):
        return ""
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    finally:
        world.close()
        cu.Device().memory_resource = resource
    return ""


def attempts() -> Iterator[tuple[str, str]]:
    """Yield the calls, and what they raised."""
    for target in all_targets():
        if target.name.partition("[")[0] in LEFT_OUT or target.how in ("get", "protocol"):
            continue
        for variant, _ in variants(target):
            for p in target.parameters:
                if variant and not variant.startswith(f"{p.name}="):
                    continue
                for which in range(3):
                    said = attempt(target, variant, p.name, which)
                    if said is None:
                        break
                    yield f"{target.name} {variant}: {p.name}", said


def main() -> None:
    """Print what was found."""
    made = list(attempts())
    wrong = sorted({f"{what}: {said}" for what, said in made if UNNAMED.search(said)})
    print(json.dumps({"calls": len(made), "unnamed": wrong}))


if __name__ == "__main__":
    main()
