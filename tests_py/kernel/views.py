# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Views of arrays and tensors alike, as a generator of random numbers has them."""

from __future__ import annotations

import numpy as np


def random_view(random, shape):
    """Return a shape that broadcasts to this one, and a view of a larger array that has it."""
    own = [1 if random.random() < 0.3 else n for n in shape][random.integers(len(shape) + 1) :]
    order = random.permutation(len(own))
    steps = random.choice([-2, -1, 1, 1, 2], len(own))
    whole = [own[k] * abs(steps[k]) for k in order]
    back = np.argsort(order)

    def view(t):
        turned = t.transpose(*map(int, back)) if len(own) > 1 else t
        return turned[(..., *(slice(None, None, int(s)) for s in steps))]

    return whole, view
