# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launches of cudago's own kernels with some of their arguments changed, which fit together.

An update names what changes; a slot or a file says the argument's place. `Work` tells both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._kernel.work import WALKED
from .._tensor import renewed
from .condition import setter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._memory.device import Device


class Work(NamedTuple):
    """What a kernel of ours does that has no parameters of the user's.

    Attributes
    ----------
    title
        What messages call it.
    takes
        What an update takes, as messages write it. Nothing, if it cannot be updated.
    places
        What a slot can be of what an update can name, and the argument that is.
    launch
        Returns the launch, of a record, the node's name, its device, and what is named.
    """

    title: str
    takes: str
    places: Mapping[str, int]
    launch: Callable[..., Any] | None


def _set(record: tuple[Any, ...], _name: str, _device: Device, value: Any) -> tuple[Any, ...]:
    config, kernel, args = setter(record[2], value)
    return config, kernel, *args


WORKS = {
    "fill": Work("fill", "dst, value", {"dst": 0}, renewed.filled),
    "copy": Work("copy", "dst=, src=", {"dst": 0, "src": 1}, renewed.copied),
    "condition": Work("node that sets a condition", "value", {"value": 1}, _set),
    "conversion": Work("conversion", "", {}, None),
}


def named(
    record: tuple[Any, ...], name: str, device: Device, given: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the launch of a kernel of ours with other operands, by their names in updates."""
    work = WORKS[record[0]._work]
    assert work.launch is not None
    return tuple(work.launch(record, name, device, **given))


def placed(
    record: tuple[Any, ...], name: str, device: Device, new: Mapping[int, Any]
) -> tuple[Any, ...]:
    """Return the launch of a kernel of ours with some arguments replaced, by their places."""
    kernel, config, *args = record
    work = WORKS.get(kernel._work)
    if work is None:
        for place, thing in new.items():
            args[place] = thing
        change = renewed.walked if kernel._work in WALKED else renewed.counted
        return change(record, name, (config, kernel, *args))
    names = {place: own for own, place in work.places.items()}
    given: dict[str, Any] = {}
    for place, thing in new.items():
        if place not in names:
            raise ValueError(together(work, name))
        if thing is None:
            raise TypeError(f"the {names[place]} of {work.title} {name!r} cannot be None")
        given[names[place]] = thing
    return named(record, name, device, given)


def together(work: Work, name: str) -> str:
    """Return why an argument is not exchanged by itself."""
    advice = "capture it again, and update with that graph"
    if work.takes:
        advice = f"update it with {work.takes}"
    return (
        f"{name!r} is a {work.title}, by a kernel of cudago whose arguments describe the memory "
        f"together: {advice}"
    )
