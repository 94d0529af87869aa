# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a profiler collects, and the names that it shows."""

from __future__ import annotations

import sys

import pytest

import cudago as cu
from cudago import nvtx

# Takes the place of NVIDIA's package, and writes down what reaches it.
PACKAGE = """
import contextlib

seen = []

class annotate(contextlib.ContextDecorator):
    def __init__(self, message, color, domain):
        self.about = message, color, domain
    def __enter__(self):
        seen.append(("in", *self.about))
    def __exit__(self, *error):
        seen.append(("out", *self.about))

def mark(message, color, domain):
    seen.append(("at", message, color, domain))
"""


@pytest.fixture
def absent(monkeypatch):
    """NVIDIA's package is not installed."""
    monkeypatch.setattr(nvtx, "_found", [])
    monkeypatch.setitem(sys.modules, "nvtx", None)


def test_the_profiler_starts_and_stops(device):
    cu.profiler.stop()
    cu.profiler.start()
    cu.profiler.start(device)
    cu.profiler.stop(device)
    with cu.profiler() as p, cu.profiler(device):
        assert isinstance(p, cu.profiler)


def test_the_profiler_lets_errors_out(device):
    with pytest.raises(ZeroDivisionError), cu.profiler(device):
        raise ZeroDivisionError


def test_while_a_stream_is_capturing(stream):
    with stream.capture() as graph:
        for call in (cu.profiler.start, cu.profiler.stop):
            with pytest.raises(ValueError, match="cannot start or stop while a stream"):
                call()
    assert len(graph.nodes) == 0
    graph.close()


@pytest.mark.parametrize("call", [cu.profiler, cu.profiler.start, cu.profiler.stop])
def test_the_profiler_refuses_what_is_no_device(call, device):
    with pytest.raises(TypeError, match="device must be a Device, not int"):
        call(0)


def test_names_without_the_package(absent):
    assert not nvtx.is_available()
    nvtx.mark("here", color="green")
    with nvtx.range("part", color=0xFF00FF00, domain="mine") as part:
        assert isinstance(part, nvtx.range)

    def step():
        return 5

    assert nvtx.range("step")(step) is step
    with pytest.raises(ZeroDivisionError), nvtx.range("part"):
        raise ZeroDivisionError


def test_names_with_the_package(script, tmp_path):
    (tmp_path / "nvtx.py").write_text(PACKAGE)
    run = script(
        """
        import sys
        sys.path.insert(0, ".")
        import cudago as cu

        assert "nvtx" not in sys.modules, "loaded before it is needed"
        assert cu.nvtx.is_available()
        from nvtx import seen

        cu.nvtx.mark("m", color="green", domain="d")
        with cu.nvtx.range("r", color=0xFF00FF00):
            pass

        @cu.nvtx.range("f")
        def f(x):
            "Doubles."
            return 2 * x

        assert f(4) == 8 and f.__doc__ == "Doubles."
        try:
            with cu.nvtx.range("e"):
                raise KeyError
        except KeyError:
            pass
        assert seen == [
            ("at", "m", "green", "d"),
            ("in", "r", 0xFF00FF00, None), ("out", "r", 0xFF00FF00, None),
            ("in", "f", None, None), ("out", "f", None, None),
            ("in", "e", None, None), ("out", "e", None, None),
        ], seen
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("name", [nvtx.mark, nvtx.range])
def test_names_that_are_refused(name, absent):
    with pytest.raises(TypeError, match="message must be a str, not bytes"):
        name(b"text")
    with pytest.raises(TypeError, match=r"color must be a name or 0xAARRGGBB, not float"):
        name("text", color=1.0)
    with pytest.raises(ValueError, match="color must be 0 to 0xFFFFFFFF"):
        name("text", color=1 << 32)
    with pytest.raises(TypeError, match="domain must be a str, not int"):
        name("text", domain=1)
    with pytest.raises(TypeError, match="function must be callable"):
        nvtx.range("text")(5)
