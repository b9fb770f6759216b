// SPDX-License-Identifier: Apache-2.0
// The plugin of an operator package: its table, put together from what the other emitters write,
// and what the build must know of it.
#include <algorithm>

#include "emit/cpu_kernels.hpp"
#include "emit/emit.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// Kernels of these are compiled by a compiler of their own, which may be absent.
bool is_optional(const std::string& device) { return device == "cuda" || device == "hip"; }

bool has_generated_loops(const Operator& op) { return !op.cases.empty() || op.reduction; }

// The functions that list generated CPU kernels: "elementwise_acme_kernels".
std::vector<std::string> cpu_lists(const Package& package) {
  std::vector<std::string> names;
  for (const std::string& file : package.files) {
    bool elementwise = false, reduction = false;
    for (const Operator* op : package.in_file(file)) {
      elementwise = elementwise || !op->cases.empty();
      reduction = reduction || op->reduction;
    }
    if (elementwise) names.push_back(cat("elementwise_", stem(file), "_kernels"));
    if (reduction) names.push_back(cat("reduction_", stem(file), "_kernels"));
  }
  return names;
}

struct Kernels {
  size_t count = 0;
  std::string declarations, steps;
  std::vector<std::string> devices;  // in order of first mention
};

void add_device(Kernels& kernels, const std::string& device) {
  if (std::find(kernels.devices.begin(), kernels.devices.end(), device) == kernels.devices.end())
    kernels.devices.push_back(device);
}

void add_generated(const Package& package, Kernels& kernels) {
  std::vector<std::string> lists = cpu_lists(package);
  if (lists.empty()) return;
  add_device(kernels, "cpu");
  for (const Operator* op : package.emitted) kernels.count += has_generated_loops(*op);
  kernels.declarations += "\nnamespace tenon::cpu::TENON_CPU_ISA {\n";
  for (const std::string& list : lists) {
    kernels.declarations += cat("KernelList ", list, "();\n");
    kernels.steps +=
        cat("  for (tenon_kernel_def kernel : ::tenon::cpu::TENON_CPU_ISA::", list, "()) {\n",
            "    kernel.device = \"cpu\";\n    kernels[count++] = kernel;\n  }\n");
  }
  kernels.declarations += "}  // namespace tenon::cpu::TENON_CPU_ISA\n";
}

void add_written(const Package& package, Kernels& kernels) {
  std::string declarations;
  for (const Operator* op : package.emitted) {
    for (const WrittenKernel& kernel : op->kernels) {
      ++kernels.count;
      add_device(kernels, kernel.device);
      std::string function = cat(op->name, "_", kernel.device);
      // Better than the loop that is generated from the expression.
      int score = has_generated_loops(*op) && kernel.device == "cpu" ? 1 : 0;
      std::string step =
          cat("  kernels[count++] = {  // ", kernel.where.source(),
              "\n      .struct_size = sizeof(tenon_kernel_def),\n      .traits = ",
              op->has_tag("strided") ? "TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT" : "0",
              ",\n      .op = ", quoted(op->qualified_name()),
              ",\n      .device = ", quoted(kernel.device), ",\n      .dtype_mask = UINT64_C(",
              hex64(kernel.mask), "),  // ", describe(kernel.mask), "\n      .score = ", score,
              ",\n      .boxed = ::", op->name_space, "::kernels::", function, "};\n");
      if (is_optional(kernel.device))
        step = cat("#ifdef TENON_WITH_", upper_case(kernel.device), "\n", step, "#endif\n");
      kernels.steps += step;
      declarations += cat("tenon_status ", function,
                          "(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t, "
                          "tenon_err*);\n");
    }
  }
  if (declarations.empty()) return;
  kernels.declarations +=
      cat("\n// Defined by the package's own sources; each includes <", package.name_space,
          "/<op>_<device>.hpp>.\nnamespace ", package.name_space, "::kernels {\n", declarations,
          "}  // namespace ", package.name_space, "::kernels\n");
}

std::string plugin_file(const Package& package, const EmitOptions& options, const Kernels& kernels,
                        bool has_gradients) {
  bool has_kernels = kernels.count > 0;
  std::string text = generated_line(package.files);
  text += cat("#include <tenon/operator_package.hpp>\n",
              cpu_lists(package).empty() ? "" : "#include \"table.hpp\"\n", kernels.declarations);
  text += fill(
      R"(
namespace @namespace@ {

extern const tenon_op_def kOperators[];
extern const uint32_t kOperatorCount;
@rules@
namespace {

@kernels@@start@tenon_plugin plugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = TENON_PACKAGE_NAME,
    .version = TENON_PACKAGE_VERSION,
    .vendor = TENON_PACKAGE_VENDOR,
    .ops = kOperators,
@kernels_member@    .op_size = sizeof(tenon_op_def),
@kernel_size@@lifetime@};

// Counts are known only to the generated files, so the table is completed before it is handed out.
const tenon_plugin& completed() {
  plugin.nops = kOperatorCount;
@complete@  return plugin;
}

}  // namespace
}  // namespace @namespace@

TENON_PLUGIN(@namespace@::completed())
)",
      {{"namespace", options.cpp_namespace},
       {"rules", has_gradients ? "extern const tenon_grad_rule kGradRules[];\n"
                                 "extern const uint32_t kGradRuleCount;\n"
                               : ""},
       {"kernels", has_kernels ? cat("tenon_kernel_def kernels[", kernels.count, "];\n\n") : ""},
       {"start", has_gradients ? R"(tenon_status start(const tenon_host*, tenon_err* err) {
  return ::tenon::register_gradients(kGradRules, kGradRuleCount, err);
}

)"
                               : ""},
       {"kernels_member", has_kernels ? "    .kernels = kernels,\n" : ""},
       {"kernel_size", has_kernels ? "    .kernel_size = sizeof(tenon_kernel_def),\n" : ""},
       // Recorded calls point at gradient rules, so those stay.
       {"lifetime", has_gradients ? "    .start = start,\n"
                                  : "    .stop = [](tenon_err*) -> tenon_status { "
                                    "return TENON_OK; },\n"},
       {"complete",
        has_kernels ? cat("  uint32_t count = 0;\n", kernels.steps, "  plugin.nkernels = count;\n")
                    : ""}});
  return text;
}

std::string cmake_file(const Package& package, const Kernels& kernels) {
  std::string text = generated_line(package.files, "#");
  text += cat("set(package_namespace ", package.name_space, ")\n");
  text += cat("set(package_devices ", join(kernels.devices, " "), ")\n");
  text += cat("set(package_has_loops ", cpu_lists(package).empty() ? "OFF" : "ON", ")\n");
  std::vector<std::string> written;
  for (const Operator* op : package.emitted)
    for (const WrittenKernel& kernel : op->kernels)
      if (std::find(written.begin(), written.end(), kernel.device) == written.end())
        written.push_back(kernel.device);
  return cat(text, "set(package_written ", join(written, " "), ")\n");
}

}  // namespace

std::vector<OutputFile> emit_plugin(const Package& package, const EmitOptions& options) {
  Kernels kernels;
  add_generated(package, kernels);
  add_written(package, kernels);
  bool has_gradients = std::any_of(package.emitted.begin(), package.emitted.end(),
                                   [](const Operator* op) { return !op->gradients.empty(); });
  return {{options.folder + "/plugin.cpp", plugin_file(package, options, kernels, has_gradients)},
          {"package.cmake", cmake_file(package, kernels)}};
}

}  // namespace tenon::codegen
