# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Driver calls that fail at random while the soak runs, and what they may leave behind."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from cudago import _core

# Of what Go counts; stream-ordered memory is counted in bytes.
RELEASES = {"cuStreamDestroy": "Stream", "cuEventDestroy": "Event", "cuMemFreeHost": "Allocation"}


class Faults:
    """The share of calls that fail, and how many did."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.by_call: dict[str, int] = {}

    def begin(self) -> None:
        """Have calls fail from now on."""
        if self.rate:
            _core._fail_at_random(self.rate)

    def end(self) -> None:
        """Have none fail any more."""
        if self.rate:
            _core._fail_at_random(0)

    def count(self) -> None:
        """Take the counts: after the last release."""
        if self.rate:
            self.by_call = dict(sorted(json.loads(_core._faults()).items()))

    def left(self, what: str, before: Any, size: int) -> Any:
        """Return what must be there at the end: failed releases have left something behind.

        Nobody may try again: the driver may have done it, and have reported an earlier failure.
        A buffer has so many bytes.
        """
        if what == "device bytes in use":
            return before + size * self.by_call.get("cuMemFreeAsync", 0)
        if what != "driver objects":
            return before
        expected = Counter(before)
        for call, kind in RELEASES.items():
            expected[kind] += self.by_call.get(call, 0)
        return dict(+expected)
