# SPDX-License-Identifier: Apache-2.0
"""Oracles: each runs a call in a second way that must come to the same, and yields what differs.

An oracle is a function of (call, results, rng), where `results` are the plain call's. It yields
mismatches, and nothing where the second way does not apply.
"""

from __future__ import annotations

import numpy as np
import tenon

from .arrays import FLOATS, Written, dtype_name, numpy_of
from .call import PRELUDE, SEED, evaluate, results_of
from .compare import close_difference, exact_difference, is_exact, is_inexact, spreads, widened
from .gradients import gradient, second_gradient
from .layouts import layouts
from .peers.evaluate import NoAnswer, answer
from .report import mismatch

# Their elements are not specified.
UNSPECIFIED = {"empty", "empty_like"}
# Refusals that a user can act on. Everything else is a fault.
REFUSALS: tuple = (ValueError, TypeError, IndexError, NotImplementedError, OverflowError)
REFUSALS += (tenon.OutOfMemoryError, tenon.NotFoundError, tenon.DeviceError)


def is_refusal(error):
    return isinstance(error, REFUSALS) and len(str(error)) > 10


def _compare(oracle, call, got, want, script, spread=None, exactly=False, units=8.0):
    """Mismatches between two runs' results."""
    if len(got) != len(want):
        yield mismatch(oracle, call, f"{len(got)} results instead of {len(want)}", script)
        return
    for i, (g, w) in enumerate(zip(got, want)):
        if dtype_name(g) != dtype_name(w):
            text = f"dtype {dtype_name(g)} instead of {dtype_name(w)}"
        elif call.op in UNSPECIFIED:
            text = None if g.shape == w.shape else f"shape {g.shape} instead of {w.shape}"
        elif exactly:
            text = exact_difference(numpy_of(g), numpy_of(w))
        else:
            near = 0.0 if spread is None else spread[i]
            text = close_difference(numpy_of(g), numpy_of(w), dtype_name(g), near, units)
        if text:
            yield mismatch(oracle, call, f"result {i}: {text}" if len(got) > 1 else text, script)
            return


def _guarded(oracle, call, script, run):
    """(results, None) or (None, mismatch) of a second way that must not be refused."""
    try:
        return results_of(run()), None
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:300]} instead of results"
        return None, mismatch(oracle, call, text, script)


def layout(call, results, rng):
    """Dense row-major copies of strided arguments."""
    plain = call.map(lambda a: a.with_layout("plain"))
    if all(a.layout == "plain" for _, _, a in call.arrays()) or call.op == "view":
        return
    script = (
        f"{PRELUDE}; {call.seeding()}print({call.text()}); {call.seeding()}print({plain.text()})"
    )
    want, failed = _guarded("layout", call, script, plain.run)
    if failed:
        yield failed
        return
    exactly = call.operator.kind == "elementwise" or is_exact(call.operator)
    spread = None if exactly else spreads(call, rng)
    yield from _compare("layout", call, results, want, script, spread, exactly)


def out(call, results, rng):
    """`out=` into a strided tensor, whose neighbours must stay as they are."""
    if not call.operator.out_form or len(results) != 1 or call.op in UNSPECIFIED:
        return
    shape, dtype = tuple(results[0].shape), dtype_name(results[0])
    gaps = bool(rng.integers(0, 2)) and len(shape) > 0
    full = (*shape[:-1], 2 * shape[-1]) if gaps else shape
    view = "[..., ::2]" if gaps else ""
    make = f"base = tenon.full({list(full)}, 1, dtype={dtype!r}); out = base{view}"
    written = call.text(extra=", out=out")
    script = f"{PRELUDE}; {call.seeding()}{make}; {written}; print(base, {call.text()})"
    base = tenon.full(list(full), 1, dtype=getattr(tenon, dtype))
    target = base[..., ::2] if gaps else base
    got, failed = _guarded(
        "out", call, script, lambda: call.run(extra=", out=out", names={"out": target})
    )
    if failed:
        yield failed
        return
    if got[0] is not target:
        yield mismatch("out", call, "the call with out= returned another tensor", script)
    yield from _compare("out", call, [target], results, script, exactly=True)
    if gaps and not (numpy_of(base)[..., 1::2] == 1).all():
        yield mismatch("out", call, "out= wrote between the elements of a strided result", script)


def in_place(call, results, rng):
    """`x.op_(...)` against `op(x, ...)`."""
    if not call.operator.in_place or len(results) != 1:
        return
    name, first = next(iter(call.arguments.items()))
    if not hasattr(first, "layout") or first.layout == "expanded":
        return
    if tuple(results[0].shape) != first.shape or dtype_name(results[0]) != first.dtype:
        return
    rest = call.text().removeprefix(f"tenon.{call.op}({first.text()}").removeprefix(", ")
    function = f"x.{call.op}_({rest}"
    if not hasattr(tenon.Tensor, f"{call.op}_"):
        return
    script = f"{PRELUDE}; x = {first.text()}; {function}; print(x, {call.text()})"
    x = evaluate(first.text())
    _, failed = _guarded("in_place", call, script, lambda: evaluate(function, {"x": x}))
    if failed:
        yield failed
        return
    yield from _compare("in_place", call, [x], results, script, exactly=True)


def recording(call, results, rng):
    """The same with floating tensors that record: composites then run as their parts."""
    floating = [a for _, _, a in call.arrays() if a.dtype in FLOATS]
    if not floating:
        return
    made = call.map(_recording).text()
    script = f"{PRELUDE}; {call.seeding()}print({call.text()}); {call.seeding()}print({made})"
    if call.operator.is_random:
        tenon.manual_seed(SEED)
    got, failed = _guarded("recording", call, script, lambda: evaluate(made))
    if failed:
        if "has no gradient" not in failed.detail:
            yield failed
        return
    want = [r.detach() for r in results]
    yield from _compare(
        "recording", call, [g.detach() for g in got], want, script, spreads(call, rng), units=16.0
    )


def _recording(array):
    if array.dtype not in FLOATS:
        return array
    return Written(array, f"{array.text()}.requires_grad_()")


def validated(call, results, rng):
    """Kernels watched: bounds, unwritten elements, arguments that are changed."""
    script = f"{PRELUDE}\nwith tenon.validation(): {call.seeding()}print({call.text()})"

    def run():
        with tenon.validation():
            return call.run()

    got, failed = _guarded("validation", call, script, run)
    if failed:
        yield failed
        return
    yield from _compare("validation", call, got, results, script, spreads(call, rng))


def meta(call, results, rng):
    """Shapes and dtypes without data."""
    if call.op == "to_device":
        return
    script = f"{PRELUDE}; r = {call.text('meta')}; print(r); {call.seeding()}print({call.text()})"
    try:
        got = call.run("meta")
    except NotImplementedError:
        return  # the shape depends on data
    except tenon.DeviceError:
        return  # the operator reads data
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:300]} instead of results"
        yield mismatch("meta", call, text, script)
        return
    for g, w in zip(got, results):
        if (tuple(g.shape), g.dtype) != (tuple(w.shape), w.dtype):
            text = (
                f"meta says {g.dtype} {tuple(g.shape)}, the kernel gives {w.dtype} {tuple(w.shape)}"
            )
            yield mismatch("meta", call, text, script)
            return


def _rounds(array, dtype):
    """Whether integers change when they are converted to a floating dtype."""
    if array.values.dtype.kind not in "iu" or dtype not in FLOATS:
        return False
    return bool((array.with_dtype(dtype).values != array.values.astype(np.float64)).any())


def wide(call, results, rng):
    """float64 of the same inputs, to which a narrower dtype must come near."""
    narrow = {a.dtype for _, _, a in call.arrays() if is_inexact(a.dtype)} - {
        "float64",
        "complex128",
    }
    named = {call.arguments.get("dtype")} - {None}
    if not call.operator.has_float64:
        return
    if not narrow or named or call.operator.is_random or call.op in UNSPECIFIED:
        return
    if len({a.dtype for _, _, a in call.arrays() if is_inexact(a.dtype)}) > 1:
        return  # promotion rounds one of them
    if any(_rounds(a, name) for _, _, a in call.arrays() for name in narrow):
        return  # promotion rounds an integer
    other = widened(call)
    script = f"{PRELUDE}; print({call.text()}, {other.text()})"
    want, failed = _guarded("wide", call, script, other.run)
    if failed:
        yield failed
        return
    spread = spreads(call, rng)
    for i, (g, w) in enumerate(zip(results, want)):
        near = 0.0 if spread is None else spread[i]
        if call.op == "nextafter" or (
            not is_inexact(dtype_name(g)) and spread is not None and np.any(near)
        ):
            continue
        text = close_difference(numpy_of(g), numpy_of(w), dtype_name(g), near)
        if text:
            yield mismatch("wide", call, text, script)
            return


def peer(name):
    """NumPy's or PyTorch's answer to the same arguments."""

    def compare(call, results, rng):
        try:
            want = answer(call, name)
        except NoAnswer:
            return
        spread = spreads(call, rng)
        for i, (g, w) in enumerate(zip(results, want)):
            values = numpy_of(g)
            near = 0.0 if spread is None else spread[i]
            if dtype_name(g) == "bool" or w.dtype.kind == "b":
                text = exact_difference(values.astype(bool), w.astype(bool))
            elif w.dtype.kind in "iu" and w.dtype.itemsize < values.dtype.itemsize:
                text = None  # the peer's sums wrap in a narrower dtype
            elif w.dtype.kind in "iu" and values.dtype.kind in "iu":
                text = exact_difference(values.astype(object), w.astype(object))
            else:
                text = close_difference(values, w.astype(values.dtype), dtype_name(g), near)
            if text:
                text = f"result {i}: {text}" if len(want) > 1 else text
                shown = " ".join(str(w).split())[:300]
                script = f"{call.script()}  # {name}: {shown}"
                yield mismatch(name, call, text, script)
                return

    compare.__doc__ = f"The answer of {name} to the same arguments."
    return compare


def threads(call, results, rng):
    """One thread and two."""
    script = (
        f"{PRELUDE}; tenon.set_num_threads(1); {call.seeding()}print({call.text()}); "
        f"tenon.set_num_threads(2); {call.seeding()}print({call.text()})"
    )
    found = []
    before = tenon.get_num_threads()
    try:
        for count in (1, 2):
            tenon.set_num_threads(count)
            one, failed = _guarded("threads", call, script, call.run)
            if failed:
                yield failed
                return
            found.append(one)
    finally:
        tenon.set_num_threads(before)
    yield from _compare("threads", call, found[1], found[0], script, exactly=True)


def device(kind):
    """Another device, from the same arguments."""

    def compare(call, results, rng):
        if (call.operator.is_random and call.op != "dropout") or call.op == "to_device":
            return
        script = f"{PRELUDE}; print({call.text(kind)}, {call.text()})"
        try:
            got = call.run(kind)
        except (tenon.PolicyError, NotImplementedError):
            return  # the device has nothing for a dtype, and may not use the host's
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:300]} instead of results"
            yield mismatch(f"device {kind}", call, text, script)
            return
        spread = spreads(call, rng)
        yield from _compare(f"device {kind}", call, got, results, script, spread, units=16.0)

    compare.__doc__ = f"The device {kind}."
    return compare


ORACLES = {
    "layout": layout,
    "out": out,
    "in_place": in_place,
    "recording": recording,
    "validation": validated,
    "meta": meta,
    "wide": wide,
    "numpy": peer("numpy"),
    "torch": peer("torch"),
    "threads": threads,
    "gradient": gradient,
    "second_gradient": second_gradient,
    "layouts": layouts,
}
_SLOW = {"second_gradient": 0.5, "threads": 0.3, "validation": 0.5, "layouts": 0.7}


def check(call, rng, chosen):
    """(served, mismatches) of one call under the chosen oracles."""
    try:
        results = call.run()
    except Exception as error:
        if is_refusal(error):
            return False, []
        text = f"{type(error).__name__}: {str(error)[:300] or 'no text'}"
        return False, [mismatch("refusal", call, text)]
    found = []
    for name, oracle in chosen.items():
        if rng.random() < _SLOW.get(name, 1.0):
            try:
                with np.errstate(all="ignore"):
                    found += list(oracle(call, results, rng))
            except MemoryError:
                continue  # the comparison needs more than the call
    return True, found
