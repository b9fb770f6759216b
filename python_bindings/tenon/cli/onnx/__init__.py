# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX: what they hold, and whether they compute here what they compute elsewhere."""

HELP = "look at models of ONNX, and compare them with other runtimes"

COMMANDS = {
    "describe": "tenon.cli.onnx.describe",
    "verify": "tenon.cli.onnx.verify",
    "bisect": "tenon.cli.onnx.bisect",
    "shapes": "tenon.cli.onnx.shapes",
}
