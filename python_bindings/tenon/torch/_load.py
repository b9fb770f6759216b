# SPDX-License-Identifier: Apache-2.0
"""torch.export's programs as Tenon's."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import tenon
from tenon import _core
from tenon.jit import structures
from tenon.jit.dynamic_shapes import text_of
from tenon.jit.program import PASSES, Program
from tenon.torch import _archive_walk, _lines
from tenon.torch._decompositions import kept_whole
from tenon.torch._graph import GraphBuilder
from tenon.torch._report import Report, remember
from tenon.torch._sizes import Sizes
from tenon.torch._walk import is_of_numbers, op_name

_OLDEST = (2, 11)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"torch.load: expected PyTorch to be installed, which reads what torch.export wrote: {error}"
        ) from None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST:
        raise ImportError(
            f"torch.load: expected PyTorch {_OLDEST[0]}.{_OLDEST[1]} or newer, got {torch.__version__}"
        )
    return torch


def load(
    source: Any, *, device: str | None = None, gradients: bool = False, name: str | None = None
) -> Program:
    """The program of a `torch.export.ExportedProgram`, or of a file that `torch.export.save` wrote.

    Nothing is run. Weights are PyTorch's own memory: what is written into them there is seen by the next run, and
    weights that are tied are one. Buffers and inputs that the model writes are written when a run ends. Results have the
    model's structure; keyword arguments come after the others, in the order in which the model was exported.

    Sizes that were exported as dynamic are chosen by each call, within the range of their constraints.

    `device`: where it runs; the CPU shares memory with PyTorch, and programs of other devices are refused so far.
    `gradients`: whether runs record a history for gradients where an argument requires one. `name`: in `report()`.

    Where PyTorch is not installed, a file is read without it: weights stay in the mapped file, and calls without a line are refused
    that PyTorch would take apart.

    Raises NotImplementedError with all calls that cannot be told in operators, each with its reason; TypeError for what
    is no exported program; ImportError where PyTorch is missing or too old.
    """
    if isinstance(source, (str, os.PathLike)) and importlib.util.find_spec("torch") is None:
        _check_device(device)
        return _archive_walk.load(os.fspath(source), name=name, gradients=gradients)
    torch = _torch()
    shown = name or "program"
    if isinstance(source, (str, os.PathLike)):
        shown = name or os.path.basename(os.fspath(source))
        source = torch.export.load(os.fspath(source))
    if not isinstance(source, torch.export.ExportedProgram):
        raise TypeError(
            f"torch.load: expected a torch.export.ExportedProgram or a path, got "
            f"{type(source).__name__}; export a model with torch.export.export(model, arguments)"
        )
    _check_device(device)
    entry = Report(shown)
    exported = source
    _refuse_checks_of_data(source, shown)
    if not _can_be_told(torch, source):
        exported = source.run_decompositions(kept_whole(torch))  # and without writes
    builder = GraphBuilder(torch, exported, entry)
    try:
        with tenon.set_grad_enabled(gradients):
            return _program(builder, entry)
    finally:
        remember(entry)


def _check_device(device: str | None) -> None:
    if device is not None and tenon.device(device) != tenon.device("cpu"):
        raise NotImplementedError(
            f"torch.load: expected device 'cpu', whose memory is PyTorch's, got {device!r}"
        )


def _can_be_told(torch: Any, exported: Any) -> bool:
    """Whether all calls have lines and none writes, so that PyTorch, which takes seconds, has nothing to take apart."""
    for node in exported.graph.nodes:
        if node.op != "call_function" or is_of_numbers(node.target):
            continue
        if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
            return False
        if node.target._schema.is_mutable or not _lines.has_line(op_name(node.target)):
            return False
    return True


def _refuse_checks_of_data(exported: Any, shown: str) -> None:
    """Taking a graph apart drops them, because nothing reads their results."""
    for node in exported.graph.nodes:
        if str(node.target).startswith("aten._assert_async"):
            raise NotImplementedError(
                f"torch.load: {shown}: {op_name(node.target)}: it checks data, and a program cannot; "
                f"check the inputs before the call"
            )


def _program(builder: GraphBuilder, entry: Report) -> Program:
    sizes = Sizes(builder.exported)
    passes = ",".join(PASSES)
    built = []
    for row in sizes.samples():
        native, arguments, results = builder.build(row)
        built.append((native.optimize(passes), arguments, results))
    native, arguments, results = built[0]
    entry.steps = native.nsteps
    entry.leaves = len(native.leaves())
    if sizes.dimensions:
        for row, (_, _, others) in zip(sizes.samples(), built, strict=True):
            if not structures.same(results, others):
                raise NotImplementedError(
                    f"torch.load: results have another structure at {text_of(row)}"
                )
        native = _core.program_unify(
            sizes.dimensions, [each[0] for each in built], [""] * len(built)
        )
    return Program(native, arguments, results)
