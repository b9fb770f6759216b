# SPDX-License-Identifier: Apache-2.0
"""PyTorch's signatures of functions.

Those of operators, and of functions that are Tenon's own, are in `opdefs`, from which tenon._spellings is generated.
Functions that are written out for PyTorch are called by their own parameters and the options of _MORE, or have a line
here where that is not enough. What a parameter is called in Tenon follows from its name, from the keywords of `opdefs`,
and from its position.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from tenon._spellings import KEYWORDS, SIGNATURES
from tenon.compat._calls import by_signature
from tenon.compat._signature import parse
from tenon.compat.torch._options import FACTORY_OPTIONS, OPTIONS

_WRITTEN_OUT = """
(input): nn.functional.logsigmoid
(n, input, *, out=None): special.polygamma
(A, pivot=True, get_infos=False, out=None): lu
(input, split_sizes, dim=0): split_with_sizes
(input, split_sizes, dim=0, *, out=None): split_with_sizes_copy
(input, split_size, dim=0, *, out=None): split_copy
(input, p="fro", dim=None, keepdim=False, out=None, dtype=None): norm
(a, b, dims=2, out=None): tensordot
(input, p=2.0, dim=1, eps=1e-12, out=None): nn.functional.normalize
(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False): tensor
(A, *, driver=None, out=None): linalg.svdvals
(input, inplace=False): nn.functional.relu6 nn.functional.silu
(input, min_val=-1.0, max_val=1.0, inplace=False): nn.functional.hardtanh
(input, threshold, value, inplace=False): nn.functional.threshold
(input, groups): channel_shuffle
(input, target, size_average=None, reduce=None, reduction="mean", weight=None): nn.functional.l1_loss
    nn.functional.mse_loss
(input, target, reduction="mean", delta=1.0, weight=None): nn.functional.huber_loss
"""

# Functions that are written out for PyTorch, and take more than their own parameters.
_MORE = {
    "out": """add addbmm addmm addmv addr alias_copy all amax amin aminmax any conj_physical cumprod diag log_softmax
    nan_to_num nanmean sgn sign slice_scatter softmax any arange argmax argmin argsort as_strided_copy
    baddbmm bmm bucketize cat chain_matmul clamp clip column_stack cross cumsum detach_copy diagonal_copy diff div
    divide dot dstack empty eq expand_copy eye frobenius_norm full gather hardshrink histc histogram i0 igamma igammac index_add
    index_copy index_reduce index_select ldexp lerp linspace logaddexp logit logspace logsumexp lu_solve lu_unpack
    max mean median min mm mv mvlgamma nanmedian nanquantile nansum narrow_copy nonzero nonzero_static normal nuclear_norm ones
    ormqr permute_copy prod quantile rand randint randn range round row_stack scatter scatter_add scatter_reduce
    searchsorted select_copy sigmoid signbit sort squeeze_copy std sub subtract sum svd t_copy take take_along_dim
    topk transpose_copy triangular_solve unbind_copy unfold_copy unsqueeze_copy var vdot view_copy where zeros
    bernoulli nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.gelu nn.functional.hardshrink
    nn.functional.softplus nn.functional.softshrink""",
    "layout": """arange empty empty_permuted empty_strided eye full full_like kaiser_window linspace logspace normal
    ones rand rand_like randint randint_like randn randn_like range scalar_tensor tril_indices triu_indices zeros
    bartlett_window blackman_window hamming_window hann_window fft.fftfreq fft.rfftfreq""",
    "pin_memory": """arange empty empty_permuted empty_strided eye full full_like kaiser_window linspace logspace normal
    ones rand rand_like randint randint_like randn randn_like range scalar_tensor tril_indices triu_indices zeros
    bartlett_window blackman_window hamming_window hann_window fft.fftfreq fft.rfftfreq""",
    "requires_grad": """arange empty empty_permuted empty_strided eye full full_like kaiser_window linspace logspace
    normal ones rand rand_like randint randint_like randn randn_like range scalar_tensor tril_indices triu_indices zeros
    bartlett_window blackman_window hamming_window hann_window fft.fftfreq fft.rfftfreq""",
    "memory_format": "empty full_like rand_like randint_like randn_like",
    "generator": "rand_like randint_like randn_like",
}
_PREFIXES_WITH_OUT = ("linalg.", "special.", "fft.")
_WITHOUT_OUT = set(
    """linalg.diagonal linalg.matrix_exp linalg.matrix_sqrth linalg.vander fft.fftshift fft.ifftshift special.softmax
    special.log_softmax""".split()
)
_DEFAULTS: dict[str, Any] = {"pin_memory": False, "requires_grad": False}

# Other keywords for a parameter: NumPy's words, which PyTorch takes, and those of its documentation.
SYNONYMS = {
    "x": ("input",),
    "a": ("input",),
    "x1": ("input",),
    "x2": ("other",),
    "axis": ("dim",),
    "keepdims": ("keepdim",),
    "self": ("input",),
    "input": ("A", "x", "tensor"),
    "A": ("input",),
    "b": ("B", "input"),
    "B": ("input",),
    "L": ("input2", "input"),
    "tau": ("input2",),
    "other": ("input3", "B"),
    "tensor": ("input",),
    "indices": ("indices_or_sections",),
    "sections": ("indices_or_sections",),
    "tensor_indices_or_sections": ("indices_or_sections",),
}


def _lines(text: str) -> dict[str, str]:
    result = {}
    for line in text.replace("\n    ", " ").strip().splitlines():
        parameters, _, names = line.rpartition(":")
        result.update(dict.fromkeys(names.split(), parameters.strip()))
    return result


_TEXTS = {**SIGNATURES["torch"], **_lines(_WRITTEN_OUT)}
_OPTIONS_OF = {option: set(names.split()) for option, names in _MORE.items()}


def of(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """PyTorch's signature of the function with this dotted name."""
    if name in _TEXTS:
        return parse(_TEXTS[name])
    own = inspect.signature(function)
    more = [option for option, names in _OPTIONS_OF.items() if name in names]
    if name.startswith(_PREFIXES_WITH_OUT) and name not in _WITHOUT_OUT:
        more.append("out")
    if name.startswith("signal.windows."):
        more.append("layout")
    added = [
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(each))
        for each in more
        if each not in own.parameters
    ]
    named = list(own.parameters.values())
    if named and named[-1].kind is inspect.Parameter.VAR_KEYWORD:
        named[-1:] = [*added, named[-1]]
    else:
        named += added
    return own.replace(parameters=named)


def adapted(name: str, function: Any) -> Any:
    """The function of Tenon's with this dotted name of PyTorch's, called by PyTorch's signature. What is no function
    stays what it is."""
    if not callable(function) or isinstance(function, type) or hasattr(function, "__signature__"):
        return function
    try:
        theirs = of(name, function)
    except ValueError:  # a function of C without a signature
        return function
    options = OPTIONS | FACTORY_OPTIONS if "layout" in theirs.parameters else OPTIONS
    return by_signature(name, function, theirs, words=KEYWORDS, synonyms=SYNONYMS, options=options)


def adapt_all(space: str, names: Iterable[str], module: dict[str, Any]) -> None:
    """adapted() for the functions of a module by these names, in place."""
    for each in names:
        module[each] = adapted(f"{space}.{each}", module[each])
