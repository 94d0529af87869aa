# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Operators of JAX made of functions that launch kernels: on JAX's CPU backend with the simulated
driver, on CUDA devices with NVIDIA's.
"""

from __future__ import annotations

import threading

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
extern "C" __global__ void add(float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y[i];
}
extern "C" __global__ void exponential(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i]);
}
extern "C" __global__ void broken(float *x, int n) { x[n + threadIdx.x] = 1; }
extern "C" __global__ void count(int *x) { x[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void raw(void *x) { ((char *)x)[threadIdx.x] = 1; }
extern "C" __global__ void gather(const float *x, const int *at, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[at[i]];
}
__device__ int bias = 0;
extern "C" __global__ void biased(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + bias;
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


def shape(n):
    """The launch of n threads."""
    return cu.LaunchConfig(grid=max(1, (n + 127) // 128), block=128)


@pytest.fixture
def product(code):
    """Operator that makes a * x * y."""

    def backward(ctx, grad):
        x, y = ctx.saved_arrays
        a = ctx.arguments[2]
        return product(grad, y, a), product(grad, x, a), None

    @jax_ops.operator("test::product", backward=backward)
    def product(stream, x, y, a: float = 1.0):
        z = stream.empty_like(x)
        stream.launch(shape(x.size), code["product"], x, y, a, z, x.size)
        return z

    return product


@pytest.fixture
def add(code):
    """Operator that makes x + y in the memory of x."""

    @jax_ops.operator("test::add")
    def add(stream, x, y):
        stream.launch(shape(x.size), code["add"], x, y, x.size)
        return x

    return add


def pair(n=200):
    """Two arrays."""
    return jnp.linspace(-1, 1, n), jnp.linspace(2, 3, n)


def same(x, y):
    return bool(jnp.allclose(x, y, rtol=1e-6))


# --- transformations ------------------------------------------------------------------------------


def test_values(product):
    x, y = pair()
    assert same(product(x, y, 3.0), 3 * x * y)
    assert same(product(x, y), x * y)
    assert same(product(x, a=2.0, y=y), 2 * x * y)
    assert same(product(np.asarray(x), y, np.float32(2)), 2 * x * y)


def test_jit(product):
    x, y = pair()
    f = jax.jit(lambda x, y: product(product(x, y, 2.0).reshape(10, 20).T.T, y.reshape(10, 20)))
    for _ in range(3):
        assert same(f(x, y), (2 * x * y * y).reshape(10, 20))
    g = jax.jit(product, static_argnums=2)
    assert same(g(x, y, 5.0), 5 * x * y)
    assert same(g(x[:7], y[:7], 5.0), 5 * x[:7] * y[:7])


def test_what_is_not_in_rows_is_put_into_rows(product):
    x, y = (a.reshape(10, 20) for a in pair())
    assert same(jax.jit(lambda x, y: product(x.T, y.T, 2.0))(x, y), 2 * x.T * y.T)


def test_grad(product):
    x, y = pair()
    loss = jax.jit(jax.grad(lambda x, y: product(x, y, 3.0).sum(), argnums=(0, 1)))
    first, second = loss(x, y)
    assert same(first, 3 * y)
    assert same(second, 3 * x)
    value, pullback = jax.vjp(lambda x: product(x, y, 2.0), x)
    assert same(value, 2 * x * y)
    assert same(pullback(jnp.ones_like(x))[0], 2 * y)


def test_grad_of_the_second_order(product):
    x, y = pair(4)

    def loss(x):
        return (product(x, y, 2.0) ** 2).sum()

    assert same(jax.grad(lambda x: jax.grad(loss)(x).sum())(x), 8 * y * y)


def test_gradients_are_checked_by_jax(product):
    check = pytest.importorskip("jax.test_util").check_grads
    x, y = pair(5)
    check(lambda x, y: product(x, y, 2.0), (x, y), order=2, modes=["rev"], rtol=0.05)


def test_vmap(product):
    x, y = (a.reshape(10, 20) for a in pair())
    assert same(jax.vmap(product)(x, y), x * y)
    assert same(jax.jit(jax.vmap(product, in_axes=(0, None)))(x, y[0]), x * y[0])
    assert same(jax.vmap(jax.vmap(product))(x, y), x * y)
    gradients = jax.vmap(jax.grad(lambda x, y: product(x, y, 2.0).sum()))(x, y)
    assert same(gradients, 2 * y)


def test_control_flow_and_checkpoints(product):
    x, y = pair()

    def body(carry, _):
        return product(carry, y, 0.5), carry.sum()

    last, _ = jax.jit(lambda x: jax.lax.scan(body, x, None, length=4))(x)
    assert same(last, x * (y / 2) ** 4)
    gradient = jax.grad(jax.checkpoint(lambda x: jax.lax.scan(body, x, None, length=4)[0].sum()))
    assert same(gradient(x), (y / 2) ** 4)
    assert same(jax.lax.cond(True, lambda: product(x, y), lambda: x), x * y)


@pytest.mark.slow
def test_an_array_on_several_devices(script, driver):
    """JAX's CPU backend as four devices, whose threads run the operator at once."""
    if driver != "sim":
        pytest.skip("this machine's JAX has as many CUDA devices as it has")
    if not hasattr(jax, "shard_map"):
        pytest.skip("JAX before 0.6 has it elsewhere")
    done = script(
        f"""
        import jax, jax.numpy as jnp
        import cudago as cu
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        code = cu.Program({SOURCE!r}).compile()
        @cu.jax_ops.operator("test::square", backward=lambda ctx, g: 2 * g * ctx.saved_arrays[0])
        def square(stream, x):
            z = stream.empty_like(x)
            config = cu.LaunchConfig((x.size + 127) // 128, 128)
            stream.launch(config, code["product"], x, x, 1.0, z, x.size)
            return z
        mesh, rows = Mesh(jax.devices(), ("i",)), PartitionSpec("i")
        x = jax.device_put(jnp.arange(4096.0), NamedSharding(mesh, rows))
        f = jax.jit(jax.shard_map(square, mesh=mesh, in_specs=rows, out_specs=rows))
        for _ in range(20):
            assert jnp.array_equal(f(x), x * x)
        assert jnp.array_equal(jax.jit(jax.grad(lambda x: f(x).sum()))(x), 2 * x)
        assert jnp.array_equal(jax.jit(square)(x), x * x)
        @cu.jax_ops.operator("test::times", backward=lambda ctx, g: (
            g * ctx.saved_arrays[1], g * ctx.saved_arrays[0]))
        def times(stream, x, y):
            z = stream.empty_like(x)
            config = cu.LaunchConfig((x.size + 127) // 128, 128)
            stream.launch(config, code["product"], x, y, 1.0, z, x.size)
            return z
        y = jnp.linspace(0.0, 1.0, 1024)  # the same on each device
        specs = rows, PartitionSpec()
        g = jax.jit(jax.shard_map(times, mesh=mesh, in_specs=specs, out_specs=rows))
        assert jnp.array_equal(g(x, y), x * jnp.tile(y, 4))
        sums = jax.jit(jax.grad(lambda x, y: g(x, y).sum(), argnums=1))(x, y)
        assert jnp.allclose(sums, x.reshape(4, 1024).sum(0))
        print(len(x.devices()))
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )
    assert (done.stdout, done.returncode) == ("4\n", 0), done.stderr


def test_a_layer_is_trained(product):
    x, truth = jax.random.uniform(jax.random.key(1), (2, 64))

    @jax.jit
    def step(weight):
        loss = lambda w: ((product(w, x) - truth * x) ** 2).sum()  # noqa: E731
        value, gradient = jax.value_and_grad(loss)(weight)
        return weight - 0.2 * gradient, value

    weight, losses = jnp.zeros(64), []
    for _ in range(50):
        weight, value = step(weight)
        losses.append(float(value))
    assert losses[-1] < losses[0] / 2


def test_results_for_the_backward_pass(code):
    @jax_ops.operator("test::exp", backward=lambda ctx, g: g * ctx.saved_results[0])
    def exponential(stream, x):
        y = stream.empty(x.shape, x.dtype)
        stream.launch(shape(x.size), code["exponential"], x, y, x.size)
        return y

    x, _ = pair()
    assert same(jax.grad(lambda x: exponential(x).sum())(x), jnp.exp(x))


def test_an_argument_without_gradient(code):
    def backward(ctx, g):
        x, at = ctx.saved_arrays
        return jnp.zeros_like(x).at[at].add(g), None

    @jax_ops.operator("test::gather", backward=backward)
    def gather(stream, x, at):
        y = stream.empty(at.shape, x.dtype)
        stream.launch(shape(at.size), code["gather"], x, at, y, at.size)
        return y

    x, at = jnp.arange(5.0), jnp.array([3, 3, 1])
    assert gather(x, at).tolist() == [3, 3, 1]
    gradient = jax.jit(jax.grad(lambda x: (gather(x, at) ** 2).sum()))
    assert gradient(x).tolist() == [0, 2, 0, 12, 0]
    assert jax.jacrev(gather)(x, at).shape == (3, 5)
    assert jax.vmap(gather, in_axes=(None, 0))(x, at[:, None]).tolist() == [[3], [3], [1]]


def test_its_name_is_in_jaxs_programs(product):
    assert "name=product" in str(jax.make_jaxpr(product)(*pair()))


# --- what operators write to, and return ----------------------------------------------------------


def test_in_the_memory_of_an_argument(add):
    x, y = pair()
    before = np.array(x)
    assert same(add(x, y), before + y)
    assert np.array_equal(x, before), "XLA gave the kernel a copy"
    f = jax.jit(lambda x, y: add(add(x + 0, y), y))
    assert same(f(x, y), before + 2 * y)
    assert np.array_equal(x, before)
    xs, ys = (a.reshape(4, 50) for a in (x, y))
    assert same(jax.vmap(add)(xs, ys), xs + ys)


def test_one_array_as_two_arguments(add, product):
    x, _ = pair()
    assert same(add(x, x), 2 * x)
    assert same(product(x, x), x * x)


def test_several_results_and_memory_on_the_way(code):
    @jax_ops.operator("test::both")
    def both(stream, x, y):
        square, cube, twice = (stream.empty_like(x) for _ in range(3))
        stream.launch(shape(x.size), code["product"], x, x, 1.0, square, x.size)
        stream.launch(shape(x.size), code["product"], square, x, 2.0, twice, x.size)
        stream.launch(shape(x.size), code["product"], twice, y, 0.5, cube, x.size)
        return cube, square, cube

    x, y = pair()
    cube, square, again = jax.jit(both)(x, y)
    assert same(cube, x * x * x * y)
    assert same(square, x * x)
    assert same(again, cube)


def test_names_of_parameters_and_no_arrays(code):
    @jax_ops.operator("test::count")
    def count(stream, n):
        x = stream.empty(n, "int32")
        stream.launch(cu.LaunchConfig(1, n), code["count"], x=x)
        return x

    assert count(4).tolist() == [0, 1, 2, 3]


def test_empty_arrays(product):
    x = jnp.zeros((0, 5))
    assert product(x, x).shape == (0, 5)
    assert jax.vmap(product)(x, x).shape == (0, 5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "complex64"])
def test_types(code, dtype):
    @jax_ops.operator("test::raw")
    def raw(stream, x):
        stream.launch(cu.LaunchConfig(1, x.nbytes), code["raw"], x)
        return x

    made = raw(jnp.zeros(3, dtype))
    assert made.dtype == dtype
    assert np.asarray(made).tobytes() == b"\1" * made.nbytes


def test_star_arguments(code):
    @jax_ops.operator("test::sum", backward=lambda ctx, g: [g] * len(ctx.arguments))
    def total(stream, *xs):
        for x in xs[1:]:
            stream.launch(shape(x.size), code["add"], xs[0], x, x.size)
        return xs[0]

    x, y = pair()
    assert same(total(x, y, y), x + 2 * y)
    assert same(jax.grad(lambda x: total(x, y, x).sum())(x), jnp.full_like(x, 2))


# --- what is kept ---------------------------------------------------------------------------------


def test_the_same_launches_are_kept_once(product, monkeypatch):
    keys = []
    call = jax.ffi.ffi_call

    def noting(*args, **words):
        made = call(*args, **words)

        def run(*arrays, program):
            keys.append(program)
            return made(*arrays, program=program)

        return run

    monkeypatch.setattr(jax.ffi, "ffi_call", noting)
    x, y = pair()
    for a in (2.0, 2.0, 0.0, -0.0, 3.0):
        assert same(product(x, y, a), a * x * y)
    assert len(keys) == len(set(keys)) == 4
    jax.clear_caches()
    product(x, y, 2.0)
    assert keys[4] == keys[0]


def test_kernels_live_as_long_as_what_was_compiled(driver):
    def square():
        code = cu.Program(SOURCE.replace("a * x", "(a + 1) * x")).compile()

        @jax_ops.operator("test::square")
        def square(stream, x):
            z = stream.empty_like(x)
            stream.launch(shape(x.size), code["product"], x, x, 1.0, z, x.size)
            return z

        return square

    f = jax.jit(square())
    x, _ = pair()
    f(x)
    cu.testing.settle()
    assert same(f(x), 2 * x * x)


def test_code_of_the_same_text_has_variables_of_its_own(driver, stream):
    def of(bias):
        code = cu.Program(SOURCE).compile()
        code.get_global("bias").copy_from(np.array([bias], "i4"), stream=stream)
        stream.sync()

        @jax_ops.operator("test::biased")
        def biased(stream, x):
            y = stream.empty_like(x)
            stream.launch(shape(x.size), code["biased"], x, y, x.size)
            return y

        return biased

    x, _ = pair()
    one, two = of(1), of(2)
    assert same(jax.jit(lambda x: one(x) * two(x))(x), (x + 1) * (x + 2))


def test_threads(product):
    failed = []

    def work(n):
        try:
            x, y = pair(n)
            f = jax.jit(jax.grad(lambda x: product(x, y, 2.0).sum()))
            for _ in range(20):
                assert same(f(x), 2 * y)
                assert same(product(x, y, 1.0 * n), n * x * y)
        except BaseException as e:  # a thread's error is the test's
            failed.append(e)

    threads = [threading.Thread(target=work, args=(100 + n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []


@pytest.mark.slow
def test_jaxs_cache_of_compiled_functions(script, driver, tmp_path):
    """Another process finds what this one compiled, and it launches that process's kernels."""
    source = f"""
        import jax, jax.numpy as jnp
        import cudago as cu
        other = cu.Program("__device__ int another;").compile()  # so that handles are other numbers
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path / "cache")!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        code = cu.Program({SOURCE!r}).compile()
        @cu.jax_ops.operator("test::square")
        def square(stream, x):
            z = stream.empty_like(x)
            stream.launch(cu.LaunchConfig(1, 8), code["product"], x, x, 2.0, z, x.size)
            return z
        print(jax.jit(square)(jnp.arange(4.0)).tolist())
        """
    told, files = [], []
    for first in (source, source.replace("other = ", "pass #")):
        told.append(script(first).stdout)
        files.append(sorted(f.name for f in (tmp_path / "cache").iterdir() if "square" in f.name))
    assert told == ["[0.0, 2.0, 8.0, 18.0]\n"] * 2
    assert [f for f in files[0] if not f.endswith("atime")]
    assert files[0] == files[1]


@pytest.mark.slow
def test_an_exported_function_has_to_be_traced_here(product, script, tmp_path):
    pytest.importorskip("flatbuffers")
    pytest.importorskip("jax.export")
    x, y = pair()
    allowed = [jax.export.DisabledSafetyCheck.custom_call("cudago_launches")]
    made = jax.export.export(jax.jit(lambda x: product(x, y, 41.0)), disabled_checks=allowed)(x)
    assert same(jax.export.deserialize(made.serialize()).call(x), 41 * x * y)
    file = tmp_path / "function"
    file.write_bytes(made.serialize())
    done = script(
        f"""
        import pathlib
        import jax, jax.export, jax.numpy as jnp, cudago as cu
        @cu.jax_ops.operator("test::other")
        def other(stream, x):
            return x
        other(jnp.ones(3))
        made = jax.export.deserialize(bytearray(pathlib.Path({str(file)!r}).read_bytes()))
        try:
            made.call(jnp.linspace(-1, 1, 200)).block_until_ready()
        except Exception as e:
            print(e)
        """
    )
    assert "this process has not traced the operator" in done.stdout


# --- mistakes -------------------------------------------------------------------------------------


def test_without_backward_there_is_no_gradient(add):
    x, y = pair()
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: add(x, y).sum())(x)


def test_forward_mode_is_refused(product):
    x, y = pair()
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: product(x, y), (x,), (x,))


def test_a_backward_that_returns_too_few(code):
    @jax_ops.operator("test::few", backward=lambda ctx, g: g)
    def few(stream, x, a):
        stream.launch(shape(x.size), code["add"], x, x, x.size)
        return x

    with pytest.raises(TypeError, match=r"each of the 2 argument\(s\), got 1"):
        jax.grad(lambda x: few(x, 1).sum())(pair()[0])


def test_a_function_without_a_stream():
    for function in (lambda: None, lambda *, stream: None):
        with pytest.raises(TypeError, match="must take a stream as its first argument"):
            jax_ops.operator("test::none")(function)


def test_a_number_that_is_traced(product):
    x, y = pair()
    with pytest.raises(TypeError, match=r"takes 4 bytes and no address.*static_argnums"):
        jax.jit(product)(x, y, 3.0)


def wrong(code, function):
    """Call an operator of x with a function that makes a mistake."""
    return jax_ops.operator("test::wrong")(function)(pair()[0])


def test_wrong_types_and_counts(code):
    product = code["product"]

    def few(stream, x):
        stream.launch(shape(x.size), product, x, x, 1.0, x)

    def elements(stream, x):
        stream.launch(shape(x.size), product, x, x, 1.0, stream.empty(3, "int32"), 3)

    def text(stream, x):
        stream.launch(shape(x.size), product, x, x, "1", x, 3)

    def pairs(stream, x):
        stream.launch(shape(x.size), product, x, x, x, x, 3)

    for function, message in [
        (few, r"takes 5 argument\(s\), got 4"),
        (elements, "points to other elements by the kernel's source than int32"),
        (text, "parameter 2 of kernel product must be a float f32"),
        (pairs, "got an array of float32"),
    ]:
        with pytest.raises(TypeError, match=message):
            wrong(code, function)


def test_memory_that_is_no_argument(code, stream):
    with cu.zeros(200, "f4", stream=stream) as t:
        stream.sync()
        for other in (t, np.zeros(200, "f4"), pair()[1]):

            def function(stream, x, other=other):
                stream.launch(shape(x.size), code["add"], x, other, x.size)
                return x

            operator = jax_ops.operator("test::wrong")(lambda s, x, f=function: f(s, x))
            with pytest.raises(TypeError, match=r"no argument of the operator|ordinary host"):
                operator(pair()[0]) if other is t else wrong(code, function_of(function, other))


def function_of(function, other):
    """A function of the stream and one array."""
    return lambda stream, x: function(stream, x, other)


def test_arrays_of_another_call(code):
    kept = []

    def first(stream, x):
        kept.append(x)
        return x

    def second(stream, x):
        stream.launch(shape(x.size), code["add"], x, kept[0], x.size)
        return x

    wrong(code, first)
    with pytest.raises(TypeError, match="is of another call of an operator"):
        wrong(code, second)
    with pytest.raises(TypeError, match="is of another call of an operator"):
        wrong(code, lambda stream, x: kept[0])


def test_what_is_returned(code):
    with pytest.raises(TypeError, match=r"must return arrays .* got NoneType"):
        wrong(code, lambda stream, x: None)
    with pytest.raises(ValueError, match="which no kernel was given to write to"):
        wrong(code, lambda stream, x: stream.empty_like(x))
    with pytest.raises(TypeError, match="array 0 among the arguments may be stored to through par"):

        def stores(stream, x):
            y = stream.empty_like(x)
            stream.launch(shape(x.size), code["add"], x, y, x.size)
            return y

        wrong(code, stores)


def test_shapes_and_types_that_are_refused(code):
    with pytest.raises(ValueError, match="no negative numbers"):
        wrong(code, lambda stream, x: stream.empty(-1, "f4"))
    with pytest.raises(TypeError, match="no arrays of int4"):
        wrong(code, lambda stream, x: stream.empty(2, "int4"))
    with pytest.raises(TypeError, match="no arrays of key"):
        jax_ops.operator("test::wrong")(lambda stream, x: x)(jax.random.key(0))
    with pytest.raises(ValueError, match="block must be"):
        wrong(
            code,
            lambda stream, x: stream.launch(cu.LaunchConfig(1, 4096), code["add"], x, x, 1),
        )
    with pytest.raises(TypeError, match="kernel must be a Kernel, not str"):
        wrong(code, lambda stream, x: stream.launch(shape(1), "add", x, x, 1))
    with pytest.raises(TypeError, match=r"take them as \*arrays"):
        jax_ops.operator("test::wrong")(lambda stream, x: x)([pair()[0]])


def test_an_error_in_the_function_is_its_own(code):
    def failing(stream, x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        wrong(code, failing)


@pytest.mark.slow
def test_a_device_that_does_not_read_memory_of_the_host(script, driver):
    if driver != "sim":
        pytest.skip("a setting of the simulated driver")
    done = script(
        """
        import jax.numpy as jnp
        import cudago as cu
        try:
            cu.jax_ops.operator("test::same")(lambda stream, x: x)(jnp.ones(3))
        except cu.UnsupportedError as e:
            print(e)
        """,
        CUDAGO_SIM="pageable=0",
    )
    assert done.stdout.startswith("test::same: the simulated device is set not to read memory")


@pytest.mark.slow
def test_the_backend_of_the_other_driver(script, driver):
    if driver != "sim":
        pytest.skip("JAX's CPU backend is everywhere, its CUDA backend is not")
    done = script(
        """
        import hashlib
        import jax, jax.numpy as jnp, numpy as np
        import cudago as cu
        from cudago import _core, jax_ops
        @jax_ops.operator("test::mine")
        def mine(stream, x):
            return x
        jax_ops.driver_name = lambda: "nvidia"  # a machine with a GPU, and JAX without CUDA
        try:
            mine(jnp.ones(3))
        except cu.UnsupportedError as e:
            print(e)
        jax_ops._devices = lambda *_: (0,)  # JAX with CUDA, and an array on the CPU
        try:
            mine(jnp.ones(3))
        except Exception as e:
            print(e)
        """
    )
    assert "JAX has no CUDA device: install jax[cuda13], or choose the simulated" in done.stdout
    assert "whose kernels cannot use arrays of JAX's CPU backend" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["sim"], indirect=True)  # on a GPU XLA tells of it
def test_a_fault_in_a_kernel(script, driver):
    done = script(
        f"""
        import jax, jax.numpy as jnp
        import cudago as cu
        code = cu.Program({SOURCE!r}).compile()
        @cu.jax_ops.operator("test::broken")
        def broken(stream, x):
            stream.launch(cu.LaunchConfig(1, 1), code["broken"], x, 1 << 28)
            return x
        try:
            jax.jit(broken)(jnp.ones(4)).block_until_ready()
        except Exception as e:
            print(type(e).__name__, e)
        """
    )
    assert "test::broken" in done.stdout
    assert "ILLEGAL_ADDRESS" in done.stdout


# --- the end, and graphs --------------------------------------------------------------------------


@pytest.mark.slow
def test_work_under_way_at_exit(script, driver):
    done = script(
        f"""
        import jax, jax.numpy as jnp
        import cudago as cu
        code = cu.Program({SOURCE!r}).compile()
        @cu.jax_ops.operator("test::square")
        def square(stream, x):
            z = stream.empty_like(x)
            config = cu.LaunchConfig((x.size + 127) // 128, 128)
            stream.launch(config, code["product"], x, x, 1.0, z, x.size)
            return z
        f = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda i, x: square(x), x))
        x = jnp.ones(10_000)
        f(x[:5]).block_until_ready()
        # Not in a daemon thread: CPython ends those inside JAX's C++, which aborts without us too.
        for _ in range(20):
            f(x)
        print("end")
        """
    )
    assert done.stdout.strip().endswith("end")
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
def test_captured_by_xla(product):
    x, y = pair()
    options = {"xla_gpu_graph_min_graph_size": "1", "xla_gpu_enable_command_buffer": "CUSTOM_CALL"}
    f = jax.jit(lambda x, y: product(product(x, y, 2.0), y), compiler_options=options)
    for _ in range(5):
        assert same(f(x, y), 2 * x * y * y)
