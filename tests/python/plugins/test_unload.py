# SPDX-License-Identifier: Apache-2.0
"""Unloading a device's plugin that was used in every way."""

import subprocess
import sys
import textwrap

import reference_plugin

pytestmark = reference_plugin.needs_reference


def test_a_device_may_go_and_come_back():
    program = f"PATH = {str(reference_plugin.PATH)!r}\n" + textwrap.dedent("""
        import gc
        import tenon

        def use():
            x = tenon.tensor([[3.0, 1.0], [2.0, 5.0]]).to("reference")
            with tenon.Stream("reference") as stream, tenon.profile("reference"):
                y = x.softmax(-1).sum() + x.sort().max()  # kernels from source among them
                stream.synchronize()
            graph = tenon.Graph("reference")
            with graph.capture():
                z = x * x
            graph.replay()
            shared = tenon.ipc.open(tenon.ipc.share(x))
            return y.item(), z.tolist(), shared.tolist()

        for _ in range(3):
            tenon.load_plugin(PATH)
            print(use())
            tenon.tensor([1.0]).to("reference").exp().item()
            gc.collect()
            tenon.plugins.unload("reference")
            print(open("/proc/self/maps").read().count("libtenon_reference"))
    """)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    used = "(7.0, [[9.0, 1.0], [4.0, 25.0]], [[3.0, 1.0], [2.0, 5.0]])"
    assert result.stdout.split("\n")[:-1] == [used, "0"] * 3
