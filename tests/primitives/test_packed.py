# SPDX-License-Identifier: Apache-2.0
"""Numbers of four bits on a device of primitives: the bytes and the values of the CPU."""

import math

import numpy as np
import pytest
import tenon

PACKED = ("float4_e2m1_x2", "int4_x2", "uint4_x2")


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bfloat16"])
def test_packing_gives_the_bytes_of_the_cpu(name, dtype):
    halves = np.arange(-40, 41) / 4
    x = [*halves, 1e30, -1e30, 7.5, -8.5, 15.5, 100, -100]
    if "float" in dtype:
        x = [*x, math.inf, -math.inf, math.nan, -math.nan, -0.0, 0.0, 1e-30, -1e-30]
        x += [*np.nextafter(np.float32(halves), 9), *np.nextafter(np.float32(halves), -9)]
    x = tenon.tensor(x)
    x = x.to(dtype) if "float" in dtype else x.clip(0 if dtype == "uint8" else -100, 100).to(dtype)
    x = x[: x.size // 4 * 4].reshape(-1, 4)
    got = tenon.pack(x.to("level1"), name).bitcast("uint8").to("cpu").numpy()
    np.testing.assert_array_equal(got, tenon.pack(x, name).bitcast("uint8").numpy())


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
def test_unpacking_gives_the_values_of_the_cpu(name, dtype):
    if name.startswith("float") and dtype.startswith("int"):
        return  # refused
    x = tenon.tensor(np.arange(256, dtype=np.uint8)).reshape(16, 16)
    want = tenon.unpack(x.bitcast(name), dtype).to("float64").numpy()
    on_device = x.to("level1").bitcast(name)
    got = tenon.unpack(on_device, dtype).to("cpu").to("float64").numpy()
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    got = tenon.unpack(on_device.T, dtype).to("cpu").to("float64").numpy()
    np.testing.assert_array_equal(got, tenon.unpack(x.bitcast(name).T, dtype).to("float64").numpy())
