# SPDX-License-Identifier: Apache-2.0
"""Programs: what a function asks of operators, recorded once and run without it.

    program = tenon.export(model, (x,))
    y = program(x)
    program.save("model.tenon")
    y = tenon.jit.load("model.tenon")(x)

Recording runs the function for real, and a layer below gradients writes down every operator call:
forward passes, backward passes and optimizer updates alike. docs/graphs.md says what a program
can hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenon import _core
from tenon._core import Tensor
from tenon.io import safetensors
from tenon.jit import picture, structures
from tenon.jit.claims import claimer_options
from tenon.jit.dynamic_shapes import (
    Dim,
    SizeTracer,
    axes_of,
    dimensions_of,
    plain,
    resized,
    text_of,
)
from tenon.jit.program_names import names_of_inputs, names_of_results
from tenon.jit.sharded_calls import local_of
from tenon.jit.syntax import Session, rewritten
from tenon.jit.syntax.user_code import PACKAGE

if TYPE_CHECKING:
    from tenon.jit.program_graph import ProgramGraph

PASSES = ("dce", "cse", "rewrites", "copies", "views")
NUMERICS = ("exact", "ulp", "fast")  # in the order of TENON_GRAPH_EXACT, ...
_TEXT, _STRUCTURE = "tenon.program", "tenon.structure"  # keys of the file's metadata


class Program:
    """A recorded program. Call it as the function that it was recorded from.

    Arguments have the structure, shapes, dtypes and devices of those it was recorded with, but for sizes that
    it leaves open (`dimensions`); arguments that are no tensors are part of the program and have to be equal. Results have the function's
    structure. Tensors from outside (weights) are used as they are at each call, by reference.
    """

    __module__ = "tenon.jit"

    def __init__(self, native: _core.Program, inputs: list[Any], outputs: list[Any]) -> None:
        self._native = native
        self._inputs = inputs
        self._outputs = outputs
        self._is_flat = all(item == structures.TENSOR for item in inputs[1])
        self._returns_one = outputs == structures.TENSOR
        self._run: Callable[[Any], Any] = native.run_one if self._returns_one else native.run

    def __call__(self, *args: Any) -> Any:
        """Run it. With gradients on, results carry the history that the function's would."""
        tensors: Any = args
        if not self._is_flat or len(args) != len(self._inputs[1]):
            tensors = []
            structure = structures.flatten(args, tensors)
            if not structures.same(structure, self._inputs):
                raise ValueError(
                    f"program: expected arguments {structures.describe(self._inputs)}, as when it was "
                    f"recorded, got {structures.describe(structure)}; export the function for these"
                )
        results = self._run(tensors)
        return results if self._returns_one else structures.unflatten(self._outputs, iter(results))

    def __str__(self) -> str:
        """The text form, with the line of the user's program for each step."""
        return self._native.print()

    def __repr__(self) -> str:
        native = self._native
        return (
            f"<tenon.jit.Program: {native.nsteps} steps, {native.ninputs} inputs, "
            f"{len(self.leaves)} leaves, {native.nresults} results"
            + "".join(f", {dim!r}" for dim in self.dimensions)
            + ">"
        )

    @property
    def dimensions(self) -> list[Dim]:
        """Sizes that each call chooses."""
        return [
            Dim(name, min=low, max=high, multiple_of=multiple)
            for name, low, high, multiple, _ in self._native.dimensions()
        ]

    @property
    def input_names(self) -> list[str]:
        """Of its tensors: the parameters of the function, with the keys of containers behind a point; "input_0"
        where there is no name."""
        return self._native.names()[0]

    @property
    def output_names(self) -> list[str]:
        """The keys of the dictionary that the function returns; else "output_0" and so on."""
        return self._native.names()[1]

    @property
    def leaves(self) -> dict[str, Tensor]:
        """Tensors from outside that the program reads or writes, and its own constants, by name."""
        return {
            name or f"leaf.{index}": tensor
            for index, (name, tensor, _) in enumerate(self._native.leaves())
        }

    def optimize(
        self,
        passes: Sequence[str] = PASSES,
        *,
        numerics: str = "exact",
        without: Sequence[str] = (),
        memory_budget: int | None = None,
    ) -> Program:
        """A program that does the same with less: without dead code (`dce`), without computing the
        same twice (`cse`, where no gradient can pass: that would sum in another order), with expressions
        in the place of others (`rewrites`, see `tenon.jit.rewrites`), without copies of what is not used
        otherwise (`copies`), with views made early, so that more steps run together (`views`); and passes
        of plugins, by their names. `export` has done those five.

        `numerics` says how far results may be from those of the function: "exact", the same bits; "ulp", some
        units in the last place of each element; "fast", some units of max(1, |element|), and infinities and
        NaN may be others. Rewrites named in `without` are left out.

        `memory_budget`: bytes that the results of steps (`memory()["stepwise"]`) may take at once. Where they take more,
        some are dropped and made again before they are read, with the same bits. Where that does not suffice,
        `changes()` says why. For programs that hold their backward pass.
        """
        native = self._native.optimize(pass_list(passes, numerics, without, memory_budget))
        return Program(native, self._inputs, self._outputs)

    def claim(self, claimer: str, options: str | Mapping[str, Any] = "") -> Program:
        """A program whose steps on the host are offered to a claimer of sub-graphs, by its name: "onnxruntime" is there
        (docs/inference.md#onnx-runtime). `plan()` says what it took; kernels run the rest, and all of the first run.

        `options`: what the claimer is to do, {"exclude": ["softmax"], "threads": 2}, or the text of it. Files do not keep it.
        Results of "onnxruntime" have other bits than kernels give, so that the program has to be one of
        `optimize(numerics="fast")`. Raises RuntimeError for another program and where the library is missing, ValueError for options
        that there are not.
        """
        return Program(
            self._native.claim(claimer, claimer_options(options)), self._inputs, self._outputs
        )

    @property
    def graph(self) -> ProgramGraph:
        """Its steps and values as objects, as they are now, for reading (docs/program_graphs.md)."""
        from tenon.jit import program_graph  # programs that run do without

        return program_graph.read(self)

    def edit(self, function: Callable[[ProgramGraph], object]) -> Program:
        """A program that `function(graph)` has changed, by `graph.insert`, `graph.replace` and `graph.remove`.

        This one stays as it is. What the function leaves is verified; where it raises, so does this. A program of open
        sizes is edited at each of the recorded sizes, and the function has to do the same at all of them.
        """
        from tenon.jit import program_graph  # programs that run do without

        return Program(program_graph.edited(self, function), self._inputs, self._outputs)

    def freeze(self, *, numerics: str = "exact") -> Program:
        """A program for inference: weights are its own data, as they are now, and what follows from weights alone
        is computed once.

        Later changes of the weights do not reach it, and it passes no gradients to them; a program that writes
        into tensors from outside is refused. `numerics` as for `optimize`; with "fast", normalisations by
        constants become part of the conv2d or linear before them.
        """
        folding = ("freeze", "batch_norms", "fold") if numerics == "fast" else ("freeze", "fold")
        return self.optimize((*folding, *PASSES), numerics=numerics)

    def changes(self) -> str:
        """What rewrites and passes of plugins did: a line for each change, with the line of the
        user's program."""
        return self._native.changes()

    def save(self, path: str | os.PathLike) -> None:
        """Write the program and its leaves to one file, which `load` and C++ programs read.

        It is a safetensors file; its metadata hold the text form. The file appears whole or not at all.
        """
        if structures.has_texts(self._outputs):
            raise TypeError(
                "save: expected results that are tensors, got some of text, which a file has no place for; run the "
                "program here, or leave these results out of the model"
            )
        try:
            structure = json.dumps([self._inputs, self._outputs])
        except TypeError as error:
            raise TypeError(
                f"save: expected arguments and results made of tensors and what JSON can hold: {error}"
            ) from None
        tensors = {
            f"leaf.{index}": tensor.detach()
            for index, (_, tensor, _) in enumerate(self._native.leaves())
            if tensor.device.type != "meta"
        }
        safetensors.write(path, tensors, {_TEXT: str(self), _STRUCTURE: structure})

    def plan(self) -> str:
        """What runs together: a line for each group of elementwise steps that pass over memory once, and for
        each part that a device's own compiler has claimed, with the reason if it runs step by step.

        Steps are numbered from 0, in the order of the text form. Without a line a step runs alone.
        """
        return self._native.plan()

    def memory(self) -> dict[str, int]:
        """How many bytes the results of steps take at most at once, known from their shapes.

        `kept`: if nothing were freed before the end. `stepwise`: if each is freed after its last use, and
        steps run one by one. `planned`: as the program runs. Inputs, leaves, and what kernels need besides
        are not counted.
        """
        return dict(zip(("kept", "stepwise", "planned"), self._native.memory(), strict=True))

    def to_dot(self) -> str:
        """The picture of the program in Graphviz's language: operators and the values between them."""
        return picture.to_dot(self._native)


def pass_list(
    passes: Sequence[str],
    numerics: str,
    without: Sequence[str],
    memory_budget: int | None = None,
) -> str:
    """The passes as the graph service takes them."""
    if numerics not in NUMERICS:
        raise ValueError(f"expected numerics 'exact', 'ulp' or 'fast', got {numerics!r}")
    if (numerics != "exact" or without) and "rewrites" not in passes:
        raise ValueError(
            "`numerics` and `without` are for the pass 'rewrites', which is not among the passes"
        )
    rewrites = "!".join([f"rewrites={numerics}", *without])
    names = [rewrites if name == "rewrites" else name for name in passes]
    if memory_budget is not None:
        if memory_budget < 1:
            raise ValueError(f"expected a memory_budget of at least 1 byte, got {memory_budget}")
        names.append(f"recompute={int(memory_budget)}")
    return ",".join(names)


def name_leaves(native: _core.Program, function: Any) -> _core.Program:
    """Names of a module's parameters and buffers for the leaves that are these."""
    if not hasattr(function, "state_dict"):
        return native
    tensors = {
        name: local_of(tensor)
        for name, tensor in function.state_dict().items()
        if isinstance(tensor, Tensor)
    }
    known = {(t.data_ptr(), tuple(t.shape)): name for name, t in tensors.items() if t.numel()}
    leaves = native.leaves()
    names = [name or known.get((t.data_ptr(), tuple(t.shape)), "") for name, t, _ in leaves]
    return native.bind([None] * len(leaves), names)


def _record(
    function: Callable[..., Any], inputs: tuple[Any, ...], tensors: list[Tensor]
) -> tuple[_core.Program, list[Any], Any]:
    """What a call did, the structure of its results, and the results."""
    recording = _core.Recording(tensors, PACKAGE)
    try:
        outputs: list[Tensor] = []
        results = function(*inputs)
        structure = structures.flatten(results, outputs)
        return recording.finish(outputs), structure, results
    finally:
        recording.abandon()


_Recorded = tuple[_core.Program, list[Any]]  # what a call did, and the structure of its results


def _settle(first: _Recorded, second: _Recorded) -> _core.Program:
    """The program of two calls; RuntimeError where they did different things, or returned different ones beside tensors."""
    settled = first[0].settle(second[0])
    if not structures.same(first[1], second[1]):
        raise RuntimeError(
            f"the function returns something else when it is called again: {structures.describe(first[1])}, and then "
            f"{structures.describe(second[1])}"
        )
    return settled


class Recorder:
    """Records a function in calls that are made anyway, where `export` would make two for the recording alone.

    Calls run the function and give its results. As soon as the recordings of two agree, `program` is there and
    further calls run it. All calls have arguments of one structure and the shapes, dtypes and devices of the
    first; the syntax of the function is not rewritten. Raises as `export` does, but only when a third recording
    differs from the second.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.program: Program | None = None
        self._function = function
        self._before: _Recorded | None = None
        self._has_differed = False

    def __call__(self, *inputs: Any) -> Any:
        if self.program is not None:
            return self.program(*inputs)
        tensors: list[Tensor] = []
        structure = structures.flatten(inputs, tensors)
        recording, outputs, results = _record(self._function, inputs, tensors)
        before, self._before = self._before, (recording, outputs)
        if before is None:
            return results
        try:
            settled = _settle(before, self._before)
        except RuntimeError:
            if self._has_differed:
                raise
            self._has_differed = True  # the first call may set things up
            return results
        optimized = settled.optimize(pass_list(PASSES, "exact", ()))
        self.program, self._before = Program(optimized, structure, outputs), None
        return results


def _settled(
    function: Callable[..., Any], inputs: tuple[Any, ...], tensors: list[Tensor]
) -> tuple[_core.Program, list[Any]]:
    """Recordings until two agree."""
    with Session(rewritten(function)) as session:
        try:
            return _agreed(function, session.function, inputs, tensors)
        except NotImplementedError:
            if not session.may_unroll():
                raise
        # A `for` over rows became a loop, through which no gradient passes in here: take rows one by one.
        return _agreed(function, session.function, inputs, tensors)


def _agreed(
    named: Any,
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    tensors: list[Tensor],
) -> tuple[_core.Program, list[Any]]:
    first: _Recorded = _record(function, inputs, tensors)[:2]
    for attempt in range(2):
        second: _Recorded = _record(function, inputs, tensors)[:2]
        try:
            return name_leaves(_settle(first, second), named), second[1]
        except RuntimeError:
            if attempt == 1:  # the first call may set things up, as optimizers do
                raise
            first = second
    raise AssertionError


def export(
    function: Callable[..., Any],
    inputs: Any = (),
    *,
    dynamic_shapes: Sequence[Any] | None = None,
    passes: Sequence[str] = PASSES,
    numerics: str = "exact",
    without: Sequence[str] = (),
    memory_budget: int | None = None,
) -> Program:
    """Record `function(*inputs)` as a program.

    `inputs` is a tuple of arguments; a lone tensor is a tuple of one. The function is called two or
    three times, for real: what it writes (weights that an optimizer updates) stays written. The
    recordings have to agree. Where they do not, something changes from call to call that is no
    tensor, and the error names the step. `passes`, `numerics`, `without` and `memory_budget`
    are those of `Program.optimize`. Tensors that the function makes anew in each call from
    Python's data become constants; all others from outside are used by reference.

    `if`, `while`, `for`, `and`, `or` and `not` over tensors become branches and loops of the program: the syntax
    tree of the function, and of those that it calls, is rewritten (`tenon.jit.rewritten_source` shows it,
    `tenon.jit.not_to_static` keeps a function as it is). Both sides of a branch run while it is recorded.

    `dynamic_shapes` leaves sizes open: an entry for each argument, None or {axis: tenon.Dim}, or a list of
    such for the tensors of an argument that holds several. The function is recorded at some sizes, twice at
    each, with the example's elements repeated; numbers of the program that differ become expressions of the
    sizes. What the function finds by comparing sizes, a program requires of its inputs.

    Raises ValueError where a variable is of two kinds after a branch or loop over a tensor;
    NotImplementedError where the function takes data out of the program (`item`, `bool`, `numpy`, DLPack),
    calls an operator whose result's shape depends on data, or leaves other gradients in `.grad` than it
    found; RuntimeError where its recordings differ. Messages name file
    and line.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    tensors: list[Tensor] = []
    structure = structures.flatten(inputs, tensors)
    wanted = pass_list(passes, numerics, without, memory_budget)
    input_names = names_of_inputs(function, structure)
    if dynamic_shapes is None:
        settled, outputs = _settled(function, inputs, tensors)
        named = settled.name(input_names, names_of_results(outputs))
        return Program(named.optimize(wanted) if wanted else named, structure, outputs)
    axes = axes_of(dynamic_shapes, inputs, tensors)
    dimensions = dimensions_of(axes, tensors)
    if not dimensions:
        raise ValueError("export: expected a tenon.Dim in dynamic_shapes, got none")
    names = [dimension[0] for dimension in dimensions]
    samples: list[_core.Program] = []
    tracers: list[SizeTracer] = []
    recorded: dict[str, int] = {}
    results: list[Any] = []
    for row in _core.program_samples(dimensions):
        sizes = dict(zip(names, row, strict=True))
        at = resized(tensors, axes, sizes)
        arguments = structures.unflatten(structure, iter(at))
        with SizeTracer() as tracer:
            settled, outputs = _settled(function, arguments, at)
        outputs = plain(outputs)
        if samples:
            tracer.check(tracers[0], text_of(sizes), text_of(recorded))
            if not structures.same(outputs, results):
                raise RuntimeError(
                    f"export: the function returns {structures.describe(outputs)} at "
                    f"{text_of(sizes)}, and {structures.describe(results)} at "
                    f"{text_of(recorded)}"
                )
        else:
            recorded, results = sizes, outputs
        named = settled.name(input_names, names_of_results(outputs))
        samples.append(named.optimize(wanted) if wanted else named)
        tracers.append(tracer)
    requirements = ["".join(f"{line}\n" for line in each.requirements) for each in tracers]
    native = _core.program_unify(dimensions, samples, requirements)
    return Program(native, structure, results)


def load(path: str | os.PathLike) -> Program:
    """Read a program that `Program.save` wrote. No code of the file runs; a file that is not what it
    claims to be raises ValueError. Weights are mapped, not copied: the file must stay as it is."""
    path = os.fspath(path)
    native = _core.program_load(path)
    with open(path, "rb") as file:
        text = file.read(int.from_bytes(file.read(8), "little"))
    try:
        header = json.loads(text.decode())
    except ValueError as error:
        raise ValueError(
            f"{path}: expected a header of JSON in UTF-8, got {error}; was the file damaged?"
        ) from None
    try:
        inputs, outputs = json.loads(header["__metadata__"][_STRUCTURE])
        counts = (structures.count(inputs), structures.count(outputs))
        if inputs[0] != "tuple" or counts != (native.ninputs, native.nresults):
            raise ValueError("its arguments and results are others than the program's")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: the structure of arguments is not valid: {error}") from None
    return Program(native, inputs, outputs)
