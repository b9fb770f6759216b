# SPDX-License-Identifier: Apache-2.0
"""tenon.compile: functions that become programs as they are called."""

from __future__ import annotations

import copy
import functools
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import containers, open_sizes, sharded_calls, structures
from tenon.jit.call_gradients import changed_leaf, lost_history, read_from_before
from tenon.jit.captured_state import Outside
from tenon.jit.divided import Divided, code_of
from tenon.jit.entry import Entry
from tenon.jit.given_grads import GivenGrads
from tenon.jit.program import PASSES, Program, name_leaves, pass_list
from tenon.jit.sharded_results import sharded_results
from tenon.jit.signature import (
    Refused,
    describe,
    described,
    hashable,
    modes,
    overlap,
    span,
)
from tenon.jit.syntax.user_code import PACKAGE

_MODES = ("", "check", "off")
_MOST_IN_VAIN = 32  # calls of a part, before it is no longer tried to find it a program
_MOST_RENEWALS = 8  # of an entry without a program, because operators were defined meanwhile


class Compiled(_core.CompiledCalls):
    """What `tenon.compile` returns; call it as the function."""

    _tenon_is_compiled = True  # for jit/syntax/source.py, which this module is built on

    def __init__(
        self,
        function: Callable[..., Any],
        limit: int,
        passes: str,
        dynamic: bool = False,
        whole: Divided | None = None,
    ) -> None:
        """`whole`: what the function is a part of."""
        functools.update_wrapper(self, function, updated=())
        self._name = getattr(function, "__name__", type(function).__name__)
        self._mode = os.environ.get("TENON_GRAPH", "")
        if self._mode not in _MODES:
            raise ValueError(
                f"TENON_GRAPH: expected 'check', 'off' or nothing, got {self._mode!r}; unset it"
            )
        self._function, self._limit = function, limit
        self._passes = passes
        self._divided = Divided(function, self._part) if whole is None else whole
        self._is_part = whole is not None
        self._in_vain = 0  # calls without a program, of a part
        # Calls whose sizes are left open. A check compares each call with a program of its own sizes.
        self._is_dynamic = dynamic and self._mode != "check"
        self._open: dict[Any, open_sizes.OpenSizes] = {}
        self._entries: dict[Any, Entry] = {}
        self._outside: Outside | None = None
        # What was seen to be read that the function's code does not tell.
        self._grads: tuple[Tensor, ...] = ()  # tensors of which it reads .grad
        self._given_grads = GivenGrads()  # other ones, whose .grad is an argument
        self._operators: tuple[str, ...] = ()  # operators with functions in Python
        self._lock = threading.Lock()
        self._of_local: dict[Any, Compiled] = {}  # of calls with sharded tensors, by their specs
        self._eager: dict[str, int] = {}  # calls that have no signature, by reason

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """A call that no known program serves (`_core.CompiledCalls` is first)."""
        if self._mode == "off" or _core.is_recording():  # the function around this one is recorded
            return self._function(*args, **kwargs)
        if self._is_part:
            self._count_in_vain()
        elif (driver := self._divided.function()) and not self._has_programs():
            return driver(*args, **kwargs)
        tensors: list[Tensor] = []
        try:
            given = self._given_grads.behind(args), kwargs
            structure = structures.flatten(given, tensors)
            inner = None
            if any(tensor.layout == sharded_calls.KIND for tensor in tensors):
                self._given_grads.refuse_sharded()
                inner = self._function_of_local_tensors(structure, tensors)
            else:
                key, outside = self._key(structure, tensors)
        except (Refused, ValueError) as refusal:  # of `flatten`, containers that lie too deep
            return self._run_eagerly(str(refusal), args, kwargs)
        if inner is not None:  # Its errors are those of the function, and no refusals.
            return sharded_calls.sharded_again(inner(*map(sharded_calls.local_of, tensors)))
        is_open = self._is_dynamic and not self._given_grads
        if is_open and (sizes := self._open_sizes(key, outside, structure, tensors)):
            versions = sizes.versions()
            try:
                result = sizes.entry.run(tensors)
            except Exception:
                # Before it has written the function may say what is wrong, if something is.
                if versions != sizes.versions():
                    raise
                sizes.entry.calls -= 1
            else:
                if not kwargs and len(sizes.known) < open_sizes.MAX_KNOWN:
                    sizes.known.append(copy.copy(sizes.entry))
                    sizes.known[-1].calls = 0
                    self._remember(args, sizes.known[-1], outside)
                return result
        entry = self._entries.get(key)
        if entry is None or entry.generation != _core.kernel_generation():
            if entry is None and len(self._entries) >= self._limit:
                return self._run_eagerly(
                    f"there are {self._limit} signatures already, which is the limit", args, kwargs
                )
            entry = self._renewed(key, entry, describe(structure, tensors))
        if entry.program is not None and self._mode != "check":
            if entry.sharded is None and not kwargs and not self._given_grads:
                self._remember(args, entry, outside)
            elif entry.sharded is not None and not entry.sharded.fits():
                return self._function(*args, **kwargs)
            return entry.run(tensors)
        entry.calls += 1
        if entry.reason or not self._lock.acquire(blocking=False):
            driver = None if self._is_part else self._divided.function()
            return (driver or self._function)(*args, **kwargs)
        try:
            return self._record(entry, outside, structure, tensors, args, given)
        finally:
            self._lock.release()

    def _part(self, function: Callable[..., Any], whole: Divided) -> Compiled:
        return Compiled(function, self._limit, self._passes, self._is_dynamic, whole)

    def _has_programs(self) -> bool:
        return any(entry.program is not None for entry in self._entries.values())

    def _count_in_vain(self) -> None:
        """Looking for a program costs more than small parts take."""
        self._in_vain += 1
        if self._in_vain >= _MOST_IN_VAIN and not self.programs:
            self._divided.give_up(self)

    def _function_of_local_tensors(self, structure: list[Any], tensors: list[Tensor]) -> Compiled:
        """With sharded tensors as arguments: the function of local tensors that is compiled in the place of this one."""
        if _core.is_grad_enabled() and any(
            tensor.layout == sharded_calls.KIND and tensor.requires_grad for tensor in tensors
        ):
            raise Refused(_SHARDED_ARGUMENTS)
        hashable(structure)
        key = repr(structure), tuple(map(sharded_calls.spec_of, tensors))
        inner = self._of_local.get(key)
        if inner is None:
            if len(self._of_local) >= self._limit:
                raise Refused(
                    f"there are {self._limit} signatures of sharded tensors already, which is the limit"
                )
            sharded_calls.register(structure)
            local = functools.partial(sharded_calls.call_with_local_tensors, self._function, *key)
            inner = self._of_local.setdefault(key, Compiled(local, self._limit, self._passes))
        return inner

    def _open_sizes(
        self, key: Any, outside: Outside, structure: list[Any], tensors: list[Tensor]
    ) -> open_sizes.OpenSizes | None:
        """Whose program takes this call. None: its own sizes are a signature."""
        pattern = open_sizes.pattern(tensors)
        if pattern is None or not any(-1 in sizes for sizes in pattern):
            return None
        shapes = tuple(tuple(tensor.shape) for tensor in tensors)
        without_sizes = tuple((each[0], *each[3:]) for each in key[1])
        generation = _core.kernel_generation()
        open_key = key[0], without_sizes, pattern, *key[2:], generation
        sizes = self._open.get(open_key)
        if sizes is None:
            if (
                len(self._open) >= self._limit
            ):  # those of operators that are others by now do not count
                self._open = {k: o for k, o in self._open.items() if k[-1] == generation}
            if len(self._open) < self._limit:
                self._open[open_key] = open_sizes.OpenSizes(shapes, key)
            return None
        if sizes.entry is not None and sizes.admits(shapes):
            return sizes
        example = self._entries.get(sizes.key)
        if sizes.reason or key in self._entries or example is None:
            return None
        native = example.program._native if example.program is not None else example.first
        if example.reason or native is None:  # without a program, or not recorded yet
            sizes.reason = example.reason
            if not example.reason:  # Its first call set something up, as optimizers do.
                self._open[open_key] = open_sizes.OpenSizes(shapes, key)
            return None
        if example.sharded is not None:
            sizes.reason = open_sizes.SHARDED
            return None
        written = [t for _, t, _ in native.leaves()] if any(native.effects()[:2]) else None
        if not sizes.widen(shapes) or not self._lock.acquire(blocking=False):
            return None
        begin = time.perf_counter()
        try:
            _recorded.is_on = True
            program = open_sizes.record(
                self._function, structure, tensors, sizes, self._passes, outside, written
            )
        except open_sizes.Unfit as unfit:
            sizes.reason = str(unfit)
            return None
        except open_sizes.Changed:
            sizes.changes += 1
            if sizes.changes >= open_sizes.MAX_CHANGES:
                sizes.reason = "it changes what it reads outside"
            return None
        finally:
            _recorded.is_on = False
            self._lock.release()
        entry = Entry(sizes.text())
        entry.seconds = time.perf_counter() - begin
        entry.calls = sizes.entry.calls if sizes.entry is not None else 0
        entry.become(program)
        sizes.entry, sizes.written = entry, written or []
        return sizes

    def _renewed(self, key: Any, old: Entry | None, signature: str) -> Entry:
        """A new entry in the place of one of operators that are others by now, or of none."""
        if old is None:
            return self._entries.setdefault(key, Entry(signature))
        entry = Entry(signature)
        entry.renewals = 0 if old.program is not None else old.renewals + 1
        if entry.renewals >= _MOST_RENEWALS:
            entry.reason = "operators are defined anew in each call"
        # All of older operators go, so that they do not count.
        self._entries = {k: e for k, e in self._entries.items() if e.generation == entry.generation}
        self._entries[key] = entry
        return entry

    def _remember(self, args: tuple[Any, ...], entry: Entry, outside: Outside) -> None:
        """Further calls like this one need not come here, as long as what was read from outside is the same."""
        _core.compiled_remember(
            self,
            args,
            entry,
            outside.watched,
            entry.program._native,
            entry.program._outputs,
            *entry.spans(outside),
            entry.work,
            entry.generation,
        )

    def _run_eagerly(self, reason: str, args: Any, kwargs: Any) -> Any:
        self._eager[reason] = self._eager.get(reason, 0) + 1
        return self._function(*args, **kwargs)

    def _key(self, structure: list[Any], tensors: list[Tensor]) -> tuple[Any, Outside]:
        """The signature, and the captured state that is part of it. That state is handed on: another thread may have put a
        newer one in its place by the time that it is used."""
        if _core.amp_dtype() is not None:
            raise Refused("it is called in an autocast region; enter the region in the function")
        if any(not _is_plain(t) for t in tensors):
            raise Refused(
                "expected arguments that are Tensor, Parameter or Buffer, without hooks; another class, or vmap, "
                "may mean something else by what it does"
            )
        spans = [span(t) for t in tensors if t.numel()]
        if overlap(spans) or len({id(t) for t in tensors}) < len(tensors):
            raise Refused("two arguments share memory")
        outside = self._outside
        if outside is None or not outside.is_unchanged():
            before, outside = outside, self._look_outside(outside)
            if self._given_grads.adopt(before, outside):  # from the next call on
                self._grads, self._outside, self._entries = (), None, {}
        if outside.refusal:
            raise Refused(outside.refusal)
        if any(_is_batched(t) for t in outside.tensors()):
            raise Refused("it reads a tensor that vmap maps over")
        known = [span(t) for t in outside.tensors() if t.numel()] if tensors else []
        if any(a < d and c < b for a, b in spans for c, d in known):
            raise Refused("an argument is also reached in another way")
        return (hashable(structure), tuple(described(tensors)), modes(), outside.value), outside

    def _look_outside(self, before: Outside | None) -> Outside:
        self._outside = Outside(self._function, self._grads, self._operators, before)
        return self._outside

    def _record(
        self,
        entry: Entry,
        outside: Outside,
        structure: list[Any],
        tensors: list[Tensor],
        args: Any,
        given: Any,
    ) -> Any:
        """One call of the function, for real, that is written down. `given`: what `structure` is of, with its
        arguments by name."""
        kwargs = given[1]
        checks = self._mode == "check"
        begin = time.perf_counter()
        required = [t.requires_grad for t in tensors]
        own, found = [(t, t.grad) for t in tensors], [(t, t.grad) for t in outside.tensors()]
        try:
            recording = _core.Recording(tensors, PACKAGE, True, code_of(self._function))
        except (NotImplementedError, RuntimeError, ValueError) as error:
            entry.reason = str(error)
            return self._function(*args, **kwargs)
        try:
            _recorded.is_on = True
            try:
                result = self._function(*args, **kwargs)
            finally:
                _recorded.is_on = False
            outputs: list[Tensor] = []
            try:
                returned = structures.flatten(result, outputs)
                containers.check_arguments(given, structure, tensors)
                if self._is_part:
                    containers.check_variables((args, kwargs), result)
                # The first call may set something up. A program would miss what further ones do; and what another thread
                # has changed meanwhile is not what this signature says.
                if not outside.is_unchanged():
                    self._finish(
                        recording, outputs
                    )  # What it reads may be why, as where it logs losses.
                    entry.changes += 1
                    if entry.changes >= 2:
                        raise Refused("it changes what it reads outside")
                    entry.first = None
                    return result
                sharded = sharded_results(recording, outputs, found)
                if sharded is not None:
                    outputs, returned = sharded.local, sharded.structure(returned)
                kept = hashable(returned), None if sharded is None else sharded.key()
                if entry.returned not in (None, kept):
                    raise Refused("the result has another structure, or other values, each time")
                entry.returned, entry.sharded = kept, sharded
                read = {id(tensor): grad for tensor, grad in recording.grads_read()}
                if read_from_before(read, own):
                    raise Refused(
                        "it reads .grad of an argument that it has not assigned; pass it as an argument"
                    )
                called = recording.operators_defined_in_python()
                if self._given_grads and recording.accumulates():
                    raise Refused("it adds to a .grad that it has not assigned")
                unknown = self._given_grads.without(read_from_before(read, found))
                if self._learns(outside, unknown, called):
                    self._entries = {k: e for k, e in self._entries.items() if e is not entry}
                    return result
                known = [*tensors, *outside.tensors()]
                if reason := lost_history(outputs, known) or changed_leaf(tensors, required):
                    raise Refused(reason)
                native = self._finish(recording, outputs)
                if recording.reads_random_state():
                    raise Refused("it reads the state of random numbers")
                self._compare(entry, native, structure, returned)
            except (NotImplementedError, RuntimeError, ValueError, Refused) as error:
                if checks and entry.program is not None:
                    raise RuntimeError(
                        f"TENON_GRAPH=check: {self._name}{entry.signature} no longer does what "
                        f"its program does: {error}"
                    ) from None
                entry.reason = str(error)
            return result
        finally:
            recording.abandon()
            entry.seconds += time.perf_counter() - begin

    def _finish(self, recording: _core.Recording, outputs: list[Tensor]) -> _core.Program:
        try:
            return recording.finish(outputs)
        except (NotImplementedError, RuntimeError) as error:
            self._divided.divide_at(recording.last_line(), str(error))
            raise

    def _learns(self, outside: Outside, grads: list[Tensor], operators: list[str]) -> bool:
        """Whether the function read what is not in the captured state. Then it is in the next one."""
        known = {id(tensor) for tensor in outside.grads}
        if all(id(t) in known for t in grads) and set(operators) <= set(outside.operators):
            return False
        known = {id(tensor) for tensor in self._grads}
        self._grads += tuple(t for t in grads if id(t) not in known)
        self._operators += tuple(name for name in operators if name not in self._operators)
        self._look_outside(outside)
        return True

    def _compare(
        self,
        entry: Entry,
        native: _core.Program,
        structure: list[Any],
        returned: list[Any],
    ) -> None:
        entry.recordings += 1
        before, entry.first = entry.first, native
        if before is None:
            return
        checks = self._mode == "check"
        try:
            settled = before.settle(native)
        except RuntimeError:
            # The first call may have set something up, as optimizers do.
            if entry.recordings < 3 and entry.program is None:
                return
            raise
        if checks and entry.program is not None:
            return
        named = name_leaves(settled, self._function)
        entry.become(Program(named.optimize(self._passes), structure, returned))
        if checks:
            entry.first = native

    @property
    def programs(self) -> list[Any]:
        """The programs that calls run by now (tenon.jit.Program)."""
        own = [entry.program for entry in self._entries.values() if entry.program is not None]
        own += [sizes.entry.program for sizes in self._open.values() if sizes.entry is not None]
        own += [] if self._is_part else self._divided.programs
        return own + [program for inner in self._of_local.values() for program in inner.programs]

    def explain(self) -> str:
        """A text: each signature, whether it runs as a program, and why not."""
        lines = [f"{self._name}: {len(self._entries)} signatures"]
        for sizes in self._open.values():
            if sizes.entry is not None:
                calls = sum(_core.compiled_calls(self, each) for each in sizes.known)
                lines.append(
                    f"  {sizes.entry.signature}: {sizes.entry.calls + calls} calls, a program of these sizes, of "
                    f"{sizes.entry.program._native.nsteps} steps, recorded {sizes.recorded} times, the last in "
                    f"{sizes.entry.seconds * 1e3:.1f} ms"
                )
            if sizes.reason:
                lines.append(f"  no further sizes are left open: {sizes.reason}")
        for entry in self._entries.values():
            head = f"{entry.signature}: {entry.calls + _core.compiled_calls(self, entry)} calls, "
            if entry.program is not None:
                head += f"a program of {entry.program._native.nsteps} steps, "
                head += f"recorded in {entry.seconds * 1e3:.1f} ms"
                head += "".join(f"\n    {line}" for line in entry.program.plan().splitlines())
                changes = entry.program.changes().splitlines()
                head += "".join(f"\n    {line}" for line in changes)
                use = {name: f"{n / 1024:.0f} KiB" for name, n in entry.program.memory().items()}
                head += f"\n    results take at most {use['planned']} at once; {use['stepwise']} "
                head += f"step by step, {use['kept']} if none were freed"
            elif entry.reason:
                head += f"without a program: {entry.reason}"
            else:
                head += f"{entry.recordings} of 2 recordings made"
            lines.append("  " + head)
        lines += [] if self._is_part else self._divided.explain()
        for (_, specs), inner in self._of_local.items():
            sizes_stay = ", whose sizes are not left open" if self._is_dynamic else ""
            lines.append(
                f"  with {sum(map(bool, specs))} sharded tensors, as parts of this rank{sizes_stay}:"
            )
            lines += [f"  {line}" for line in inner.explain().splitlines()[1:]]
        for reason, calls in self._eager.items():
            lines.append(f"  {calls} calls without a program: {reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<tenon.compile of {self._function!r}, {len(self.programs)} programs>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        bound = Compiled(
            self._function.__get__(instance, owner), self._limit, self._passes, self._is_dynamic
        )
        try:
            setattr(instance, self._name, bound)  # found there from now on
        except AttributeError:
            pass
        return bound


def compile(
    function: Any = None,
    *,
    limit: int = 8,
    dynamic: bool = False,
    numerics: str = "exact",
    without: Sequence[str] = (),
    memory_budget: int | None = None,
) -> Any:
    """`function`, a function, method or module, that runs as a program once it was called often enough.

        step = tenon.compile(step)
        for x, target in loader:
            loss = step(x, target)
        print(step.explain())

    The first two calls of each signature run the function as it is and write down what it asks of
    operators. If both agree, later calls run the program and not the Python code. A signature is the
    structure of the arguments; shape, strides, dtype, device and requires_grad of tensors; the values of
    all others; whether gradients are on; the operators that are defined; and what the function can be seen to
    read from outside: the numbers, texts, containers, tensors, classes and objects that it closes over or
    names, the attributes of these that any code on the way names, and so on, into methods, properties, modules
    and small arrays of NumPy. A new signature is recorded anew; beyond `limit` of them calls run the function.

    Sharded tensors (tenon.distributed) may be arguments, results and what it reads: each rank has a program of its parts,
    with what ranks send each other as steps. Where gradients of them are recorded, the backward pass is in the function.

    Where it reads data (`item`, `if x > 0`), or calls operators whose shapes depend on data, the function is divided: what
    is before, between and behind such statements is compiled, and Python runs these. Calls run the function also where
    no program can be made: it adds to a `.grad` that it has not assigned, returns or takes
    objects that are neither tensors nor plain values, does something else each time, changes what it
    reads, or reads what cannot be told (`eval`, files, iterators, weak references, large arrays of NumPy), or
    where Python is a version whose code cannot be read. `explain()`
    says why. What Python code does beside calling operators (printing) happens in calls that run the
    function only. Not seen is state that C code keeps, as numbers of ctypes: TENON_GRAPH=check runs the
    function on every call and raises where it differs from its program; TENON_GRAPH=off runs the function
    alone. The variable is read by `compile`.

    With `dynamic=True` sizes that differ between calls are left open, so that calls of many sizes run one program. At the
    second size the function is run at a handful of sizes, with the elements of the arguments again and again, as
    `tenon.export` does with `dynamic_shapes`; so it must not mind being run once more. What it writes into tensors, as
    training steps do, is put back. Sizes of 0 and 1 stay signatures, as do sizes
    for which a comparison in the function comes out otherwise, and those of calls with sharded tensors. Results and
    gradients are those of the function.

    `numerics`, `without` and `memory_budget` are those of `Program.optimize`: with "ulp" or "fast", functions that are written
    by hand and have an operator of their own (softmax, gelu, attention) become that, where no backward pass
    reads what is between.
    """
    if function is None:
        return functools.partial(
            compile,
            limit=limit,
            dynamic=dynamic,
            numerics=numerics,
            without=without,
            memory_budget=memory_budget,
        )
    if not callable(function):
        raise TypeError(f"compile: expected a function or a module, got {function!r}")
    if limit < 1:
        raise ValueError(f"compile: expected limit of at least 1, got {limit}")
    if not isinstance(dynamic, bool):
        raise TypeError(f"compile: expected dynamic to be True or False, got {dynamic!r}")
    return Compiled(function, limit, pass_list(PASSES, numerics, without, memory_budget), dynamic)


_SHARDED_ARGUMENTS = (
    "an argument is a sharded tensor that requires a gradient; let the function reach it in another way, as weights of a "
    "module are reached, or call it under tenon.no_grad()"
)
_recorded = threading.local()


def is_compiling() -> bool:
    """Whether this thread runs a function that `tenon.compile` writes down."""
    return getattr(_recorded, "is_on", False)


def _is_plain(tensor: Tensor) -> bool:
    kind = type(tensor)
    if kind is not Tensor:
        from tenon.nn import Buffer, Parameter  # programs without layers do without

        if kind not in (Parameter, Buffer):
            return False
    return not _core.hook_state(tensor)


def _is_batched(tensor: Tensor) -> bool:
    return type(tensor) is not Tensor and type(tensor).__name__ == "Batched"
