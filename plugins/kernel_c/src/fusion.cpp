// SPDX-License-Identifier: Apache-2.0
#include "fusion.hpp"

#include <tenon/error.hpp>
#include <tenon/schema.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "elementwise.hpp"
#include "kernel.hpp"

namespace tenon::kernel_c {
namespace {

// What a strided launch walks together, and what its arguments hold.
constexpr uint32_t kMaxTensors = 8, kMaxConstants = 8, kMaxValues = 16;

// A number among the operands: the same bytes in every call.
struct Constant {
  tenon_tensor tensor;
  alignas(16) unsigned char bytes[16];
};

// A group as one program of the elementwise engine.
struct Fused {
  const void* family =
      nullptr;  // the same for groups that differ in numbers alone: one program serves them
  uint32_t noperands = 0, nresults = 0;
  int dtype = 0, result_dtype = 0;  // of arithmetic, of the results
  std::string statements;
  std::vector<std::unique_ptr<Constant>> constants;
  std::vector<tenon_value> values;
  std::vector<const char*> types;  // of the values
  std::vector<std::string> names;  // of operands and constants
  std::vector<ElementwiseInput> inputs;
};

std::string numbered(const char* stem, size_t i) { return stem + std::to_string(i); }

bool is_host_scalar(const tenon_tensor* tensor) { return tensor->flags & TENON_TENSOR_HOST_SCALAR; }

const ElementwiseOp* find_elementwise(const tenon_kernel_def& kernel) {
  for (const tenon_kernel_def& own : generated_kernels()) {
    if (own.boxed != kernel.boxed || std::strcmp(own.op, kernel.op) != 0) continue;
    for (const ElementwiseOp* op : elementwise_ops())
      if (std::strcmp(op->op, kernel.op) == 0) return op;
  }
  return nullptr;
}

class Builder {
 public:
  Builder(const tenon_fusion_step* steps, uint32_t nsteps, uint32_t noperands, uint32_t nresults)
      : steps_(steps), nsteps_(nsteps) {
    fused_.noperands = noperands;
    fused_.nresults = nresults;
  }

  // NULL: these steps are no single kernel.
  std::unique_ptr<Fused> build() {
    std::string results;
    std::vector<bool> has_result(fused_.nresults);
    for (uint32_t i = 0; i < nsteps_; ++i) {
      const tenon_fusion_step& step = steps_[i];
      if (!dtype_text(step.dtype).compute || !add(step, i)) return nullptr;
      if (step.result < 0) continue;
      const auto index = static_cast<size_t>(step.result);
      if (index >= has_result.size() || has_result[index]) return nullptr;
      has_result[index] = true;
      if (results.empty()) fused_.result_dtype = step.dtype;
      if (step.dtype != fused_.result_dtype) return nullptr;
      results += numbered("r", index) + " = " + numbered("g", i) + "; ";
    }
    const auto nvalues = static_cast<uint32_t>(fused_.values.size());
    if (std::find(has_result.begin(), has_result.end(), false) != has_result.end() ||
        fused_.noperands + fused_.nresults > kMaxTensors ||
        fused_.constants.size() > kMaxConstants || nvalues > kMaxValues || !has_dtype_)
      return nullptr;
    fused_.statements = outer_ + fused_.statements + results;
    for (uint32_t i = 0; i < fused_.noperands + fused_.constants.size(); ++i)
      fused_.names.push_back(input_name(i));
    for (const std::string& name : fused_.names) fused_.inputs.push_back({name.c_str(), true});
    return std::make_unique<Fused>(std::move(fused_));
  }

 private:
  // Names apart from those in expressions: an operand k is e_operand<k>, a constant e_constant<k>.
  std::string input_name(uint32_t i) const {
    return i < fused_.noperands ? numbered("operand", i)
                                : numbered("constant", i - fused_.noperands);
  }

  // All steps compute in one type, which the functions in expressions are written for.
  bool computes_in(int dtype) {
    const DtypeText& type = dtype_text(dtype);
    if (!type.compute) return false;
    if (!has_dtype_) {
      has_dtype_ = true;
      fused_.dtype = dtype;
    }
    return std::strcmp(type.traits, dtype_text(fused_.dtype).traits) == 0;
  }

  // The value of a tensor argument in its dtype of arithmetic.
  bool operand(const tenon_tensor* tensor, const tenon_fusion_step& step, uint32_t index,
               uint32_t* next, std::string* out) {
    if (is_host_scalar(tensor)) {
      auto constant = std::make_unique<Constant>();
      constant->tensor = *tensor;
      std::memcpy(constant->bytes, tensor->data, host->dtype_size(tensor->dtype));
      constant->tensor.data = constant->bytes;
      constant->tensor.shape = constant->tensor.strides = nullptr;  // it has no axes
      *out = numbered("e_constant", fused_.constants.size());
      fused_.constants.push_back(std::move(constant));
      return true;
    }
    const int32_t source = step.sources[(*next)++];
    if (source >= 0) {
      if (static_cast<uint32_t>(source) >= fused_.noperands) return false;
      *out = numbered("e_operand", static_cast<size_t>(source));
      return true;
    }
    const auto before = static_cast<uint32_t>(-1 - source);
    if (before >= index || steps_[before].dtype != tensor->dtype) return false;
    *out = numbered("g", before);
    return true;
  }

  bool add(const tenon_fusion_step& step, uint32_t index) {
    const ElementwiseOp* op = find_elementwise(*step.kernel);
    const bool is_cast = std::strcmp(step.kernel->op, "tenon::cast") == 0;
    if (!op && !is_cast) return false;
    if (is_cast && (is_complex(step.dtype) || is_complex(tenon_arg_tensor(&step.args[0])->dtype)))
      return false;  // complex arithmetic is a program of its own
    const DtypeText& result = dtype_text(step.dtype);
    uint32_t next = 0;
    std::string inside;
    const uint32_t ninputs = op ? op->ninputs : 1;
    for (uint32_t i = 0; i < ninputs; ++i) {
      const tenon_tensor* tensor = tenon_arg_tensor(&step.args[i]);
      if (!tensor || !dtype_text(tensor->dtype).compute) return false;
      std::string value;
      if (!operand(tensor, step, index, &next, &value)) return false;
      const bool own = !op || op->inputs[i].own_dtype;
      const std::string type = own ? dtype_text(tensor->dtype).compute : "T";
      if (!own)
        value =
            converted(tensor->dtype, tenon_arg_tensor(&step.args[op->dtype_input])->dtype, value);
      inside += type + " e_" + (op ? op->inputs[i].name : "x") + " = " + value + "; ";
    }
    std::string expression = "e_x", parts;
    if (op) {
      const int dtype = tenon_arg_tensor(&step.args[op->dtype_input])->dtype;
      if (!computes_in(dtype)) return false;
      const ElementwiseCase* scalar = op->cases;
      const ElementwiseCase* end = scalar + op->ncases;
      while (scalar != end && !(scalar->dtype_mask >> dtype & 1)) ++scalar;
      if (scalar == end) return false;
      tenon_value values[std::size(ElementwiseCase{}.types)];
      if (scalar->values) scalar->values(step.args + op->ninputs, values);
      for (uint32_t i = 0; i < scalar->nvalues; ++i) {
        const std::string name = numbered("a", fused_.values.size());
        outer_ += std::string(scalar->types[i]) + " " + name + " = " +
                  numbered("v", fused_.values.size()) + "; ";
        inside +=
            std::string("const ") + scalar->types[i] + " " + numbered("v", i) + " = " + name + "; ";
        if (values[i].tag == TENON_VALUE_COMPLEX) return false;  // it lives in this call alone
        fused_.values.push_back(values[i]);
        fused_.types.push_back(scalar->types[i]);
      }
      expression = scalar->expression;
      parts = scalar->parts;
    }
    const std::string name = numbered("g", index), compute = result.compute;
    const std::string value = step.dtype == TENON_DTYPE_BOOL ? "((" + expression + ") != 0)"
                              : is_complex(step.dtype)       ? expression
                                                       : "((" + compute + ")(" + expression + "))";
    // What would have been in memory: rounded to its dtype, and no part of a later expression.
    const std::string load = result.load, store = result.store;
    const std::string separate = is_complex(step.dtype) ? "k_separate(" : "TK_SEPARATE(";
    std::string kept =
        load.empty() ? separate + name + ")" : load + "(" + store + "(" + name + "))";
    fused_.statements += compute + " " + name + "; { " + inside + parts + name + " = " + value +
                         "; " + name + " = " + kept + "; }\n      ";
    return true;
  }

  const tenon_fusion_step* steps_;
  const uint32_t nsteps_;
  std::string outer_;
  bool has_dtype_ = false;
  Fused fused_;
};

// Groups are kept for good, like their programs.
struct Registry {
  std::mutex mutex;
  std::map<std::string, int64_t> known;
  std::map<std::string, char> families;                // their addresses
  std::vector<std::unique_ptr<const Fused>> programs;  // number n is at n - 1

  const Fused* find(int64_t number) {
    std::lock_guard lock(mutex);
    return number > 0 && static_cast<uint64_t>(number) <= programs.size()
               ? programs[static_cast<size_t>(number) - 1].get()
               : nullptr;
  }
};
Registry& registry() {
  static Registry own;
  return own;
}

// Equal for groups that one program serves.
std::string source_key(const Fused& fused, const tenon_fusion_step* steps, uint32_t nsteps) {
  std::string key = fused.statements;
  const auto add = [&](int64_t number) { key += "," + std::to_string(number); };
  for (int64_t number : {int64_t{fused.noperands}, int64_t{fused.nresults}, int64_t{fused.dtype}})
    add(number);
  for (uint32_t i = 0; i < nsteps; ++i)
    for (uint32_t k = 0; k < steps[i].nargs; ++k)
      if (const tenon_tensor* tensor = tenon_arg_tensor(&steps[i].args[k])) add(tensor->dtype);
  for (const char* type : fused.types) key += std::string(",") + type;
  return key;
}

// The numbers of a group, to be added to that.
std::string number_key(const Fused& fused) {
  std::string key;
  for (const auto& constant : fused.constants)
    key.append(reinterpret_cast<const char*>(constant->bytes), sizeof constant->bytes);
  for (const tenon_value& value : fused.values) {
    key.append(reinterpret_cast<const char*>(&value.tag), sizeof value.tag);
    key.append(reinterpret_cast<const char*>(&value.v), sizeof value.v);
  }
  return key;
}

tenon_status prepare(const tenon_fusion_step* steps, uint32_t nsteps, uint32_t noperands,
                     uint32_t nresults, int64_t* program, tenon_err* err) try {
  *program = 0;
  if (nresults == 0 || nresults > kMaxOutputs) return TENON_OK;
  auto fused = Builder(steps, nsteps, noperands, nresults).build();
  if (!fused) return TENON_OK;
  Registry& known = registry();
  std::lock_guard lock(known.mutex);
  const std::string source = source_key(*fused, steps, nsteps);
  fused->family = &known.families.try_emplace(source).first->second;
  const auto [at, is_new] = known.known.try_emplace(
      source + number_key(*fused), static_cast<int64_t>(known.programs.size()) + 1);
  if (is_new) known.programs.push_back(std::move(fused));
  *program = at->second;
  return TENON_OK;
} catch (const std::exception& error) {
  return fail(err, TENON_INTERNAL, std::string("fusion: ") + error.what());
}

// -- operators ----------------------------------------------------------------------------------------

tenon_status find_program(const tenon_value* args, const Fused** out, tenon_err* err) {
  *out = registry().find(args[1].v.i);
  if (!*out)
    return fail(err, TENON_INVALID_ARGUMENT,
                "[fused] expected a program that the service fusion prepared, got number " +
                    std::to_string(args[1].v.i));
  if (args[0].aux != (*out)->noperands)
    return fail(err, TENON_INVALID_ARGUMENT,
                "[fused] expected " + std::to_string((*out)->noperands) + " operands, got " +
                    std::to_string(args[0].aux));
  return TENON_OK;
}

tenon_status infer(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t nouts,
                   tenon_err* err) {
  const Fused* fused;
  TRY(find_program(args, &fused, err));
  if (nouts != fused->nresults)
    return fail(err, TENON_INVALID_ARGUMENT,
                "[fused] expected the operator of " + std::to_string(fused->nresults) +
                    " results, got that of " + std::to_string(nouts));
  tenon_meta meta = {};
  auto* tensors = static_cast<tenon_tensor* const*>(args[0].v.p);
  for (uint64_t i = 0; i < args[0].aux; ++i) meta.ndim = std::max(meta.ndim, tensors[i]->ndim);
  std::fill_n(meta.shape, meta.ndim, int64_t{1});
  for (uint64_t i = 0; i < args[0].aux; ++i)
    for (int axis = 0; axis < tensors[i]->ndim; ++axis) {
      int64_t& size = meta.shape[meta.ndim - tensors[i]->ndim + axis];
      const int64_t own = tensors[i]->shape[axis];
      if (size != own && size != 1 && own != 1)
        return fail(err, TENON_INVALID_ARGUMENT,
                    "[fused] expected operands that broadcast, got sizes " + std::to_string(size) +
                        " and " + std::to_string(own));
      if (own != 1) size = own;
    }
  meta.kind = TENON_META_NEW;
  meta.dtype = static_cast<uint8_t>(fused->result_dtype);
  std::fill_n(outs, nouts, meta);
  return TENON_OK;
}

tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                 uint32_t nouts, tenon_err* err) {
  const Fused* fused;
  TRY(find_program(args, &fused, err));
  const tenon_tensor* inputs[kMaxTensors + kMaxConstants];
  tenon_tensor* results[kMaxOutputs];
  auto* tensors = static_cast<tenon_tensor* const*>(args[0].v.p);
  std::copy_n(tensors, fused->noperands, inputs);
  for (size_t i = 0; i < fused->constants.size(); ++i)
    inputs[fused->noperands + i] = &fused->constants[i]->tensor;
  for (uint32_t i = 0; i < nouts; ++i) results[i] = tenon_out_tensor(&outs[i]);
  return run_elementwise_program({.family = fused->family,
                                  .name = "fused",
                                  .inputs = fused->inputs.data(),
                                  .ninputs = static_cast<uint32_t>(fused->inputs.size()),
                                  .nouts = nouts,
                                  .nvalues = static_cast<uint32_t>(fused->values.size()),
                                  .types = fused->types.data(),
                                  .statements = fused->statements},
                                 fused->dtype, ctx, inputs, results, fused->values.data(), err);
}

// Signatures with their parameters, built once.
struct Definitions {
  std::array<std::unique_ptr<Schema>, kMaxOutputs> schemas;
  std::array<tenon_op_def, kMaxOutputs> ops;
  std::array<tenon_kernel_def, kMaxOutputs> kernels;

  Definitions() {
    std::string results;
    for (uint32_t n = 1; n <= kMaxOutputs; ++n) {
      results += (n > 1 ? ", Tensor " : "Tensor ") + numbered("r", n - 1);
      schemas[n - 1] = std::make_unique<Schema>("kernel_c::" + numbered("fused_", n) +
                                                "(Tensor[] x, int program) -> " +
                                                (n > 1 ? "(" + results + ")" : "Tensor"));
      ops[n - 1] = {.flags = TENON_OP_INTERNAL | TENON_OP_NO_METHOD | TENON_OP_NO_GRAD,
                    .doc = "A group of elementwise calls in one kernel (tenon/services/fusion.h).",
                    .origin = "plugins/kernel_c/src/fusion.cpp",
                    .compute = TENON_COMPUTE_FIRST,
                    .shape = TENON_SHAPE_INFER,
                    .dtype_mask = (uint64_t{1} << TENON_DTYPE_COUNT) - 1,
                    .infer = infer};
      schemas[n - 1]->fill(ops[n - 1]);
      kernels[n - 1] = kernel(ops[n - 1].name, kBool | kNumbers | kComplex, kAnyStrides, run);
    }
  }
};
const Definitions& definitions() {
  static const Definitions own;
  return own;
}

const tenon_op* fused_op(uint32_t nresults) {
  return nresults == 0 || nresults > kMaxOutputs
             ? nullptr
             : host->op_find(definitions().ops[nresults - 1].name);
}

constexpr tenon_fusion_api kService = {.struct_size = sizeof(tenon_fusion_api),
                                       .version = TENON_FUSION_VERSION,
                                       .prepare = prepare,
                                       .fused = fused_op};

}  // namespace

std::span<const tenon_op_def> fusion_ops() { return definitions().ops; }
KernelList fusion_kernels() { return definitions().kernels; }

tenon_status offer_fusion(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_FUSION_SERVICE, TENON_FUSION_VERSION, &kService, err);
}

}  // namespace tenon::kernel_c
