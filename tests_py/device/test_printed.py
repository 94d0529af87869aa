# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What simulated devices print goes to ``sys.stdout``, whatever that does."""

from __future__ import annotations

import sys

import pytest

import cudago as cu


class Gone:
    """An output that is gone with the look-up of its attribute."""

    def __getattribute__(self, name):
        sys.stdout = sys.__stdout__
        raise AttributeError(name)

    def __getattr__(self, name):
        return lambda text: None


@pytest.mark.skipif("cu.driver_name() != 'sim'", reason="NVIDIA's driver prints by itself")
def test_output_that_replaces_itself(stream, monkeypatch):
    code = cu.Program('extern "C" __global__ void hi() { printf("hi\\n"); }').compile()
    cu.launch(stream, cu.LaunchConfig(1, 1), code["hi"])
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back at the end
    sys.stdout = Gone()
    stream.sync()
    assert sys.stdout is sys.__stdout__
