# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A captured function that counts its captures."""

from __future__ import annotations

import cudago as cu

from .operand import CONFIG, N


class Counted:
    """A function that adds to a buffer, and how often it was called."""

    def __init__(self, kernels, **options) -> None:
        self.calls = 0
        self.add = kernels["add"]

        def add(s, y, value):
            self.calls += 1
            cu.launch(s, CONFIG, self.add, y, value, N)

        self.function = cu.graph(**options)(add) if options else cu.graph(add)
