// SPDX-License-Identifier: Apache-2.0
#include "elementwise.hpp"

#include "kernel.hpp"
#include "launch.hpp"
#include "layout.hpp"

#include <algorithm>

namespace tenon::kernel_c {
namespace {

bool is_host_scalar(const tenon_tensor* tensor) { return tensor->flags & TENON_TENSOR_HOST_SCALAR; }

// One launch of the program: which tensors, of which dtypes, laid out how.
struct Call {
  const ElementwiseProgram& program;
  int dtype;
  const tenon_tensor* const* inputs;
  tenon_tensor* const* outs;
  bool strided;
  int rank;  // of a strided one

  ProgramKey key() const {
    uint64_t variant = static_cast<uint64_t>(dtype) << 5 | outs[0]->dtype;
    for (uint32_t i = 0; i < program.ninputs; ++i)
      variant =
          variant << 6 | static_cast<uint64_t>(inputs[i]->dtype) << 1 | is_host_scalar(inputs[i]);
    return {program.family, variant << 5 | static_cast<uint64_t>(rank) << 1 | strided};
  }

  static std::string numbered(const char* stem, uint32_t i) { return stem + std::to_string(i); }

  // Where in memory element i of the loop lies.
  std::string place(const char* base, uint32_t i) const {
    return numbered(base, i) + (strided ? "[p_" + numbered(base, i) + "]" : "[i]");
  }

  std::string parameters() const {
    std::string text;
    for (uint32_t i = 0; i < program.ninputs; ++i) {
      const std::string type = numbered("IN", i) + "_STORAGE", name = numbered("x", i);
      text += is_host_scalar(inputs[i]) ? type + " " + name + ", "
                                        : "TK_BUFFER(" + type + ", " + name + "), ";
    }
    for (uint32_t i = 0; i < program.nouts; ++i)
      text += "TK_BUFFER(OUT_STORAGE, " + numbered("y", i) + "), ";
    for (uint32_t i = 0; i < program.nvalues; ++i)
      text += std::string(program.types[i]) + " " + numbered("v", i) + ", ";
    if (strided) {
      text += "tk_layout shape, ";
      each_pointer([&](const std::string& name) { text += "tk_layout s_" + name + ", "; });
    }
    return text + "tk_i64 count";
  }

  template <class F>
  void each_pointer(F&& f) const {
    for (uint32_t i = 0; i < program.ninputs; ++i)
      if (!is_host_scalar(inputs[i])) f(numbered("x", i));
    for (uint32_t i = 0; i < program.nouts; ++i) f(numbered("y", i));
  }

  std::string body() const {
    std::string text;
    for (uint32_t i = 0; i < program.ninputs; ++i) {
      const ElementwiseInput& input = program.inputs[i];
      const std::string from = is_host_scalar(inputs[i]) ? numbered("x", i) : place("x", i);
      const std::string type =
          program.only_moves || input.own_dtype ? numbered("IN", i) + "_COMPUTE" : "T";
      text += type + " e_" + input.name + " = " + numbered("IN", i) + "_LOAD(" + from + "); ";
    }
    for (uint32_t i = 0; i < program.nouts; ++i) text += "OUT_COMPUTE " + numbered("r", i) + "; ";
    text += "\n      ";
    text += program.parts;
    if (program.is_expression) text += "r0 = OUT_CONVERT(";
    text += program.statements;
    text += program.is_expression ? ");\n      " : "\n      ";
    for (uint32_t i = 0; i < program.nouts; ++i)
      text += place("y", i) + " = OUT_STORE(" + numbered("r", i) + "); ";
    return text;
  }

  std::string loop() const {
    if (!strided) return "  FOR_EACH(i, count) {\n      " + body() + "\n  }\n";
    std::string start, step, last, next;
    each_pointer([&](const std::string& name) {
      start += "    tk_i64 p_" + name + " = 0;\n";
      step += "      p_" + name + " += at * s_" + name + ".v[d];\n";
      last += "    p_" + name + " += rest * s_" + name + ".v[0];\n";
      next += ", p_" + name + " += s_" + name + ".v[RANK - 1]";
    });
    return R"(  STRETCHES(i, count) {
    tk_i64 rest = i;
)" + start +
           R"(    STRETCH_BEGIN
    for (int d = RANK - 1; d > 0; --d) {
      tk_i64 at = rest % shape.v[d];
      rest /= shape.v[d];
)" + step + R"(    }
)" + last + R"(    for (tk_i64 k = 0; k < stretch; ++k)" +
           next + R"() {
      )" + body() +
           R"(
    }
  }
)";
  }

  Source source(const Device& device) const {
    std::string name(program.name);
    name += '_' + suffix(program.only_moves ? outs[0]->dtype : dtype);
    SourceText text(device, name);
    if (program.only_moves) {
      text.add(piece::move).moved("OUT_", outs[0]->dtype);
    } else {
      text.element(dtype).memory("OUT_", outs[0]->dtype);
    }
    for (uint32_t i = 0; i < program.ninputs; ++i) {
      const std::string prefix = numbered("IN", i) + "_";
      if (program.only_moves)
        text.moved(prefix.c_str(), inputs[i]->dtype);
      else
        text.memory(prefix.c_str(), inputs[i]->dtype);
    }
    if (strided) text.define("RANK", rank).add(piece::stretches);
    text.add("TK_KERNEL void KERNEL(" + parameters() + ") {\n");
    for (uint32_t i = 0; i < program.ninputs; ++i)
      if (!is_host_scalar(inputs[i]))
        text.add("  TK_BIND(" + numbered("IN", i) + "_STORAGE, " + numbered("x", i) + ");\n");
    for (uint32_t i = 0; i < program.nouts; ++i)
      text.add("  TK_BIND(OUT_STORAGE, " + numbered("y", i) + ");\n");
    return std::move(text.add(loop()).add("}\n")).finish();
  }
};

bool all_dense(const Call& call) {
  const tenon_tensor* out = call.outs[0];
  for (uint32_t i = 0; i < call.program.nouts; ++i)
    if (!(call.outs[i]->flags & TENON_TENSOR_CONTIGUOUS)) return false;
  for (uint32_t i = 0; i < call.program.ninputs; ++i) {
    const tenon_tensor* input = call.inputs[i];
    if (is_host_scalar(input)) continue;
    if (!(input->flags & TENON_TENSOR_CONTIGUOUS) || input->numel != out->numel) return false;
  }
  return true;
}

}  // namespace

tenon_status run_elementwise_program(const ElementwiseProgram& program, int dtype, tenon_ctx* ctx,
                                     const tenon_tensor* const* inputs, tenon_tensor* const* outs,
                                     const tenon_value* values, tenon_err* err) {
  const tenon_tensor* out = outs[0];
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  if (!program.only_moves) {
    TRY(require_dtype(*device, program.name, dtype, err));
    TRY(require_dtype(*device, program.name, out->dtype, err));
  }
  Call call{program, dtype, inputs, outs, false, 0};
  tenon_kernel kernel;
  const auto make = [&] { return call.source(*device); };
  const auto put = [&](Launch& launch, const Layout* layout, int64_t index) {
    int tensor = 0;
    for (uint32_t i = 0; i < program.ninputs; ++i) {
      if (is_host_scalar(inputs[i]))
        launch.value(inputs[i]->data, dtype_text(inputs[i]->dtype).bytes);
      else
        launch.buffer(inputs[i], layout ? layout->offset(tensor++, index) : 0);
    }
    for (uint32_t i = 0; i < program.nouts; ++i)
      launch.buffer(outs[i], layout ? layout->offset(tensor++, index) : 0);
    for (uint32_t i = 0; i < program.nvalues; ++i) {
      const std::string_view type = program.types[i];
      launch.number(type == "T"        ? dtype
                    : type == "tk_i64" ? TENON_DTYPE_I64
                                       : TENON_DTYPE_I32,
                    values[i]);
    }
  };
  if (all_dense(call)) {
    TRY(device->kernel(call.key(), make, &kernel, err));
    Launch launch(ctx, *device, err);
    put(launch, nullptr, 0);
    launch.value(out->numel);
    return launch.run(kernel, out->numel);
  }

  Layout layout(out->ndim, out->shape);
  for (uint32_t i = 0; i < program.ninputs; ++i)
    if (!is_host_scalar(inputs[i])) layout.add(inputs[i]);
  for (uint32_t i = 0; i < program.nouts; ++i) layout.add(outs[i]);
  layout.sort(layout.tensors - 1);
  layout.collapse();
  call.strided = true;
  call.rank = layout.launch_rank();
  TRY(device->kernel(call.key(), make, &kernel, err));
  for (int64_t index = 0; index < layout.launches(); ++index) {
    Launch launch(ctx, *device, err);
    put(launch, &layout, index);
    launch.value(layout.shape_value());
    for (int t = 0; t < layout.tensors; ++t) launch.value(layout.strides_value(t));
    launch.value(layout.launch_count());
    TRY(launch.run(kernel, layout.launch_count()));
  }
  return TENON_OK;
}

tenon_status run_elementwise(const ElementwiseOp& op, tenon_ctx* ctx, const tenon_value* args,
                             tenon_value* outs, tenon_err* err) {
  const tenon_tensor* inputs[kMostInputs];
  for (uint32_t i = 0; i < op.ninputs; ++i) inputs[i] = tenon_arg_tensor(&args[i]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  const int dtype = inputs[op.dtype_input]->dtype;
  const ElementwiseCase* scalar = op.cases;
  while (!(scalar->dtype_mask >> dtype & 1)) ++scalar;  // the kernel's mask is their sum
  tenon_value values[std::size(ElementwiseCase{}.types)];
  if (scalar->values) scalar->values(args + op.ninputs, values);
  return run_elementwise_program({.family = scalar,
                                  .name = op.op + sizeof "tenon::" - 1,
                                  .inputs = op.inputs,
                                  .ninputs = op.ninputs,
                                  .nouts = 1,
                                  .nvalues = scalar->nvalues,
                                  .types = scalar->types,
                                  .statements = scalar->expression,
                                  .is_expression = true,
                                  .parts = scalar->parts},
                                 dtype, ctx, inputs, &out, values, err);
}

tenon_status run_several_results(const SeveralResultsOp& op, tenon_ctx* ctx,
                                 const tenon_value* args, tenon_value* outs, tenon_err* err) {
  constexpr uint32_t kMaxValues = 16;
  const tenon_tensor* inputs[kMostInputs];
  tenon_tensor* results[kMostOutputs];
  tenon_value values[kMaxValues];
  if (op.nvalues > kMaxValues)
    return fail(err, TENON_INTERNAL,
                "[" + std::string(op.op) + "] expected at most 16 numbers, got " +
                    std::to_string(op.nvalues));
  for (uint32_t i = 0; i < op.ninputs; ++i) inputs[i] = tenon_arg_tensor(&args[i]);
  for (uint32_t i = 0; i < op.nouts; ++i) results[i] = tenon_out_tensor(&outs[i]);
  if (op.values) op.values(args + op.ninputs, values);
  return run_elementwise_program({.family = &op,
                                  .name = op.op + sizeof "tenon::" - 1,
                                  .inputs = op.inputs,
                                  .ninputs = op.ninputs,
                                  .nouts = op.nouts,
                                  .nvalues = op.nvalues,
                                  .types = op.types,
                                  .statements = op.statements},
                                 inputs[0]->dtype, ctx, inputs, results, values, err);
}

}  // namespace tenon::kernel_c
