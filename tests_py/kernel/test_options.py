# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Fields of options are checked when options are made, by one table."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import cudago as cu
from cudago._kernel import option_checks

SOURCE = 'extern "C" __global__ void f() {}'
CLASSES = (cu.ProgramOptions, cu.LinkerOptions)
# By annotation, without None: values that are refused with TypeError, and with ValueError.
WRONG = {
    "bool": ((0, 1, "no", None, np.True_), ()),
    "int": ((1.5, "1", True, b"1", []), (-1, 1 << 31, 1 << 70)),
    "str": ((75, b"x", Path("x"), ["x"]), ("a\0b", "\udc80")),
    "str | PathLike[str]": ((3, b"x", ["x"]), ("a\0", Path("a\0"))),
    "int | Sequence[int]": (("177", [1, "2"], {1}, True), (-1, [1, -1])),
    "str | Sequence[str]": ((3, b"x", [b"x"], [None], {"x"}, bytearray(b"x")), ("\0", ["a", "\0"])),
    "str | PathLike[str] | Sequence[str | PathLike[str]]": (
        (b"/tmp", [None], [b"x"], 3, {"x": "y"}),
        ("\0", ["x", Path("\0")]),
    ),
    "Sequence[str]": ((3, b"x", [3], [None], {"x"}), (["\0"],)),
    "Sequence[tuple[str, str | bytes]]": ((3, "ab", b"ab", {("a", "b")}), ()),
    "Literal['0', 'min', 'mid', 'max']": ((0, b"min"), ("fast", "")),
    "Mapping[str, str]": (("x", [("a", "b")], {3: "a"}, {"a": None}), ({"": "a"}, {"a": "\0"})),
    "str | tuple[str, Any] | Sequence[str | tuple[str, Any]] | Mapping[str, Any]": (
        (3, b"A", [3], {3: 4}, {"A": b"1"}, {"A": ["1"]}, (3, "A"), ("A", b"1"), [("A", [])]),
        ("\0", {"A\0": 1}, {"A": "\0"}, ("A\0", "1"), [("A", "\0")], ("A=1", "B")),
    ),
}


def kind_of(field):
    return field.type.removesuffix(" | None")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_field_is_checked(cls):
    for field in fields(cls):
        assert kind_of(field) in option_checks._KINDS, field.name
        for error, values in zip((TypeError, ValueError), WRONG[kind_of(field)], strict=True):
            for value in values:
                if value is None and field.type.endswith(" | None"):
                    continue
                with pytest.raises(error, match=rf"\b{field.name}\b.* must be .*, got ") as caught:
                    cls(**{field.name: value})
                assert type(caught.value) is error


@pytest.mark.parametrize("cls", CLASSES)
def test_none_is_for_fields_that_may_be_left_out(cls):
    for field in fields(cls):
        if field.type.endswith(" | None"):
            assert getattr(cls(**{field.name: None}), field.name) is None
        else:
            with pytest.raises(TypeError, match=f"{field.name} must be a.*, got None"):
                cls(**{field.name: None})


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("arch", 75, "arch must be a str, got 75 (int)"),
        ("ftz", "no", "ftz must be a bool, got 'no' (str)"),
        ("max_registers", -1, "max_registers must be from 0 to 2147483647, got -1 (int)"),
        ("include_path", b"/x", "include_path must be a str, a path, or a sequence of such, got"),
        ("options", ["-a", "\0"], r"options[1] must be text without a NUL, got '\x00' (str)"),
        ("ofast_compile", "fast", "must be one of '0', 'min', 'mid', 'max', got 'fast' (str)"),
    ],
)
def test_the_texts(field, value, text):
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        cu.ProgramOptions(**{field: value})


@pytest.mark.parametrize(
    "given",
    [
        {"include_path": Path("/nowhere"), "name": "x.cu"},
        {"include_path": ["/nowhere", Path("/nowhere")]},
        {"define_macro": {"A": None, "B": 1, "C": 1.5, "D": np.int64(3), "E": "x", "F": False}},
        {"define_macro": ["A", "B=2"], "undefine_macro": "A"},
        {"define_macro": ("A", "B", "C=3")},
        {"max_registers": np.int64(32)},
        {"diag_suppress": [177, np.int32(550)]},
        {"diag_suppress": 177, "split_compile": 0},
        {"options": ("-DX",), "headers": {"x.h": ""}},
        {"options": "-DX", "ofast_compile": "min"},
        {"ftz": False, "arch": "compute_75", "std": "c++17"},
    ],
)
def test_good_values_compile(driver, given):
    assert cu.Program(SOURCE, options=cu.ProgramOptions(**given)).compile("ptx", cache=False).ptx


@pytest.mark.parametrize(
    "macros",
    [("VALUE", "SEVEN"), [("VALUE", "SEVEN"), "OTHER"], ("OTHER=1", ("VALUE", 7), "MORE")],
)
def test_a_tuple_of_two_is_a_name_and_its_value(driver, macros):
    options = cu.ProgramOptions(define_macro=macros)
    source = "#define SEVEN 7\nstatic_assert(VALUE == 7);" + SOURCE
    cu.Program(source, options=options).compile("ptx", cache=False)


@pytest.mark.parametrize("macros", [("A", "B=2"), ("A=1", "B"), [("A=1", "B")], ("F(x)=x", "B")])
def test_a_tuple_of_two_macros_is_refused(driver, macros):
    with pytest.raises(ValueError, match=r"define_macro.* name and its value .* write a list"):
        cu.ProgramOptions(define_macro=macros)
    with pytest.raises(TypeError, match="define_macro must be a str, a tuple of a name and its"):
        cu.ProgramOptions(define_macro=(1, 2))


class Three:
    def __index__(self):
        return 3


def test_an_object_that_is_a_number_is_that_number(driver):
    options = cu.ProgramOptions(define_macro={"THREE": Three()}, diag_suppress=Three())
    cu.Program("static_assert(THREE == 3);" + SOURCE, options=options).compile("ptx", cache=False)


@pytest.mark.parametrize(("yes", "no"), [(True, False), (np.True_, np.False_)])
def test_a_bool_is_a_number_in_a_macro(driver, yes, no):
    options = cu.ProgramOptions(define_macro={"YES": yes, "NO": no})
    cu.Program("static_assert(YES == 1 && NO == 0);" + SOURCE, options=options).compile("ptx")
