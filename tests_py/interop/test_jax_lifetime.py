# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How long operators of JAX live: as long as what JAX traced, lowered or compiled of them."""

from __future__ import annotations

import inspect
import sys
import time
import weakref

import pytest

import cudago as cu
from cudago import jax_ops

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

SOURCE = r"""
extern "C" __global__ void product(const float *x, const float *y, float a, float *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] * y[i];
}
"""


@pytest.fixture(scope="module")
def code(driver):
    """The kernels."""
    try:
        jax.devices("cpu" if driver == "sim" else "cuda")
    except RuntimeError:
        pytest.skip("this JAX has no CUDA")
    return cu.Program(SOURCE).compile()


@pytest.fixture(autouse=True)
def put(driver):
    """JAX's device that the driver's kernels can use arrays of."""
    with jax.default_device(jax.devices("cpu" if driver == "sim" else "cuda")[0]):
        yield


@pytest.fixture(autouse=True)
def lowered(monkeypatch):
    """From JAX 0.11 on modules have one context, which holds what was lowered last."""
    if _version() >= (0, 11):
        monkeypatch.setattr(jax_ops, "_MOST_LOWERED", 0)


def shape(n):
    """The launch of n threads."""
    return cu.LaunchConfig(grid=max(1, (n + 127) // 128), block=128)


def same(x, y):
    return bool(jnp.allclose(x, y, rtol=1e-6))


def eventually(is_so):
    """Is it so in the end? A computation is over a moment after its results can be read."""
    end = time.monotonic() + 10
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    return is_so()


class Made:
    """An operator that doubles, of a kernel of its own, and what sees that they are gone."""

    def __init__(self, has_gradient):
        kernel = cu.Program(SOURCE.replace("a * x", "(a + 1) * x")).compile()["product"]
        y = jnp.ones(100, "float32")
        backward = (lambda ctx, g: (twice(g, y), None)) if has_gradient else None

        @jax_ops.operator("test::twice", backward=backward)
        def twice(stream, x, y):
            z = stream.empty_like(x)
            stream.launch(shape(x.size), kernel, x, y, 1.0, z, x.size)
            return z

        self.kernel = weakref.ref(kernel)
        self.y = weakref.ref(y)
        self.of = lambda x: twice(x, y)

    def is_there(self, clear=False):
        """Is the kernel there, after a collection?"""
        if clear:
            jax.clear_caches()
        cu.testing.settle()
        assert (self.kernel() is None) <= (self.y() is None), "the closure outlived the kernel"
        return self.kernel() is not None

    def ends(self, clear=False):
        return eventually(lambda: not self.is_there(clear))


@pytest.fixture(params=[False, True], ids=["no gradient", "gradient"])
def made(request, driver, code):
    """An operator, which is gone at the end of the test.

    JAX's caches for gradients hold functions until they are cleared, the others do not.
    """
    if _version() < (0, 7):
        pytest.skip("the XLA of JAX before 0.7 keeps programs for good")
    made = Made(request.param)
    assert made.is_there()
    yield made
    made.of = None
    assert made.ends(clear=request.param)


def _version():
    return tuple(int(n) for n in jax.__version__.split(".")[:2])


X = np.arange(100, dtype="f4")


@pytest.mark.parametrize(
    "use",
    [
        lambda f: f(X),
        lambda f: jax.jit(f)(X),
        lambda f: jax.jit(jax.vmap(f))(X.reshape(1, 100)),
        lambda f: jax.eval_shape(f, X),
        lambda f: jax.make_jaxpr(f)(X),
        lambda f: jax.jit(f).lower(X),
        lambda f: jax.jit(f).lower(X).compile(),
        lambda f: jax.jit(lambda x: jax.lax.scan(lambda c, _: (f(c), 0), x, None, length=3)[0])(X),
        lambda f: jax.jit(lambda x: f(f(x)) + f(x))(X),
    ],
    ids=["eager", "jit", "vmap", "shape", "jaxpr", "lowered", "compiled", "scan", "several"],
)
def test_an_operator_ends_with_its_function(made, use):
    use(made.of)


@pytest.mark.parametrize("made", [True], indirect=True)
def test_an_operator_ends_with_its_gradient(made):
    jax.jit(jax.grad(lambda x: made.of(x).sum()))(X)
    value, pullback = jax.vjp(made.of, X)
    pullback(value)
    del pullback


def test_the_operator_is_used_again_once_caches_are_cleared(made):
    f = jax.jit(made.of)
    assert same(f(X), 2 * X)
    assert made.is_there(clear=True)
    assert same(f(X), 2 * X)
    del f


@pytest.mark.skipif("_version() >= (0, 11)", reason="what is lowered stays until others follow")
def test_what_was_lowered_is_compiled_when_the_operator_is_gone(made):
    lowered = jax.jit(made.of).lower(X)
    made.of = None
    assert made.is_there(clear=True)
    one, two = lowered.compile(), lowered.compile()
    del lowered
    assert made.is_there(clear=True)
    assert same(one(X), 2 * X)
    del one
    assert made.is_there(clear=True)
    assert same(two(X), 2 * X)
    del two


def test_what_was_compiled_outlives_its_operator(made):
    compiled = jax.jit(lambda x: made.of(x) + 1).lower(X).compile()
    made.of = None
    assert made.is_there(clear=True)
    assert same(compiled(X), 2 * X + 1)
    del compiled


def test_an_executable_that_was_read_back(made):
    read = pytest.importorskip("jax.experimental.serialize_executable")
    compiled = jax.jit(made.of).lower(X).compile()
    written = read.serialize(compiled)
    one = {}  # of several devices JAX would take all
    if "execution_devices" in inspect.signature(read.deserialize_and_load).parameters:
        one["execution_devices"] = jax.devices()[:1]
    again = read.deserialize_and_load(*written, **one)
    made.of = compiled = None
    assert made.is_there(clear=True)
    assert same(again(X), 2 * X)
    del again
    assert made.ends(clear=True)
    with pytest.raises(RuntimeError, match="or has let go of what it traced"):
        read.deserialize_and_load(*written)


def test_an_exported_function_holds_its_operator(made):
    export = pytest.importorskip("jax.export")
    allowed = [export.DisabledSafetyCheck.custom_call("cudago_launches")]
    exported = export.export(jax.jit(made.of), disabled_checks=allowed)(X)
    made.of = None
    assert made.is_there(clear=True)
    assert same(exported.call(X), 2 * X)
    del exported
    jax.clear_caches()


def test_many_operators_are_made_and_dropped(code):
    if _version() < (0, 7):
        pytest.skip("the XLA of JAX before 0.7 keeps programs for good")
    kernel = code["product"]

    def use(a):
        @jax_ops.operator("test::many")
        def many(stream, x):
            z = stream.empty_like(x)
            stream.launch(shape(x.size), kernel, x, x, a, z, x.size)
            return z

        jax.eval_shape(many, X)
        if a % 100 == 0:
            assert same(many(X), a * X * X)

    use(0.0)
    cu.testing.settle()
    before = sys.getrefcount(kernel)
    for i in range(1000):
        use(float(i))
    assert eventually(lambda: cu.testing.settle() or sys.getrefcount(kernel) == before)


def test_many_values_of_one_operator(code):
    if _version() < (0, 7):
        pytest.skip("the XLA of JAX before 0.7 keeps programs for good")
    kernel = code["product"]

    @jax_ops.operator("test::values")
    def scaled(stream, x, a):
        z = stream.empty_like(x)
        stream.launch(shape(x.size), kernel, x, x, a, z, x.size)
        return z

    operators = [scaled]
    del scaled
    before = sys.getrefcount(kernel)
    for i in range(1000):
        jax.eval_shape(lambda x, i=i: operators[0](x, float(i)), X)
    cu.testing.settle()
    assert sys.getrefcount(kernel) <= before + 256, "as many variants as an operator has"
    operators.clear()
    cu.testing.settle()
    assert sys.getrefcount(kernel) == before


def test_a_jax_that_does_not_say_which_module_it_makes(script, driver):
    """Then what was traced stays."""
    done = script(
        f"""
        import sys
        import jax, jax.numpy as jnp
        import cudago as cu
        real = cu.jax_ops.import_module
        def another(name):
            if name.startswith("jaxlib"):
                raise ImportError(name)
            return real(name)
        cu.jax_ops.import_module = another
        code = cu.Program({SOURCE!r}).compile()
        @cu.jax_ops.operator("test::square")
        def square(stream, x):
            z = stream.empty_like(x)
            stream.launch(cu.LaunchConfig(1, 8), code["product"], x, x, 2.0, z, x.size)
            return z
        lowered = jax.jit(square).lower(jnp.arange(4.0))
        del square
        jax.clear_caches()
        cu.testing.settle()
        print(lowered.compile()(jnp.arange(4.0)).tolist())
        """
    )
    assert done.stdout == "[0.0, 2.0, 8.0, 18.0]\n", done.stderr
