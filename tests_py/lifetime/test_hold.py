# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""`testing.hold`: what could never end."""

from __future__ import annotations

import pytest

import cudago as cu


def test_a_stream_that_is_capturing(stream):
    with (
        stream.capture() as graph,
        pytest.raises(ValueError, match="what is captured waits for nothing"),
        cu.testing.hold(stream),
    ):
        pass
    assert graph.nodes == ()
    graph.close()


def test_a_second_one(device, stream):
    """It ends at once, and its stream goes on after the first."""
    with device.create_stream() as other:
        with cu.testing.hold(stream) as go_on:
            for again in (stream, other):
                with cu.testing.hold(again):
                    pass
                assert not again.is_done
            go_on.set()
            with cu.testing.hold(other):
                assert not other.is_done
        stream.sync()
        other.sync()
