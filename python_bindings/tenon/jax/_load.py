# SPDX-License-Identifier: Apache-2.0
"""Programs of jaxprs, and functions that are traced by JAX and run by Tenon."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.jax._walk import Walk, dtype_of, is_key, shape_of
from tenon.jit import structures
from tenon.jit.program import PASSES, Program


def _jax() -> Any:
    try:
        import jax
    except ImportError as error:
        raise ImportError(
            f"tenon.jax: expected JAX to be installed, which traces functions: {error}"
        ) from None
    return jax


def load(jaxpr: Any) -> Program:
    """The program of a `jax.core.ClosedJaxpr`, which `jax.make_jaxpr(f)(*arguments)` gives. It takes the tensors of the jaxpr's
    inputs in their order, and returns those of its results: one tensor, or a tuple. A key of JAX's random numbers is its data, a
    uint32 tensor with one axis more. What the function had from outside is constant.

    Raises NotImplementedError with all primitives that cannot be told, each with its reason; TypeError for what is no jaxpr.
    """
    jax = _jax()
    if not hasattr(jaxpr, "jaxpr") or not hasattr(jaxpr, "consts"):
        raise TypeError(
            f"jax.load: expected a ClosedJaxpr, got {type(jaxpr).__name__}; make one with jax.make_jaxpr(f)(*arguments)"
        )
    failures: dict[str, str] = {}
    walk = Walk(jax, failures)
    inputs = [walk.builder.input(dtype_of(v.aval), shape_of(v.aval)) for v in jaxpr.jaxpr.invars]
    constants = [walk.constant(_tensor(jax, each)) for each in jaxpr.consts]
    results = walk.run(jaxpr.jaxpr, constants, inputs)
    if failures:
        kinds = "".join(f"\n  {kind}: {why}" for kind, why in failures.items())
        raise NotImplementedError(
            f"jax.load: {len(failures)} of {walk.count} kinds of primitives cannot be told:{kinds}"
        )
    native = walk.builder.finish([walk.tensor(each) for each in results])
    parts = [structures.TENSOR] * len(results)
    return Program(
        native.optimize(",".join(PASSES)),
        ["tuple", [structures.TENSOR] * len(inputs)],
        parts[0] if len(parts) == 1 else ["tuple", parts],
    )


def jit(
    function: Callable[..., Any] | None = None, *, static_argnums: int | Sequence[int] = ()
) -> Any:
    """`function`, which is written for JAX, traced by JAX once for each structure, shapes and dtypes of its arguments, and run by
    Tenon. Arguments are containers of arrays of JAX or NumPy, tensors and numbers, and keys of JAX's random numbers. Results are
    tensors where an argument holds one, else arrays of JAX; both share their memory.

    Those of `static_argnums` are no arrays: the function is traced for each value, which has to be hashable. As under `jax.jit`, what
    the function reads from outside is what it was when it was traced.
    """
    if function is None:
        return functools.partial(jit, static_argnums=static_argnums)
    jax = _jax()
    fixed = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    known: dict[Any, tuple[Program, Any, list[Any]]] = {}

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> Any:
        dynamic = [None if i in fixed else each for i, each in enumerate(arguments)]
        statics = tuple(arguments[i] for i in fixed)
        leaves, tree = jax.tree_util.tree_flatten((dynamic, keywords))
        avals = [_aval(jax, leaf) for leaf in leaves]
        key = (tree, statics, tuple((a.shape, str(a.dtype), a.weak_type) for a in avals))
        if key not in known:
            known[key] = _traced(jax, function, tree, avals, fixed, arguments)
        program, out_tree, out_avals = known[key]
        given = [_argument(jax, leaf, aval) for leaf, aval in zip(leaves, avals, strict=True)]
        results = program(*given)
        listed = list(results) if isinstance(results, tuple) else [results]
        if not any(isinstance(leaf, Tensor) for leaf in leaves):
            listed = [_array(jax, each, a) for each, a in zip(listed, out_avals, strict=True)]
        return jax.tree_util.tree_unflatten(out_tree, listed)

    run.programs = known  # type: ignore[attr-defined]
    return run


def _traced(
    jax: Any, function: Any, tree: Any, avals: Any, fixed: Any, arguments: Any
) -> tuple[Program, Any, list[Any]]:
    shapes: list[Any] = []

    def flat(*leaves: Any) -> Any:
        dynamic, keywords = jax.tree_util.tree_unflatten(tree, leaves)
        given = [arguments[i] if i in fixed else each for i, each in enumerate(dynamic)]
        found, out_tree = jax.tree_util.tree_flatten(function(*given, **keywords))
        shapes.append(out_tree)
        return found

    jaxpr = jax.make_jaxpr(flat)(*avals)
    return load(jaxpr), shapes[-1], [v.aval for v in jaxpr.jaxpr.outvars]


def _aval(jax: Any, leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        dtype = jax.numpy.dtype(str(leaf.dtype).removeprefix("tenon."))
        found = jax.ShapeDtypeStruct(tuple(leaf.shape), dtype)
        return jax.typeof(jax.numpy.zeros((), dtype)).update(shape=found.shape)
    return jax.typeof(leaf)


def _argument(jax: Any, leaf: Any, aval: Any) -> Tensor:
    if isinstance(leaf, Tensor):
        return leaf
    if is_key(aval):
        leaf = jax.random.key_data(leaf)
    if isinstance(leaf, (bool, int, float, complex)):
        return tenon.tensor(leaf, dtype=dtype_of(aval))
    return _tensor(jax, leaf)


def _tensor(jax: Any, array: Any) -> Tensor:
    if is_key(array):
        array = jax.random.key_data(array)
    if not isinstance(array, jax.Array):
        array = jax.numpy.asarray(array)
    return tenon.from_dlpack(array)


def _array(jax: Any, tensor: Tensor, aval: Any) -> Any:
    array = jax.dlpack.from_dlpack(tenon.contiguous(tensor))
    return jax.random.wrap_key_data(array) if is_key(aval) else array
