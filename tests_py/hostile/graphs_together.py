# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Situations of graphs that several threads use at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import cudago as cu

from .situations import ROUNDS, allowed, situation
from .world import N, World


@situation
def pointers_are_watched_while_all_changes() -> None:
    """Watching begins and ends, graphs are made and closed, while others launch and update."""
    w = World()
    device, kernel, config = cu.Device(), w.get("kernel"), w.get("config")
    address, stop = w.get("buffer").handle, threading.Event()
    graph = cu.Graph(device)
    node = graph.launch(config, kernel, address, 0, N, name="k")
    step = graph.instantiate()

    def launches() -> None:
        with device.create_stream() as stream:
            while not stop.is_set():
                step.launch(stream)
                step["k"].update(config, kernel, address, 0, N)

    def changes() -> None:
        while not stop.is_set():
            node.update(config, kernel, address, 0, N)
            step.update(graph)
            with graph.clone() as clone, clone.instantiate() as made:
                made.launch(device.default_stream)

    def closes() -> None:
        while not stop.is_set():
            with cu.Graph(device) as other, device.create_stream() as stream:
                other.embed(graph)
                with stream.capture() as captured:
                    cu.launch(stream, config, kernel, address, 0, N)
                thread = threading.Thread(target=captured.close)
                thread.start()
                allowed(lambda captured=captured: captured.instantiate().close())
                thread.join()

    threads = [threading.Thread(target=f) for f in (launches, changes, closes)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(ROUNDS // 5):
            with cu.debug.watch_pointers():
                step.launch(device.default_stream)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    device.sync()  # nobody keeps memory that is given by its address
    step.close()
    graph.close()
    w.close()


@situation
def a_graph_is_moved_while_others_use_it() -> None:
    """Each use happens before the move, or says that the graph is closed."""
    device = cu.Device()
    for _ in range(ROUNDS // 20):
        w = World()
        inner, outer, buffer = cu.Graph(device), cu.Graph(device), w.get("buffer")
        node = inner.memset(buffer, 1)
        uses: list[Callable[[], Any]] = [
            lambda i=inner, b=buffer: i.memset(b, 2),
            lambda i=inner: i.instantiate().close(),
            lambda i=inner: i.clone().close(),
            lambda n=node, b=buffer: n.update(b, 3),
            lambda i=inner, o=outer: o.embed(i, move=True),
            lambda i=inner, o=outer: i.embed(o, move=True),
            lambda o=outer: o.instantiate().close(),
            inner.close,
        ]
        threads = [threading.Thread(target=allowed, args=(use,)) for use in uses]
        for thread in threads:
            thread.start()
        allowed(lambda i=inner, o=outer: o.embed(i, move=True))
        for thread in threads:
            thread.join()
        for graph in (outer, inner):
            if not graph.is_closed:
                with graph.instantiate() as step:
                    step.launch(device.default_stream)
                graph.close()
        device.sync()
        w.close()


@situation
def executables_end_while_their_graph_is_copied() -> None:
    """The driver shares state between a graph, its copies and their executables."""
    device = cu.Device()
    w = World()
    graph, outer = cu.Graph(device), cu.Graph(device)
    graph.memset(w.get("buffer"), 1)
    uses: list[Callable[[], Any]] = [
        lambda: graph.instantiate().close(),
        lambda: graph.instantiate().close(),
        lambda: graph.clone().close(),
        lambda: outer.remove(outer.embed(graph)),
        lambda: graph.clone().instantiate().close(),
    ]

    def again(use: Callable[[], Any]) -> None:
        for _ in range(ROUNDS // 2):
            use()

    failed: list[BaseException] = []
    threads = [threading.Thread(target=noted, args=(failed, again, use)) for use in uses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outer.close()
    graph.close()
    w.close()
    if failed:
        raise failed[0]


def noted(failed: list[BaseException], call: Callable[..., Any], *args: Any) -> None:
    """Make a call in a thread, and note what it raises."""
    try:
        call(*args)
    except BaseException as e:
        failed.append(e)
