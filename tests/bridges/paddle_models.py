# SPDX-License-Identifier: Apache-2.0
"""How many nets that Paddle has saved become programs that agree with Paddle.

    python -m tests.bridges.paddle_models save nets          where Paddle is installed: models and Paddle's results
    python -m tests.bridges.paddle_models compare nets       where Tenon is

Paddle 3 saves `.json` files and Paddle 2.6 `.pdmodel` files. Weights are drawn: nothing is downloaded. `compare` prints a line for
each net and, last, how many agree within 1e-4.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Nets that are saved for one size of the batch, because their code is for one.
_OF_ONE_SIZE = ("yolo", "priorboxes", "regions", "swin", "textdetector")
_TOLERANCE = 1e-4


def save(folder: Path, names: list[str]) -> int:
    """A net that this version of Paddle cannot save is named and left out."""
    import paddle

    from tests.bridges import paddle_nets_of_operators  # noqa: F401  (adds its nets)
    from tests.bridges.paddle_nets import NETS

    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names or list(NETS):
        paddle.seed(7)
        try:
            layer, inputs = NETS[name]()
            layer.eval()
            wanted = layer(*map(paddle.to_tensor, inputs))
            batch = None if name not in _OF_ONE_SIZE else inputs[0].shape[0]
            spec = [
                paddle.static.InputSpec(
                    [batch if x.shape[0] == inputs[0].shape[0] else x.shape[0], *x.shape[1:]],
                    str(x.dtype),
                    name=f"x{index}",
                )
                for index, x in enumerate(inputs)
            ]
            paddle.jit.save(layer, str(folder / name), input_spec=spec)
        except Exception as error:
            failed += 1
            print(f"{name}: Paddle does not save it: {str(error).splitlines()[-1][:100]}")
            continue
        without_places(folder / f"{name}.pdmodel")
        arrays = {f"in{index}": x for index, x in enumerate(inputs)}
        for index, each in enumerate(paddle.utils.flatten(wanted)):
            arrays[f"out{index}"] = each.numpy()
        np.savez(folder / f"{name}.npz", **arrays)
    return 0


def without_places(path: Path) -> None:
    """Paddle 2 writes into a model where each operator was called, by paths of the machine."""
    if not path.exists():
        return
    from paddle.base.proto import framework_pb2

    program = framework_pb2.ProgramDesc()
    program.ParseFromString(path.read_bytes())
    for block in program.blocks:
        for op in block.ops:
            kept = [each for each in op.attrs if each.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    path.write_bytes(program.SerializeToString())


def arrays_of(path: Path) -> tuple[list[Any], list[Any]]:
    """Inputs and results of a net."""
    with np.load(path) as held:
        groups = [
            [held[f"{kind}{index}"] for index in range(len(held.files)) if f"{kind}{index}" in held]
            for kind in ("in", "out")
        ]
    return groups[0], groups[1]


def difference(found: Any, wanted: Any) -> float:
    """Infinite for another shape or dtype."""
    found = found.numpy()
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if wanted.dtype.kind in "iub":
        return float((found != wanted).sum())
    gap = np.abs(found - wanted) / (1 + np.abs(wanted))
    return float(gap.max()) if gap.size else 0.0


def run(path: Path) -> tuple[float, str]:
    """The largest difference from Paddle's results, and what was to be said of the model's sizes."""
    import tenon

    inputs, wanted = arrays_of(path.with_suffix(".npz"))
    note = ""
    try:
        program = tenon.paddle.load(path)
    except NotImplementedError as error:
        if "shapes= can give" not in str(error):
            raise
        note = " (of one size)"
        shapes = {f"x{index}": list(x.shape) for index, x in enumerate(inputs)}
        program = tenon.paddle.load(path, shapes=shapes)
    results = program(*map(tenon.tensor, inputs))
    listed = results if isinstance(results, tuple) else (results,)
    return max(difference(a, b) for a, b in zip(listed, wanted, strict=True)), note


def compare(folder: Path, names: list[str]) -> int:
    agree = open_sizes = 0
    paths = sorted(path for ending in (".json", ".pdmodel") for path in folder.glob(f"*{ending}"))
    paths = [path for path in paths if not names or path.stem in names]
    for path in paths:
        try:
            worst, note = run(path)
        except (NotImplementedError, ValueError, RuntimeError) as error:
            print(f"{path.name}: {error}")
            continue
        agree += worst <= _TOLERANCE
        open_sizes += not note
        print(f"{path.name}: {worst:.1e}{note}{'' if worst <= _TOLERANCE else ', differs'}")
    print(f"{agree} of {len(paths)} agree within {_TOLERANCE}, {open_sizes} as they were saved")
    return 0 if agree == len(paths) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("save", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    return (save if arguments.what == "save" else compare)(arguments.folder, arguments.names)


if __name__ == "__main__":
    sys.exit(main())
