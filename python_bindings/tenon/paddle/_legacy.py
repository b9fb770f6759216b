# SPDX-License-Identifier: Apache-2.0
"""Operators of Paddle 2's files as those of Paddle 3: other names, of operators, arguments and attributes.

A line is `old new slots and attributes > results`. `A=b` is the argument or attribute b of ours (a later one that is there counts),
`a==1` has to be 1 and says nothing then, `!a` says nothing, and a result with a `*` is a list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tenon.paddle._blocks import Block, Key, Operator
from tenon.paddle._lines import PARAMETERS

if TYPE_CHECKING:
    from tenon.paddle._program_desc import Call

DTYPES: Final = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    20: "uint8",
    21: "int8",
    22: "bfloat16",
    23: "complex64",
    24: "complex128",
}
_PLAIN = (
    "abs acos acosh asin asinh atan atanh ceil celu cos cosh digamma elu erf erfinv exp expm1 floor gelu lgamma log log10 log1p "
    "log2 logit logsigmoid reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh softplus softsign sqrt square stanh "
    "tan tanh tanh_shrink thresholded_relu trunc bitwise_not logical_not log_softmax pixel_shuffle pixel_unshuffle "
    "channel_shuffle flip assign share_data squared_l2_norm cumprod shuffle_channel"
).split()
_PAIRS = (
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor bmm dot mv equal not_equal less_than less_equal "
    "greater_than greater_equal"
).split()
_TEXT: Final = """
elementwise_add add X=x Y=y axis=@axis > Out
elementwise_sub subtract X=x Y=y axis=@axis > Out
elementwise_mul multiply X=x Y=y axis=@axis > Out
elementwise_div divide X=x Y=y axis=@axis > Out
elementwise_floordiv floor_divide X=x Y=y axis=@axis > Out
elementwise_mod remainder X=x Y=y axis=@axis > Out
elementwise_pow elementwise_pow X=x Y=y axis=@axis > Out
elementwise_max maximum X=x Y=y axis=@axis > Out
elementwise_min minimum X=x Y=y axis=@axis > Out
elementwise_fmax fmax X=x Y=y axis=@axis > Out
elementwise_fmin fmin X=x Y=y axis=@axis > Out
atan2 atan2 X1=x X2=y > Out
sum add_n X=inputs > Out
scale scale X=x ScaleTensor=scale > Out
clip clip X=x Min=min Max=max > Out
pow pow X=x factor=y FactorTensor=y > Out
increment increment X=x step=value > Out
isnan_v2 isnan X=x > Out
isinf_v2 isinf X=x > Out
isfinite_v2 isfinite X=x > Out
hard_shrink hardshrink X=x > Out
hard_sigmoid hardsigmoid X=x > Out
hard_swish hardswish X=x threshold==6 scale==6 offset==3 > Out
brelu hardtanh X=x > Out
leaky_relu leaky_relu X=x alpha=negative_slope > Out
softshrink softshrink X=x lambda=threshold > Out
swish swish X=x beta==1 > Out
mish mish X=x threshold=lambda > Out
prelu prelu X=x Alpha=alpha > Out
where where Condition=condition X=x Y=y > Out
cast cast X=x !in_dtype out_dtype=dtype > Out
fill_constant full shape=shape ShapeTensor=shape ShapeTensorList=shape value=value str_value=@text ValueTensor=value !force_cpu !place_type > Out
fill_any_like full_like X=x > Out
fill_constant_batch_size_like full_batch_size_like Input=input str_value=@text !force_cpu > Out
assign_value assign_value fp32_values=values int32_values=values int64_values=values bool_values=values fp64_values=values > Out
range arange Start=start End=end Step=step > Out
linspace linspace Start=start Stop=stop Num=number > Out
eye eye > Out
one_hot_v2 one_hot X=x depth=num_classes depth_tensor=num_classes allow_out_of_range==False dtype==5 > Out
size numel Input=x > Out
shape shape Input=input > Out
expand_v2 expand X=x Shape=shape expand_shapes_tensor=shape > Out
expand_as_v2 expand_as X=x Y=y > Out
flatten_contiguous_range flatten X=x > Out XShape
repeat_interleave repeat_interleave X=x Repeats=repeats dim=axis > Out
reshape2 reshape X=x shape=shape Shape=shape ShapeTensor=shape > Out XShape
reshape reshape X=x shape=shape Shape=shape ShapeTensor=shape > Out
roll roll X=x ShiftsTensor=shifts > Out
squeeze2 squeeze X=x axes=axis > Out XShape
unsqueeze2 unsqueeze X=x axes=axis AxesTensor=axis AxesTensorList=axis > Out XShape
tile tile X=x RepeatTimes=repeat_times repeat_times_tensor=repeat_times > Out
transpose2 transpose X=x axis=perm > Out XShape
transpose transpose X=x axis=perm > Out
concat concat X=x AxisTensor=axis > Out
meshgrid meshgrid X=inputs > Out*
broadcast_tensors broadcast_tensors X=input > Out*
pad pad X=x > Out
pad3d pad3d X=x Paddings=paddings value=pad_value > Out
set_value set_value Input=x ValueTensor=@values StartsTensorList=starts EndsTensorList=ends StepsTensorList=steps !dtype fp32_values=values int32_values=values int64_values=values bool_values=values fp64_values=values > Out
slice slice Input=input StartsTensor=starts StartsTensorList=starts EndsTensor=ends EndsTensorList=ends > Out
split split X=x AxisTensor=axis SectionsTensorList=sections > Out*
stack stack X=x > Y
strided_slice strided_slice Input=x StartsTensor=starts StartsTensorList=starts EndsTensor=ends EndsTensorList=ends StridesTensor=strides StridesTensorList=strides decrease_axis==[] !infer_flags > Out
unbind unbind X=input > Out*
unstack unstack X=x > Y*
diagonal diagonal Input=x > Out
addmm addmm Input=input X=x Y=y Alpha=alpha Beta=beta > Out
bilinear_tensor_product bilinear X=x Y=y Weight=weight Bias=bias > Out
einsum einsum Operands=x > Out
matmul_v2 matmul X=x Y=y trans_x=transpose_x trans_y=transpose_y > Out
matmul matmul X=x Y=y transpose_X=transpose_x transpose_Y=transpose_y alpha==1 > Out
mul mul X=x Y=y > Out
conv2d conv2d Input=input Filter=filter fuse_relu==False > Output
depthwise_conv2d depthwise_conv2d Input=input Filter=filter fuse_relu==False > Output
conv3d conv3d Input=input Filter=filter > Output
conv2d_transpose conv2d_transpose Input=x Filter=filter > Output
depthwise_conv2d_transpose depthwise_conv2d_transpose Input=x Filter=filter > Output
deformable_conv deformable_conv Input=x Offset=offset Filter=filter Mask=mask > Output
pool2d pool2d X=x ksize=kernel_size > Out
pool3d pool3d X=x ksize=kernel_size > Out
max_pool2d_with_index max_pool2d_with_index X=x ksize=kernel_size > Out Mask
unfold unfold X=x > Y
affine_grid affine_grid Theta=input output_shape=output_shape OutputShape=output_shape > Output
bicubic_interp_v2 bicubic_interp X=x OutSize=out_size SizeTensor=size_tensor Scale=scale_tensor data_layout=data_format > Out
bilinear_interp_v2 bilinear_interp X=x OutSize=out_size SizeTensor=size_tensor Scale=scale_tensor data_layout=data_format > Out
linear_interp_v2 linear_interp X=x OutSize=out_size SizeTensor=size_tensor Scale=scale_tensor data_layout=data_format > Out
nearest_interp_v2 nearest_interp X=x OutSize=out_size SizeTensor=size_tensor Scale=scale_tensor data_layout=data_format > Out
grid_sampler grid_sample X=x Grid=grid > Output
batch_norm batch_norm X=x Mean=mean Variance=variance Scale=scale Bias=bias data_layout=data_format fuse_with_relu==False > Y
sync_batch_norm batch_norm X=x Mean=mean Variance=variance Scale=scale Bias=bias data_layout=data_format > Y
group_norm group_norm X=x Scale=scale Bias=bias data_layout=data_format > Y
instance_norm instance_norm X=x Scale=scale Bias=bias > Y
layer_norm layer_norm X=x Scale=scale Bias=bias > Y
dropout dropout X=x Seed=seed_tensor dropout_prob=p dropout_implementation=mode > Out
softmax softmax X=x > Out
fused_softmax_mask_upper_triangle fused_softmax_mask_upper_triangle X=X > Out
rnn rnn Input=x PreState=pre_state WeightList=weight_list SequenceLength=sequence_length dropout_state_in=dropout_state_in > Out DropoutState State*
lookup_table_v2 embedding Ids=x W=weight is_sparse=sparse !is_distributed !remote_prefetch > Out
roi_align roi_align X=x ROIs=boxes RoisNum=boxes_num > Out
yolo_box yolo_box X=x ImgSize=img_size > Boxes Scores
multiclass_nms3 multiclass_nms3 BBoxes=bboxes Scores=scores RoisNum=rois_num > Out Index NmsRoisNum
matrix_nms matrix_nms BBoxes=bboxes Scores=scores > Out Index RoisNum
reduce_all all X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_any any X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_amax amax X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_amin amin X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_max max X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_min min X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_mean mean X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_prod prod X=x dim=axis keep_dim=keepdim !out_dtype > Out
reduce_sum sum X=x dim=axis keep_dim=keepdim out_dtype=dtype > Out
frobenius_norm frobenius_norm X=x dim=axis !out_dtype > Out
logsumexp logsumexp X=x > Out
mean mean_all X=x > Out
p_norm p_norm X=x > Out
arg_max argmax X=x > Out
arg_min argmin X=x > Out
argsort argsort X=x > Out Indices
cumsum cumsum X=x > Out
top_k_v2 topk X=x K=k > Out Indices
gather gather X=x Index=index Axis=axis > Out
gather_nd gather_nd X=x Index=index > Out
index_sample index_sample X=x Index=index > Out
index_select index_select X=x Index=index dim=axis > Out
masked_select masked_select X=x Mask=mask > Y
where_index nonzero Condition=condition > Out
unique unique X=x > Out Indices Index Counts
scatter scatter X=x Ids=index Updates=updates > Out
scatter_nd_add scatter_nd_add X=x Index=index Updates=updates > Out
take_along_axis take_along_axis Input=arr Index=indices Axis=axis > Result
put_along_axis put_along_axis Input=arr Index=indices Value=values Axis=axis Reduce=reduce Include_self=include_self > Result
expand_as expand_as X=x target_tensor=y > Out
select_input select_input X=X Mask=Mask > Out
"""
# Attributes of how an operator runs, which say nothing of its values.
_NOTES: Final = frozenset(
    "op_callstack op_role op_role_var op_namescope op_device with_quant_attr use_mkldnn use_cudnn use_quantizer mkldnn_data_type "
    "mkldnn_output_data_type is_ref_by_trt force_cpu workspace_size_MB exhaustive_search force_fp32_output use_addto in_dtype "
    "fuse_residual_connection fuse_relu_before_depthwise_conv data_format_ is_scalar_condition is_test_ print_phase "
    "Scale_in Scale_out Scale_in_eltwise Scale_weights use_fp16".split()
)


class Name(str):
    """The name of a variable, in the place of an attribute."""

    __slots__ = ()


@dataclass
class _Line:
    kind: str
    names: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, str] = field(default_factory=dict)  # attributes that have to have this value
    dropped: set[str] = field(default_factory=set)
    results: list[tuple[str, bool]] = field(default_factory=list)  # slot, and whether it is a list


def _line(text: str) -> tuple[str, _Line]:
    left, _, right = text.partition(" > ")
    old, kind, *parts = left.split()
    line = _Line(kind)
    for part in parts:
        if part.startswith("!"):
            line.dropped.add(part[1:])
        elif "==" in part:
            name, _, value = part.partition("==")
            line.fixed[name] = value
        else:
            name, _, ours = part.partition("=")
            line.names[name] = ours
    line.results = [(slot.rstrip("*"), slot.endswith("*")) for slot in right.split()]
    return old, line


_LINES: Final = dict(_line(text) for text in _TEXT.strip().splitlines())
for _name in _PLAIN:
    first = next((each.name for each in PARAMETERS.get(_name, ())), "x")
    _LINES.setdefault(_name, _line(f"{_name} {_name} X={first} > Out")[1])
for _name in _PAIRS:
    second = "vec" if _name == "mv" else "y"
    _LINES.setdefault(_name, _line(f"{_name} {_name} X=x Y={second} Vec=vec axis==-1 > Out")[1])


def operator(call: Call, body: Block | None) -> Operator:
    """What a call of a file is by Paddle 3's names. One that no line has keeps its name, and cannot be told."""
    if call.kind in ("while", "conditional_block") and body is not None:
        return _control(call, body)
    line = _LINES.get(call.kind)
    if line is None or body is not None:
        slots: dict[str, Any] = {slot: list(names) for slot, names in call.inputs.items()}
        results: list[Any] = [name for names in call.outputs.values() for name in names]
        return Operator(call.kind, call.kind, slots, {}, results, [])
    attributes, arguments = _attributes(call, line), _arguments(call, line)
    kind = _special(call, line, attributes, arguments)
    keys: list[Any] = []
    for slot, is_list in line.results:
        names = call.outputs.get(slot, [])
        keys.append(list(names) if is_list else next(iter(names), None))
    return Operator(kind, call.kind, arguments, attributes, keys, [])


def _arguments(call: Call, line: _Line) -> dict[str, Key | list[Key] | None]:
    """By our names; of several slots for one argument the last one of the line counts."""
    types = {each.name: each.type for each in PARAMETERS.get(line.kind, ())}
    arguments: dict[str, Key | list[Key] | None] = {}
    order = {slot: place for place, slot in enumerate(line.names)}
    for slot in sorted(call.inputs, key=lambda each: order.get(each, -1)):
        names = call.inputs[slot]
        if not names:
            continue
        ours = line.names.get(slot, slot)
        is_list = types.get(ours, "").startswith("Tensor[]") or slot.endswith("List")
        is_list = is_list or len(names) > 1 or line.kind == "select_input" and ours == "X"
        arguments[ours] = list(names) if is_list else names[0]
    for name, value in call.attributes.items():
        if isinstance(value, Name):
            arguments[line.names.get(name, name)] = str(value)
        elif isinstance(value, list) and value and all(isinstance(each, Name) for each in value):
            arguments[line.names.get(name, name)] = [str(each) for each in value]
    return arguments


def _attributes(call: Call, line: _Line) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in call.attributes.items():
        is_name = isinstance(value, Name) or (
            isinstance(value, list) and any(isinstance(each, Name) for each in value)
        )
        if name in _NOTES or name in line.dropped or is_name:
            continue
        if name in line.fixed:
            if str(value) == line.fixed[name] or _is_number(value, line.fixed[name]):
                continue
            found[name] = value  # which the line refuses by its name
            continue
        ours = line.names.get(name, name)
        if ours in ("dtype",) and isinstance(value, int):
            value = DTYPES.get(value)
        if ours == "values" and not value and ours in found:
            continue  # one of several lists is filled
        found[ours] = value
    return found


def _is_number(value: Any, text: str) -> bool:
    try:
        return float(value) == float(text)
    except (TypeError, ValueError):
        return False


def _special(call: Call, line: _Line, attributes: dict[str, Any], arguments: dict[str, Any]) -> str:
    """What depends on values of attributes; returns the name of ours."""
    text = attributes.pop("@text", "")
    if text and line.kind.startswith("full"):
        attributes["value"] = float(text)
    if call.kind in ("set_value",) and "@values" in arguments:
        arguments["values"] = arguments.pop("@values")
        for name in ("values", "shape"):
            attributes.pop(name, None)
        return "set_value_with_tensor"
    if call.kind.startswith("reduce_"):
        if attributes.pop("reduce_all", False):
            attributes["axis"] = []
        if line.kind == "prod":
            attributes["reduce_all"] = False
    if call.kind == "frobenius_norm":
        attributes.setdefault("reduce_all", False)
    if call.kind == "split" and attributes.get("num"):
        attributes.pop("sections", None)
        return "split_with_num"
    if call.kind == "split":
        attributes.pop("num", None)
    if call.kind == "tril_triu":
        return "tril" if attributes.pop("lower", True) else "triu"
    if call.kind in ("bitwise_and", "equal"):
        attributes.pop("axis", None)
    return line.kind


_LINES["tril_triu"] = _line("tril_triu tril X=x lower=lower > Out")[1]


def _control(call: Call, body: Block) -> Operator:
    """Loops carry the variables that their block writes and that were there before; a block that a condition guards gives those
    that it names."""
    if call.kind == "conditional_block":
        body.results = list(call.outputs.get("Out", []))
        condition = call.inputs["Cond"][0]
        return Operator(
            "conditional_block",
            call.kind,
            {"cond": condition, "around": list(body.free())},
            {},
            list(body.results),
            [],
            [body],
        )
    (condition,) = call.inputs["Condition"]
    written = _written(body)
    before = dict.fromkeys([*call.inputs.get("X", []), *call.outputs.get("Out", [])])
    carried = [name for name in before if name in written and name != condition]
    if condition in body.free():
        raise ValueError(f"the loop reads its condition {condition!r} before it writes it")
    body.arguments = list(carried)
    body.results = [condition, *carried]
    return Operator(
        "while",
        call.kind,
        {"cond": condition, "init": list(carried)},
        {},
        list(carried),
        [],
        [body],
    )


def _written(body: Block) -> set[Any]:
    names: set[Any] = set()
    for each in body.operators:
        for key in each.results:
            names.update(key if isinstance(key, list) else [key])
    return names
