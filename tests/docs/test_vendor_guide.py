# SPDX-License-Identifier: Apache-2.0
"""docs/vendors.md, command by command, as a vendor would follow it."""

import os
import re

from guide import Reader, needs_build


@needs_build
def test_the_guide_holds():
    Reader("vendor_guide").follow("vendors.md")


def test_the_template_is_as_small_as_the_guide_says():
    from tenon.cli.new_device import template_folder

    runtime = os.path.join(template_folder(), "runtime")
    with open(os.path.join(template_folder(), "kernels", "primitives.c")) as file:
        kernels = file.read()
    lines, functions = 0, 0
    for name in os.listdir(runtime):
        with open(os.path.join(runtime, name)) as file:
            text = file.read()
        lines += text.count("\n")
        if name.endswith(".c"):
            functions += len(re.findall(r"^\w[\w *]+\([^;]*?\) \{", text, re.M))
    # The eight, the entry point, and two that are not the contract's: `stop` and the error helper.
    assert functions == 8 + 1 + 2
    assert lines < 200
    assert lines + kernels.count("\n") < 600
    assert len(re.findall("^TENON_BOX_primitive_", kernels, re.M)) == 11
