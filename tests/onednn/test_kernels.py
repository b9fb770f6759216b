# SPDX-License-Identifier: Apache-2.0
"""The kernels of oneDNN, which run because TENON_OVERRIDES names the plugin, against NumPy and Tenon's own."""

import pytest
from programs_support import VERBOSE, executed, run_python

with open("/proc/cpuinfo") as file:
    FLAGS = file.read()
HAS_AVX512 = "avx512bw" in FLAGS  # for bfloat16

PRIMITIVES = {
    "matmul",
    "convolution",
    "pooling",
    "softmax",
    "layer_normalization",
    "batch_normalization",
}
OVERRIDE = {"TENON_OVERRIDES": "onednn", "TENON_TEST_DEVICES": "cpu", "TENON_TEST_PLUGINS": ""}
OPERATORS = "matmul or linear or conv or avg_pool or softmax or layer_norm or batch_norm"


@pytest.mark.parametrize(
    "files, chosen",
    [
        (["test_values.py", "test_edges.py"], OPERATORS),
        (["test_products.py"], "small_floats or batches or vectors or linear"),
        (["test_pooling.py"], "avg or average or mean"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_operator_suite(library, files, chosen):
    paths = [f"tests/ops/{name}" for name in files]
    arguments = ["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-k", chosen, *paths]
    out, _ = run_python(*arguments, **OVERRIDE, **VERBOSE)
    assert executed(out) & PRIMITIVES
    if "test_values.py" in files:
        assert executed(out) >= PRIMITIVES


# What oneDNN must execute, and an expression that has the same value with and without it.
CALLS = {
    "matmul": ("matmul", "x2 @ x2.T"),
    "batches": ("matmul", "tenon.matmul(x4, x4.transpose())"),
    "linear": ("matmul", "tenon.linear(x3, w2, b)"),
    "conv2d": ("convolution", "tenon.conv2d(x4, w4, b, [2, 1], [1, 2], [1, 1])"),
    "conv2d with dilation": ("convolution", "tenon.conv2d(x4, w4, b, 1, 2, 2)"),
    "conv2d in groups": (
        "convolution",
        "tenon.conv2d(x4, tenon.clone(w4[:, :4]), none, 1, 1, 1, 2)",
    ),
    "conv2d, channels last": ("convolution", "tenon.conv2d(last, w4, b, 1, 1)"),
    "conv1d": ("convolution", "tenon.conv1d(x3, tenon.clone(w4[:, :, 0]), b, 1, 1)"),
    "input gradient": ("convolution", "tenon.conv2d_input_grad(g4, w4, [2, 8, 9, 7], 1, 1)"),
    "weight gradient": ("convolution", "tenon.conv2d_weight_grad(g4, x4, [16, 8, 3, 3], 1, 1)"),
    "avg_pool2d": ("pooling", "tenon.avg_pool2d(x4, [3, 2], [2, 2], [1, 1])"),
    "avg_pool2d without padding": ("pooling", "tenon.avg_pool2d(x4, 3, 1, 1, False, False)"),
    "avg_pool2d, channels last": ("pooling", "tenon.avg_pool2d(last, 3, 2, 1)"),
    "softmax": ("softmax", "tenon.softmax(x4, 1)"),
    "log_softmax": ("softmax", "tenon.log_softmax(x3)"),
    "layer_norm": ("layer_normalization", "tenon.layer_norm(x4, x4[0], x4[1], 3)"),
    "batch_norm": ("batch_normalization", "tenon.batch_norm(x4, b[:8], b[8:])[1]"),
    "batch_norm, channels last": ("batch_normalization", "tenon.batch_norm(last)[0]"),
}
# Their weight and bias are bfloat16, and oneDNN reads float32 alone.
DECLINED_IN_BFLOAT16 = {"layer_norm", "batch_norm"}
OPERANDS = """
none = None
rng = np.random.default_rng(3)
def draw(*shape): return tenon.tensor(rng.normal(size=shape).astype("float32")).to(DTYPE)
x2, x3, x4 = draw(40, 24), draw(6, 8, 24), draw(2, 8, 9, 7)
w2, w4, b, g4 = draw(16, 24), draw(16, 8, 3, 3), draw(16), draw(2, 16, 9, 7)
last = tenon.clone(x4.permute((0, 2, 3, 1))).permute((0, 3, 1, 2))
def show(value): print(repr(value.to(tenon.float32).numpy().tolist()), flush=True)
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_values_are_those_of_the_kernels_of_the_cpu_plugin(library, run, dtype):
    program = OPERANDS.replace("DTYPE", f"tenon.{dtype}")
    for name, (_, expression) in CALLS.items():
        program += f"print('case {name}', flush=True); show({expression})\n"
    ours = split(run(program)[0])
    theirs = split(run(program, TENON_OVERRIDES="onednn", **VERBOSE)[0])
    for name, (primitive, _) in CALLS.items():
        assert not executed(ours[name]), "optional kernels run only where they are chosen"
        if dtype == "float32" or (HAS_AVX512 and name not in DECLINED_IN_BFLOAT16):
            assert executed(theirs[name]) & {primitive}, name
        assert_near(values_in(ours[name]), values_in(theirs[name]), dtype, name)


def split(output):
    parts = output.split("case ")[1:]
    return dict(part.split("\n", 1) for part in parts)


def values_in(text):
    return eval(next(line for line in text.splitlines() if line.startswith("[")))


def assert_near(got, want, dtype, name):
    import numpy as np

    tolerance = 2e-5 if dtype == "float32" else 5e-2
    scale = np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def test_int8_sums_are_exact(library, run):
    program = """
    rng = np.random.default_rng(0)
    for dtype in "int8", "uint8":
        a = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (33, 515), endpoint=True)
        b = rng.integers(-128, 127, (515, 48), endpoint=True)
        x, y = tenon.tensor(a.astype(dtype)), tenon.tensor(b.astype("int8"))
        np.testing.assert_array_equal(tenon.matmul_integer(x, y).numpy(), a @ b)
    """
    out, _ = run(program, TENON_OVERRIDES="onednn", **VERBOSE)
    if "avx512_vnni" in FLAGS:
        assert executed(out) == {"matmul"}


def test_threads_may_call_at_once(library, run):
    out, _ = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        rng = np.random.default_rng(1)
        arrays = [rng.normal(size=(n, 48)).astype("float32") for n in (5, 5, 64, 64, 200)]
        def work(i):
            a = arrays[i % len(arrays)]
            x = tenon.tensor(a)
            for _ in range(20):
                np.testing.assert_allclose((x @ x.T).numpy(), a @ a.T, rtol=1e-4, atol=1e-4)
        with ThreadPoolExecutor(6) as pool: list(pool.map(work, range(24)))
        tenon.set_num_threads(1)
        work(2)
        print("done")
        """,
        TENON_OVERRIDES="onednn",
    )
    assert out.endswith("done\n")


def test_calls_that_do_not_fit_run_on_the_kernels_of_the_cpu_plugin(library, run):
    out, _ = run(
        """
        x = tenon.tensor(np.arange(24.0).reshape(4, 6))  # float64
        print((x @ x.T).sum().item())
        i = tenon.tensor(np.arange(24).reshape(4, 6))  # int64
        print((i @ i.T).sum().item())
        e = tenon.ones((0, 4)) @ tenon.ones((4, 3))
        print(tuple(e.shape))
        p = tenon.avg_pool2d(tenon.ones((1, 1, 6, 6)), 3, 2, 0, True)  # windows beyond the image
        print(tuple(p.shape))
        """,
        TENON_OVERRIDES="onednn",
        **VERBOSE,
    )
    assert not executed(out)
    assert out.split("\n")[-5:-1] == ["12976.0", "12976", "(0, 3)", "(1, 1, 3, 3)"]
