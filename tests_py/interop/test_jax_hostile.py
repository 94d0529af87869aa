# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Operators of JAX whose arguments run other people's code while they are traced: it lets go of,
resets and traces what the operator is about to use. tests_py/hostile does that without JAX.
"""

from __future__ import annotations

import textwrap

import pytest

pytest.importorskip("jax")

BEGIN = '''
import gc, os, threading
import jax, jax.numpy as jnp, numpy as np
import cudago as cu
from cudago import jax_ops

SOURCE = """
extern "C" __global__ void scale(const float *x, float a, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""
code = cu.Program(SOURCE).compile()
x = jnp.arange(100, dtype="float32")

class Acts:
    def __init__(self, value, act):
        self.value, self.act = value, act
    def __float__(self):
        self.act()
        return float(self.value)
    def __index__(self):
        self.act()
        return int(self.value)

def operator(kernel, a=2.0, n=None, name="mine::scale"):
    @jax_ops.operator(name)
    def scale(stream, x):
        y = stream.empty_like(x)
        config = cu.LaunchConfig.for_elements(x.size, kernel)
        stream.launch(config, kernel, x, a, y, x.size if n is None else n)
        return y
    return scale

def works():
    fresh = cu.Program(SOURCE).compile()["scale"]
    assert (np.asarray(operator(fresh, 3.0)(x)) == 3 * np.asarray(x)).all()
'''


@pytest.fixture
def run(driver, script):
    if driver != "sim":
        pytest.skip("JAX's CPU backend, which needs the simulated driver")

    def go(source: str) -> list[str]:
        done = script(BEGIN + textwrap.dedent(source), CUDAGO_DRIVER="sim", JAX_PLATFORMS="cpu")
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.splitlines()

    return go


@pytest.mark.parametrize(
    "act",
    [
        "globals().pop('code', None)",
        "gc.collect()",
        "jax.clear_caches()",
        "cu.Device().reset()",
        "operator(cu.Program(SOURCE).compile()['scale'], 5.0)(x)",
        "works()",
        "threading.Thread(target=works).start()",
        "jax.jit(operator(code['scale'], 4.0))(x).block_until_ready()",
        "1 / 0",
    ],
)
def test_a_number_acts_while_it_is_traced(run, act):
    assert run(
        f"""
        def act():
            {act}
        def kernel():
            return globals().get("code", cu.Program(SOURCE).compile())["scale"]
        for a, n in ((Acts(2, act), None), (2.0, Acts(100, act))):
            try:
                made = operator(kernel(), a, n)(x)
                assert (np.asarray(made) == 2 * np.asarray(x)).all()
                print("ran")
            except AssertionError:
                raise
            except Exception as e:
                print(type(e).__name__)
        works()
        print("works")
        """
    )[-1:] == ["works"]


def test_what_was_traced_before_a_reset_says_so(run):
    assert run(
        """
        scale = jax.jit(operator(code["scale"]))
        scale(x).block_until_ready()
        cu.Device().reset()
        try:
            scale(x).block_until_ready()
        except Exception as e:
            print("which was reset: jax.clear_caches()" in str(e))
        works()
        print("works")
        """
    ) == ["True", "works"]


def test_the_code_is_let_go_while_the_program_runs(run):
    assert run(
        """
        scale = jax.jit(operator(code["scale"]))
        want = 2 * np.asarray(x)
        failed = []
        def calls():
            for _ in range(50):
                if not (np.asarray(scale(x)) == want).all():
                    failed.append(1)
        threads = [threading.Thread(target=calls) for _ in range(4)]
        for t in threads: t.start()
        globals().pop("code")
        gc.collect()
        jax.clear_caches()
        for t in threads: t.join()
        print(failed)
        works()
        """
    ) == ["[]"]
