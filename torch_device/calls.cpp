// SPDX-License-Identifier: Apache-2.0
// Every call that PyTorch has no kernel for on the device comes here, as a call with boxed arguments. Python says once for
// each kind of arguments what the call is in operators (tenon/torch/_device_calls.py); from then on its tape runs.
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/native/transformers/attention.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <array>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>

#include "tape.hpp"

namespace tenon_torch {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

// The values of one call of an operator, and what they borrow.
class Values {
 public:
  Values(Arguments arguments, const Steps& steps) : arguments_(arguments), steps_(steps) {}
  void add(const Operand& operand) { values_.push_back(value_of(operand)); }
  tenon_value* data() { return values_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(values_.size()); }

 private:
  tenon_value value_of(const Operand& operand) {
    switch (operand.kind) {
      case Operand::kConstant:
        return operand.value;
      case Operand::kTensor:
        return value_of(operand.tensor);
      case Operand::kStep:
        return boxed(steps_[operand.index][static_cast<size_t>(operand.element)].get());
      case Operand::kArgument: {
        const c10::IValue& given = arguments_[operand.index];
        if (given.isDouble()) return float_value(given.toDouble());
        if (operand.element < 0) return value_of(given.toTensor());
        return value_of(given.toListRef()[static_cast<size_t>(operand.element)].toTensor());
      }
      case Operand::kList:
        return list_of(operand);
    }
    return {};
  }

  static tenon_value float_value(double number) {
    tenon_value value{};
    value.tag = TENON_VALUE_FLOAT, value.v.f = number;
    return value;
  }

  tenon_value list_of(const Operand& operand) {
    std::vector<tenon_tensor*>& list = lists_.emplace_back();
    for (const Operand& each : operand.list) {
      tenon_value value = value_of(each);
      TORCH_CHECK_VALUE(value.tag == TENON_VALUE_TENSOR,
                        "expected a list of tensors on the device, got a number of the CPU in it");
      list.push_back(static_cast<tenon_tensor*>(value.v.p));
    }
    tenon_value value{};
    value.tag = TENON_VALUE_TENSORS;
    value.aux = static_cast<uint32_t>(list.size());
    value.v.p = list.data();
    return value;
  }

  tenon_value value_of(const at::Tensor& tensor) {
    if (tensor.is_cpu() && tensor.dim() == 0) return number_of(tensor);
    handles_.push_back(handle_of(tensor));
    return boxed(handles_.back().get());
  }

  // A number given as a tensor, as PyTorch gives those of Python.
  tenon_value number_of(const at::Tensor& tensor) {
    tenon_value value{};
    const void* data = tensor.const_data_ptr();
    at::Scalar number;  // the two dtypes that numbers of Python have are read without a call
    if (tensor.scalar_type() == at::kDouble)
      number = *static_cast<const double*>(data);
    else if (tensor.scalar_type() == at::kLong)
      number = *static_cast<const int64_t*>(data);
    else
      number = tensor.item();
    if (number.isFloatingPoint()) return float_value(number.toDouble());
    if (number.isComplex()) {
      auto complex = number.toComplexDouble();
      complexes_.push_back({complex.real(), complex.imag()});
      value.tag = TENON_VALUE_COMPLEX, value.v.p = complexes_.back().data();
    } else if (number.isBoolean()) {
      value.tag = TENON_VALUE_BOOL, value.v.i = number.toBool();
    } else {
      value.tag = TENON_VALUE_INT, value.v.i = number.toLong();
    }
    return value;
  }

  Arguments arguments_;
  const Steps& steps_;
  c10::SmallVector<tenon_value, 8> values_;
  c10::SmallVector<Handle, 8> handles_;
  std::list<std::vector<tenon_tensor*>> lists_;
  std::list<std::array<double, 2>> complexes_;
};

// -- replaying --------------------------------------------------------------------------------------------

void write(const tenon_tensor* result, const at::Tensor& target, bool may_resize) {
  at::IntArrayRef sizes(result->shape, static_cast<size_t>(result->ndim));
  TORCH_CHECK(may_resize || target.sizes() == sizes, "expected an output of shape ", sizes,
              ", got ", target.sizes());
  at::native::resize_output(target, sizes);
  Handle to = handle_of(target);
  bool is_alike = result->dtype == to.get()->dtype;
  tenon_value values[2] = {boxed(const_cast<tenon_tensor*>(result)), boxed_dtype(to.get()->dtype)};
  call(find_operator(is_alike ? "clone" : "cast"), values, is_alike ? 1 : 2, to.get());
}

// Whether the last step's result can be computed where it is written.
bool ends_in_place(const Tape& tape) {
  if (tape.writes.size() != 1 || !tape.results.empty() || tape.steps.empty()) return false;
  const Operand& from = tape.writes[0].from;
  return from.kind == Operand::kStep && from.index + 1 == tape.steps.size() &&
         host().op_def(tape.steps.back().op)->nouts == 1;
}

c10::SmallVector<c10::IValue, 2> replay(const Tape& tape, Arguments arguments) {
  Steps steps;
  steps.reserve(tape.steps.size());
  bool is_written = false;
  for (const Step& step : tape.steps) {
    bool is_last = steps.size() + 1 == tape.steps.size();
    if (is_last && ends_in_place(tape)) {
      Handle target = handle_of(arguments[tape.writes[0].argument].toTensor());
      try {
        steps.push_back(run_step(step, arguments, steps, target.get()));
        is_written = true;
        break;
      } catch (const c10::ValueError&) {  // it may have another shape
        if (!tape.may_resize) throw;
      }
    }
    steps.push_back(run_step(step, arguments, steps, nullptr));
  }
  c10::SmallVector<c10::IValue, 2> results;
  for (const Tape::Write& each : tape.writes) {
    const at::Tensor& target = arguments[each.argument].toTensor();
    if (!is_written)
      write(steps[each.from.index][static_cast<size_t>(each.from.element)].get(), target,
            tape.may_resize);
    if (tape.results.empty()) results.emplace_back(target);
  }
  std::vector<at::Tensor> list;
  for (const Operand& each : tape.results) {
    if (each.kind == Operand::kConstant && each.value.tag == TENON_VALUE_INT) {
      results.emplace_back(each.value.v.i);
      continue;
    }
    at::Tensor made;  // another constant: there is no such result
    if (each.kind == Operand::kStep)
      made = tensor_of(std::move(steps[each.index][static_cast<size_t>(each.element)]));
    if (tape.is_list)
      list.push_back(std::move(made));
    else
      results.emplace_back(std::move(made));
  }
  if (tape.is_list) results.emplace_back(std::move(list));
  return results;
}

// -- kinds of arguments -----------------------------------------------------------------------------------

// What a tape holds for: dtypes and numbers of axes, all that is no tensor, and as much of shapes and of numbers given as
// tensors as the tape depends on.
struct Key {
  c10::SmallVector<uint64_t, 24> words;
  bool operator==(const Key& other) const { return words == other.words; }
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (uint64_t word : key.words) {
      hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

enum Word : uint64_t {
  kNone = 1,
  kInt,
  kDouble,
  kBool,
  kText,
  kListOf,
  kOther,
  kOnDevice,
  kNumber
};

uint64_t bits_of(double number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

bool describe(const c10::IValue& value, const Dependence& dependence, Key& key) {
  auto& words = key.words;
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return words.push_back(kNone), true;
    uint64_t type = static_cast<uint64_t>(tensor.scalar_type()) << 8;
    if (tensor.is_privateuseone()) {
      words.push_back(kOnDevice | type | static_cast<uint64_t>(tensor.dim()) << 16 |
                      static_cast<uint64_t>(tensor.get_device()) << 32);
      if (dependence.on_shapes)
        for (int64_t size : tensor.sizes()) words.push_back(static_cast<uint64_t>(size));
      return true;
    }
    if (!tensor.is_cpu() || tensor.dim() != 0) return false;
    words.push_back(kNumber | type |
                    uint64_t{tensor.unsafeGetTensorImpl()->is_wrapped_number()} << 16);
    if (dependence.on_numbers) {
      at::Scalar number = tensor.item();
      if (number.isComplex()) return false;
      words.push_back(number.isFloatingPoint() ? bits_of(number.toDouble())
                                               : static_cast<uint64_t>(number.toLong()));
    }
    return true;
  }
  if (value.isNone()) return words.push_back(kNone), true;
  if (value.isInt())
    return words.push_back(kInt), words.push_back(static_cast<uint64_t>(value.toInt())), true;
  if (value.isDouble())
    return words.push_back(kDouble), words.push_back(bits_of(value.toDouble())), true;
  if (value.isBool()) return words.push_back(kBool | uint64_t{value.toBool()} << 8), true;
  if (value.isString()) {
    const std::string& text = value.toStringRef();
    words.push_back(kText | uint64_t{text.size()} << 8);
    for (char letter : text) words.push_back(static_cast<unsigned char>(letter));
    return true;
  }
  if (value.isList()) {
    auto elements = value.toListRef();
    words.push_back(kListOf | uint64_t{elements.size()} << 8);
    for (const c10::IValue& each : elements)
      if (!describe(each, dependence, key)) return false;
    return true;
  }
  if (value.isGenerator()) return words.push_back(kOther), true;
  return false;
}

// -- the fallback -----------------------------------------------------------------------------------------

struct Operation {
  std::mutex mutex;
  Dependence dependence;
  std::unordered_map<Key, std::shared_ptr<const Tape>, KeyHash> tapes;
};
constexpr size_t kMaxTapes = 1024;  // of an operation; then all are forgotten

// By the address of its schema; in use until the process ends.
Operation& operation_of(const c10::OperatorHandle& op) {
  static auto* known = new std::unordered_map<const void*, std::unique_ptr<Operation>>;
  static auto* mutex = new std::mutex;
  // The calls that a thread has made last are found without a lock.
  struct Slot {
    const void* schema;
    Operation* operation;
  };
  static thread_local Slot recent[64] = {};
  const void* schema = &op.schema();
  Slot& slot = recent[reinterpret_cast<uintptr_t>(schema) / 64 % 64];
  if (slot.schema == schema) return *slot.operation;
  std::lock_guard lock(*mutex);
  auto& owned = (*known)[schema];
  if (!owned) owned = std::make_unique<Operation>();
  slot = {schema, owned.get()};
  return *owned;
}

c10::DeviceIndex device_among(Arguments arguments) {
  for (const c10::IValue& each : arguments) {
    if (each.isTensor()) {
      const at::Tensor& tensor = each.toTensor();
      if (tensor.defined() && tensor.is_privateuseone()) return tensor.get_device();
    } else if (each.isTensorList()) {
      for (const c10::IValue& element : each.toListRef())
        if (element.toTensor().is_privateuseone()) return element.toTensor().get_device();
    } else if (each.isDevice() && each.toDevice().is_privateuseone()) {
      return each.toDevice().index();
    }
  }
  return -1;
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  Arguments arguments = torch::jit::last(*stack, op.schema().arguments().size());
  DeviceScope device(device_among(arguments));
  GeneratorScope generator(arguments);
  Operation& operation = operation_of(op);
  Key key;
  std::shared_ptr<const Tape> tape;
  bool has_key = true;
  Dependence dependence;
  {
    std::lock_guard lock(operation.mutex);
    dependence = operation.dependence;
    for (size_t i = 0; has_key && i < arguments.size(); ++i)
      if (i < 64 && dependence.free >> i & 1 && arguments[i].isDouble())
        key.words.push_back(kDouble);
      else
        has_key = describe(arguments[i], dependence, key);
    if (has_key) {
      auto found = operation.tapes.find(key);
      if (found != operation.tapes.end()) tape = found->second;
    }
  }
  c10::SmallVector<c10::IValue, 2> results;
  if (tape) {
    results = replay(*tape, arguments);
  } else {
    Answer answer = ask(op, arguments);
    for (c10::IValue& each : answer.results) results.push_back(std::move(each));
    if (has_key && answer.tape) {
      std::lock_guard lock(operation.mutex);
      Dependence& all = operation.dependence;
      all.on_shapes |= answer.dependence.on_shapes;
      all.on_numbers |= answer.dependence.on_numbers;
      all.free |= answer.dependence.free;
      if (all != dependence || operation.tapes.size() >= kMaxTapes) operation.tapes.clear();
      // Otherwise the next call makes a key that says what this one has found out.
      if (all == dependence) operation.tapes.emplace(std::move(key), std::move(answer.tape));
    }
  }
  torch::jit::drop(*stack, arguments.size());
  size_t wanted = op.schema().returns().size();
  for (size_t i = 0; i < wanted && i < results.size(); ++i) stack->push_back(std::move(results[i]));
}

}  // namespace

Handles run_step(const Step& step, Arguments arguments, const Steps& steps, tenon_tensor* into) {
  Values values(arguments, steps);
  for (const Operand& each : step.arguments) values.add(each);
  return call(step.op, values.data(), values.size(), into);
}

Handles call(const tenon_op* op, tenon_value* values, uint32_t count, tenon_tensor* into) {
  constexpr uint32_t kMaxResults = 8;
  const tenon_op_def* definition = host().op_def(op);
  tenon_value outs[kMaxResults] = {};
  TORCH_CHECK(definition->nouts <= kMaxResults, definition->name, " has too many results");
  if (into) outs[0] = boxed(into);
  check(host().op_call(op, values, count, outs, definition->nouts, errors()), definition->name);
  Handles results;
  if (into) return results;
  for (uint32_t i = 0; i < definition->nouts; ++i) {
    if (outs[i].tag != TENON_VALUE_TENSORS) {
      results.emplace_back(static_cast<tenon_tensor*>(outs[i].v.p));
      continue;
    }
    auto** list = static_cast<tenon_tensor**>(outs[i].v.p);
    for (uint32_t at = 0; at < outs[i].aux; ++at) {
      host().tensor_retain(list[at]);
      results.emplace_back(list[at]);
    }
    host().list_release(list, outs[i].aux);
  }
  return results;
}

const tenon_op* find_operator(const char* name) {
  const tenon_op* op = host().op_find(name);
  TORCH_CHECK(op, "Tenon has no operator ", name);
  return op;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// Attention is one operator where that takes the call; else PyTorch's products and softmax.
int64_t attention_choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>&, double dropout, bool,
                         std::optional<double>, bool) {
  auto fits = [&](const at::Tensor& other) {
    return other.dim() == 4 && other.numel() > 0 && other.scalar_type() == query.scalar_type() &&
           other.sizes().slice(0, 2) == query.sizes().slice(0, 2);
  };
  bool is_one = at::globalContext().userEnabledOverrideableSDP() && dropout == 0 &&
                query.is_privateuseone() && query.dim() == 4 && query.numel() > 0 && fits(key) &&
                fits(value);
  return static_cast<int64_t>(is_one ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

// PyTorch composes these of others, or leaves them to the device by name.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : {"convolution_overrideable", "convolution_backward_overrideable",
                           "_scaled_dot_product_fused_attention_overrideable",
                           "_scaled_dot_product_fused_attention_overrideable_backward"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  m.impl("_fused_sdp_choice", &attention_choice);
}

}  // namespace tenon_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tenon_torch::attention_choice)
}
