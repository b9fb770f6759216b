# SPDX-License-Identifier: Apache-2.0
"""The pass `fold_scales` for Tenon's programs. Importing the package makes it known:

import tenon_acme
program = tenon.export(model, (x,)).optimize(["fold_scales"])
"""

import pathlib

import tenon

_LIBRARY = "libtenon_acme.so"
_HERE = pathlib.Path(__file__).parent

# Beside this file in an installed package, in the build folder of a checkout.
for _folder in (_HERE, _HERE.parent / "build"):
    if (_folder / _LIBRARY).exists():
        tenon.plugins.load(_folder / _LIBRARY)
        break
else:
    raise ImportError(f"{_LIBRARY} is not there; build it (README.md) or install the package")
