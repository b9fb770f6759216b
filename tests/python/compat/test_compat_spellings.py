# SPDX-License-Identifier: Apache-2.0
"""Each name of another library in `opdefs` is a name of that library."""

import importlib

import pytest
from tenon._spellings import FUNCTIONS, SPELLINGS

# What is not in the versions of today, and why it stands there all the same.
KNOWN = {
    "numpy": {"complex_", "float_", "array_api"},  # of NumPy 1
    # Our name of a dtype; a name of the array API; a module whose import needs more than its package.
    "torch": {"float8_e4m3", "matrix_transpose", "nn.attention.varlen.varlen_attn"},
    "paddle": set(),
}


def missing(library, names):
    module = importlib.import_module(library)

    def has(name):
        place = module
        for part in name.split("."):
            if not hasattr(place, part):
                return False
            place = getattr(place, part)
        return True

    # torchvision is another library.
    return {each for each in names if not each.startswith("torchvision.") and not has(each)}


@pytest.mark.parametrize("library", sorted(KNOWN))
@pytest.mark.filterwarnings("ignore")
def test_every_name_is_one_of_the_library(library):
    pytest.importorskip("paddle.nn" if library == "paddle" else library)
    names = {*SPELLINGS[library], *FUNCTIONS[library]}
    assert missing(library, names) <= KNOWN[library]


def test_a_planted_name_is_noticed():
    assert missing("numpy", ["sum", "summ", "linalg.norm", "linalg.nrom"]) == {
        "summ",
        "linalg.nrom",
    }
