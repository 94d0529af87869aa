# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors against arrays."""

from __future__ import annotations


def same(tensor, array, stream):
    """Whether a tensor has an array's type, shape and elements."""
    got = tensor.numpy(stream=stream)
    return got.dtype == array.dtype and got.shape == array.shape and (got == array).all()
