// SPDX-License-Identifier: Apache-2.0
#include "checks/subgraphs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "operators/compare.hpp"
#include "subject/device.hpp"

namespace tenon::kit {
namespace {

constexpr size_t kLaterBytes = 40;  // that a later host's step has behind this one's

// Ends the check as absent before anything is loaded.
Session& need_subgraph(Session& session) {
  Plugin plugin(session);
  plugin.need_group<tenon_subgraph_api>(TENON_GROUP_SUBGRAPH);
  return session;
}

ExampleArgument value(int index) { return {index, kNoValue}; }
ExampleArgument number(double given) { return {-1, boxed(given)}; }
ExampleArgument integer(int64_t given) { return {-1, boxed(given)}; }

// Values that a part reads and does not make, and those that it makes for others.
void find_ends(Part& part) {
  const Example& example = *part.example;
  auto is_made_in = [&](int id, size_t begin, size_t end) {
    return std::any_of(example.steps.begin() + static_cast<int64_t>(begin),
                       example.steps.begin() + static_cast<int64_t>(end),
                       [&](const ExampleStep& step) { return step.result == id; });
  };
  auto is_read_in = [&](int id, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      for (const ExampleArgument& argument : example.steps[i].arguments)
        if (argument.value == id) return true;
    return false;
  };
  for (int id = 0; id < static_cast<int>(example.shapes.size()); ++id) {
    const bool is_made = is_made_in(id, part.begin, part.end);
    if (!is_made && is_read_in(id, part.begin, part.end)) part.inputs.push_back(id);
    const bool is_needed =
        is_read_in(id, part.end, example.steps.size()) || !is_read_in(id, 0, example.steps.size());
    if (is_made && is_needed) part.outputs.push_back(id);
  }
}

}  // namespace

std::string Part::text() const {
  const std::string steps =
      end - begin == 1 ? kit::text("step ", begin) : kit::text("steps ", begin, " to ", end - 1);
  return example->name + ", " + steps;
}

Compiler::Compiler(Session& session) : engine_(need_subgraph(session)) {
  const void* table = nullptr;
  Error error;
  const tenon_status status =
      host->device_group_borrow(device(), TENON_GROUP_SUBGRAPH, &table, &handle_, error);
  session.require(status == TENON_OK, "the host lends the group `subgraph`",
                  describe(status, error));
  api_ = static_cast<const tenon_subgraph_api*>(table);
  add_examples();
  for (Tensor* each : {&from_, &to_}) *each = filled(TENON_DTYPE_U8, {8 << 20}, 0);
}
Compiler::~Compiler() {
  if (api_) host->device_group_return(device(), TENON_GROUP_SUBGRAPH);
}

void Compiler::add_examples() {
  std::deque<Example> all;
  auto step = [&](const char* name, std::vector<ExampleArgument> arguments,
                  std::vector<int64_t> shape) {
    Example& example = all.back();
    ExampleStep made = {host->op_find(name), std::move(arguments),
                        static_cast<int>(example.shapes.size())};
    engine_.session().require(made.op, text("the operator ", name), "none of that name");
    const tenon_op_def* def = host->op_def(made.op);
    for (size_t i = made.arguments.size(); i < def->nparams; ++i)
      made.arguments.push_back(
          {-1, reinterpret_cast<const tenon_param_def*>(reinterpret_cast<const char*>(def->params) +
                                                        i * def->param_size)
                   ->default_value});
    example.shapes.push_back(std::move(shape));
    example.steps.push_back(std::move(made));
    return example.steps.back().result;
  };
  {
    const std::vector<int64_t> shape = {33, 65};
    all.push_back({"chain", 2, {shape, {65}}, {}});
    const int sum = step("add", {value(0), value(1)}, shape);
    const int product = step("multiply", {value(sum), value(0)}, shape);
    const int large = step("maximum", {value(product), number(0.25)}, shape);
    const int result = step("exp", {value(large)}, shape);
    step("multiply", {value(result), number(0.5)}, shape);
    step("add", {value(large), value(product)}, shape);  // a second result, made of what is between
  }
  {
    all.push_back({"layer", 5, {{17, 24}, {24, 40}, {40}, {40, 8}, {8}}, {}});
    const int wide = step("matmul", {value(0), value(1)}, {17, 40});
    const int sum = step("add", {value(wide), value(2)}, {17, 40});
    const int active = step("maximum", {value(sum), number(0.0)}, {17, 40});
    const int narrow = step("matmul", {value(active), value(3)}, {17, 8});
    step("add", {value(narrow), value(4)}, {17, 8});
  }
  {
    const std::vector<int64_t> heads = {2, 3, 16, 8}, scores = {2, 3, 16, 16};
    all.push_back({"attention", 3, {heads, heads, heads}, {}});
    const int keys = step("transpose", {value(1), integer(-2), integer(-1)}, {2, 3, 8, 16});
    const int products = step("matmul", {value(0), value(keys)}, scores);
    const int scaled = step("multiply", {value(products), number(0.375)}, scores);
    const int weights = step("softmax", {value(scaled), integer(-1)}, scores);
    step("matmul", {value(weights), value(2)}, heads);
  }
  {
    // More steps than a table of a fixed size may have room for.
    const std::vector<int64_t> shape = {9, 31};
    all.push_back({"long", 2, {shape, shape}, {}});
    int last = 0;
    for (int i = 0; i < 40; ++i)
      last = step(i % 2 ? "maximum" : "add", {value(last), i % 2 ? number(i) : value(1)}, shape);
  }
  for (Example& example : all) {
    Tensors values;
    if (evaluate(example, 1, values)) examples_.push_back(std::move(example));
  }
}

bool Compiler::evaluate(const Example& example, uint32_t seed, Tensors& values) {
  for (int i = 0; i < example.ninputs; ++i) {
    const auto& shape = example.shapes[static_cast<size_t>(i)];
    Tensor made = engine_.create(engine_.cpu(), TENON_DTYPE_F32, shape);
    for (int64_t k = 0; k < made->numel; ++k)
      static_cast<float*>(made->data)[k] =
          static_cast<float>(std::sin(0.37 * double(k) + 1.3 * i + 0.9 * seed));
    values.push_back(engine_.on(device(), made));
  }
  for (const ExampleStep& step : example.steps) {
    Values arguments;
    for (const ExampleArgument& argument : step.arguments)
      arguments.push_back(argument.value < 0
                              ? argument.attribute
                              : boxed(values[static_cast<size_t>(argument.value)].get()));
    Answer answer = engine_.call(step.op, arguments);
    if (!answer.ok()) return false;
    values.push_back(answer.outs[0]);
  }
  return true;
}

void Compiler::claim(const Description& described, uint32_t* parts) {
  Error error;
  const tenon_status status = api().claim(handle(), &described.table(), parts, error);
  engine_.session().require(status == TENON_OK, "claim succeeds, if only to claim nothing",
                            describe(status, error));
}

std::vector<Part> Compiler::claim(const Example& example) {
  const size_t count = example.steps.size();
  const Description all(*this, example, 0, count);
  std::vector<uint32_t> numbers(count + 1);  // subgraph.claim finds who writes one too many
  claim(all, numbers.data());
  std::vector<Part> parts;
  for (size_t begin = 0; begin < count;) {
    size_t end = begin + 1;
    while (end < count && numbers[end] == numbers[begin]) ++end;
    if (numbers[begin] != 0) {
      Part part = {&example, begin, end, {}, {}};
      find_ends(part);
      parts.push_back(std::move(part));
    }
    begin = end;
  }
  return parts;
}

Run Compiler::prepare(const Part& part, uint32_t seed) {
  Tensors values;
  engine_.session().require(evaluate(*part.example, seed, values),
                            "the steps run one by one, as they did before", "one failed");
  Run run;
  for (int id : part.inputs) run.inputs.push_back(engine_.on(device(), values[size_t(id)]));
  for (int id : part.outputs) run.expected.push_back(engine_.on(device(), values[size_t(id)]));
  return run;
}

Tensors Compiler::outputs(const Part& part) {
  Tensors made;
  for (int id : part.outputs)
    made.push_back(filled(TENON_DTYPE_F32, part.example->shapes[size_t(id)], 0x7b));
  return made;
}

Tensor Compiler::filled(int32_t dtype, const std::vector<int64_t>& shape, unsigned char byte) {
  return kit::filled(engine_, dtype, shape, byte);
}

tenon_status Compiler::try_run(const Executable& executable, const Tensors& inputs,
                               const Tensors& outputs, tenon_stream stream, tenon_err* err,
                               uint64_t must_understand, Request request, Tensor workspace) {
  Kept& kept = kept_.emplace_back();
  for (const Tensor& input : inputs) kept.inputs.push_back(input.get());
  for (const Tensor& output : outputs) kept.outputs.push_back(output.get());
  if (request == kForgets)
    for (const Tensors* tensors : {&inputs, &outputs})
      for (const Tensor& tensor : *tensors)
        kept.decoys.push_back(filled(tensor->dtype, shape_of(tensor), 0));
  if (request == kForgets) keep_busy();
  if (executable.workspace_bytes() && !workspace) {
    // Memory that one stream has given back is free for that stream at once, and for no other.
    const tenon_stream before = host->stream_set_current(device(), stream);
    workspace = engine_.create(device(), TENON_DTYPE_U8,
                               {static_cast<int64_t>(executable.workspace_bytes())});
    host->stream_set_current(device(), before);
  }
  kept.request = {.struct_size = sizeof kept.request,
                  .reserved = 0,
                  .must_understand = must_understand,
                  .executable = executable.handle(),
                  .inputs = kept.inputs.data(),
                  .outputs = kept.outputs.data(),
                  .workspace = workspace ? workspace->data : nullptr,
                  .stream = stream};
  const tenon_status status = api().executable_run(handle(), &kept.request, err);
  if (workspace) host->tensor_record_use(workspace.get(), stream);
  for (const Tensors* tensors : {&inputs, &outputs})
    for (const Tensor& tensor : *tensors) host->tensor_record_use(tensor.get(), stream);
  if (request == kForgets) {
    for (size_t i = 0; i < inputs.size(); ++i) kept.inputs[i] = kept.decoys[i].get();
    for (size_t i = 0; i < outputs.size(); ++i)
      kept.outputs[i] = kept.decoys[inputs.size() + i].get();
  }
  return status;
}

void Compiler::run(const Executable& executable, const Tensors& inputs, const Tensors& outputs,
                   tenon_stream stream, Request request, Tensor workspace) {
  Error error;
  const tenon_status status =
      try_run(executable, inputs, outputs, stream, error, 0, request, std::move(workspace));
  engine_.session().require(status == TENON_OK, "executable_run succeeds", describe(status, error));
}

void Compiler::keep_busy() {
  for (int i = 0; i < 40; ++i) engine_.copy(to_, from_);
}

void Compiler::sync(tenon_stream stream) { kit::sync(engine_, stream); }

void Compiler::compare(const Part& part, const Executable& executable, const Tensors& expected,
                       const Tensors& got, const std::string& what) {
  compare(part, executable.is_exact(), expected, got, what);
}

void Compiler::compare(const Part& part, bool is_exact, const Tensors& expected, const Tensors& got,
                       const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string wanted = text(part.text(), ", ", what, ": result ", i);
    const std::string worst = difference(engine_, engine_.on(engine_.cpu(), expected[i]), got[i]);
    if (!engine_.session().expect(worst.empty(), wanted + " is that of the steps", worst) ||
        !is_exact)
      continue;
    const std::string want = bytes_of(engine_, expected[i]), have = bytes_of(engine_, got[i]);
    const std::string bits =
        first_difference(Bytes(want.begin(), want.end()), Bytes(have.begin(), have.end()));
    engine_.session().expect(
        bits.empty(), wanted + " has the bits of the steps, as TENON_EXECUTABLE_EXACT says", bits);
  }
}

Description::Description(Compiler& compiler, const Example& example, size_t begin, size_t end,
                         const Tensors& constants, size_t behind_steps)
    : name_(text("kit/", example.name)) {
  const tenon_device_id device = compiler.device();
  for (const auto& shape : example.shapes)
    values_.push_back(compiler.engine().create(TENON_DEVICE_META, TENON_DTYPE_F32, shape));
  const size_t step_size = sizeof(tenon_subgraph_step) + behind_steps;
  steps_.assign((end - begin) * step_size, 0xa5);
  for (size_t i = begin; i < end; ++i) {
    const ExampleStep& step = example.steps[i];
    const tenon_op_def* def = host->op_def(step.op);
    auto& arguments = arguments_.emplace_back();
    for (size_t k = 0; k < step.arguments.size(); ++k) {
      const ExampleArgument& argument = step.arguments[k];
      const auto* parameter = reinterpret_cast<const tenon_param_def*>(
          reinterpret_cast<const char*>(def->params) + k * def->param_size);
      if (argument.value >= 0) {
        arguments.push_back(boxed(values_[static_cast<size_t>(argument.value)].get()));
      } else if (parameter->kind == TENON_PARAM_TENSOR &&
                 argument.attribute.tag == TENON_VALUE_FLOAT) {
        auto& [memory, scalar] = numbers_.emplace_back(argument.attribute.v.f, tenon_tensor{});
        const Tensor like = compiler.engine().create(TENON_DEVICE_META, TENON_DTYPE_F64, {});
        scalar = *like.get();
        scalar.data = &memory;
        scalar.device = device;
        scalar.flags = TENON_TENSOR_CONTIGUOUS | TENON_TENSOR_HOST_SCALAR | TENON_TENSOR_READONLY;
        scalar.shape = scalar.strides = nullptr;
        arguments.push_back(boxed(&scalar));
      } else {
        arguments.push_back(argument.attribute);
      }
    }
    results_.push_back(values_[static_cast<size_t>(step.result)].get());
    const tenon_subgraph_step made = {.op = step.op,
                                      .args = arguments.data(),
                                      .outs = &results_.back(),
                                      .nargs = static_cast<uint32_t>(arguments.size()),
                                      .nouts = 1};
    std::memcpy(steps_.data() + (i - begin) * step_size, &made, sizeof made);
  }
  Part part = {&example, begin, end, {}, {}};
  find_ends(part);
  for (int id : part.inputs) inputs_.push_back(values_[static_cast<size_t>(id)].get());
  for (int id : part.outputs) outputs_.push_back(values_[static_cast<size_t>(id)].get());
  constants_.resize(inputs_.size());
  for (size_t i = 0; i < constants.size(); ++i) constants_[i] = constants[i].get();
  table_ = {.struct_size = sizeof table_,
            .step_size = static_cast<uint32_t>(step_size),
            .must_understand = 0,
            .name = name_.c_str(),
            .steps = reinterpret_cast<const tenon_subgraph_step*>(steps_.data()),
            .inputs = inputs_.data(),
            .outputs = outputs_.data(),
            .constants = constants_.data(),
            .nsteps = static_cast<uint32_t>(end - begin),
            .ninputs = static_cast<uint32_t>(inputs_.size()),
            .noutputs = static_cast<uint32_t>(outputs_.size()),
            .reserved = 0};
}

Executable::Executable(Compiler& compiler, const Part& part, const Tensors& constants, Host later)
    : compiler_(compiler) {
  const Description described(compiler, *part.example, part.begin, part.end, constants,
                              later == kLaterHost ? kLaterBytes : 0);
  info_.struct_size = sizeof info_;
  Error error;
  const tenon_status status = compiler.api().executable_create(
      compiler.handle(), &described.table(), &executable_, &info_, error);
  Session& session = compiler.engine().session();
  if (status == TENON_UNSUPPORTED)
    session.absent("executable_create has second thoughts about " + part.text() + ": " +
                   error.text());
  session.require(status == TENON_OK && executable_,
                  "executable_create of " + part.text() + ", which the device has claimed",
                  describe(status, error));
}
Executable::~Executable() {
  if (executable_) compiler_.api().executable_destroy(compiler_.handle(), executable_);
}

}  // namespace tenon::kit
