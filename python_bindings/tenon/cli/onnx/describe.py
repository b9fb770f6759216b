# SPDX-License-Identifier: Apache-2.0
"""Print what a model takes and gives, its opsets, and which of its operators are not imported."""

from collections import Counter

import tenon.onnx
from tenon.cli import output
from tenon.cli.onnx import common

HELP = "say what a model of ONNX takes and holds"


def add_arguments(parser):
    parser.add_argument("model", metavar="MODEL.onnx")
    output.add_json_option(parser)


def run(arguments):
    common.check_model(arguments.model)
    described = tenon.onnx.describe(arguments.model)
    counts = Counter(tenon.onnx.operators(arguments.model))
    if arguments.json:
        output.print_json({**described, "operators": dict(sorted(counts.items()))})
        return
    opsets = ", ".join(
        f"{name or 'ai.onnx'} {version}" for name, version in described["opsets"].items()
    )
    print(
        f"IR version {described['ir_version']}, opset {opsets}, by {described['producer'] or '?'}"
    )
    for value in described["inputs"]:
        sizes = (
            "?"
            if value["shape"] is None
            else ", ".join("?" if s is None else str(s) for s in value["shape"])
        )
        kind = "a sequence of " if value.get("kind") == "sequence" else ""
        print(f"input {value['name']}: {kind}{value['dtype']}[{sizes}]")
    for name in described["outputs"]:
        print(f"output {name}")
    opset = described["opsets"].get("", 0)
    rows = [["OPERATOR", "NODES", "IMPORTED"]]
    for name, count in sorted(counts.items()):
        rows.append([name, count, _imported(name, opset)])
    output.print_table(rows, {2: lambda text: "red" if text.startswith("no") else None})


def _imported(name, opset):
    """Whether, or why not. A name with a domain is a function's, or no one's."""
    found = None
    for row in tenon.onnx.table():
        if row["op"] == name and row["since"] <= opset:
            found = row
    if found is None:
        return "by its function, if the model has one" if "::" in name else "no: there is none"
    return f"no: {found['refused']}" if "refused" in found else "yes"
