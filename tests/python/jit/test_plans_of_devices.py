# SPDX-License-Identifier: Apache-2.0
"""What plans say of devices: groups of steps are one kernel only where the device makes one of them."""

import subprocess
import sys

import tenon


def chain(x):
    return ((x * 2 + 1).relu() - 0.5).exp()


def exported(device):
    with tenon.fallback("allow"):
        x = tenon.ones([40, 50], device=device)
        program = tenon.export(chain, (x,))
    return program, x


def test_steps_of_a_device_without_a_compiler_run_alone():
    program, x = exported("null")
    compiled = tenon.compile(chain)
    for _ in range(2):  # before and after runs
        assert program.plan() == ""
        memory = program.memory()
        assert memory["planned"] == memory["stepwise"] < memory["kept"]
        with tenon.fallback("allow"):
            program(x)
            compiled(x)
            compiled(x)
    assert "a program of 5 steps" in compiled.explain()
    assert "one kernel" not in compiled.explain()


def test_devices_are_listed_once_their_plugin_is_loaded():
    code = """
import tenon
assert "null" not in {device.type for device in tenon.devices()}
tenon.device("null")
assert "null" in {device.type for device in tenon.devices()}
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_what_devices_lists_is_said():
    assert "loaded when that is named" in tenon.devices.__doc__
