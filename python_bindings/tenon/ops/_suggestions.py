# SPDX-License-Identifier: Apache-2.0
"""What an unknown name may have meant."""

import difflib

from tenon._spellings import FUNCTIONS, SPELLINGS


def _meanings(name):
    """What libraries call so, by our names; those first that `tenon` itself has."""
    for table in (SPELLINGS, FUNCTIONS):
        for library in ("tenon", *table):
            names = table.get(library, {})
            for theirs in (name, f"nn.functional.{name}", f"special.{name}", f"linalg.{name}"):
                if theirs in names:
                    yield names[theirs]


def did_you_mean(name, known):
    """ "; did you mean 'softmax'?" for 'sofmax', if a known name is close; else nothing."""
    known = set(known)
    meant = next((each for each in _meanings(name) if each in known), None)
    if meant is None:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        meant = close[0] if close else None
    return f"; did you mean '{meant}'?" if meant else ""
