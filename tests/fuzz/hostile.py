# SPDX-License-Identifier: Apache-2.0
"""Calls that no program should make. Each must be served, or refused by an error with a text."""

from __future__ import annotations

import tenon

from .call import PRELUDE, SEED, evaluate
from .draw import small_call
from .report import Mismatch

# In place of any argument.
ANYTHING = """
None True -1 0 1 2 -100 100 2**31 2**63 -2**63 2**64 0.5 -1.5 inf nan 1e308 1j '' 'text'
'float33' b'bytes' object() int Ellipsis [] () {} [None] [0] [-1] [1.5] ['a'] [[1,2],[3]]
(0,1,2,3,4,5,6,7,8,9) [2**40,2**40] [-5,3] [2**62,4] [0]*70 range(3) slice(1,2) np.zeros((2,3))
np.float32(1) np.array(['a']) lambda:0 tenon tenon.float32 tenon.ones tenon.device('cpu')
tenon.device('meta') tenon.ones((2,3)) tenon.ones(()) tenon.ones((0,))
tenon.ones((2,3),dtype='bool') tenon.ones((1,)*20) tenon.ones((2,3),dtype='int64')
tenon.ones((2,3),dtype='complex64') tenon.ones((2,3),device='meta')
tenon.ones((2,),dtype='float8_e4m3') tenon.full((3,),-2**40)
tenon.ones((2,3),requires_grad=True) tenon.ones((1,)).expand((2**20,)) tenon.zeros((5,0,2))
[tenon.ones((2,)),None] [tenon.ones((2,)),3] [tenon.ones((2,))]*3
""".split()
# Calls of these operators may rightly ask for so many random numbers, which take minutes.
_MAKES_NUMBERS = {"randint", "randperm"}
# Added to a call.
ADDITIONS = (
    "dim=0",
    "axis=99",
    "axis=-99",
    "axis=None",
    "axis=[0, 0]",
    "keepdims=True",
    "out=None",
    "out=3",
    "out=tenon.ones((7,), dtype='int8')",
    "out=tenon.ones((0,))",
    "out=tenon.ones((1,)).expand((2, 3))",
    "out=tenon.ones((2, 3), device='meta')",
    "out=guarded[2:5]",
    "dtype='float33'",
    "dtype=3",
    "device='nowhere'",
    "device='meta'",
    "**{'': 1}",
    "*[1] * 40",
    "nonsense=object()",
)
# A long vector of which a call gets a part; the rest must stay as it is.
_GUARD = -7
_EXTENT = 4096


def draw_hostile(rng, operator):
    """Python text of a hostile call."""
    call = small_call(rng, operator)
    items = list(call.items())
    names = {p.name for p in operator.parameters if p.keyword_only}
    for _ in range(1 + int(rng.random() < 0.3)):
        if items and rng.random() < 0.75:
            at = int(rng.integers(0, len(items)))
            text = str(ANYTHING[int(rng.integers(0, len(ANYTHING)))])
            if text == "2**31" and operator.name in _MAKES_NUMBERS:
                text = "2**62"
            items[at] = (items[at][0], text)
        elif items and rng.random() < 0.3:
            items.pop(int(rng.integers(0, len(items))))
        else:
            items.append((None, str(ADDITIONS[int(rng.integers(0, len(ADDITIONS)))])))
    parts, positional = [], True
    for name, text in items:
        if name is None:
            positional = False
            parts.append(text)
            continue
        positional = positional and name not in names and rng.random() < 0.8
        parts.append(f"({text})" if positional else f"{name}={text}")
    unstarred = [p for p in parts if not p.startswith("*")]
    starred = [p for p in parts if p.startswith("*") and not p.startswith("**")]
    first = next((i for i, p in enumerate(unstarred) if _is_keyword(p)), len(unstarred))
    ordered = unstarred[:first] + starred + unstarred[first:]
    ordered += [p for p in parts if p.startswith("**")]
    function = f"tenon.{operator.name}"
    if operator.method and positional and rng.random() < 0.3 and ordered:
        return f"{ordered[0]}.{operator.name}({', '.join(ordered[1:])})"
    return f"{function}({', '.join(ordered)})"


def _is_keyword(part):
    head = part.split("=", 1)[0]
    return "=" in part and head.isidentifier()


def script(text):
    """A program that makes the call."""
    guard = f"guarded = tenon.full((20,), {_GUARD}, dtype='int64'); " if "guarded" in text else ""
    return f"{PRELUDE}; {guard}print({text})" + ("; print(guarded)" if guard else "")


def check_hostile(text, operator, is_refusal):
    """A list of the one mismatch, or of none."""
    detail = _outcome(text, is_refusal)
    return [Mismatch("hostile", operator.name, detail, script(text))] if detail else []


def _outcome(text, is_refusal):
    """What is wrong with the outcome of a hostile call; None if nothing is."""
    guarded = tenon.full((20,), _GUARD, dtype="int64")
    tenon.manual_seed(SEED)
    try:
        result = evaluate(text, {"guarded": guarded})
        for one in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(one, tenon.Tensor) and str(one.device) != "meta:0" and one.size < _EXTENT:
                repr(one)
    except SyntaxError:
        return None  # the text is no call, as of the same keyword twice
    except Exception as error:
        if not is_refusal(error) and not _is_python(error, text):
            return f"{type(error).__name__}: {str(error)[:300] or 'no text'}"
    values = guarded.tolist()
    if values[:2] + values[5:] != [_GUARD] * 17:
        return "out= of a part of a vector wrote into the rest of it"
    return None


def _is_python(error, text):
    """Refused by Python before Tenon is called: no such method on what stands there."""
    return isinstance(error, AttributeError) or (
        isinstance(error, TypeError) and "keyword" in str(error)
    )
