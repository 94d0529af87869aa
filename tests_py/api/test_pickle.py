# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Plain data can be pickled and copied; objects that stand for driver objects cannot."""

from __future__ import annotations

import copy
import pickle

import pytest

import cudago as cu

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "plain",
    [
        cu.LaunchConfig(1, 32),
        cu.LaunchConfig((1, 2, 3), 4, cluster=(1, 2), shared_memory=5, priority=-1),
        cu.LaunchConfig(1, 1, cooperative=True, priority=0),
        cu.PoolOptions(),
        cu.ProgramOptions(),
        cu.Retained("node", "src", b"abcd", 4, "memcpy"),
    ],
    ids=repr,
)
def test_plain_data_is_pickled(plain, protocol):
    again = pickle.loads(pickle.dumps(plain, protocol))
    assert (again, repr(again)) == (plain, repr(plain))
    assert type(again) is type(plain)
    assert copy.deepcopy(plain) == copy.copy(plain) == plain


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_parameter_keeps_size_and_offset(protocol):
    parameter = cu.Parameter("b8[24]", 24, 8)
    for again in (pickle.loads(pickle.dumps(parameter, protocol)), copy.copy(parameter)):
        assert (again, again.size, again.offset) == ("b8[24]", 24, 8)
        assert type(again) is cu.Parameter


def test_a_device_is_its_number(device):
    assert pickle.loads(pickle.dumps(device)) is device
    assert copy.deepcopy({"device": device})["device"] is device


def test_what_the_driver_has_is_not_pickled(device, stream, kernels):
    buffer = device.allocate(4, stream=stream)
    graph = cu.Graph(device)
    node = graph.memset(buffer, 0)
    step = graph.instantiate()
    things = [stream, stream.record(), buffer, buffer.ptr, buffer.view("u1"), kernels]
    things += [kernels["copy"], kernels["copy"].attributes, graph, node, step, step[node.name]]
    things += [node.retained[0], device.memory_resource]
    for thing in things:
        for protocol in PROTOCOLS:
            with pytest.raises(TypeError, match=r"^cannot pickle '"):
                pickle.dumps(thing, protocol)
