# SPDX-License-Identifier: Apache-2.0
"""Tenon: deep learning on any device.

Importing costs next to nothing: plugins are loaded when the first tensor is made or the first
operator is looked up, and submodules when they are first named. A plugin that fails to load never
makes the import fail; `tenon.plugins.doctor()` shows what happened.
"""

import importlib as _importlib
import sys as _sys

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
    current_stream,
    device,
    device_properties,
    dtype,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_default_dtype,
    get_device,
    get_num_threads,
    is_grad_enabled,
    manual_seed,
    set_default_dtype,
    set_device,
    set_num_threads,
    synchronize,
    tensor,
    use_deterministic_algorithms,
)

globals().update((row[0].name, row[0]) for row in _core._dtype_table())  # tenon.float32 and so on

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

_SUBMODULES = frozenset(
    """amp array_api audio autograd collective compat data distributed distributions fft func
    geometric inference io jax jit linalg llm metrics multiprocessing nn onnx ops optim paddle plugins profiler
    quantization random runtime signal sparse testing text torch training utils vision""".split()
)

# Other names of modules.
_ALIASES = {
    "graph": "jit.rewrites",
    "ipc": "runtime.ipc",
    "memory": "runtime.memory",
    "optim.clip": "nn.utils.clip_grad",
    "safetensors": "io.safetensors",
    "training.formulas": "ops._flop_formulas",
    "utils.foreign_weights": "nn.utils.foreign_weights",
    # Pickles of earlier versions have these names.
    "_array_api": "_tensor.array_api",
    "_counting": "_tensor.counting",
    "_everyday": "_tensor.everyday",
    "_joining": "_tensor.joining",
    "_pickling": "_tensor.pickling",
    "_sizes": "jit.dynamic_shapes",
    "_tensor_array": "_tensor.tensor_array",
}

# Where names lie, by the module that is imported when one of them is used.
_PLACES = {
    "_tensor.array_api": """astype broadcast_arrays broadcast_shapes broadcast_to can_cast
        cumulative_prod cumulative_sum expand_dims finfo iinfo isdtype isin matrix_transpose moveaxis
        permute_dims result_type take unique_all unique_counts unique_inverse unique_values unstack
        __array_namespace_info__""",
    "_tensor.axis_forms": "tensordot transpose",
    "_tensor.counting": """bincount histogram histogram_bin_edges histogramdd unique
        unique_consecutive""",
    "_tensor.everyday": """argwhere array_equal chunk hstack is_complex is_floating_point is_integer
        is_tensor numel promote_types rand randn ravel shape vstack""",
    "_tensor.joining": """atleast_1d atleast_2d atleast_3d block_diag cartesian_prod column_stack
        combinations dsplit dstack fliplr flipud hsplit row_stack tensor_split unravel_index vsplit""",
    "_tensor.printing": "get_printoptions printoptions set_printoptions",
    "_tensor.tensor_array": "TensorArray",
    "autograd": "Function enable_grad grad inference_mode no_grad set_grad_enabled",
    "host.autotune": "autotune",
    "host.fallback": "fallback fallback_report",
    "host.validation": "validation",
    "io": "load save",
    "jit": "Dim export",
    "jit.compiled": "compile",
    "ops._definition": "kernel op",
    "plugins": "explain load_plugin sdk_path",
    "random": "Generator",
    "runtime.devices": "devices",
    "sparse": "ragged",
    "training": "Model flops summary",
}
_LAZY = {name: (place, name) for place, names in _PLACES.items() for name in names.split()}
_LAZY["Graph"] = ("runtime.work_graph", "WorkGraph")
_LAZY["profile"] = ("profiler.device_profile", "device_profile")


def _other_names():
    """Other names of operators and functions, with ours: each is the same object."""
    from tenon._spellings import FUNCTIONS, SPELLINGS  # a large table that few programs need

    return SPELLINGS["tenon"] | FUNCTIONS["tenon"]


def __getattr__(name):
    if name in _SUBMODULES or name in _ALIASES:
        return _importlib.import_module(f"tenon.{name}")
    if name in _LAZY:
        place, attribute = _LAZY[name]
        value = getattr(_importlib.import_module(f"tenon.{place}"), attribute)
    elif name in ("Tensor", "Operator"):
        _core.load()  # operators are methods from here on
        value = getattr(_core, name)
    elif name.startswith("__"):
        raise AttributeError(f"module 'tenon' has no attribute '{name}'")
    else:
        try:
            value = _core.operator(name)
        except AttributeError:
            if (meant := _other_names().get(name)) is None:
                from tenon.ops._suggestions import did_you_mean  # for errors only

                hint = did_you_mean(name, __dir__())
                raise AttributeError(f"module 'tenon' has no attribute '{name}'{hint}") from None
            value = getattr(_importlib.import_module("tenon"), meant)
    globals()[name] = value
    return value


def __dir__():
    aliases = (name for name in _ALIASES if name[0] != "_" and "." not in name)
    operators = (name[7:] for name in _core.operator_names() if name.startswith("tenon::"))
    return sorted(
        {*globals(), *_SUBMODULES, *aliases, *_LAZY, *_other_names(), "Tensor", *operators}
    )


class _AliasFinder:
    """Imports `tenon.graph` as the module tenon.jit.rewrites itself, and so on. The last finder: it costs imports nothing."""

    def find_spec(self, name, path=None, target=None):
        return type(__spec__)(name, self) if name.removeprefix("tenon.") in _ALIASES else None

    def create_module(self, spec):
        module = _importlib.import_module(f"tenon.{_ALIASES[spec.name.removeprefix('tenon.')]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state  # the import has put the alias's there


_sys.meta_path.append(_AliasFinder())
