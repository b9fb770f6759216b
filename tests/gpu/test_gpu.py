# SPDX-License-Identifier: Apache-2.0
"""What a program sees of a GPU: operators, errors of absent libraries, and failures of the device."""

import re

NAME_DEVICE = """
    assert tenon.ones([2]).sum().item() == 2
    try:
        tenon.device(KIND)
    except tenon.DeviceError as error:
        print(error)
"""


def variable(kind, what):
    return f"TENON_{'ROCM' if kind == 'hip' else 'CUDA'}_{what}"


def test_an_absent_driver_is_named(run, kind):
    result = run(NAME_DEVICE, **{variable(kind, "DRIVER"): "libabsent_driver.so.1"})
    assert result.returncode == 0, result.stderr
    assert "the driver was not found (libabsent_driver.so.1: cannot open" in result.stdout
    assert f"name the file in {variable(kind, 'DRIVER')}" in result.stdout
    assert "[NO_DEVICE]" in result.stdout


def test_a_driver_without_a_function_names_it(run, kind):
    result = run(NAME_DEVICE, **{variable(kind, "DRIVER"): "libm.so.6"})
    assert re.search(r"the driver lacks \w+Init; expected .* or later, update it", result.stdout)


def test_an_absent_compiler_is_named_when_a_kernel_is_needed(run, kind):
    code = """
        try:
            tenon.ones([2], device=KIND)
        except tenon.DeviceError as error:
            print(error)
    """
    environment = {variable(kind, "COMPILER"): "libabsent_compiler.so", "TENON_FALLBACK": "deny"}
    result = run(code, **environment)
    assert result.returncode == 0, result.stderr
    assert "the compiler was not found (libabsent_compiler.so: cannot open" in result.stdout
    assert f"name the file in {variable(kind, 'COMPILER')}" in result.stdout


def test_operators_run_without_the_host(run):
    code = """
        import numpy as np
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        y = tenon.tensor(x).to(KIND)
        np.testing.assert_allclose((y @ y.T).cpu().numpy(), x @ x.T)
        np.testing.assert_allclose(y[:, ::2].sum(0).cpu().numpy(), x[:, ::2].sum(0))
    """
    result = run(code, TENON_FALLBACK="deny")
    assert result.returncode == 0, result.stderr


def test_work_in_another_order_and_with_delays_gives_the_same_result(run):
    code = """
        first, second = tenon.Stream(KIND), tenon.Stream(KIND)
        x = tenon.ones([1000], device=KIND)
        for round in range(10):
            with first:
                y = x * round
                for _ in range(5):
                    y = y + 1
            second.wait(first)
            with second:
                z = (y * 2).cpu()
            assert z.numpy().max() == (round + 5) * 2
    """
    result = run(code, SIMULATED_DELAY_US="300", SIMULATED_SEED="7")
    assert result.returncode == 0, result.stderr


def test_pinned_memory_is_kept_until_copies_have_read_it(run):
    code = """
        stream = tenon.Stream(KIND)
        copies = []
        for number in range(20):
            x = tenon.memory.pinned([1 << 15], device=KIND)
            assert x.device.type == "cpu"
            x.fill_(float(number))
            with stream:
                copies.append(x.to(KIND))
            del x
        stream.synchronize()
        assert [copy.min().item() for copy in copies] == list(range(20))
        assert [copy.max().item() for copy in copies] == list(range(20))
        from tenon import data
        loader = data.DataLoader(
            data.TensorDataset(tenon.arange(100), tenon.rand([100, 64])), 8, device=KIND, pin_memory=True
        )
        assert [n for rows, _ in loader for n in rows.tolist()] == list(range(100))
    """
    result = run(code, SIMULATED_DELAY_US="2000", SIMULATED_SEED="3")
    assert result.returncode == 0, result.stderr


def test_a_fault_in_a_kernel_names_it_and_leaves_other_devices_usable(run):
    code = """
        x = tenon.ones([8], device=KIND)
        for _ in range(2):
            try:
                (x + 1).cpu()
            except RuntimeError as error:
                print(error)
        assert (tenon.ones([2], device=KIND + ":1") + 1).cpu().numpy().tolist() == [2, 2]
    """
    result = run(code, SIMULATED_FAIL="kernel:1:700")
    assert result.returncode == 0, result.stderr
    assert "device 0 is lost; work queued earlier has failed" in result.stdout
    assert "the last kernel launched was tenon_" in result.stdout
    assert "(700)" in result.stdout
