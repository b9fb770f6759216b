# SPDX-License-Identifier: Apache-2.0
"""Operators and kernels written in Python: tenon.op and tenon.kernel.

What is defined here becomes a plugin table made at run time: the operators are ordinary ones, known to
every part of Tenon by their names."""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading

from tenon import _core
from tenon._tensor.dtypes import NAMES
from tenon.ops import _flop_formulas

__all__ = ["KernelHandle", "kernel", "op"]

# Where a parameter of a function gets its value: ArgumentSource::Kind in python_callback.hpp.
_ARGUMENT, _RESULT, _GRADIENT, _OUTPUTS, _NEEDS = range(5)

_lock = threading.RLock()  # one definition at a time
_definitions: dict[str, _Definition] = {}  # by full name


class _Signature:
    """A parsed signature: names of parameters and results, in order."""

    def __init__(self, text):
        self.text = text
        self.name, self.canonical, params, results = _core._schema(text)
        self.params = [name for name, _, _ in params]
        self.positional = [name for name, _, keyword_only in params if not keyword_only]
        self.keyword_only = [name for name, _, keyword_only in params if keyword_only]
        self.results = [name for name, _ in results]
        self.returns_list = any(is_list for _, is_list in results)

    def parameter_text(self):
        star = ["*"] if self.keyword_only else []
        return "(" + ", ".join([*self.positional, *star, *self.keyword_only]) + ")"


class _Definition:
    """What is known about one operator that was defined here."""

    def __init__(self, signature, core, has_body, elementwise):
        self.signature = signature
        self.core = core
        self.has_body = has_body
        self.elementwise = elementwise
        self.has_shape = False
        self.kernels = []
        self.functions = {}  # body, shape rule and gradient, as they were given


def _origin(function, depth):
    """`file.py:12` of a function, or of the caller where there is none."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is not None:
        return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    frame = sys._getframe(depth)
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _with_docstring():
    """Nothing but this."""


def _with_nothing():
    pass


_EMPTY = {_with_docstring.__code__.co_code, _with_nothing.__code__.co_code}


def _is_empty(function):
    """A function whose body is a docstring, `...` or `pass`."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_code not in _EMPTY:
        return False
    return all(constant is None or constant == function.__doc__ for constant in code.co_consts)


def _parameters(function):
    """The parameters of a function by name, or None if it does not tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None


def _check_callable(function, what, signature):
    if not callable(function):
        raise TypeError(
            f"{signature.name}: expected a function as {what}, got {type(function).__name__}"
        )


def _plan(function, signature, what, takes_out=False):
    """(function, where its parameters come from, names of the last ones): it takes the operator's own
    parameters."""
    _check_callable(function, what, signature)
    sources = [(_ARGUMENT, signature.params.index(name)) for name in signature.positional]
    names = list(signature.keyword_only)
    sources += [(_ARGUMENT, signature.params.index(name)) for name in names]
    parameters = _parameters(function)
    if parameters is not None:
        if takes_out and "out" in parameters and "out" not in signature.params:
            sources.append((_OUTPUTS, 0))
            names.append("out")
        try:
            inspect.signature(function).bind(
                *signature.positional, **{name: None for name in names}
            )
        except TypeError as error:
            raise TypeError(
                f"{signature.name}: expected {what} with the parameters {signature.parameter_text()}, "
                f"got {inspect.signature(function)}: {error}"
            ) from None
    return function, sources, tuple(names)


def _gradient_plan(function, signature):
    """The same for a gradient, which takes what it names."""
    _check_callable(function, "a gradient", signature)
    known = {"needs": (_NEEDS, 0)}
    known |= {name: (_ARGUMENT, i) for i, name in enumerate(signature.params)}
    known |= {name: (_RESULT, i) for i, name in enumerate(signature.results)}
    for i, name in enumerate(signature.results):
        if f"d{name}" in known:
            raise ValueError(
                f"{signature.name}: `d{name}` is the gradient of result `{name}` and a name in the "
                f"signature; rename one"
            )
        known[f"d{name}"] = (_GRADIENT, i)
    sources, names = [], []
    for name, parameter in (_parameters(function) or {}).items():
        if name not in known:
            if parameter.default is not parameter.empty:
                continue
            raise TypeError(
                f"{signature.name}: its gradient takes `{parameter}`; expected some of "
                f"{', '.join(known)}"
            )
        by_name = names or parameter.kind is parameter.KEYWORD_ONLY
        if parameter.kind is parameter.POSITIONAL_ONLY and names:
            continue
        sources.append(known[name])
        if by_name:
            names.append(name)
    if not sources:
        raise TypeError(
            f"{signature.name}: its gradient takes no parameters; expected some of {', '.join(known)}"
        )
    return function, sources, tuple(names)


# What mixed precision makes of an operator's floats, and TENON_OP_AMP_* in the ABI.
_AMP_FLAGS = {"keep": 0, "low": 16384, "high": 32768, "widest": 65536}
# TENON_OP_RANDOM: programs carry such steps out where they stand, and once.
_ORDERED = 16


def op(signature, *, elementwise=False, differentiable=True, amp=None, flops=None, ordered=False):
    """Decorator that defines an operator in Python.

        @tenon.op("acme::swiglu(Tensor x, Tensor g, *, float limit=0.0) -> Tensor")
        def swiglu(x, g, *, limit):
            return tenon.silu(x) * g

    The function is the operator in terms of others: it runs on every device, and gradients come from
    its parts. With a shape rule (`@swiglu.shape`) the operator becomes one of its own, for gradients
    (`@swiglu.grad`), kernels (`@swiglu.kernel("cpu")`) and the meta device; then its body is what runs
    where there is no kernel. A function that is a docstring only, or None, leaves the body out.

    `elementwise`: element i of the result depends on elements i alone. Tensors are broadcast and
    promoted as by `add`, no shape rule is needed, and in-place and out= forms may write over arguments.
    `differentiable=False`: results never carry gradients.
    `amp`: what mixed precision makes of the floats it is given: "low" (the region's dtype), "high" (float32),
    "widest" (the widest among them; the default of elementwise operators) or "keep". An operator without
    a shape rule is made of others, and those are cast.
    `flops`: the arithmetic of one call, for `tenon.flops`: "2 * numel(out) * size(x, -1)", 0 for an operator that
    moves elements, "unknown" where it depends on more than sizes. Without it, one for each element of the largest
    tensor; an operator without a shape rule is made of others, and those are counted.
    `ordered`: a call does more than return its results, such as talk to another process. Programs carry it out also where
    the result is not read, never twice, and in its place, as those that draw random numbers.

    Returns a tenon.Operator, also found as tenon.ops.acme.swiglu. Defining a name again replaces it.
    """
    signature = _Signature(signature)
    if elementwise and (len(signature.results) != 1 or signature.returns_list):
        raise ValueError(f"{signature.name}: an elementwise operator has one Tensor as its result")
    amp = amp or ("widest" if elementwise else "keep")
    if amp not in _AMP_FLAGS:
        raise ValueError(
            f"{signature.name}: expected amp 'keep', 'low', 'high' or 'widest', got {amp!r}"
        )
    traits = ""
    if flops is not None:
        try:
            _flop_formulas.check(str(flops), {*signature.params, *signature.results})
        except ValueError as error:
            raise ValueError(f"{signature.name}: {error}") from None
        traits = f"flops: {flops}\n"

    def define(function):
        has_body = function is not None and not _is_empty(function)
        core = _core._OperatorDefinition(
            signature.text,
            inspect.getdoc(function) or "" if function is not None else "",
            _origin(function, 2),
            elementwise,
            differentiable,
            _AMP_FLAGS[amp] | (_ORDERED if ordered else 0),
            traits,
        )
        if function is not None:
            plan = _plan(function, signature, "a body")
            if has_body:
                core.set_body(*plan)
        if not has_body and signature.returns_list:
            raise ValueError(
                f"{signature.name}: an operator that returns Tensor[] needs a body in terms of others"
            )
        with _lock:
            definition = _Definition(signature, core, has_body, elementwise)
            definition.functions["body"] = function
            _replace(definition)
        return _core.operator(signature.name)

    return define


def functions_of(name):
    """The functions of an operator that was defined here: what it does beside its kernels."""
    definition = _definitions.get(name)
    return tuple(definition.functions.values()) if definition else ()


def _replace(new):
    name = new.signature.name
    old = _definitions.get(name)
    if old:
        old.core.detach()
    try:
        new.core.attach()
    except BaseException:
        if old:
            old.core.attach()
        raise
    _definitions[name] = new
    if old:
        for handle in old.kernels:
            handle.remove()
        old.core.clear()


def _defined_here(operator, what):
    definition = _definitions.get(operator.full_name)
    if definition is None:
        raise ValueError(
            f"{operator.full_name or operator.__name__} is not defined with tenon.op: its {what} is "
            f"part of its definition at {operator.origin or 'an unknown place'}"
        )
    return definition


def _needs_shape(definition, what):
    if definition.has_body and not definition.has_shape and not definition.elementwise:
        short = definition.signature.name.partition("::")[2]
        raise ValueError(
            f"{definition.signature.name} is made of other operators, and gradients come from them; "
            f"give it a shape rule with @{short}.shape before {what}"
        )


def _change(definition, change):
    """Take the operator out, change it, and bring it in again."""
    definition.core.detach()
    try:
        change()
    finally:
        definition.core.attach()


def add_shape(operator, function):
    """operator.shape: decorator for the shape rule, called with the operator's arguments.

    Returns a shape, `(shape, dtype)` or a Tensor that looks like the result; for several results a list
    of these. Without a dtype it is that of the first tensor. Data must not be read.
    """
    with _lock:
        definition = _defined_here(operator, "shape rule")
        signature = definition.signature
        if signature.returns_list:
            raise ValueError(
                f"{signature.name} returns Tensor[]: it is made of other operators and has no shape rule"
            )
        plan = _plan(function, signature, "a shape rule")
        _change(definition, lambda: definition.core.set_shape(*plan))
        definition.has_shape = True
        definition.functions["shape"] = function
    return function


def add_gradient(operator, function):
    """operator.grad: decorator for the gradient, called with what its parameters name.

    `d<result>` is the gradient that arrives for a result (None if none does), `<result>` the result,
    other names are the operator's arguments, `needs` the names of those whose gradients are wanted.
    Returns a dict from argument names to gradients, or a tuple with one for each tensor argument; None
    is zero. Made of operators it can be differentiated again.
    """
    with _lock:
        definition = _defined_here(operator, "gradient")
        _needs_shape(definition, "its gradient")
        plan = _gradient_plan(function, definition.signature)
        _change(definition, lambda: definition.core.set_gradient(*plan))
        definition.functions["gradient"] = function
    return function


class KernelHandle:
    """A kernel that was added. `remove()` takes it out; so does the end of a `with` block."""

    def __init__(self, function, core):
        self.function = function
        self._core = core

    def remove(self):
        """Take the kernel out again. Removing twice does nothing."""
        with _lock:
            if self._core is None:
                return
            self._core.detach()
            self._core = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()

    def __repr__(self):
        state = "removed" if self._core is None else "in place"
        return f"<tenon kernel {getattr(self.function, '__qualname__', self.function)}, {state}>"


def _dtype_mask(dtypes):
    if dtypes is None:
        return (1 << len(NAMES)) - 1
    if isinstance(dtypes, str | _core.dtype):
        dtypes = [dtypes]
    mask = 0
    for item in dtypes:
        mask |= 1 << NAMES.index(str(_core.dtype(item)).rpartition(".")[2])
    if mask == 0:
        raise ValueError("dtypes: expected at least one dtype, got none")
    return mask


def _best_score(operator, device, mask):
    """The highest score of the kernels that serve these dtypes now; -1 if there are none."""
    best = -1
    for number, dtype in enumerate(NAMES):
        if mask >> number & 1:
            report = json.loads(_core.explain(operator.full_name, device, dtype))
            best = max([best, *(entry["score"] for entry in report.get("kernels", []))])
    return best


def kernel(operator, device, *, dtypes=None, score=None, strided=False, deterministic=True):
    """Decorator that adds a Python kernel for an operator of any package, on one kind of device.

        @tenon.kernel("tenon::relu", "cpu", dtypes=["float32"])
        def relu(x):
            return numpy.maximum(x.numpy(), 0)

    The function takes the operator's parameters and returns tensors or arrays of the shapes, dtypes and
    device that the operator's shape rule says, or takes a parameter `out` and writes into that. It runs
    below gradients. The kernel with the highest `score` is called; by default one more than the best
    there is. Tensors arrive contiguous, unless `strided`. `deterministic=False`: results may differ from run
    to run, and tenon.use_deterministic_algorithms(True) holds it back. Returns a handle with `remove()`, also a
    context manager.
    """
    if isinstance(operator, str):
        operator = _core.operator(operator)
    device = str(device)
    if ":" in device and not device.endswith(":0"):
        raise ValueError(
            f"kernels are for kinds of devices: expected a name like 'cpu', got '{device}'"
        )
    device = device.partition(":")[0]
    _core.device(device)  # an error says which there are
    mask = _dtype_mask(dtypes)
    signature = _Signature(operator.schema)

    def add(function):
        plan = _plan(function, signature, "a kernel", takes_out=True)
        with _lock:
            definition = _definitions.get(signature.name)
            if definition:
                _needs_shape(definition, "its kernels")
            chosen = _best_score(operator, device, mask) + 1 if score is None else score
            core = _core._KernelDefinition(
                signature.text,
                device,
                mask,
                chosen,
                strided,
                deterministic,
                _origin(function, 2),
                *plan,
            )
            handle = KernelHandle(function, core)
            if definition:
                definition.kernels.append(handle)
        return handle

    return add
