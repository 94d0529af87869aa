# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps of columns along the width.

The rules are those about cuTensorMapEncodeIm2colWide in cuda.h, CUDA 13.2.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import cudago as cu

pytest.importorskip("numpy")


@pytest.fixture
def later(device):
    """Skip unless maps can be made."""
    if device.compute_capability < (10, 0):
        pytest.skip("the device has no such maps: see test_on_a_later_device")
    return device


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_on_a_later_device(driver, device):
    """Runs the other tests of this file, if the device of this process is too old for them."""
    if device.compute_capability >= (10, 0):
        return
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"CUDAGO_DRIVER": "sim", "CUDAGO_SIM": "cc=10.0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout


@pytest.fixture
def images(later, stream):
    """2 images of 8 x 8 pixels of 16 channels."""
    with cu.zeros((2, 8, 8, 16), "f4", stream=stream) as images:
        yield images


def made(images, **options):
    given = {
        "lower_corner": -1,
        "upper_corner": 1,
        "channels_per_pixel": 8,
        "pixels_per_column": 16,
        "swizzle": "64B",
        **options,
    }
    corners = given.pop("lower_corner"), given.pop("upper_corner")
    return cu.TensorMap.from_im2col_wide(images, *corners, **given)


def test_what_it_says(images):
    m = made(images)
    assert (m.tensor, m.shape, m.box) == (images, (2, 8, 8, 16), (1, 1, 1, 8))
    assert m.box_nbytes == 8 * 16 * 4
    assert len(bytes(m)) == 128
    assert repr(m) == (
        "<cudago.TensorMap of (2, 8, 8, 16) float32, corners (-1,) and (1,), "
        "8 channels of 16 pixels, wide W, swizzle 64B>"
    )
    m = made(images, mode="W128", pixels_per_column=None)
    assert m.box_nbytes == 8 * 128 * 4
    assert "8 channels of 128 pixels, wide W128" in repr(m)


def test_each_number_counts(images):
    maps = [
        made(images),
        made(images, lower_corner=0),
        made(images, upper_corner=2),
        made(images, pixels_per_column=8),
        made(images, pixels_per_column=128),
        made(images, mode="W128", pixels_per_column=None),
    ]
    assert len({bytes(m) for m in maps}) == 6


def test_three_and_five_dimensions(later, stream):
    for shape in ((2, 8, 16), (2, 4, 8, 8, 16)):
        with cu.zeros(shape, "f2", stream=stream) as images:
            assert len(bytes(made(images, lower_corner=-32768, upper_corner=32767))) == 128


RULES = {
    "rank": (lambda x: made(x[0, 0]), "3 to 5 dimensions, the tensor 2"),
    "corner": (lambda x: made(x, lower_corner=-32769), "1 numbers of -32768 to 32767"),
    "corners": (lambda x: made(x, upper_corner=(0, 0)), "upper_corner must have 1 numbers"),
    "channels": (lambda x: made(x, channels_per_pixel=257), "channels_per_pixel must be 1 to 256"),
    "pixels": (lambda x: made(x, pixels_per_column=0), "pixels_per_column must be 1 to 1024"),
    "none": (lambda x: made(x, pixels_per_column=None), "must be given with mode 'W'"),
    "both": (lambda x: made(x, mode="W128"), "left out with 'W128'"),
    "mode": (lambda x: made(x, mode="w"), "mode must be one of 'W', 'W128'; got 'w'"),
    "swizzle": (lambda x: made(x, swizzle="32B"), "swizzle must be one of '64B', '128B'"),
    "row": (lambda x: made(x, channels_per_pixel=3), "a multiple of 16 bytes, got 12"),
    "span": (lambda x: made(x, channels_per_pixel=32), "at most 64 bytes, got 128"),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken(images, rule):
    make, message = RULES[rule]
    with pytest.raises(ValueError, match=message):
        make(images)


def test_an_older_device(device, stream):
    if device.compute_capability >= (10, 0):
        pytest.skip("the device has such maps")
    refused = pytest.raises(cu.UnsupportedError, match=r"tensor maps|wide columns need 10\.0")
    with cu.zeros((2, 8, 8, 16), "f4", stream=stream) as images, refused:
        made(images)


PTX = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128])
{
	.reg .b64 %map;
	.reg .b32 %x;
	.reg .b16 %o;
	.shared .align 1024 .b8 tile[1024];
	.shared .align 8 .b64 bar;
	mov.b64 %map, map;
	cvta.param.u64 %map, %map;
	mov.b32 %x, 0;
	mov.b16 %o, 0;
	cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes
		[tile], [%map, {%x, %x, %x}], [bar], {%o, %o};
	ret;
}
"""


def test_the_copy_is_refused_by_name(driver, later):
    if driver != "sim":
        pytest.skip("NVIDIA's driver has such copies")
    with pytest.raises(
        cu.UnsupportedError, match=r"im2col::w.* cannot run on the simulated device"
    ):
        cu.Program(PTX, "ptx").compile()["load"]
