# SPDX-License-Identifier: Apache-2.0
"""torch.export's programs as Tenon's."""

from __future__ import annotations

import os
from typing import Any

import tenon
from tenon import _core, _structure
from tenon._sizes import text_of
from tenon.jit import _PASSES, Program
from tenon.torch import _lines
from tenon.torch._graph import GraphBuilder
from tenon.torch._report import Report, remember
from tenon.torch._sizes import Sizes

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

    Raises NotImplementedError with all calls that cannot be told in operators, each with its reason; TypeError for what
    is no exported program; ImportError where PyTorch is missing or too old.
    """
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
    host = tenon.device("cpu")
    if device is not None and tenon.device(device) != host:
        raise NotImplementedError(
            f"torch.load: expected device 'cpu', whose memory is PyTorch's, got {device!r}"
        )
    entry = Report(shown)
    exported = functional(torch, source)
    builder = GraphBuilder(torch, exported, entry)
    try:
        with tenon.set_grad_enabled(gradients):
            return _program(builder, entry)
    finally:
        remember(entry)


def functional(torch: Any, exported: Any) -> Any:
    """Without writes, and with what has no line taken apart as PyTorch does; what has one stays whole."""
    table = torch.export.default_decompositions()
    for kept in list(table):
        if isinstance(kept, torch._ops.OpOverload) and kept.namespace == "aten":
            if _lines.has_line(op_name(kept)):
                table.pop(kept)
    return exported.run_decompositions(table)


def op_name(overload: Any) -> str:
    """ "add.Tensor" of torch.ops.aten.add.Tensor, "relu" of torch.ops.aten.relu.default."""
    packet = overload._schema.name.partition("::")[2]
    name = overload._overloadname
    return packet if name == "default" else f"{packet}.{name}"


def _program(builder: GraphBuilder, entry: Report) -> Program:
    sizes = Sizes(builder.exported)
    passes = ",".join(_PASSES)
    built = []
    for row in sizes.samples():
        native, arguments, results = builder.build(row)
        built.append((native.optimize(passes), arguments, results))
    native, arguments, results = built[0]
    entry.steps = native.nsteps
    entry.leaves = len(native.leaves())
    if sizes.dimensions:
        for row, (_, _, others) in zip(sizes.samples(), built, strict=True):
            if not _structure.same(results, others):
                raise NotImplementedError(
                    f"torch.load: results have another structure at {text_of(row)}"
                )
        native = _core.program_unify(
            sizes.dimensions, [each[0] for each in built], [""] * len(built)
        )
    return Program(native, arguments, results)
