# SPDX-License-Identifier: Apache-2.0
"""What an unknown name may have meant."""

import difflib

# Names of other libraries that are written otherwise than ours.
_SPELLINGS = {
    "absolute": "abs",
    "array": "tensor",
    "bmm": "matmul",
    "cat": "concat",
    "clamp": "clip",
    "concatenate": "concat",
    "mm": "matmul",
    "power": "pow",
    "swapaxes": "transpose",
}


def did_you_mean(name, known):
    """ "; did you mean 'softmax'?" for 'sofmax', if a known name is close; else nothing."""
    known = set(known)
    meant = _SPELLINGS.get(name)
    if meant not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        meant = close[0] if close else None
    return f"; did you mean '{meant}'?" if meant else ""
