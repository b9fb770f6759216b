// SPDX-License-Identifier: Apache-2.0
#include "api/definition.hpp"

#include <algorithm>

#include "api/arguments.hpp"
#include "api/tensor.hpp"

namespace tenon::paddle {
namespace {

constexpr uint64_t kAllDtypes = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;

const char* schema_type(AttributeType type) {
  switch (type) {
    case AttributeType::kBool:
      return "bool ";
    case AttributeType::kInt:
    case AttributeType::kInt64:
      return "int ";
    case AttributeType::kFloat:
    case AttributeType::kDouble:
      return "float ";
    case AttributeType::kString:
    case AttributeType::kStrings:
      return "str ";
    case AttributeType::kInts:
    case AttributeType::kInt64s:
      return "int[] ";
    default:
      return "float[] ";
  }
}

tenon_status infer_entry(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t,
                         tenon_err* err, void* self) {
  return guarded(err, [&] { static_cast<const Definition*>(self)->infer(args, outs); });
}

// The input that an output has shape and dtype of, where no function says them; -1: none.
int model_input(const Declaration& op, size_t output) {
  if (op.written_input[output] >= 0) return op.written_input[output];
  if (!op.forward) return op.inputs.size() == 1 && !op.inputs[0].is_optional ? 0 : -1;
  return find_differentiated(op.outputs[output], op.inputs);
}

std::string number(size_t value) { return std::to_string(value); }

// What an author's shape or dtype function says, one for each result: it may leave those out that
// are written in place.
template <typename T>
class Answers {
 public:
  Answers(const Definition& definition, const char* what, std::vector<T> given)
      : given_(std::move(given)) {
    const Declaration& op = definition.op();
    size_t all = definition.result_count(), fresh = 0;
    for (size_t j = 0; j < op.outputs.size(); ++j)
      if (op.written_input[j] < 0) fresh += definition.counts()[j];
    covers_all_ = given_.size() == all;
    if (given_.size() != all && given_.size() != fresh)
      throw Error(TENON_INTERNAL, std::string("its ") + what + " function returned " +
                                      number(given_.size()) + " elements, expected " +
                                      number(fresh) + ", one for each output tensor");
  }
  const T* next(bool is_written) {
    if (is_written && !covers_all_) return nullptr;
    return &given_[at_++];
  }

 private:
  std::vector<T> given_;
  bool covers_all_;
  size_t at_ = 0;
};

}  // namespace

Definition::Definition(const Declaration& op, std::vector<uint32_t> counts)
    : op_(op), counts_(std::move(counts)), offsets_{0} {
  for (uint32_t count : counts_) offsets_.push_back(offsets_.back() + count);
  if (result_count() > kMaxResults)
    throw Error(TENON_UNSUPPORTED, "[" + op.info.name + "] expected at most " +
                                       number(kMaxResults) + " result tensors in all, got " +
                                       number(result_count()));
  can_infer_ = !counts_.empty() && find_can_infer();
  schema_ = std::make_unique<Schema>(schema_text());
  doc_ = "Custom operator " + op.info.name + " of " + op.info.library + ".";
  if (op.is_in_place) op_def_.flags |= TENON_OP_ELEMENTWISE;
  if (counts_.empty()) {
    op_def_.flags |= TENON_OP_COMPOSITE;
    op_def_.decompose_self = counting_entry;
  } else if (can_infer_) {
    op_def_.infer_self = infer_entry;
  } else {
    op_def_.flags |= TENON_OP_DATA_DEPENDENT;
  }
  if (op.is_variable && !counts_.empty()) op_def_.flags |= TENON_OP_INTERNAL;
  schema_->fill(op_def_);
  op_def_.doc = doc_.c_str();
  op_def_.origin = op_.info.library.c_str();
  op_def_.compute = TENON_COMPUTE_FIRST;
  op_def_.shape = TENON_SHAPE_INFER;
  op_def_.out_dtype = TENON_OUT_COMPUTE;
  op_def_.dtype_mask = kAllDtypes;
  op_def_.self = this;
  kernel_def_ = {.struct_size = sizeof kernel_def_,
                 .op = schema_->name().c_str(),
                 .device = host->device_kind_name(TENON_DEVICE_KIND(host->device_host())),
                 .dtype_mask = kAllDtypes,
                 .boxed = kernel_entry};
}

std::string Definition::schema_text() const {
  std::string text = op_.operator_name;
  if (op_.is_variable)
    for (uint32_t count : counts_) text += "_of" + number(count);
  text += "(";
  std::vector<std::string> used;
  auto add = [&](const std::string& type, const std::string& name) {
    text += (used.empty() ? "" : ", ") + type + name;
    used.push_back(name);
  };
  for (const Name& input : op_.inputs)
    add(std::string("Tensor") + (input.is_list ? "[]" : "") + (input.is_optional ? "? " : " "),
        input.identifier);
  for (const Attribute& attribute : op_.attributes)
    add(schema_type(attribute.type), attribute.identifier);
  if (counts_.empty()) return text + ") -> Tensor[]";
  // The name of a lone result, unless a parameter has it.
  if (result_count() == 1 && std::find(used.begin(), used.end(), "out") == used.end())
    return text + ") -> Tensor";
  text += ") -> (";
  bool is_first = true;
  for (size_t j = 0; j < counts_.size(); ++j) {
    for (uint32_t k = 0; k < counts_[j]; ++k) {
      std::string name = op_.outputs[j].identifier;
      if (op_.outputs[j].is_list) name += "_" + number(k);
      while (std::find(used.begin(), used.end(), name) != used.end()) name += "_";
      used.push_back(name);
      text += (is_first ? "Tensor " : ", Tensor ") + name;
      is_first = false;
    }
  }
  return text + ")";
}

bool Definition::find_can_infer() const {
  for (size_t j = 0; j < op_.outputs.size(); ++j) {
    bool is_written = op_.written_input[j] >= 0;
    if (op_.lacks_infer && !is_written) return false;
    bool has_shape = op_.info.infer_shape.run && !is_written;
    bool has_dtype = op_.info.infer_dtype.run && !is_written;
    int model = model_input(op_, j);
    // One tensor of a list does not determine a result that is no list.
    bool has_model =
        model >= 0 && op_.inputs[static_cast<size_t>(model)].is_list == op_.outputs[j].is_list;
    if (!(has_shape || has_model) || !(has_dtype || has_model)) return false;
  }
  return true;
}

// A result whose extents the kernel decides takes its place only where the kernel runs.
void Definition::expect_processor(const tenon_value* args, const std::string& output,
                                  size_t axis) const {
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    for (tenon_tensor* tensor : tensors_of(args[i]))
      if (tensor && tensor->device != host->device_host())
        throw Error(TENON_UNSUPPORTED,
                    "[" + op_.info.name + "] the extent of axis " + number(axis) + " of `" +
                        output +
                        "` is known only when the kernel has run (its shape function "
                        "gives -1), and kernels run on the processor; call it with tensors there");
}

void Definition::infer(const tenon_value* args, tenon_meta* outs) const {
  std::unique_ptr<Answers<std::vector<int64_t>>> shapes;
  std::unique_ptr<Answers<::paddle::DataType>> dtypes;
  if (op_.info.infer_shape.run) {
    ::paddle::InferShapeContext context;
    context.inputs.resize(op_.inputs.size());
    for (size_t i = 0; i < op_.inputs.size(); ++i)
      set_input(context.inputs[i], op_.inputs[i], args[i],
                [](tenon_tensor* tensor) { return shape_of(*tensor); });
    context.attrs = attributes_of(op_, args);
    shapes = std::make_unique<Answers<std::vector<int64_t>>>(*this, "shape",
                                                             op_.info.infer_shape.run(&context));
  }
  if (op_.info.infer_dtype.run) {
    ::paddle::InferDtypeContext context;
    context.inputs.resize(op_.inputs.size());
    for (size_t i = 0; i < op_.inputs.size(); ++i)
      set_input(context.inputs[i], op_.inputs[i], args[i],
                [](tenon_tensor* tensor) { return data_type(tensor->dtype); });
    context.attrs = attributes_of(op_, args);
    dtypes = std::make_unique<Answers<::paddle::DataType>>(*this, "dtype",
                                                           op_.info.infer_dtype.run(&context));
  }
  for (size_t j = 0; j < op_.outputs.size(); ++j) {
    bool is_written = op_.written_input[j] >= 0;
    int model = model_input(op_, j);
    for (uint32_t k = 0; k < counts_[j]; ++k) {
      const std::vector<int64_t>* shape = shapes ? shapes->next(is_written) : nullptr;
      const ::paddle::DataType* dtype = dtypes ? dtypes->next(is_written) : nullptr;
      auto like = tensors_of(args[model < 0 ? 0 : model]);
      if ((!shape || !dtype) && k >= like.size())
        throw Error(TENON_INVALID_ARGUMENT,
                    "result `" + op_.outputs[j].text + "` has the form of an input that is none");
      tenon_meta& meta = outs[offset(j) + k];
      std::vector<int64_t> sizes = shape ? *shape : shape_of(*like[k]);
      if (sizes.size() > TENON_MAX_NDIM)
        throw Error(TENON_INVALID_ARGUMENT, "its shape function gave " + number(sizes.size()) +
                                                " axes, expected at most " +
                                                number(TENON_MAX_NDIM));
      meta = {};
      meta.kind = TENON_META_NEW;
      meta.ndim = static_cast<int32_t>(sizes.size());
      meta.dtype = dtype ? static_cast<uint8_t>(dtype_id(*dtype)) : like[k]->dtype;
      for (size_t axis = 0; axis < sizes.size(); ++axis) {
        if (sizes[axis] < -1)
          throw Error(TENON_INVALID_ARGUMENT, "its shape function gave an extent of " +
                                                  std::to_string(sizes[axis]) + " for `" +
                                                  op_.outputs[j].text +
                                                  "`, expected at least 0, or -1 where only the "
                                                  "kernel knows");
        if (sizes[axis] == -1) {
          expect_processor(args, op_.outputs[j].text, axis);
          has_open_extents_.store(true, std::memory_order_relaxed);
        }
        meta.shape[axis] = std::max<int64_t>(sizes[axis], 0);
      }
    }
  }
}

std::vector<uint32_t> count_results(const Declaration& op, const tenon_value* args,
                                    const tenon_value* forward_args) {
  std::vector<uint32_t> counts;
  int open = -1;  // a list of unknown length
  uint32_t known = 0;
  for (size_t j = 0; j < op.outputs.size(); ++j) {
    const Name& output = op.outputs[j];
    const tenon_value* subject = nullptr;
    if (op.written_input[j] >= 0) subject = &args[op.written_input[j]];
    if (op.forward && !subject)
      if (int own = find_differentiated(output, op.inputs); own >= 0) subject = &args[own];
    if (op.forward && forward_args && !subject)
      if (int its = find_differentiated(output, op.forward->inputs); its >= 0)
        subject = &forward_args[its];
    uint32_t count = 1;
    if (subject && (output.is_list || output.is_optional || op.written_input[j] >= 0))
      count = static_cast<uint32_t>(tensors_of(*subject).size());
    else if (output.is_list && open < 0)
      open = static_cast<int>(j), count = 0;
    else if (output.is_list)
      open = -2;
    counts.push_back(count);
    if (op.written_input[j] < 0) known += count;
  }
  if (open == -1) return counts;
  if (open == -2 || !op.info.infer_shape.run)
    throw Error(TENON_UNSUPPORTED,
                "[" + op.info.name + "] how many tensors are in output list \"" +
                    op.outputs[open < 0 ? 0 : static_cast<size_t>(open)].text +
                    "\"? expected SetInplaceMap, an input list of that name, or, for one list, a "
                    "shape function that returns a shape for each");
  ::paddle::InferShapeContext context;
  context.inputs.resize(op.inputs.size());
  for (size_t i = 0; i < op.inputs.size(); ++i)
    set_input(context.inputs[i], op.inputs[i], args[i],
              [](tenon_tensor* tensor) { return shape_of(*tensor); });
  context.attrs = attributes_of(op, args);
  size_t all = op.info.infer_shape.run(&context).size();
  counts[static_cast<size_t>(open)] = static_cast<uint32_t>(all < known ? 0 : all - known);
  return counts;
}

}  // namespace tenon::paddle
