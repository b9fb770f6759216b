# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX as programs, by their jaxprs.

    step = tenon.jax.jit(train_step)                  # jax.grad, vmap, scan and random numbers inside
    program = tenon.jax.load(jax.make_jaxpr(f)(x))

JAX traces and Tenon runs. JAX is imported by what needs it, and never by `import tenon`. docs/jax.md says what works.
"""

from __future__ import annotations

from tenon.jax._load import jit, load

__all__ = ["jit", "load"]
