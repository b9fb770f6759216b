# SPDX-License-Identifier: Apache-2.0
"""Tenon: deep learning on any device.

Importing costs next to nothing: plugins are loaded when the first tensor is made or the first
operator is looked up, and submodules when they are first named. A plugin that fails to load never
makes the import fail; `tenon.plugins.doctor()` shows what happened.
"""

import importlib as _importlib

from tenon import _core
from tenon._core import (
    DeviceError,
    Event,
    InternalError,
    NotFoundError,
    OutOfMemoryError,
    PolicyError,
    Stream,
    __version__,
    asarray,
    bfloat16,
    bool,
    complex64,
    complex128,
    current_stream,
    device,
    device_properties,
    devices,
    dtype,
    float4_e2m1_x2,
    float8_e4m3,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_default_dtype,
    get_num_threads,
    int4_x2,
    int8,
    int16,
    int32,
    int64,
    is_grad_enabled,
    manual_seed,
    set_default_dtype,
    set_num_threads,
    synchronize,
    tensor,
    uint4_x2,
    uint8,
    uint16,
    uint32,
    uint64,
    use_deterministic_algorithms,
)

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

_SUBMODULES = frozenset(
    """amp array_api audio autograd collective compat data distributions fft func geometric
    graph inference io ipc jit linalg memory metrics multiprocessing nn ops optim plugins profiler random
    safetensors signal testing text training utils vision""".split()
)

# Names that live in submodules, imported when they are used.
_LAZY = {
    "Dim": "_sizes",
    "Function": "autograd",
    "Generator": "random",
    "Graph": "_graph",
    "Model": "training",
    "autotune": "_autotune",
    "compile": "_compile",
    "enable_grad": "autograd",
    "inference_mode": "autograd",
    "fallback": "_fallback",
    "fallback_report": "_fallback",
    "explain": "plugins",
    "export": "jit",
    "flops": "training",
    "grad": "autograd",
    "kernel": "_operator_definition",
    "load": "io",
    "load_plugin": "plugins",
    "no_grad": "autograd",
    "op": "_operator_definition",
    "profile": "_profile",
    "save": "io",
    "sdk_path": "plugins",
    "set_grad_enabled": "autograd",
    "summary": "training",
    "validation": "_validation",
}


_LAZY.update(
    dict.fromkeys(
        "astype broadcast_arrays broadcast_shapes broadcast_to can_cast cumulative_prod cumulative_sum expand_dims "
        "finfo iinfo isdtype isin matrix_transpose moveaxis permute_dims result_type take unique_all unique_counts "
        "unique_inverse unique_values unstack __array_namespace_info__".split(),
        "_array_api",
    )
)
_LAZY.update(
    dict.fromkeys(
        "argwhere array_equal chunk hstack is_complex is_floating_point is_integer is_tensor numel promote_types rand "
        "randn ravel shape vstack".split(),
        "_everyday",
    )
)
_LAZY["TensorArray"] = "_tensor_array"
_LAZY.update(dict.fromkeys("get_printoptions printoptions set_printoptions".split(), "_printing"))
_LAZY.update(
    dict.fromkeys(
        "bincount histogram histogram_bin_edges histogramdd unique unique_consecutive".split(),
        "_counting",
    )
)
_LAZY.update(
    dict.fromkeys(
        "atleast_1d atleast_2d atleast_3d block_diag cartesian_prod column_stack combinations dsplit dstack fliplr flipud "
        "hsplit row_stack tensor_split unravel_index vsplit".split(),
        "_joining",
    )
)

# Spellings of NumPy and PyTorch. Each is the same object as Tenon's own name.
_SPELLINGS = {
    "absolute": "abs",
    "array": "tensor",
    "bmm": "matmul",
    "as_tensor": "asarray",
    "cat": "concat",
    "clamp": "clip",
    "concatenate": "concat",
    "mm": "matmul",
    "div": "divide",
    "eq": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "mul": "multiply",
    "mv": "matmul",
    "ne": "not_equal",
    "neg": "negative",
    "power": "pow",
    "sub": "subtract",
    "true_divide": "divide",
    "swapaxes": "transpose",
}


def __getattr__(name):
    if name in _SUBMODULES:
        return _importlib.import_module(f"tenon.{name}")
    if name in _LAZY:
        value = getattr(_importlib.import_module(f"tenon.{_LAZY[name]}"), name)
    elif name in ("Tensor", "Operator"):
        _core.load()  # operators are methods from here on
        value = getattr(_core, name)
    elif name in _SPELLINGS:
        value = getattr(_importlib.import_module("tenon"), _SPELLINGS[name])
    elif name.startswith("__"):
        raise AttributeError(f"module 'tenon' has no attribute '{name}'")
    else:
        try:
            value = _core.operator(name)
        except AttributeError:
            from tenon._suggestions import did_you_mean

            hint = did_you_mean(name, __dir__())
            raise AttributeError(f"module 'tenon' has no attribute '{name}'{hint}") from None
    globals()[name] = value
    return value


def __dir__():
    operators = (name[7:] for name in _core.operator_names() if name.startswith("tenon::"))
    return sorted({*globals(), *_SUBMODULES, *_LAZY, *_SPELLINGS, "Tensor", *operators})
