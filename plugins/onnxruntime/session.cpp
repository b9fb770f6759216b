// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <tenon/error.hpp>
#include <tenon/plugin.hpp>

#include <algorithm>

#include "model_writer.hpp"
#include "subgraph.hpp"

namespace tenon::onnxruntime {
namespace {

constexpr std::string_view kCpu = "CPUExecutionProvider";

// What a release function frees, at the end of its block.
template <class T>
class Owned {
 public:
  explicit Owned(void (*release)(T*)) : release_(release) {}
  ~Owned() {
    if (pointer_) release_(pointer_);
  }
  Owned(const Owned&) = delete;
  T** out() { return &pointer_; }
  T* get() const { return pointer_; }

 private:
  void (*release_)(T*);
  T* pointer_ = nullptr;
};

std::vector<const char*> texts(const std::vector<std::string>& list) {
  std::vector<const char*> made;
  for (const std::string& text : list) made.push_back(text.c_str());
  return made;
}

void append_provider(SessionOptions* session, const Provider& provider) {
  const Library& library = Library::get();
  const Api& api = library.api();
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : provider.settings) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  const char* name = provider.name.c_str();
  if (provider.name == kCpu) return;  // the last one by itself
  if (provider.name == "TensorrtExecutionProvider") {
    Owned<TensorRtOptions> options(api.release_tensorrt_options);
    library.check(api.create_tensorrt_options(options.out()), name);
    library.check(
        api.update_tensorrt_options(options.get(), keys.data(), values.data(), keys.size()), name);
    return library.check(api.append_tensorrt(session, options.get()), name);
  }
  if (provider.name == "CUDAExecutionProvider") {
    Owned<CudaOptions> options(api.release_cuda_options);
    library.check(api.create_cuda_options(options.out()), name);
    library.check(api.update_cuda_options(options.get(), keys.data(), values.data(), keys.size()),
                  name);
    return library.check(api.append_cuda(session, options.get()), name);
  }
  // Others go by a name without the ending.
  const std::string_view whole = provider.name;
  const std::string word(whole.substr(0, whole.find("ExecutionProvider")));
  library.check(api.append_provider(session, word.c_str(), keys.data(), values.data(), keys.size()),
                name);
}

}  // namespace

void check_providers(const Options& options) {
  const std::vector<std::string>& known = Library::get().providers();
  for (const Provider& each : options.providers) {
    if (std::find(known.begin(), known.end(), each.name) == known.end()) {
      std::string list;
      for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
      throw Error(TENON_UNAVAILABLE,
                  "onnxruntime: expected a provider among " + list + ", which ONNX Runtime " +
                      Library::get().version() + " has, got '" + each.name +
                      "'; install a build of ONNX Runtime with it, and name its library in "
                      "TENON_ONNXRUNTIME");
    }
    if (each.name == kCpu && !each.settings.empty())
      throw Error(TENON_INVALID_ARGUMENT,
                  "onnxruntime: options: CPUExecutionProvider has no settings, got '" +
                      each.settings[0].first + "'; set config.<entry> instead");
  }
}

void Executable::ReleaseValue::operator()(Value* value) const {
  Library::get().api().release_value(value);
}

Executable::ValuePtr Executable::value_of(const tenon_tensor& tensor) {
  const Library& library = Library::get();
  Value* made = nullptr;
  library.check(
      library.api().create_tensor(
          library.host_memory(), tensor.data,
          static_cast<size_t>(tensor.numel) * host->dtype_size(tensor.dtype), tensor.shape,
          static_cast<size_t>(tensor.ndim), element_type(tensor.dtype), &made),
      "tensor");
  return ValuePtr(made);
}

Executable::Executable(const tenon_subgraph& graph, const Options& options) {
  const Library& library = Library::get();
  const Api& api = library.api();
  const WrittenModel written = write_model(graph, options);
  inputs_ = written.inputs;
  input_names_ = written.input_names;
  output_names_ = written.output_names;
  Owned<SessionOptions> session(api.release_session_options);
  library.check(api.create_session_options(session.out()), "session options");
  const int threads = options.threads ? options.threads : host->thread_count();
  library.check(api.set_intra_op_threads(session.get(), threads), "threads");
  library.check(api.set_inter_op_threads(session.get(), 1), "threads");
  // Tenon's threads work between the runs of a session, and need the processors.
  library.check(api.add_config_entry(session.get(), "session.intra_op.allow_spinning", "0"),
                "config");
  for (const auto& [key, value] : options.config)
    library.check(api.add_config_entry(session.get(), key.c_str(), value.c_str()), key.c_str());
  for (const Provider& provider : options.providers) append_provider(session.get(), provider);
  std::vector<const Value*> constants;
  for (uint32_t input : written.constants)
    constants.push_back(constants_.emplace_back(value_of(*graph.constants[input])).get());
  const std::vector<const char*> names = texts(written.constant_names);
  if (!constants.empty())
    library.check(api.add_external_initializers(session.get(), names.data(), constants.data(),
                                                constants.size()),
                  "weights");
  library.check(api.create_session(library.env(), written.bytes.data(), written.bytes.size(),
                                   session.get(), &session_),
                graph.name);
}

Executable::~Executable() {
  if (session_ && ::getpid() == process_) Library::get().api().release_session(session_);
}

void Executable::run(const tenon_executable_request& request) const {
  if (::getpid() != process_)
    throw Error(TENON_FAILED_PRECONDITION,
                "onnxruntime: its session was made before this process was forked; load the "
                "program in the child");
  const Library& library = Library::get();
  std::vector<ValuePtr> owned;
  std::vector<const Value*> inputs;
  std::vector<Value*> outputs;
  for (uint32_t input : inputs_)
    inputs.push_back(owned.emplace_back(value_of(*request.inputs[input])).get());
  for (size_t i = 0; i < output_names_.size(); ++i)
    outputs.push_back(owned.emplace_back(value_of(*request.outputs[i])).get());
  const std::vector<const char*> input_names = texts(input_names_),
                                 output_names = texts(output_names_);
  library.check(
      library.api().run(session_, nullptr, input_names.data(), inputs.data(), inputs.size(),
                        output_names.data(), outputs.size(), outputs.data()),
      "run");
}

}  // namespace tenon::onnxruntime
