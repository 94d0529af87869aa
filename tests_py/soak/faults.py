# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Driver calls that fail at random while the soak runs, and what they may leave behind."""

from __future__ import annotations

import json

from cudago import _core


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

    def bytes_left(self, size: int) -> int:
        """Return what frees that failed have left behind, each of so many bytes.

        Nobody may try again: the driver may have freed, and have reported an earlier failure.
        """
        return size * self.by_call.get("cuMemFreeAsync", 0)
