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
  bool strided = false;
  int rank = 0;         // of a strided one
  int width = 1;        // elements of one access to memory; dense only
  bool narrow = false;  // 32 bits count the elements; strided only

  ProgramKey key() const {
    uint64_t variant = static_cast<uint64_t>(dtype) << 5 | outs[0]->dtype;
    for (uint32_t i = 0; i < program.ninputs; ++i)
      variant =
          variant << 6 | static_cast<uint64_t>(inputs[i]->dtype) << 1 | is_host_scalar(inputs[i]);
    const auto shape = static_cast<uint64_t>(strided ? rank << 1 | narrow : width);
    return {program.family, variant << 6 | shape << 1 | strided};
  }

  static std::string numbered(const char* stem, uint32_t i) { return stem + std::to_string(i); }

  // Where element i of the loop lies: in memory, or in a vector that was or will be there.
  std::string place(const char* base, uint32_t i) const {
    if (width > 1) return "v_" + numbered(base, i) + ".v[l]";
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
  void each_tensor(F&& f) const {
    for (uint32_t i = 0; i < program.ninputs; ++i)
      if (!is_host_scalar(inputs[i])) f(inputs[i]);
    for (uint32_t i = 0; i < program.nouts; ++i) f(outs[i]);
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
      const std::string loaded = numbered("IN", i) + "_LOAD(" + from + ")";
      text += type + " e_" + input.name + " = " +
              (type == "T" ? converted(inputs[i]->dtype, dtype, loaded) : loaded) + "; ";
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

  // Types of `width` elements, which are read and written at once.
  std::string vector_types() const {
    std::string text;
    const auto add = [&](const std::string& prefix, int dtype) {
      text += "typedef struct TK_ALIGNED(" + std::to_string(width * dtype_text(dtype).bytes) +
              ") { " + prefix + "STORAGE v[" + std::to_string(width) + "]; } " + prefix +
              "VECTOR;\n";
    };
    for (uint32_t i = 0; i < program.ninputs; ++i)
      if (!is_host_scalar(inputs[i])) add(numbered("IN", i) + "_", inputs[i]->dtype);
    add("OUT_", outs[0]->dtype);
    return text;
  }

  std::string vector_loop() const {
    std::string read, written;
    for (uint32_t i = 0; i < program.ninputs; ++i) {
      if (is_host_scalar(inputs[i])) continue;
      const std::string type = numbered("IN", i) + "_VECTOR", name = numbered("x", i);
      read += "    const " + type + " v_" + name + " = ((TK_GLOBAL const " + type + " *)" + name +
              ")[i];\n";
    }
    for (uint32_t i = 0; i < program.nouts; ++i) {
      const std::string name = numbered("y", i);
      read += "    OUT_VECTOR v_" + name + ";\n";
      written += "    ((TK_GLOBAL OUT_VECTOR *)" + name + ")[i] = v_" + name + ";\n";
    }
    const std::string elements = std::to_string(width);
    return "  FOR_EACH(i, count / " + elements + ") {\n" + read +
           "#pragma unroll\n    for (int l = 0; l < " + elements + "; ++l) {\n      " + body() +
           "\n    }\n" + written + "  }\n";
  }

  std::string loop() const {
    if (width > 1) return vector_loop();
    if (!strided) return "  FOR_EACH(i, count) {\n      " + body() + "\n  }\n";
    std::string start, step, last, next;
    each_pointer([&](const std::string& name) {
      start += "    tk_i64 p_" + name + " = 0;\n";
      step += "      p_" + name + " += at * s_" + name + ".v[d];\n";
      last += "    p_" + name + " += rest * s_" + name + ".v[0];\n";
      next += ", p_" + name + " += s_" + name + ".v[RANK - 1]";
    });
    return R"(  STRETCHES(i, count) {
    INDEX rest = (INDEX)i;
)" + start +
           R"(    STRETCH_BEGIN
    for (int d = RANK - 1; d > 0; --d) {
      INDEX at = rest % (INDEX)shape.v[d];
      rest /= (INDEX)shape.v[d];
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
    if (strided)
      text.define("RANK", rank).define("INDEX", narrow ? "tk_u32" : "tk_i64").add(piece::stretches);
    if (width > 1) text.add(vector_types());
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

// As many elements as 16 bytes hold, where all that the loop reads and writes begins and ends at a
// multiple of them. Processors' compilers make vectors of the plain loop.
int vector_width(const Device& device, const Call& call) {
  constexpr uint32_t kAccessBytes = 16, kMaxWidth = 8;
  if (device.host_like() || device.opaque_memory) return 1;
  uint32_t largest = 1;
  uint64_t misaligned = 0;
  call.each_tensor([&](const tenon_tensor* tensor) {
    largest = std::max(largest, dtype_text(tensor->dtype).bytes);
  });
  const uint32_t width = std::clamp(kAccessBytes / largest, 1u, kMaxWidth);
  call.each_tensor([&](const tenon_tensor* tensor) {
    const uint64_t bytes = uint64_t{width} * dtype_text(tensor->dtype).bytes;
    misaligned |= reinterpret_cast<uintptr_t>(tensor->data) & (bytes - 1);
  });
  return misaligned || call.outs[0]->numel % width ? 1 : static_cast<int>(width);
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
  Call call{program, dtype, inputs, outs};
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
                    : type == "R"      ? real_dtype(dtype)
                    : type == "tk_i64" ? TENON_DTYPE_I64
                                       : TENON_DTYPE_I32,
                    values[i]);
    }
  };
  if (all_dense(call)) {
    call.width = vector_width(*device, call);
    TRY(device->kernel(call.key(), make, &kernel, err));
    Launch launch(ctx, *device, err);
    put(launch, nullptr, 0);
    launch.value(out->numel);
    return launch.run(kernel, out->numel / call.width);
  }

  Layout layout(out->ndim, out->shape);
  for (uint32_t i = 0; i < program.ninputs; ++i)
    if (!is_host_scalar(inputs[i])) layout.add(inputs[i]);
  for (uint32_t i = 0; i < program.nouts; ++i) layout.add(outs[i]);
  layout.sort(layout.tensors - 1);
  layout.collapse();
  call.strided = true;
  call.rank = layout.launch_rank();
  call.narrow = !device->host_like() && layout.launch_count() <= INT32_MAX;
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
  const tenon_tensor* inputs[kMaxInputs];
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
  const tenon_tensor* inputs[kMaxInputs];
  tenon_tensor* results[kMaxOutputs];
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
