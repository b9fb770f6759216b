# SPDX-License-Identifier: Apache-2.0
"""Groups of steps keep what the dispatcher decided from run to run, as long as it would decide the same."""

import threading

import numpy as np
import pytest
import tenon


def chain(x):
    return ((x * 2 + 1).relu() - 0.5).exp()


def program_of(*shape):
    x = tenon.randn(*shape)
    with tenon.no_grad():
        program = tenon.export(chain, x)
    assert "steps 0 to 4: one pass over" in program.plan()
    return program, x


@pytest.fixture(autouse=True)
def no_gradients():
    with tenon.no_grad():
        yield


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2048,), (2049,), (16383,), (40000,)])
def test_runs_give_the_functions_bits(shape):
    program, _ = program_of(*shape)
    for _ in range(4):
        x = tenon.randn(*shape)
        np.testing.assert_array_equal(program(x).numpy(), chain(x).numpy())


def test_empty_tensors():
    x = tenon.ones(0, 3)
    assert tenon.export(chain, x)(x).shape == (0, 3)


def test_broadcast_operands_of_small_groups():
    row, column = tenon.randn(5), tenon.randn(4, 1)

    def function(x):
        return (x * row + column) / (row * 2 + x)

    x = tenon.randn(4, 5)
    program = tenon.export(function, x)
    for _ in range(3):
        x = tenon.randn(4, 5)
        np.testing.assert_array_equal(program(x).numpy(), function(x).numpy())
    row.fill_(3.0)
    np.testing.assert_array_equal(program(x).numpy(), function(x).numpy())


def test_other_layouts_between_runs():
    program, _ = program_of(6, 6)
    for x in (
        tenon.randn(6, 6),
        tenon.randn(6, 6).T,
        tenon.randn(6, 12)[:, ::2],
        tenon.randn(6, 6),
    ):
        np.testing.assert_array_equal(program(x).numpy(), chain(x).numpy())


def test_results_are_tensors_of_their_own():
    program, x = program_of(9)
    first = program(x)
    kept = first.numpy().copy()
    second = program(x + 1)
    assert first.data_ptr() != second.data_ptr()
    np.testing.assert_array_equal(first.numpy(), kept)


def test_a_kernel_that_comes_and_goes():
    program, x = program_of(3, 5)
    want = program(x).numpy().copy()
    with tenon.kernel("tenon::relu", "cpu", dtypes=["float32"])(lambda x: x.numpy() * 0 + 4):
        for _ in range(2):
            np.testing.assert_array_equal(
                program(x).numpy(), np.full((3, 5), np.exp(np.float32(3.5)))
            )
    np.testing.assert_array_equal(program(x).numpy(), want)


def test_a_profile_sees_every_step():
    program, x = program_of(3, 5)
    program(x)
    with tenon.profiler.profile() as seen:
        program(x)
    assert {"multiply", "relu", "exp"} <= {event.name for event in seen.events}
    np.testing.assert_array_equal(program(x).numpy(), chain(x).numpy())


def test_threads_run_one_program():
    program, _ = program_of(7)
    wrong = []

    def run(seed):
        rng = np.random.default_rng(seed)
        with tenon.no_grad():
            for _ in range(300):
                x = tenon.tensor(rng.normal(size=7).astype("float32"))
                if not (program(x) == chain(x)).all().item():
                    wrong.append(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_gradients_are_replayed_step_by_step():
    program, _ = program_of(5)
    x = tenon.randn(5)
    program(x)
    with tenon.enable_grad():
        x.requires_grad = True
        trainable = tenon.export(chain, x)
        for _ in range(2):
            got = tenon.grad(trainable(x).sum(), [x])[0]
            np.testing.assert_array_equal(got.numpy(), tenon.grad(chain(x).sum(), [x])[0].numpy())


# -- machine code -----------------------------------------------------------------------------------------

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-45,
    -1e-45,
    1.2e-38,
    3.4e38,
    -3.4e38,
    np.inf,
    -np.inf,
    np.nan,
    0.1,
]


def arithmetic(x, y):
    a = x + y * 2
    b = (a - 0.5).relu() / (y.square() + 1)
    c = tenon.maximum(b, -x.abs()) * tenon.reciprocal(y)
    return tenon.minimum(c.abs().sqrt() - a, 3 - x), b


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [13 * 13, 50_000])
def test_chains_of_arithmetic_have_the_bits_of_their_kernels(dtype, count):
    x, y = np.meshgrid(*[np.array(SPECIAL, dtype)] * 2)
    x, y = (tenon.tensor(np.resize(z, count)) for z in (x, y))
    program = tenon.export(arithmetic, (x, y))
    want = arithmetic(x, y)
    for _ in range(40):  # small groups have their loop after some runs
        got = program(x, y)
    for a, b in zip(got, want, strict=True):
        bits = np.uint32 if dtype == "float32" else np.uint64
        a, b = a.numpy(), b.numpy()
        same = (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
        assert same.all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_that_promise_ieee_are_numpys(dtype):
    """What the loops rely on."""
    x, y = np.meshgrid(*[np.array(SPECIAL, dtype)] * 2)
    x, y = x.ravel(), y.ravel()
    bits = np.uint32 if dtype == "float32" else np.uint64
    with np.errstate(all="ignore"):
        for name, want in {
            "add": x + y,
            "subtract": x - y,
            "multiply": x * y,
            "divide": x / y,
            "negative": -x,
            "abs": np.abs(x),
            "square": x * x,
            "sqrt": np.sqrt(x),
            "reciprocal": 1 / x,
        }.items():
            operands = (x, y) if name in ("add", "subtract", "multiply", "divide") else (x,)
            got = getattr(tenon, name)(*map(tenon.tensor, operands)).numpy()
            assert ((got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))).all(), (
                name
            )


def test_random_chains_of_machine_code():
    rng = np.random.default_rng(7)
    unary = [
        lambda a: -a,
        lambda a: a.abs(),
        lambda a: a.square(),
        lambda a: a.relu(),
        lambda a: a.exp(),
    ]
    binary = [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        tenon.maximum,
        tenon.minimum,
    ]
    for _ in range(60):
        choices = rng.integers(0, 1 << 30, size=(25, 4))
        row = tenon.tensor(rng.normal(size=50).astype("float32"))

        def function(x, y, choices=choices, row=row):
            known = [x, y, row, tenon.full([], 0.75)]
            for kind, a, b, number in choices:
                left, right = known[a % len(known)], known[b % len(known)]
                if kind % 5 == 0:
                    made = unary[number % len(unary)](left)
                elif kind % 5 == 1:
                    made = binary[number % len(binary)](left, float(number % 7) - 3)
                else:
                    made = binary[number % len(binary)](left, right)
                if made.shape == x.shape:
                    known.append(made)
            return known[-1], known[-3], known[len(known) // 2]

        x, y = (tenon.tensor(rng.normal(size=(400, 50)).astype("float32")) for _ in range(2))
        program = tenon.export(function, (x, y), passes=())
        for got, want in zip(program(x, y), function(x, y), strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())
