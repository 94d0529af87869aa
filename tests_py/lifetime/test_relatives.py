# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that are related, as clones and embedded ones are, made and dropped on several threads.

NVIDIA's driver (580.159) crashes where one of them is destroyed while another is cloned, embedded,
instantiated or destroyed: `kin` in package cuda.
"""

from __future__ import annotations

import threading

import pytest

import cudago as cu

ROUNDS = {"nvidia": 3000, "sim": 100}


@pytest.mark.parametrize("how", ["clone", "embed"])
def test_relatives_are_dropped_on_several_threads(driver, device, stream, how):
    failures = []

    def related(to: cu.Graph) -> cu.Graph:
        if how == "clone":
            return to.clone()
        graph = cu.Graph(device)
        graph.embed(to)
        return graph

    def make_and_drop(graph: cu.Graph) -> None:
        try:
            for _ in range(ROUNDS[driver]):
                relative = related(graph)
                step = relative.instantiate()
                del relative
                del step  # the reaper destroys both while this thread goes on
                related(graph).close()
        except BaseException as e:
            failures.append(e)
            raise

    with device.allocate(64, stream=stream) as buffer, cu.Graph(device) as graph:
        graph.memset(buffer, 1)
        threads = [threading.Thread(target=make_and_drop, args=[graph]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
