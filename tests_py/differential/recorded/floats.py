# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Floating point: exact instructions in every rounding, approximations within their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .case import Case, Tolerance
from .integers import plain, tested

ROUNDINGS = ("rn", "rz", "rm", "rp")
SHAPES = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
COMPARISONS = (*ORDERED, *(f"{op}u" for op in ORDERED), "num", "nan")


def single() -> Iterator[Case]:
    """Yield f32."""
    for (op, n), rounding, ftz, sat in product(
        SHAPES.items(), ROUNDINGS, ("", ".ftz"), ("", ".sat")
    ):
        yield plain(f"{op}.{rounding}{ftz}{sat}.f32", "f32", *["f32"] * n)
    for rounding, ftz in product(ROUNDINGS, ("", ".ftz")):
        yield plain(f"div.{rounding}{ftz}.f32", "f32", "f32", "f32")
        yield plain(f"rcp.{rounding}{ftz}.f32", "f32", "f32")
        yield plain(f"sqrt.{rounding}{ftz}.f32", "f32", "f32")
    for op, ftz, nan in product(("min", "max"), ("", ".ftz"), ("", ".NaN")):
        yield plain(f"{op}{ftz}{nan}.f32", "f32", "f32", "f32", target="80" if nan else "75")
        yield plain(f"{op}{ftz}{nan}.xorsign.abs.f32", "f32", "f32", "f32", target="86")
    for op, ftz in product(("abs", "neg"), ("", ".ftz")):
        yield plain(f"{op}{ftz}.f32", "f32", "f32")
    yield plain("copysign.f32", "f32", "f32", "f32")
    for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        yield tested(f"testp.{kind}.f32", "f32")
    for op, ftz in product(COMPARISONS, ("", ".ftz")):
        yield tested(f"setp.{op}{ftz}.f32", "f32", "f32")
    yield plain("set.ltu.ftz.u32.f32", "u32", "f32", "f32")
    yield plain("set.ge.f32.f32", "f32", "f32", "f32")
    yield plain("slct.ftz.b32.f32", "u32", "u32", "u32", "f32")


def double() -> Iterator[Case]:
    """Yield f64."""
    for (op, n), rounding in product(SHAPES.items(), ROUNDINGS):
        yield plain(f"{op}.{rounding}.f64", "f64", *["f64"] * n)
    for rounding in ROUNDINGS:
        yield plain(f"div.{rounding}.f64", "f64", "f64", "f64")
        yield plain(f"rcp.{rounding}.f64", "f64", "f64")
        yield plain(f"sqrt.{rounding}.f64", "f64", "f64")
    for op in ("min", "max", "copysign"):
        yield plain(f"{op}.f64", "f64", "f64", "f64")
    for op in ("abs", "neg"):
        yield plain(f"{op}.f64", "f64", "f64")
    for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        yield tested(f"testp.{kind}.f64", "f64")
    for op in COMPARISONS:
        yield tested(f"setp.{op}.f64", "f64", "f64")


def half() -> Iterator[Case]:
    """Yield f16, bf16 and their pairs."""
    for (op, n), ftz, sat, t in product(
        SHAPES.items(), ("", ".ftz"), ("", ".sat"), ("f16", "f16x2")
    ):
        yield plain(f"{op}.rn{ftz}{sat}.{t}", t, *[t] * n)
    for ftz, t in product(("", ".ftz"), ("f16", "f16x2")):
        yield plain(f"fma.rn{ftz}.relu.{t}", t, t, t, t, target="80")
        yield plain(f"neg{ftz}.{t}", t, t)
        yield plain(f"abs{ftz}.{t}", t, t)
    for t in ("bf16", "bf16x2"):
        yield plain(f"fma.rn.{t}", t, t, t, t, target="80")
        yield plain(f"fma.rn.relu.{t}", t, t, t, t, target="80")
        for op in ("add", "sub", "mul"):
            yield plain(f"{op}.rn.{t}", t, t, t, target="90")
        for op in ("abs", "neg"):
            yield plain(f"{op}.{t}", t, t, target="80")
    for op, nan, t in product(("min", "max"), ("", ".NaN"), ("f16", "f16x2", "bf16", "bf16x2")):
        yield plain(f"{op}{nan}.{t}", t, t, t, target="80")
        yield plain(f"{op}{nan}.xorsign.abs.{t}", t, t, t, target="86")
    for op in ("eq", "ltu", "ge", "nan"):
        yield tested(f"setp.{op}.f16", "f16", "f16")
        yield tested(f"setp.{op}.bf16", "bf16", "bf16", target="90")
        code = f"setp.{op}.f16x2 %p0|%p1, %a, %b;\nselp.u32 %d, 1, 0, %p0;\n"
        code += "selp.u32 %t2, 2, 0, %p1;\nor.b32 %d, %d, %t2;"
        yield Case(f"setp.{op}.f16x2", code, "u32", ("f16x2", "f16x2"))


def atomics() -> Iterator[Case]:
    """Yield atomic additions, which treat subnormal numbers by where they are done."""
    for t, target in (("f32", "75"), ("f64", "75"), ("f16x2", "75"), ("bf16x2", "90")):
        n = 64 if t == "f64" else 32
        op = f"add.{t}" if t[-2:] != "x2" else f"add.noftz.{t}"
        code = f"st.global.b{n} [%cell], %a;\natom.global.{op} %a, [%cell], %b;\n"
        code += f"ld.global.b{n} %d, [%cell];"
        yield Case(f"atom.global.{op}", code, t, (t, t), target)
    code = """.shared .align 4 .b8 cells[512];
    mov.u32 %t2, %tid.x; mov.u32 %t3, cells; mad.lo.u32 %t3, %t2, 4, %t3;
    st.shared.b32 [%t3], %a; atom.shared.add.f32 %a, [%t3], %b; ld.shared.b32 %d, [%t3];"""
    yield Case("atom.shared.add.f32", code, "f32", ("f32", "f32"))


def approximations() -> Iterator[Case]:
    """Yield what the PTX ISA bounds: two results within the bound are within the tolerance."""
    one_ulp = 2.0**-23
    bounds = {
        "ex2.approx": Tolerance(4 * one_ulp),
        "lg2.approx": Tolerance(2.0**-21, 2.0**-21),
        "rcp.approx": Tolerance(2 * one_ulp),
        "sqrt.approx": Tolerance(2 * one_ulp),
        "rsqrt.approx": Tolerance(2.0**-21.9),
    }
    for (op, bound), ftz in product(bounds.items(), ("", ".ftz")):
        name = f"{op}{ftz}.f32"
        yield Case(name, f"{name} %d, %a;", "f32", ("f32",), tolerance=bound)
    yield Case(
        "tanh.approx.f32", "tanh.approx.f32 %d, %a;", "f32", ("f32",), "75", Tolerance(2.0**-9.9)
    )
    for op in ("sin.approx", "cos.approx"):
        for ftz in ("", ".ftz"):
            name = f"{op}{ftz}.f32"
            small = (
                "abs.f32 %t2, %a;\nsetp.gt.f32 %p0, %t2, 0f40C90FDB;\nselp.b32 %a, 0, %a, %p0;\n"
            )
            yield Case(
                name, small + f"{name} %d, %a;", "f32", ("f32",), "75", Tolerance(0, 2.0**-19.5)
            )
    for op in ("div.approx", "div.full"):
        name = f"{op}.f32"
        # The bound holds for divisors from 2**-126 to 2**126.
        normal = "abs.f32 %t2, %b;\nsetp.ltu.f32 %p0, %t2, 0f00800000;\n"
        normal += "setp.gtu.or.f32 %p0, %t2, 0f7E800000, %p0;\n"
        normal += "selp.b32 %b, 0f3F800000, %b, %p0;\n"
        yield Case(
            name,
            normal + f"{name} %d, %a, %b;",
            "f32",
            ("f32", "f32"),
            "75",
            Tolerance(4 * one_ulp),
        )
    yield Case(
        "rcp.approx.ftz.f64",
        "rcp.approx.ftz.f64 %d, %a;",
        "f64",
        ("f64",),
        "75",
        Tolerance(2.0**-18),
    )
    yield Case(
        "rsqrt.approx.f64", "rsqrt.approx.f64 %d, %a;", "f64", ("f64",), "75", Tolerance(2.0**-18)
    )
    for t, relative, target in (("f16", 2.0**-9, "75"), ("f16x2", 2.0**-9, "75")):
        yield Case(
            f"ex2.approx.{t}",
            f"ex2.approx.{t} %d, %a;",
            t,
            (t,),
            target,
            Tolerance(relative, 2.0**-23),
        )
        yield Case(
            f"tanh.approx.{t}",
            f"tanh.approx.{t} %d, %a;",
            t,
            (t,),
            target,
            Tolerance(relative, 2.0**-23),
        )
    yield Case(
        "tanh.approx.bf16", "tanh.approx.bf16 %d, %a;", "bf16", ("bf16",), "90", Tolerance(2.0**-6)
    )


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    for family in (single, double, half, atomics, approximations):
        yield from family()
