// SPDX-License-Identifier: Apache-2.0
#include "described.hpp"

namespace tenon {
namespace extension {
namespace {

constexpr uint64_t kEveryDtype = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;

// The C++ types that a function may take for a parameter of each kind.
const char* types_for(int32_t kind) {
  switch (kind) {
    case TENON_PARAM_TENSOR:
      return "const Tensor&, std::optional<Tensor>, TensorArg or, in kernels, View<const T>";
    case TENON_PARAM_TENSORS:
      return "std::vector<Tensor> or TensorList";
    case TENON_PARAM_INT:
      return "int64_t or int";
    case TENON_PARAM_FLOAT:
      return "double or float";
    case TENON_PARAM_BOOL:
      return "bool";
    case TENON_PARAM_SCALAR:
      return "ScalarArg";
    case TENON_PARAM_STRING:
      return "std::string or std::string_view";
    case TENON_PARAM_DTYPE:
      return "tenon::Dtype";
    case TENON_PARAM_DEVICE:
      return "tenon::Device";
    case TENON_PARAM_INTS:
      return "std::vector<int64_t>, std::span<const int64_t> or IntList";
    case TENON_PARAM_FLOATS:
      return "std::vector<double>, std::span<const double> or FloatList";
    default:
      return "?";
  }
}

void check_parameter(const Described& op, const char* what, const Parameter& got, uint32_t i) {
  const tenon_param_def& expected = op.def.params[i];
  const bool is_optional = expected.flags & TENON_PARAM_FLAG_OPTIONAL;
  if ((got.kinds >> expected.kind & 1) && (got.takes_none || !is_optional)) return;
  op.refuse(std::string(what) + ", parameter `" + expected.name + "`: expected " +
            (is_optional ? "std::optional of " : "") + types_for(expected.kind) + " for " +
            schema::type_name(op.schema.params()[i].kind) + (is_optional ? "?" : "") + ", got " +
            got.name);
}

void check_parameters(const Described& op, const char* what, const Function& got) {
  if (got.count != op.def.nparams)
    op.refuse(std::string(what) + ": expected a C++ function of " + std::to_string(op.def.nparams) +
              " arguments, as the signature has, got one of " + std::to_string(got.count));
  for (uint32_t i = 0; i < op.def.nparams; ++i) check_parameter(op, what, got.parameters[i], i);
}

void check_returned(const Described& op, const char* what, const char* items, int got,
                    size_t expected) {
  if (got >= 0 && static_cast<size_t>(got) != expected)
    op.refuse(std::string(what) + ": expected it to return " + std::to_string(expected) + " " +
              items + ", got " + std::to_string(got));
}

bool is_tensor(const Parameter& parameter) { return parameter.kinds >> TENON_PARAM_TENSOR & 1; }

// The parameters of a gradient function, and what they make the rule keep.
void read_grad_parameters(Described& op, const Function& got) {
  const size_t nouts = op.def.nouts, nargs = op.def.nparams;
  if (got.count != nouts + nargs && got.count != 2 * nouts + nargs)
    op.refuse("grad: expected a C++ function of " + std::to_string(nouts) + " gradients and " +
              std::to_string(nargs) + " arguments, which may be followed by " +
              std::to_string(nouts) + " results, got one of " + std::to_string(got.count));
  for (size_t k = 0; k < nouts; ++k) {
    const Parameter& gradient = got.parameters[k];
    if (!is_tensor(gradient) || (nouts > 1 && !gradient.takes_none))
      op.refuse("grad: the gradient of result `" + op.schema.results()[k].name + "`: expected " +
                (nouts > 1 ? "const std::optional<Tensor>&, because it may be absent, got "
                           : "const Tensor&, got ") +
                gradient.name);
  }
  for (uint32_t i = 0; i < nargs; ++i) {
    const Parameter& argument = got.parameters[nouts + i];
    if (!argument.is_unread) check_parameter(op, "grad", argument, i);
    if (!op.holds_tensors(i)) continue;
    const uint64_t mask = uint64_t{1} << i;
    op.rule.diff_args |= mask;
    if (argument.is_shape_only)
      op.rule.shapes_args |= mask;
    else if (!argument.is_unread)
      op.rule.saves_args |= mask;
  }
  for (size_t k = 0; k < nouts && got.count > nouts + nargs; ++k) {
    const Parameter& result = got.parameters[nouts + nargs + k];
    if (!is_tensor(result) || result.is_shape_only)
      op.refuse("grad: result `" + op.schema.results()[k].name + "`: expected const Tensor&, got " +
                result.name);
    if (!result.is_unread) op.rule.saves_outs |= uint64_t{1} << k;
  }
}

}  // namespace

Described::Described(const std::string& signature, std::string where)
    : schema(signature), origin(std::move(where)) {
  schema.fill(def);
  def.flags |= TENON_OP_NO_METHOD;
  def.origin = origin.c_str();
  def.dtype_mask = kEveryDtype;
  def.self = this;
  for (uint32_t i = 0; i < def.nparams; ++i)
    if (holds_tensors(i)) tensors.push_back(i);
}

void Described::refuse(const std::string& text) const {
  throw Error(TENON_INVALID_ARGUMENT,
              "operator " + schema.canonical() + " at " + origin + ": " + text);
}

bool Described::holds_tensors(uint32_t argument) const {
  const int32_t kind = def.params[argument].kind;
  return kind == TENON_PARAM_TENSOR || kind == TENON_PARAM_TENSORS;
}

bool Described::takes_list() const {
  return tensors.size() == 1 && def.params[tensors[0]].kind == TENON_PARAM_TENSORS;
}

void Described::finish() {
  const bool has_shape = def.infer_self || def.shape == TENON_SHAPE_BROADCAST;
  if (kernels.empty() && !def.decompose_self)
    refuse("it has neither a function, m.def<F>(...), nor a kernel, .kernel<F>(\"cpu\")");
  if (has_function && !rule.backward_self) def.flags |= TENON_OP_COMPOSITE;
  if (is_list() && !is_composite())
    refuse("a Tensor[] result needs a function of other operators, m.def<F>(...), without grad");
  if (!has_shape && (writes_results || (is_composite() && !kernels.empty()))) {
    const char* first = tensors.empty() ? "x" : def.params[tensors[0]].name;
    refuse(std::string(writes_results ? "its kernel writes into results"
                                      : "it has a kernel for whole results") +
           ", and nothing says their shape; add .like(\"" + first +
           "\"), .shape<F>() or .elementwise()");
  }
  if (!has_shape && !is_composite()) def.flags |= TENON_OP_DATA_DEPENDENT;
  if (tensors.empty()) def.compute = TENON_COMPUTE_OUTPUT;
  schema.fill(def);
}

}  // namespace extension

Definition& Definition::doc(std::string_view text) {
  described_.doc = text;
  described_.def.doc = described_.doc.c_str();
  return *this;
}

Definition& Definition::like(std::string_view parameter) {
  extension::Described& op = described_;
  const int index = op.schema.signature().find_param(parameter);
  if (index < 0 || op.def.params[index].kind != TENON_PARAM_TENSOR)
    op.refuse("like(\"" + std::string(parameter) + "\"): expected the name of a Tensor parameter");
  op.like = static_cast<uint32_t>(index);
  op.def.infer_self = extension::infer_like;
  return *this;
}

Definition& Definition::elementwise() {
  extension::Described& op = described_;
  if (op.def.nouts != 1 || op.is_list())
    op.refuse("elementwise(): expected a signature with one Tensor as its result");
  for (uint32_t i = 0; i < op.def.nparams; ++i)
    if (op.def.params[i].kind == TENON_PARAM_TENSOR)
      op.schema.add_param_flags(i, TENON_PARAM_FLAG_PROMOTE | TENON_PARAM_FLAG_BROADCAST);
  op.def.shape = TENON_SHAPE_BROADCAST;
  op.def.compute = TENON_COMPUTE_PROMOTE;
  return in_place();
}

Definition& Definition::in_place() {
  described_.def.flags |= TENON_OP_ELEMENTWISE;
  return *this;
}

Definition& Definition::dtypes(uint64_t mask) {
  described_.def.dtype_mask = mask;
  return *this;
}

Definition& Definition::no_grad() {
  described_.def.flags |= TENON_OP_NO_GRAD;
  return *this;
}

Definition& Definition::whole() {
  described_.has_function = true;
  return *this;
}

Definition& Definition::shape(const extension::Function& function, tenon_infer_self_fn infer) {
  extension::Described& op = described_;
  extension::check_parameters(op, "shape rule", function);
  extension::check_returned(op, "shape rule", "shapes", function.returned, op.def.nouts);
  op.def.infer_self = infer;
  return *this;
}

Definition& Definition::kernel(const extension::Function& function, std::string_view device,
                               const KernelOptions& options, tenon_boxed_fn boxed) {
  extension::Described& op = described_;
  extension::check_parameters(op, "kernel", function);
  if (function.returned == 0) {
    op.writes_results = true;
    if (function.results != op.def.nouts)
      op.refuse("kernel: expected it to end with " + std::to_string(op.def.nouts) +
                " results (Tensor& or View<T>), got " + std::to_string(function.results));
  } else {
    extension::check_returned(op, "kernel", "tensors", function.returned, op.def.nouts);
  }
  tenon_kernel_def kernel = {};
  kernel.struct_size = sizeof kernel;
  kernel.traits = options.traits;
  kernel.op = op.name();
  kernel.device = op.devices.emplace_back(device).c_str();
  kernel.dtype_mask = options.dtypes;
  if (!kernel.dtype_mask)
    kernel.dtype_mask =
        function.element < 0 ? extension::kEveryDtype : uint64_t{1} << function.element;
  kernel.score = options.score;
  kernel.boxed = boxed;
  op.kernels.push_back(kernel);
  return *this;
}

Definition& Definition::decompose(const extension::Function& function,
                                  tenon_decompose_self_fn decompose) {
  extension::Described& op = described_;
  extension::check_parameters(op, "function", function);
  if (!op.is_list())
    extension::check_returned(op, "function", "tensors", function.returned, op.def.nouts);
  else if (function.returned >= 0)
    op.refuse("function: expected it to return std::vector<Tensor> for Tensor[]");
  op.def.decompose_self = decompose;
  return *this;
}

Definition& Definition::grad(const extension::Function& function, tenon_backward_self_fn backward) {
  extension::Described& op = described_;
  op.rule = {};
  op.rule.struct_size = sizeof op.rule;
  op.rule.flags = TENON_GRAD_RULE_REPLACE;
  op.rule.op = op.name();
  op.rule.self = &op;
  extension::read_grad_parameters(op, function);
  if (!op.takes_list())
    extension::check_returned(op, "grad", "gradients, one for each tensor parameter",
                              function.returned, op.tensors.size());
  op.rule.backward_self = backward;
  return *this;
}

}  // namespace tenon
