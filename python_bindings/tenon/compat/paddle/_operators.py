# SPDX-License-Identifier: Apache-2.0
"""Libraries of custom operators: what PD_BUILD_OP registered, as functions."""

import inspect
import json
import os
import re
import types
import warnings

import tenon
from tenon import _core
from tenon.compat.paddle._device import _EXCEPTIONS, _SINK, _collect, _library


def load_op_library(path, name=None):
    """Load a library of custom operators and return a module of functions, one for each.

    An earlier library of the same `name` (default: the file's) is replaced; an operator that another
    library has registered is refused. A function that the library calls and nothing defines is a
    warning here and an error when it is called, and so is a shape or dtype function that does not
    fit its operator: that one is left off."""
    path = os.path.realpath(os.fspath(path))
    name = os.path.splitext(os.path.basename(path))[0] if name is None else name
    identifier = re.sub(r"[^a-z0-9_]", "_", name.lower())
    _core.load()
    status, text = _collect(
        lambda sink: _load_function()(os.fsencode(path), identifier.encode(), sink, None)
    )
    if status != 0:
        raise _EXCEPTIONS.get(status, RuntimeError)(f"{path}: {text}")
    module = types.ModuleType(name, f"Custom operators of {path}.")
    module.__file__ = path
    described = json.loads(text)
    for warning in described["warnings"]:
        warnings.warn(f"{path}: {warning}", stacklevel=2)
    for op in described["operators"]:
        setattr(module, op["name"], _function(op))
    return module


def _load_function():
    import ctypes

    function = _library().tenon_paddle_load_operators
    function.restype = ctypes.c_int32
    function.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        _SINK,
        ctypes.c_void_p,
    ]
    return function


def _function(op):
    """The operator itself where it has one result and takes what Tenon's operators take; a function
    around it for in-place operators, several results, and lists of strings."""
    operator = _core.operator(op["operator"])
    outputs = op["outputs"]
    text_lists = {
        len(op["inputs"]) + i: attribute["name"]
        for i, attribute in enumerate(op["attributes"])
        if attribute["type"] == "std::vector<std::string>"
    }
    returns_list = any(_is_counted(op, output) for output in outputs)
    in_place = any(output["written"] >= 0 for output in outputs)
    if len(outputs) == 1 and not (in_place or returns_list or text_lists):
        return operator

    parameters = [
        inspect.Parameter(entry["name"], inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for entry in op["inputs"] + op["attributes"]
    ]
    signature = inspect.Signature(parameters)

    def call(*args, **kwargs):
        values = list(signature.bind(*args, **kwargs).args)
        given = {o["written"]: values[o["written"]] for o in outputs if o["written"] >= 0}
        for position, attribute in text_lists.items():
            values[position] = _joined(op["name"], attribute, values[position])
        if len(given) == len(outputs) and not returns_list:
            written = tuple(given.values())
            results = operator(*values, out=written if len(written) > 1 else written[0])
            return list(written) if len(written) > 1 else results
        results = operator(*values)
        results = _grouped(outputs, given, results if isinstance(results, tuple) else (results,))
        return results[0] if len(results) == 1 else results

    call.__name__ = call.__qualname__ = op["name"]
    call.__doc__ = operator.__doc__
    call.__signature__ = signature
    return call


def _is_counted(op, output):
    """Does the number of the output's tensors depend on the arguments?"""
    written = output["written"]
    return (
        output["list"] or output["optional"] or written >= 0 and op["inputs"][written]["optional"]
    )


def _grouped(outputs, given, results):
    """Flat results by outputs: a tensor, a list or None for each. What is written in place is copied
    into the arguments, which are returned instead of the results."""
    results, grouped = list(results), []
    rest = len(results) - sum(
        1 for o in outputs if not o["list"] and given.get(o["written"], o) is not None
    )
    rest -= sum(
        len(given[o["written"]] or ()) for o in outputs if o["list"] and o["written"] in given
    )
    for output in outputs:
        target = given.get(output["written"])
        if output["list"]:
            count = len(target or ()) if output["written"] in given else rest
            parts, results = results[:count], results[count:]
            if target:
                parts = [tenon.clone(part, out=to) for part, to in zip(parts, target)]
            is_absent = output["written"] in given and target is None
            grouped.append(None if is_absent else parts)
        elif output["written"] in given and target is None or not results:
            grouped.append(None)
        else:
            part = results.pop(0)
            grouped.append(part if target is None else tenon.clone(part, out=target))
    return grouped


def _joined(op, attribute, texts):
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{op}(): argument '{attribute}': expected a list of str, got {texts!r}")
    if any("\0" in text for text in texts):
        raise ValueError(f"{op}(): argument '{attribute}': expected texts without zero bytes")
    return "".join(text + "\0" for text in texts)
