# SPDX-License-Identifier: Apache-2.0
"""Kernels from source need a device that compiles: "opencl" unless TENON_TEST_COMPILING names one;
TENON_TEST_PLUGINS names libraries to load first.

TENON_KERNEL_C_HOST_LIKE=0 runs these tests on the kernels meant for graphics processors (groups,
local memory, barriers), wherever the device is a processor."""

import os

import pytest
import tenon

DEVICE = os.environ.get("TENON_TEST_COMPILING", "opencl")


@pytest.fixture(scope="session")
def device():
    for path in filter(None, os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep)):
        tenon.load_plugin(path)
    try:
        tenon.zeros([1], device=DEVICE)
    except Exception as error:  # whatever the reason, it is printed
        pytest.skip(f"no device {DEVICE} here: {error}")
    return DEVICE


@pytest.fixture(autouse=True)
def nothing_on_the_host(device):
    with tenon.fallback("deny"):
        yield
