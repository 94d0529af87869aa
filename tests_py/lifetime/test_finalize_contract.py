# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""`cudago.finalize` against `weakref.finalize`, point by point: each test runs on both."""

from __future__ import annotations

import gc
import inspect
import weakref

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


# --- what it tells, and once ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs"), [((1, 2, 3), {}), ((1,), {"y": 2, "z": 3}), ((), {"x": 1, "y": 2, "z": 3})]
)
def test_peek_detach_and_call_agree(finalize, args, kwargs):
    thing = Thing()
    f = finalize(thing, total, *args, **kwargs)
    assert f.peek() == f.peek() == (thing, total, args, kwargs)
    assert f.alive
    assert f.detach() == (thing, total, args, kwargs)
    assert is_dead(f)
    f = finalize(thing, total, *args, **kwargs)
    assert f() == 6
    assert is_dead(f)


def test_what_peek_returns_is_what_will_be_given(finalize):
    thing = Thing()
    f = finalize(thing, total, 1, 2, z=3)
    f.peek()[3]["z"] = 10
    assert f() == 13


def test_dead_when_the_object_has_died(finalize):
    called = []
    thing = Thing()
    f = finalize(thing, called.append, 1)
    del thing
    assert called == [1]
    assert is_dead(f)
    assert called == [1]


def test_names_of_the_arguments_are_free(finalize):
    thing, seen = Thing(), []
    f = finalize(thing, lambda *args, **kwargs: seen.append((args, kwargs)), 1, obj=2, func=3)
    assert f.peek()[2:] == ((1,), {"obj": 2, "func": 3})
    f()
    assert seen == [((1,), {"obj": 2, "func": 3})]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((Thing,), {}),
        ((), {"obj": Thing, "func": print}),
        ((Thing,), {"func": print}),
        ((5, print), {}),
        ((None, print), {}),
        (("text", print), {}),
    ],
)
def test_invalid_arguments(finalize, args, kwargs):
    with pytest.raises(TypeError):
        finalize(*args, **kwargs)


def test_a_call_with_arguments(finalize):
    thing = Thing()
    f = finalize(thing, total, 1, 2, 3)
    for args, kwargs in [((1, 2), {}), ((), {"x": 1})]:
        with pytest.raises(TypeError):
            f(*args, **kwargs)
    assert f.alive
    assert f(None) == 6, "what a weak reference gives its callback is ignored"


def test_the_forms_of_its_repr(finalize):
    thing = Thing()
    f = finalize(thing, print)
    assert repr(f) == f"<finalize object at {id(f):#x}; for 'Thing' at {id(thing):#x}>"
    f.detach()
    assert repr(f) == f"<finalize object at {id(f):#x}; dead>"


def test_the_flag_for_the_exit(finalize):
    thing = Thing()
    f = finalize(thing, print)
    assert f.atexit is True
    for value in (0, 1, [], "yes"):
        f.atexit = value
        assert f.atexit is bool(value)
    with pytest.raises(AttributeError):
        del f.atexit
    f.detach()
    f.atexit = True
    assert f.atexit is False


def test_no_other_attributes(finalize):
    thing = Thing()
    f = finalize(thing, print)
    for name in ("other", "alive", "peek"):
        with pytest.raises(AttributeError):
            setattr(f, name, 1)
    f.detach()


def test_the_order_of_several(finalize):
    called = []
    thing = Thing()
    several = [finalize(thing, called.append, n) for n in range(5)]
    several[4].detach()
    several[1]()
    several = several[2:]  # the first two have no reference any more
    del thing
    assert called == [1, 3, 2, 0]
    assert all(map(is_dead, several))


# --- a class --------------------------------------------------------------------------------------


def test_it_is_a_class(finalize):
    thing = Thing()
    f = finalize(thing, print)
    assert inspect.isclass(finalize)
    assert type(f) is finalize
    assert f.detach()[0] is thing


def test_a_subclass(finalize):
    class Mine(finalize):
        """With a word of its own."""

        def __init__(self, thing, word):
            super().__init__(thing, called.append, word)
            self.word = word

    called, thing = [], Thing()
    f = Mine(thing, "one")
    assert isinstance(f, finalize)
    assert f.word == "one"
    assert repr(f).startswith("<Mine object at ")
    del thing
    assert called == ["one"]


def test_a_subclass_that_is_called_its_own_way(finalize):
    class Mine(finalize):
        def __call__(self, _=None):
            called.append("mine")
            return super().__call__()

    called, thing = [], Thing()
    Mine(thing, called.append, "function")
    del thing
    assert called == ["mine", "function"]


def test_one_that_was_not_initialized(finalize):
    f = finalize.__new__(finalize)
    assert is_dead(f)
    f.atexit = True
    assert f.atexit is False


def test_one_that_is_initialized_again(finalize):
    called, first, second = [], Thing(), Thing()
    argument = Thing()
    gone = weakref.ref(argument)
    f = finalize(first, called.append, argument)
    del argument
    f.atexit = False
    f.__init__(second, called.append, "second")
    assert gone() is None
    assert f.atexit is True
    with pytest.raises(TypeError):
        f.__init__(5, print)
    assert f.peek()[0] is second
    del first
    assert called == []
    del second
    assert called == ["second"]
    assert is_dead(f)


# --- references -----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["call", "detach", "object"])
def test_nothing_is_left_of_one_that_is_dead(finalize, end):
    class Mine(finalize):
        """Takes weak references, which `weakref.finalize` does not."""

    def function(argument):
        """Have no other reference."""

    thing, argument = Thing(), Thing()
    f = Mine(thing, function, argument)
    gone = [weakref.ref(o) for o in (f, function, argument)]
    gc.disable()  # references alone must do
    try:
        del function, argument
        if end == "call":
            f()
        elif end == "detach":
            f.detach()
        else:
            del thing
        assert [w() for w in gone] == [f, None, None]
        del f
        assert gone[0]() is None
        if end != "object":
            assert weakref.getweakrefcount(thing) == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("ended", [False, True])
def test_the_collector_keeps_what_is_alive(finalize, ended):
    """The finalizer is in a cycle with its argument; while it is alive that is no garbage."""

    class Mine(finalize):
        """With a dictionary."""

    called = []
    thing, argument = Thing(), Thing()
    argument.finalizer = f = Mine(thing, called.append, argument)
    f.itself = f
    gone = weakref.ref(argument)
    del argument
    if ended:
        f.detach()
    del f
    gc.collect()
    assert (gone() is None) is ended
    del thing
    assert [type(c) for c in called] == [] if ended else [Thing]
    called.clear()
    gc.collect()
    assert gone() is None


def test_the_collector_at_each_step(finalize, unraisable):
    called = []

    def function(number):
        gc.collect()
        called.append(number)
        if number == 1:
            raise LookupError

    things = [Thing() for _ in range(3)]
    for number, thing in enumerate(things):
        thing.cycle = thing
        finalize(thing, function, number)
        gc.collect()
    f = finalize(things[0], gc.collect)
    assert isinstance(f.peek(), tuple)
    del thing
    things.clear()
    gc.collect()
    assert sorted(called) == [0, 1, 2]
    assert [type(e) for _, e in unraisable] == [LookupError]
    gc.collect()
    assert is_dead(f)


def test_garbage_with_its_own_finalizer(finalize):
    """Object, finalizer and argument in one cycle: the registry holds them until it is called."""
    called = []
    thing = Thing()
    gone = weakref.ref(thing)
    thing.finalizer = f = finalize(thing, called.append, thing)
    del thing
    gc.collect()
    assert called == []
    assert gone() is not None
    f()
    called.clear()
    del f
    gc.collect()
    assert gone() is None


def test_an_argument_that_is_released_uses_the_finalizer(finalize):
    class Argument:
        def __del__(self):
            seen.append((f.alive, f(), f.peek(), f.detach()))

    seen, thing = [], Thing()
    f = finalize(thing, lambda argument: seen.append("called"), Argument())
    f()
    assert seen == ["called", (False, None, None, None)]
