# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Other memory for some arguments of a kernel of ours, by place: of slots, and of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._kernel.work import WALKED
from .._tensor import renewed
from .condition import setter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._memory.device import Device

# What can be given anew without the others: the arguments at these places.
_GIVEN = {"fill": {0}, "copy": {0, 1}, "conversion": set[int](), "condition": {1}}


def launched(
    record: tuple[Any, ...], name: str, device: Device, new: Mapping[int, Any]
) -> tuple[Any, ...]:
    """Return the launch of a kernel of ours with some arguments replaced, by their places."""
    kernel, config, *args = record
    work = kernel._work
    if not new.keys() <= _GIVEN.get(work, new.keys()):
        raise ValueError(
            f"{name!r} is a {work}, by a kernel of cudago whose arguments describe the memory "
            "together, and this one is not exchanged by itself"
        )
    if work == "fill":
        if new[0] is None:
            raise TypeError(f"the dst of fill {name!r} cannot be None")
        return tuple(renewed.filled(record, name, device, new[0], None))
    if work == "copy":
        return tuple(renewed.copied(record, name, device, new.get(0), new.get(1)))
    if work == "condition":
        config, kernel, given = setter(args[0], new[1])
        return config, kernel, *given
    for place, given in new.items():
        args[place] = given
    change = renewed.walked if work in WALKED else renewed.counted
    return change(record, name, (config, kernel, *args))
