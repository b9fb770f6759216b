# SPDX-License-Identifier: Apache-2.0
"""Print what an exported program takes and gives, and what runs each of its steps."""

from tenon.cli import predictor

HELP = "say what runs each step of an exported program"


def add_arguments(parser):
    predictor.add_predictor_options(parser)


def run(arguments):
    made = predictor.make_predictor(arguments, fallback="allow")
    for kind, values in (("input", made.inputs), ("output", made.outputs)):
        for value in values.values():
            shape = ", ".join("?" if size is None else str(size) for size in value.shape)
            print(f"{kind} {value.name}: {value.dtype}[{shape}]")
    for dim in made.dimensions:
        print(dim)
    print(made.explain(), end="")
    print("weights take {weights} bytes".format(**made.memory()))
