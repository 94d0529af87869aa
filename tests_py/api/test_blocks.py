# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What `with` blocks change for their time, where they end in another order than they began."""

from __future__ import annotations

import weakref

import pytest

import cudago as cu
from cudago._graph.watch import is_watching


def _has_origin(step: cu.GraphExec) -> bool:
    return cu.Graph(step.device).join().made_at is not None


SWITCHES = {
    "record_origins": (lambda step: cu.debug.record_origins(False), lambda s: not _has_origin(s)),
    "watch_pointers": (lambda step: cu.debug.watch_pointers(), lambda step: is_watching()),
    "disabled": (lambda step: step["fill"].disabled(), lambda step: not step["fill"].enabled),
}


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize(
    "order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0)]
)
def test_blocks_that_end_in_any_order(device, stream, name, order):
    """As those of threads, tasks and generators do."""
    with device.allocate(4, stream=stream) as x:
        graph = cu.Graph(device)
        graph.memset(x, 1, name="fill")
        step = graph.instantiate()
        make, is_so = SWITCHES[name]
        assert not is_so(step)

        def block():
            with make(step):
                yield

        blocks = [block() for _ in range(3)]
        for each in blocks:
            next(each)
        for i, which in enumerate(order):
            assert is_so(step)
            blocks[which].close() if i % 2 else next(blocks[which], None)
        assert not is_so(step)
        with make(step):
            assert is_so(step)
            if name == "disabled":
                step["fill"].enable()  # what a block does itself holds until its end
                with make(step):
                    assert is_so(step)
                assert not is_so(step)
        assert not is_so(step)
        step.close()


def test_checks_that_end_in_any_order(driver):
    if driver != "sim":
        pytest.skip("NVIDIA's driver has no checks")
    first, second = (cu.sim.check(name, raises=False) for name in ("uninitialized", "races"))
    first.__enter__()
    second.__enter__()
    now = cu._core._set_checks("races,collect")
    first.__exit__(None, None, None)
    assert cu._core._set_checks("races,collect") == now
    second.__exit__(None, None, None)
    assert cu._core._set_checks("") == ""


def test_a_block_that_is_dropped_while_it_is_compared():
    """Arguments are compared, to find the block that goes on for one that ends."""
    now = []

    def change(_key, value):
        now.append(value)
        return now[-2] if len(now) > 1 else None

    class Key:
        def __eq__(self, other):
            blocks[1:] = []  # which ends them
            return True

        __hash__ = None

    blocks = [cu._core.Block() for _ in range(3)]
    for i, block in enumerate(blocks):
        block._plan((change, Key(), i), None, None)
        block.__enter__()
    del block
    blocks[0].__exit__(None, None, None)
    assert now[:3] == [0, 1, 2]
    assert now[-1] is None  # as before the first


class Act:
    """Calls a function when it is asked for its truth."""

    def __init__(self, function) -> None:
        self.function = function

    def __bool__(self) -> bool:
        self.function()
        return True


def test_a_switch_is_switched_once_by_what_its_arguments_run(driver):
    was = cu._core._record_sites(None)
    switch = cu.debug.record_origins.__new__(cu.debug.record_origins)
    refused = []

    def again() -> None:
        with pytest.raises(RuntimeError, match="make another one") as caught:
            switch.__init__(True)
        refused.append(caught)

    switch.__init__(Act(again))
    assert refused
    with switch:
        assert cu._core._record_sites(None)
    assert cu._core._record_sites(None) == was


def test_a_block_ends_while_another_that_changed_the_same_goes(driver):
    """Who is told that a block is gone got it back, without references."""
    values = ["first"]

    def change(value: str) -> str:
        values.append(value)
        return values[-2]

    earlier, later = cu._core.Block(), cu._core.Block()
    for block, value in ((earlier, "earlier"), (later, "later")):
        block._plan((change, value), None)
        block.__enter__()
    told = weakref.ref(later, lambda _: earlier.__exit__(None, None, None))
    del block, later
    assert told() is None
    assert values[-1] == "first"
