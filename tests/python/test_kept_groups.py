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
