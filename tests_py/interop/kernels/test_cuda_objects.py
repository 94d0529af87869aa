# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA C++ with objects that outlive the kernel that made them."""

from __future__ import annotations

import numpy as np
import pytest

OBJECTS = r"""
struct Shape {
    virtual __device__ float area() const = 0;
    virtual __device__ ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ Square(float x) : side(x) {}
    __device__ float area() const override { return side * side; }
};
struct alignas(64) Box : Square {
    float depth;
    __device__ Box(float x) : Square(x), depth(2) {}
    __device__ float area() const override { return depth * Square::area(); }
};
extern "C" __global__ void build(Shape **list) {
    int i = threadIdx.x;
    list[i] = i & 1 ? new Square(i) : new Box(i);
}
extern "C" __global__ void measure(Shape **list, float *out) {
    out[threadIdx.x] = list[threadIdx.x]->area();
}
extern "C" __global__ void destroy(Shape **list) { delete list[threadIdx.x]; }
"""


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
def test_objects_outlive_the_kernel_that_made_them(nvrtc, launcher, arch):
    kernels = nvrtc(OBJECTS, arch)
    objects, areas = np.zeros(64, "u8"), np.zeros(64, "f4")
    launcher(kernels["build"], 1, 64, [objects])
    assert not (objects[::2] % 64).any()
    launcher(kernels["measure"], 1, 64, [objects, areas])
    sides = np.arange(64, dtype="f4")
    np.testing.assert_array_equal(areas, np.where(sides % 2, 1, 2) * sides**2)
    launcher(kernels["destroy"], 1, 64, [objects])
