# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What comes of each cell: *ordered*, *kept* or refused, and why. What orders what in the
documentation is made of this."""

from __future__ import annotations

from promises.kinds import KINDS, Kind

# Of a way, why it is refused on the simulated driver, whose memory is the host's for all other
# libraries.
ON_HOST_ALONE = {
    "x.__dlpack__(stream=t, dl_device=…)": "cannot be exported to device",
    "x.__dlpack__(stream=t)": "stream must be None for memory that is exported to the host",
    "x.__dlpack__(stream=1)": "stream must be None for memory that is exported to the host",
    "x.__cuda_array_interface__": "this is host or simulated memory",
}
NO_ACCESS = "has no access"
NO_BUFFER = "device memory has no Python buffer"
COPIES = ("y.copy_from(x)", "x.copy_to(y)", "copy_batch", "graph: copy node")
OTHERS = ("torch", "cupy")  # libraries that may not take memory of a kind; then they say so


def reaches(kind: Kind, devices: str) -> bool:
    """Whether the stream's device has access to the memory."""
    return devices == "one" or kind.anywhere or (devices == "two" and kind.peers)


def order(name: str, way: str, devices: str, driver: str) -> tuple[str, ...]:
    """What handing over may come to; of a refusal, a part of its text."""
    kind = KINDS[name]
    if not reaches(kind, devices):
        return (NO_ACCESS,)
    if way == "memoryview(x)":
        return ("not ordered",) if kind.on_host else (NO_BUFFER,)
    if driver == "sim" and way in ON_HOST_ALONE:
        return (ON_HOST_ALONE[way],)
    if any(library in way for library in OTHERS):
        return (
            ("ordered", "absent: ", "refused: ") if driver == "nvidia" else ("ordered", "absent: ")
        )
    # NumPy knows no device memory, in which copies of managed memory are too.
    unknown = {
        "numpy.from_dlpack(x)": not kind.on_host,
        "numpy.from_dlpack(x, copy=True)": not kind.on_host or name.startswith("managed"),
    }
    if driver == "nvidia" and unknown.get(way):
        return ("refused: ",)
    return ("ordered",)


def kept(name: str, way: str, devices: str) -> tuple[str, ...]:
    """What letting go may come to."""
    if way.startswith("bind") and devices != "one":
        return ("the graph is on device",)  # that of the first argument with memory
    if way.startswith("x.prefetch") and not name.startswith("managed"):
        return ("managed memory",)
    if reaches(KINDS[name], devices):
        return ("kept",)
    # The driver itself refuses to copy what only it knows to be out of reach.
    return (
        ("kept", NO_ACCESS, "CUDA_ERROR_INVALID_VALUE") if way.startswith(COPIES) else (NO_ACCESS,)
    )


def holds(got: str, wanted: tuple[str, ...]) -> bool:
    """Whether what came of a cell is among what may."""
    return any(
        got == w or (w not in ("ordered", "kept", "not ordered") and w in got) for w in wanted
    )
