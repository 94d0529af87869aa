# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The rooms of pyext are in order, and the test finds violations."""

from __future__ import annotations

import pytest

from .rooms import GENERATED, PYEXT, Arrows, go_texts, rooms, texts


def test_each_file_is_of_a_noun_of_its_room():
    for room, nouns in rooms().items():
        files = {f for f in (PYEXT / room).iterdir() if f.is_file()}
        assert sorted(nouns) == sorted({f.stem for f in files if f.name not in GENERATED})


def test_all_folders_of_c_are_rooms():
    assert {f.parent.name for f in PYEXT.glob("*/*.c")} == set(rooms())


def test_nothing_is_named_of_a_later_room():
    assert list(Arrows(texts(), go_texts()).against()) == []


def test_go_knows_of_the_headers():
    assert list(Arrows(texts(), go_texts()).unknown_to_go()) == []


def test_headers_are_part_of_their_packages():
    for room in rooms():
        if room != "module":  # which no other includes
            assert "//go:embed *.h\n" in go_texts()[f"{room}/room.go"]


FOUND = {
    "a call": (
        "stream/x.c",
        "static void f(void) { cudago_buffers_release(); }",
        "cudago_buffers_release",
    ),
    "a call of Go": (
        "border/x.c",
        "static void f(void) { cudagoLineProve(1); }",
        "cudagoLineProve",
    ),
    "a variable": (
        "border/x.c",
        "static int f(void) { return cudago_beginners; }",
        "cudago_beginners",
    ),
    "a type": ("memory/x.c", "static int f(OperandObject *o) { return 0; }", "OperandObject"),
    "an inline function": (
        "border/x.h",
        "static inline int f(void *s) { return cudago_stream_lost(s); }",
        "cudago_stream_lost",
    ),
    "an include": ("kernel/x.c", '#include "graph/graph.h"', "graph/graph.h"),
    "a call from Go": (
        "border/x.go",
        "func f() { C.cudago_streams_sweep() }",
        "cudago_streams_sweep",
    ),
    "an include in Go": (
        "memory/x.go",
        '/*\n#include "kernel/kernel.h"\n*/\nimport "C"',
        "kernel/kernel.h",
    ),
    "an import": (
        "stream/x.go",
        'import "github.com/cudago/cudago/pyext/memory"',
        "package memory",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_goes_against_the_order_is_found(name):
    file, text, wanted = FOUND[name]
    c, go = dict(texts()), dict(go_texts())
    (go if file.endswith(".go") else c)[file] = text
    (found,) = Arrows(c, go).against()
    assert found.startswith(f"{file}: {wanted} is of the later room ")


FINE = {
    "an earlier room": (
        "graph/x.c",
        "static void f(cudago_stream *s) { cudago_stream_retain(s); }",
    ),
    "a static function of the same name": ("border/x.c", "static void cudago_prove_all(void) {}"),
    "a comment": ("border/x.go", "// C.cudago_streams_sweep frees them."),
}


@pytest.mark.parametrize("name", FINE)
def test_what_is_in_order_is_not_found(name):
    file, text = FINE[name]
    c, go = dict(texts()), dict(go_texts())
    (go if file.endswith(".go") else c)[file] = text
    assert list(Arrows(c, go).against()) == []


def test_a_header_that_go_does_not_know_of_is_found():
    go = dict(go_texts())
    path = '_ "github.com/cudago/cudago/pyext/tensor"'
    assert path in go["kernel/room.go"]
    go["kernel/room.go"] = go["kernel/room.go"].replace(path, "")
    assert list(Arrows(texts(), go).unknown_to_go()) == [
        "kernel includes headers of tensor, and does not import it"
    ]
