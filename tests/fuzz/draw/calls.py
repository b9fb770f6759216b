# SPDX-License-Identifier: Apache-2.0
"""One call of an operator: its rule where it has one, else tensors that broadcast, or a sample's."""

from __future__ import annotations

from ..call import Call
from . import values
from .arguments import FUNCTIONS
from .attributes import absent, draw_attribute
from .drawer import Drawer
from .rules import TEMPLATES
from .samples import from_sample

_DTYPE_WEIGHTS = {"float32": 6, "float64": 5, "float16": 3, "bfloat16": 3}
_FEW = 0.6  # weight of every other dtype


def draw_call(rng, operator, dtype=None, kind=None, large=None, strided=True):
    """A call that the operator should serve, of random dtype, shapes, layouts and values."""
    dtype = dtype or _draw_dtype(rng, operator)
    kind = kind or values.draw_kind(rng)
    large = bool(rng.random() < 0.1) if large is None else large
    d = Drawer(rng, operator, dtype, kind, large, strided)
    if operator.name in FUNCTIONS:
        return Call(operator, _ordered(operator, FUNCTIONS[operator.name](d)))
    if operator.name in TEMPLATES:
        return Call(operator, _from_template(d, TEMPLATES[operator.name]))
    # Shapes that are related in a way that no rule says are those of the operator's own samples.
    if operator.samples and operator.kind in ("composite", "kernel", "view") and d.chance(0.4):
        return Call(operator, _ordered(operator, from_sample(d)))
    return Call(operator, _broadcasting(d))


def small_call(rng, operator):
    """A call for hostile changes: small, contiguous, of an ordinary dtype."""
    dtype = "float32" if "float32" in operator.dtypes else operator.dtypes[0]
    return draw_call(rng, operator, dtype, "ordinary", False, False)


def _draw_dtype(rng, operator):
    weights = [_DTYPE_WEIGHTS.get(name, _FEW) for name in operator.dtypes]
    total = sum(weights)
    return str(rng.choice(operator.dtypes, p=[w / total for w in weights]))


def _ordered(operator, arguments):
    """Arguments in the order of the signature, without those that the operator does not have."""
    names = [p.name for p in operator.parameters]
    return {name: arguments[name] for name in names if name in arguments}


def _from_template(d, template):
    fixed = template.fixed(d) if template.fixed else {}
    shapes, letters = d.related(d.choice(template.shapes), **fixed)
    arguments = template.attributes(d, letters) if template.attributes else {}
    for parameter in d.operator.parameters:
        name = parameter.name
        if name in arguments:
            continue
        if name in shapes:
            if parameter.optional and d.chance(0.4):
                arguments[name] = None
            elif name in template.indices:
                extent = sum(
                    letters[part] if part in letters else int(part)
                    for part in template.indices[name].split("+")
                )
                arguments[name] = d.indices(shapes[name], extent, negative=False)
            else:
                dtype = parameter.dtypes[0] if parameter.dtypes else None
                dtype = None if dtype is None or d.dtype in parameter.dtypes else dtype
                arguments[name] = d.tensor(shapes[name], dtype, template.domains.get(name))
        elif parameter.required or parameter.type in ("bool", "float", "str"):
            value = draw_attribute(d, parameter, max((len(s) for s in shapes.values()), default=0))
            if value is not absent:
                arguments[name] = value
    return _ordered(d.operator, _without_trailing_none(d.operator, arguments))


def _without_trailing_none(operator, arguments):
    return {n: v for n, v in arguments.items() if v is not None or _is_optional(operator, n)}


def _is_optional(operator, name):
    return any(p.name == name and p.optional for p in operator.parameters)


def _broadcasting(d):
    """Tensors of shapes that broadcast; a later one may be a Python number or of another dtype."""
    operator, arguments = d.operator, {}
    tensors = [p for p in operator.parameters if p.is_tensor]
    shape = d.shape()
    shapes = d.broadcast(shape, len(tensors)) if len(tensors) > 1 else [shape]
    for i, (parameter, one) in enumerate(zip(tensors, shapes)):
        if parameter.optional and d.chance(0.4):
            continue
        if parameter.dtypes and d.dtype not in parameter.dtypes:
            arguments[parameter.name] = d.tensor(one, parameter.dtypes[0])
        elif i and operator.compute.startswith("promote") and d.chance(0.15):
            arguments[parameter.name] = d.number()
        elif i and operator.compute.startswith("promote") and d.chance(0.08):
            arguments[parameter.name] = d.tensor(one, _draw_dtype(d.rng, operator))
        else:
            arguments[parameter.name] = d.tensor(one)
    for parameter in operator.parameters:
        if not parameter.type.startswith("Tensor"):
            value = draw_attribute(d, parameter, len(shapes[0]) if tensors else 0)
            if value is not absent:
                arguments[parameter.name] = value
    return _ordered(operator, arguments)
