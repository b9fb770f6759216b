# SPDX-License-Identifier: Apache-2.0
"""Operators of namespace `acme` for Tenon: `tenon_acme.swiglu` is `tenon.ops.acme.swiglu`."""

import tenon


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'tenon_acme' has no attribute '{name}'")
    return getattr(tenon.ops.acme, name)


def __dir__():
    return dir(tenon.ops.acme)
