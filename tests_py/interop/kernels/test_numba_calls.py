# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Numba compiles: calls, random numbers, printing, debugging, what it links."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cudago as cu

from .cases import Case, assign

cuda = pytest.importorskip("numba.cuda")
random = pytest.importorskip("numba.cuda.random")

N = 128


@cuda.jit(device=True, inline="never")
def two_results(x, y):
    return x * y + 1, x - y


def calls(x, y):
    i = cuda.grid(1)
    x[i], y[i] = two_results(x[i], y[i])


def calls_reference(x, y):
    x[:], y[:] = x * y + 1, x - y


@cuda.jit(device=True, inline="never")
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


def recursion(x):
    i = cuda.grid(1)
    x[i] = factorial(x[i])


def recursion_reference(x):
    x[:] = [math.factorial(v) for v in x]


def constants(low, x):
    i = cuda.grid(1)
    if i >= low[0]:
        x[i] = low[1]


def constants_reference(low, x):
    x[low[0] :] = low[1]


def vectors(x, out):
    i = cuda.grid(1)
    v = cuda.float32x4(1, 2, 3, x[i])
    out[i] = v.x * v.w + v.z


def powers(x, out):
    i = cuda.grid(1)
    out[i] = x[i] ** 3 + x[i] ** -2.5 + round(x[i]) + int(x[i]) + math.ldexp(x[i], 2)


def powers_reference(x, out):
    out[:] = x**3 + x**-2.5 + np.rint(x) + np.trunc(x) + 4 * x


def numbered(out):
    i = cuda.grid(1)
    cuda.nanosleep(10)
    out[0, i] = cuda.laneid + cuda.warpsize
    out[1, i] = cuda.blockIdx.x * 1000 + cuda.gridDim.x * 100 + cuda.blockDim.x


def numbered_reference(out):
    i = np.arange(N)
    out[0], out[1] = i % 32 + 32, i // 64 * 1000 + 2 * 100 + 64


def pick(low, high, out):
    i = cuda.grid(1)
    out[i] = cuda.selp(i % 3 == 0, low[i], high[i]) + cuda.cbrt(high[i]) + cuda.fma(low[i], 2, 1)


def pick_reference(low, high, out):
    out[:] = np.where(np.arange(N) % 3 == 0, low, high) + np.cbrt(high) + 2 * low + 1


def uniform(low, high, dtype):
    return lambda rng: (rng.uniform(low, high, N).astype(dtype), np.zeros(N, dtype))


CASES = [
    Case("calls", calls, lambda rng: tuple(rng.random((2, N))), calls_reference, 2, rtol=1e-15),
    Case("recursion", recursion, lambda rng: (rng.integers(1, 13, N),), recursion_reference, 2),
    Case(
        "constants", constants, lambda rng: ((40, 7), rng.integers(0, 3, N)), constants_reference, 2
    ),
    Case("vectors", vectors, uniform(0, 9, "f4"), assign(lambda x: x + 3), 2),
    Case("powers f4", powers, uniform(0.6, 4, "f4"), powers_reference, 2, rtol=1e-5),
    Case("powers f8", powers, uniform(0.6, 4, "f8"), powers_reference, 2, rtol=1e-14),
    Case("numbered", numbered, lambda rng: (np.zeros((2, N), "i4"),), numbered_reference, 2),
    Case(
        "pick",
        pick,
        lambda rng: (*rng.random((2, N)), np.zeros(N)),
        pick_reference,
        2,
        rtol=1e-14,
    ),
    Case(
        "calls with line numbers",
        calls,
        lambda rng: tuple(rng.random((2, N))),
        calls_reference,
        2,
        rtol=1e-15,
        options={"lineinfo": True},
    ),
    Case(
        "powers, not optimized",
        powers,
        uniform(0.6, 4, "f8"),
        powers_reference,
        2,
        rtol=1e-14,
        options={"opt": False},
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numba(run_numba, case, arch):
    case.check(lambda args: run_numba(case, args, arch))


def step(s):
    """Advance xoroshiro128+; gives its next number."""
    mask = 2**64 - 1
    result = (s[0] + s[1]) & mask
    s[1] ^= s[0]
    s[0] = ((s[0] << 55 | s[0] >> 9) ^ s[1] ^ s[1] << 14) & mask
    s[1] = (s[1] << 36 | s[1] >> 28) & mask
    return result


def draw(states, out):
    i = cuda.grid(1)
    out[0, i] = random.xoroshiro128p_uniform_float64(states, i)
    out[1, i] = random.xoroshiro128p_uniform_float32(states, i)
    out[2, i] = random.xoroshiro128p_normal_float64(states, i)


def draw_reference(states, out):
    for i in range(N):
        s = [int(states[i]["s0"]), int(states[i]["s1"])]
        u = [(step(s) >> 11) * 2.0**-53 for _ in range(4)]
        u[1:] = np.float32(u[1:]).tolist()  # normal numbers are made of float32, with their log
        normal = math.sqrt(-2 * math.log(u[2])) * math.cos(2 * math.pi * u[3])
        out[:, i] = u[0], u[1], normal
        states[i] = tuple(s)


@pytest.mark.parametrize("arch", [75], indirect=True)
def test_random_numbers(run_numba, arch):
    def args(rng):
        states = np.zeros(N, random.xoroshiro128p_dtype)
        states["s0"], states["s1"] = rng.integers(1, 2**63, (2, N), "u8")
        return states, np.zeros((3, N))

    case = Case("draw", draw, args, draw_reference, 2, rtol=1e-6, atol=1e-7)
    case.check(lambda args: run_numba(case, args, arch))


def speak(x):
    i = cuda.grid(1)
    if i < 2:
        print("thread", i, x[i])


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
def test_print(run_numba, script, arch):
    # In a process of its own: what NVIDIA's driver prints passes capfd by.
    run = script(
        f"""
        import numpy as np
        import cudago as cu
        s = cu.Device().create_stream()
        code = cu.ObjectCode.from_ptx({run_numba.ptx(speak, [np.zeros(2)], arch)!r})
        (name,) = code.kernels
        x = cu.asarray(np.array([1.5, 2.5]), stream=s)
        cu.launch(s, cu.LaunchConfig(1, 32), code[name], None, None, 2, 8, x, 2, 8)
        s.sync()
        """
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "thread 0 1.500000\nthread 1 2.500000\n"


def divide(x, y):
    i = cuda.grid(1)
    x[i] //= y[i]


@pytest.mark.parametrize("arch", [75], indirect=True)
def test_errors_of_debug_code(run_numba, arch):
    options = {"debug": True, "opt": False}
    x, y = np.full(32, 12), np.full(32, 5)
    run_numba(Case("divide", divide, None, None, 1, 32, options=options), [x, y], arch)
    assert (x == 2).all()


def add(x, y):
    i = cuda.grid(1)
    x[i] += y[i]


def synchronized(x):
    grid = cuda.cg.this_grid()
    x[cuda.grid(1)] += 1
    grid.sync()


@pytest.mark.parametrize("arch", [75], indirect=True)
@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (add, [np.zeros(4, "f2"), np.zeros(4, "f2")], "__half"),
        (synchronized, [np.zeros(4)], "cudaCGGetIntrinsicHandle"),
    ],
    ids=["half precision", "grid sync"],
)
def test_what_numba_links_is_refused_by_name(run_numba, driver, function, args, name, arch):
    if driver != "sim":
        pytest.skip("NVIDIA's driver says it in other words")
    with pytest.raises(cu.UnsupportedError, match=f"it calls \\S*{name}"):
        run_numba.compile(function, args, arch)
