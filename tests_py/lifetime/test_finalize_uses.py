# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Finalizers that raise, use themselves or race, of `cudago` and of `weakref`: the same tests."""

from __future__ import annotations

import gc
import itertools
import sys
import threading

import pytest


class Thing:
    """Something to watch."""


def total(x, y, z):
    """Return the sum of three things."""
    return x + y + z


def is_dead(f) -> bool:
    """Whether a finalizer says everywhere that it is dead."""
    answers = f(), f.peek(), f.detach()
    return answers == (None, None, None) and not f.alive and "dead" in repr(f)


# --- exceptions, and functions that use the finalizer ---------------------------------------------


def test_an_exception_names_the_finalizer(finalize, monkeypatch):
    told = []
    # Since 3.14 the text names it, and the object is None.
    monkeypatch.setattr(
        sys,
        "unraisablehook",
        lambda u: told.append((f"{u.err_msg} {u.object!r}", type(u.exc_value))),
    )
    thing = Thing()
    f = finalize(thing, total, 1, 2, "3")
    del thing
    ((text, kind),) = told
    assert repr(f) in text
    assert kind is TypeError


def test_an_exception_under_way_is_kept(finalize, unraisable):
    def fail(things):
        things.clear()  # by C, with a result to return
        raise LookupError("mine")

    def call():
        thing = Thing()  # dies while the exception passes
        finalize(thing, total, 1, 2, "3")
        finalize(thing, called.append, sys.exc_info()[0])
        fail(things)

    called, things = [], [Thing()]
    finalize(things[0], called.append, "cleared")
    with pytest.raises(LookupError, match="mine") as e:
        call()
    del e
    gc.collect()
    assert called == ["cleared", None]
    assert [type(e) for _, e in unraisable] == [TypeError]


def test_a_generator_that_ends_with_an_exception(finalize):
    """The object dies while StopIteration is on its way."""

    def generate():
        thing = Thing()
        finalize(thing, called.append, "gone")
        yield 1

    called = []
    assert list(generate()) == [1]
    assert called == ["gone"]


@pytest.mark.parametrize("use", ["call", "detach", "peek", "alive", "repr"])
def test_the_function_uses_its_finalizer(finalize, use):
    def function():
        called.append(
            {
                "call": lambda: f(),
                "detach": lambda: f.detach(),
                "peek": lambda: f.peek(),
                "alive": lambda: f.alive or None,
                "repr": lambda: None if "dead" in repr(f) else 1,
            }[use]()
        )
        return 5

    called, thing = [], Thing()
    f = finalize(thing, function)
    assert f() == 5
    assert called == [None]
    f = finalize(thing, function)
    del thing
    assert called == [None, None]


def test_the_function_initializes_its_finalizer_again(finalize):
    def function(n):
        called.append(n)
        if n < 3:
            f.__init__(other, function, n + 1)

    called, thing, other = [], Thing(), Thing()
    f = finalize(thing, function, 0)
    del thing
    assert called == [0]
    assert f.alive
    for _ in range(3):
        f()
    assert called == [0, 1, 2, 3]
    assert is_dead(f)


def test_the_function_ends_others(finalize):
    called, thing = [], Thing()
    older = finalize(thing, called.append, "older")
    other = Thing()
    oldest = finalize(other, called.append, "oldest")
    finalize(thing, lambda: (older(), oldest.detach()))
    del thing, other
    assert called == ["older"]
    assert is_dead(older)
    assert is_dead(oldest)


def test_an_object_that_is_resurrected(finalize):
    """Python calls ``__del__`` first, and the object's weak references only when it really dies."""

    class Back:
        def __del__(self):
            kept.append(self)

    called, kept = [], []
    thing = Back()
    f = finalize(thing, called.append, 1)
    del thing
    assert called == []
    assert f.alive
    assert f.peek()[0] is kept[0]
    kept.clear()
    assert called == [1]


def test_exceptions_are_raised_by_a_call(finalize):
    thing = Thing()
    for error in (LookupError, KeyboardInterrupt, SystemExit):

        def function(error=error):
            raise error

        f = finalize(thing, function)
        with pytest.raises(error):
            f()
        assert is_dead(f)


# --- threads --------------------------------------------------------------------------------------


def test_once_however_many_threads_end_it(finalize):
    """Calls, detaches and the object's end race; one of them gets it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for round_number in range(60):
            called, detached = [], []
            things = [Thing() for _ in range(20)]
            several = [finalize(t, called.append, n) for n, t in enumerate(things)]
            barrier = threading.Barrier(4)

            def call(several=several, barrier=barrier):
                barrier.wait()
                for f in several:
                    f()

            def detach(several=several, barrier=barrier, detached=detached):
                barrier.wait()
                for f in several:
                    if found := f.detach():
                        detached.append(found[2][0])

            def look(several=several, barrier=barrier):
                barrier.wait()
                for f in several:
                    assert f.peek() is None or len(f.peek() or (1, 1, 1, 1)) == 4
                    repr(f), f.alive, f.atexit

            threads = [threading.Thread(target=t) for t in (call, detach, look)]
            for t in threads:
                t.start()
            barrier.wait()
            while things:
                things.pop(round_number % len(things))
            for t in threads:
                t.join()
            detached_too = list(detached)
            assert sorted(itertools.chain(called, detached_too)) == list(range(20))
            assert not any(f.alive for f in several)
    finally:
        sys.setswitchinterval(interval)
