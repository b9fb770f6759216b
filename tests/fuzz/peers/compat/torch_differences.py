# SPDX-License-Identifier: Apache-2.0
"""Where tenon.compat.torch differs from PyTorch on purpose. docs/compat_namespaces.md lists the same."""

from .signature_calls import Difference

_COPY = "is a copy of argument 0, PyTorch gives a view"
_NO_GRADIENT = "requires_grad False, PyTorch gives True"
_GRADIENT = "requires_grad True, PyTorch gives False"

DIFFERENCES: tuple[Difference, ...] = (
    # Memory.
    Difference(
        "real|imag|conj|conj_physical|view_as_complex|resolve_conj",
        "parts of complex numbers, and complex numbers of pairs, are copies",
        detail=_COPY,
    ),
    Difference(
        "as_strided", "elements at regular distances are gathered, in row-major order", detail=_COPY
    ),
    Difference("masked.prod", "a product is a copy, also of one factor", detail=_COPY),
    # Gradients.
    Difference(
        "bernoulli|binomial|poisson|nn.functional.(feature_)?alpha_dropout",
        "drawn numbers have no gradient; PyTorch's is 0",
        form="recording",
        detail=_NO_GRADIENT,
    ),
    Difference(
        "fill|heaviside|histogram|histogramdd|matrix_power|linalg.matrix_power|native_layer_norm|norm|linalg.norm|linalg.vector_norm",
        "a result that does not change with its arguments, or by steps, has no gradient; PyTorch's is 0 or an error",
        form="recording",
        detail=_NO_GRADIENT,
    ),
    Difference(
        "detach_copy",
        "what is detached has no gradient, as the name says",
        form="recording",
        detail=_NO_GRADIENT,
    ),
    Difference(
        "linalg.qr|linalg.lstsq",
        "Q that is not computed, and residuals, have no gradient",
        form="recording",
        detail=_NO_GRADIENT,
    ),
    Difference(
        "linalg.lstsq",
        "singular values have a gradient that PyTorch lacks",
        form="recording",
        detail=_GRADIENT,
    ),
    Difference(
        r"special\..*",
        "special functions have gradients that PyTorch lacks",
        form="recording",
        detail=_GRADIENT,
    ),
    # Elements and numbers.
    Difference(
        "kthvalue|topk|mode",
        "which of equal elements is named is open in PyTorch",
        detail="values at",
    ),
    Difference(
        "topk", "elements are in order whatever `sorted` says; PyTorch leaves it open", "sorted"
    ),
    Difference(
        "nn.functional.(multi_head_attention_forward|scaled_dot_product_attention)",
        "dropout is drawn",
        detail="values at",
    ),
    Difference(
        "nn.functional.local_response_norm",
        "whole numbers are normalised in floats; PyTorch cuts the means of their squares",
        detail="values at|dtype",
    ),
    Difference(
        "nn.functional.ctc_loss",
        "a label that is the blank has no meaning",
        parameter="blank",
        detail="values at",
    ),
    Difference(
        "nn.functional.embedding_bag",
        "elements behind the last offset do not count; PyTorch divides by their number, too",
        parameter="include_last_offset",
        detail="values at",
    ),
    Difference(
        "nn.functional.triplet_margin_loss",
        "the margin is added to the difference of the distances, not to one of them, which loses its digits",
        detail="values at",
    ),
    Difference(
        "nn.functional.multi_margin_loss",
        "a vector is one sample, whose losses have no axis",
        detail="shape",
    ),
    Difference(
        "histogram",
        "an element on the edge of a bin counts to one or the other as the edge is rounded",
        detail="values at",
    ),
    Difference(
        "sinc|special.sinc",
        "the sinc of large whole numbers is 0; PyTorch gives a rounding error",
        detail="values at",
    ),
    Difference(
        "linalg.lstsq",
        "a cutoff of 1 or more leaves no singular value; LAPACK takes it for the rounding error",
        parameter="rcond",
        detail="values at",
    ),
    Difference(
        "linalg.pinv",
        "cutoffs are one number, or one for each matrix",
        detail="shape",
    ),
    Difference(
        "nn.functional.kl_div",
        "`size_average` means the mean; PyTorch divides it by the batch once more, if `reduction` is 'batchmean'",
        parameter="size_average",
        detail="values at",
    ),
    Difference(
        "signal.windows.blackman",
        "a window of two elements is 0, up to rounding",
        detail="e-(08|17)",
    ),
    Difference(
        "fft.ihfft(2|n)",
        "`out` holds the result; PyTorch leaves parts of it",
        "out",
        detail="after",
    ),
    Difference("linalg.lu_solve", "the result is `out`", parameter="out", detail="is a view"),
    Difference(
        "istft",
        "of spectra that no signal has, here is the nearest signal's",
        detail="values at",
    ),
    Difference(
        "(nn.functional.|special.)?(log_softmax|softmax|softmin)",
        "shares of whole numbers are floating; PyTorch's of nothing stay whole, and others it refuses",
        detail="dtype",
    ),
    Difference(
        "nn.functional.hinge_embedding_loss",
        "a target other than 1 and -1 has no meaning",
        detail="values at",
    ),
    Difference(
        "nn.functional.instance_norm",
        "a running mean without a running variance is not looked at",
        parameter="running_mean|running_var",
        form="nonsense",
    ),
    Difference(
        "masked.norm",
        "in norms of negative order, too, only what the mask names counts; PyTorch takes the rest for 0",
        parameter="ord",
        detail="values at",
    ),
    Difference(
        "masked.arg(max|min)",
        "which of elements that a dtype makes equal is named is open",
        parameter="dtype",
        detail="values at",
    ),
    Difference(
        "all|any",
        "`out` holds the result for the argument; PyTorch casts the argument to the dtype of `out` first",
        parameter="out",
        detail="values at",
    ),
    Difference(
        "gather",
        "an empty result has no gradient",
        form="recording",
        detail=_NO_GRADIENT,
    ),
    # Results.
    Difference(
        "split_copy|split_with_sizes_copy|unbind_copy",
        "a call with `out` gives `out`, here too; PyTorch gives None",
        parameter="out",
        detail="PyTorch gives None",
    ),
    Difference(
        "unique_consecutive",
        "flags by position mean what they mean by keyword; PyTorch gives empty tensors",
        form="other|position|recording",
        detail="shape",
    ),
    Difference(
        "masked.arg(max|min)",
        "indices are int64; PyTorch's of a 0-d tensor have its dtype",
        detail="dtype",
    ),
    Difference(
        "masked.logsumexp",
        "logarithms are floating; PyTorch cuts them to whole numbers",
        detail="dtype",
    ),
    Difference(
        "masked.(median|std|var|sum|prod)",
        "`dtype` is that of the computation and of the result; PyTorch's results keep another one",
        parameter="dtype",
        detail="dtype|values at",
    ),
)
