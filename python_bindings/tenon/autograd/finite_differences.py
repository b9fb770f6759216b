# SPDX-License-Identifier: Apache-2.0
"""Gradients compared with finite differences."""

from __future__ import annotations

from tenon import _core
from tenon.autograd.grad_mode import no_grad
from tenon.autograd.gradients import as_tuple, grad

Tensor = _core.Tensor


def gradcheck(function, inputs, *, step=1e-4, rtol=1e-3, atol=1e-5):
    """Compare the gradients of `function(*inputs)` with central differences; True, or an error.

    The inputs that require grad should be float64 or complex128. Results of any shape are reduced with fixed
    weights, so that every element counts, and both parts of a complex one. The gradient of a complex
    element is the derivative by its real part and i times that by its imaginary part.
    """
    inputs, as_real = as_tuple(inputs), _core.operator("as_real")

    def total(*args):
        with_weights = []
        for result in as_tuple(function(*args)):
            result = as_real(result) if result.dtype.is_complex else result
            if result.dtype.is_floating_point:
                weights = [0.3 + 0.7 * ((7 * i) % 11) / 11 for i in range(result.numel())]
                weights = _core.tensor(weights, dtype=result.dtype, device=result.device)
                with_weights.append((result.reshape(-1) * weights).sum())
        return sum(with_weights[1:], with_weights[0])

    checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck: expected an input that requires grad")
    analytic = grad(total(*inputs), [inputs[i] for i in checked], allow_unused=True)
    with no_grad():
        for i, gradient in zip(checked, analytic, strict=True):
            start = inputs[i].detach().cpu()
            gradient = [0.0] * start.numel() if gradient is None else gradient.reshape(-1).tolist()
            for k in range(start.numel()):
                numeric = 0.0
                for direction in (1, 1j) if start.dtype.is_complex else (1,):
                    values = []
                    for sign in (1, -1):
                        moved = start.clone().reshape(-1)
                        moved[k] += sign * step * direction
                        args = list(inputs)
                        args[i] = moved.reshape(start.shape).to(inputs[i].device)
                        values.append(total(*args).item())
                    numeric += direction * (values[0] - values[1]) / (2 * step)
                if not abs(numeric - gradient[k]) <= atol + rtol * abs(numeric):
                    raise AssertionError(
                        f"gradcheck: input {i}, element {k}: expected {numeric:.8g} by finite differences, "
                        f"got {gradient[k]:.8g}"
                    )
    return True
