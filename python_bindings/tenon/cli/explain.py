# SPDX-License-Identifier: Apache-2.0
"""Print what a model takes and gives, and what runs each of its steps."""

from tenon.cli import model_files, predictor

HELP = "say what runs each step of a model"


def add_arguments(parser):
    predictor.add_predictor_options(parser)
    model_files.add_size_options(parser)


def run(arguments):
    sizes = model_files.read_sizes(arguments.size)
    names = predictor.input_names(arguments.program) or []
    shapes = model_files.read_shapes(arguments.shape, names)
    with predictor.open_predictor(arguments, sizes, shapes, fallback="allow") as made:
        for kind, values in (("input", made.inputs), ("output", made.outputs)):
            for value in values.values():
                shape = ", ".join("?" if size is None else str(size) for size in value.shape)
                print(f"{kind} {value.name}: {value.dtype}[{shape}]")
        for dim in made.dimensions:
            print(dim)
        print(made.explain(), end="")
        print("weights take {weights} bytes".format(**made.memory()))
