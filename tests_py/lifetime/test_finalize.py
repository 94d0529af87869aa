# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""`cudago.finalize` keeps the contract of `weakref.finalize`: the same table, run on both."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu


class Thing:
    """Something to watch."""


def add(x, y, z):
    """Return the sum of three things."""
    return x + y + z


def test_alive_peek_and_call(finalize):
    thing = Thing()
    f = finalize(thing, add, 67, 43, z=89)
    assert f.alive
    obj, func, args, kwargs = f.peek()
    assert (obj, func, args, kwargs) == (thing, add, (67, 43), {"z": 89})
    assert f() == 199
    assert not f.alive
    assert f() is None
    assert f.peek() is None
    assert f.detach() is None


def test_detach(finalize):
    called = []
    thing = Thing()
    f = finalize(thing, called.append, 1)
    obj, func, args, kwargs = f.detach()
    assert (obj, args, kwargs) == (thing, (1,), {})
    func(2)
    assert not f.alive
    assert f.detach() is None
    assert f() is None
    del thing, obj
    assert called == [2]


def test_the_object_dies(finalize):
    called = []
    thing = Thing()
    f = finalize(thing, called.append, 1)
    assert called == []
    del thing
    assert called == [1]
    assert not f.alive
    assert f() is None
    assert called == [1]


def test_no_reference_to_the_finalizer_is_needed(finalize):
    called = []
    thing = Thing()
    finalize(thing, called.append, 1)
    gc.collect()
    del thing
    assert called == [1]


def test_the_newest_runs_first(finalize):
    called = []
    thing = Thing()
    for number in range(3):
        finalize(thing, called.append, number)
    del thing
    assert called == [2, 1, 0]


def test_the_object_is_dead_when_the_function_runs(finalize):
    seen = []
    thing = Thing()
    reference = weakref.ref(thing)
    finalize(thing, lambda: seen.append(reference()))
    del thing
    assert seen == [None]


def test_an_object_in_a_cycle(finalize):
    called = []
    thing = Thing()
    thing.self = thing
    finalize(thing, called.append, 1)
    del thing
    gc.collect()
    assert called == [1]


def test_arguments_are_released_when_the_function_has_run(finalize):
    thing, argument = Thing(), Thing()
    gone = weakref.ref(argument)
    f = finalize(thing, lambda x: None, argument)
    del argument
    assert gone() is not None
    del thing
    assert gone() is None
    assert not f.alive


def test_detach_releases_the_arguments(finalize):
    thing, argument = Thing(), Thing()
    gone = weakref.ref(argument)
    f = finalize(thing, lambda x: None, argument)
    del argument
    f.detach()
    assert gone() is None


def test_an_exception_of_the_function_is_raised_by_a_call(finalize):
    thing = Thing()
    f = finalize(thing, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        f()
    assert not f.alive
    assert f() is None


def test_an_exception_is_reported_when_the_object_dies(finalize, unraisable):
    called = []
    thing = Thing()
    finalize(thing, called.append, "first")
    finalize(thing, lambda: 1 / 0)
    finalize(thing, called.append, "last")
    del thing
    assert called == ["last", "first"]
    assert [type(e) for _, e in unraisable] == [ZeroDivisionError]


def test_an_exception_under_way_is_kept(finalize, unraisable):
    def fail():
        thing = Thing()
        finalize(thing, lambda: 1 / 0)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine") as e:
        fail()
    e.traceback  # noqa: B018  # holds the frame, and so the thing
    del e
    gc.collect()
    assert [type(u) for _, u in unraisable] == [ZeroDivisionError]


def test_atexit_can_be_set(finalize):
    thing = Thing()
    f = finalize(thing, print)
    assert f.atexit is True
    f.atexit = False
    assert f.atexit is False
    f.detach()
    assert f.atexit is False
    f.atexit = True  # of a dead one: no error, no effect
    assert f.atexit is False


def test_invalid_arguments(finalize):
    with pytest.raises(TypeError):
        finalize(Thing())
    with pytest.raises(TypeError):
        finalize()
    with pytest.raises(TypeError, match="weak reference"):
        finalize(5, print)


def test_keywords_of_any_name(finalize):
    seen = []
    thing = Thing()
    finalize(thing, lambda **kwargs: seen.append(kwargs), obj=1, func=2, self=3, args=4)
    del thing
    assert seen == [{"obj": 1, "func": 2, "self": 3, "args": 4}]


def test_repr(finalize):
    thing = Thing()
    f = finalize(thing, print)
    assert f"for 'Thing' at {id(thing):#x}" in repr(f)
    f.detach()
    assert "dead" in repr(f)


def test_a_finalizer_that_makes_another(finalize):
    called = []
    thing, others = Thing(), [Thing()]
    finalize(thing, lambda: finalize(others[0], called.append, "other"))
    del thing
    assert called == []
    others.clear()
    assert called == ["other"]


def test_detach_comes_too_late_when_the_object_has_died(finalize):
    called = []
    thing = Thing()
    first = finalize(thing, called.append, "first")
    finalize(thing, lambda: called.append(first.detach()))
    del thing
    assert called == [None, "first"]


def test_many_threads(finalize):
    called = []

    def work() -> None:
        for number in range(200):
            thing = Thing()
            finalize(thing, called.append, number)
            del thing

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(called) == sorted(list(range(200)) * 4)


def test_called_once_by_whoever_comes_first(finalize):
    for _ in range(50):
        called = []
        thing = Thing()
        f = finalize(thing, called.append, 1)
        barrier = threading.Barrier(4)

        def call(f=f, barrier=barrier) -> None:
            barrier.wait()
            f()

        threads = [threading.Thread(target=call) for _ in range(3)]
        for t in threads:
            t.start()
        barrier.wait()
        del thing
        for t in threads:
            t.join()
        assert called == [1]


EXIT = """
import sys, weakref
import cudago as cu
finalize = {"weakref": weakref.finalize, "cudago": cu.finalize}[sys.argv[1]]

class Thing: ...

def say(*args, **kwargs):
    print(*args, *kwargs.items(), flush=True)

things = [Thing() for _ in range(4)]
finalize(things[0], say, "first", number=1)
finalize(things[1], say, "quiet").atexit = False
finalize(things[2], lambda: finalize(things[0], say, "added at exit"))
finalize(things[3], say, "detached").detach()
finalize(things[3], lambda: 1 / 0)
finalize(things[3], say, "newest")
cycle = Thing()
cycle.self = cycle
finalize(cycle, say, "cycle")
"""


@pytest.mark.parametrize("name", ["weakref", "cudago"])
def test_at_exit(name, script):
    command = script.command(EXIT)
    run = script.run([*command, name])
    assert run.returncode == 0
    lines = run.stdout.splitlines()
    assert lines == ["cycle", "newest", "added at exit", "first ('number', 1)"]
    assert run.stderr.count("ZeroDivisionError") == 1


def test_live_finalizers_are_counted():
    before = cu.live_objects().get("Finalizer", 0)
    thing = Thing()
    f = cu.finalize(thing, print)
    assert cu.live_objects()["Finalizer"] == before + 1
    f.detach()
    assert cu.live_objects().get("Finalizer", 0) == before


def test_no_driver_is_opened(script):
    run = script(
        """
        import cudago as cu
        class Thing: ...
        thing = Thing()
        cu.finalize(thing, print, "gone")
        del thing
        assert not cu._core._is_open()
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "gone\n", "")
