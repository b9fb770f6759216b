// SPDX-License-Identifier: Apache-2.0
#include "emit/cpu_kernels.hpp"

#include <tenon/abi.h>

#include <algorithm>
#include <set>

#include "emit/emit.hpp"
#include "support/text.hpp"

namespace tenon::codegen {

const char* cpu_element_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_BOOL:
      return "bool";
    case TENON_DTYPE_U8:
      return "uint8_t";
    case TENON_DTYPE_I8:
      return "int8_t";
    case TENON_DTYPE_U16:
      return "uint16_t";
    case TENON_DTYPE_I16:
      return "int16_t";
    case TENON_DTYPE_U32:
      return "uint32_t";
    case TENON_DTYPE_I32:
      return "int32_t";
    case TENON_DTYPE_U64:
      return "uint64_t";
    case TENON_DTYPE_I64:
      return "int64_t";
    case TENON_DTYPE_F32:
      return "float";
    case TENON_DTYPE_F64:
      return "double";
    case TENON_DTYPE_C64:
      return "std::complex<float>";
    case TENON_DTYPE_C128:
      return "std::complex<double>";
    default:
      return nullptr;
  }
}

DtypeMask cpu_loop_dtypes(DtypeMask mask) {
  DtypeMask loops = 0;
  for (size_t id = 0; id < dtypes().size(); ++id) {
    if (!(mask >> id & 1)) continue;
    loops |=
        DtypeMask{1} << (cpu_element_type(static_cast<int>(id)) ? id : size_t{TENON_DTYPE_F32});
  }
  return loops;
}

DtypeMask low_precision_dtypes() {
  return DtypeMask{1} << TENON_DTYPE_F16 | DtypeMask{1} << TENON_DTYPE_BF16;
}

const char* low_precision_type(int dtype) {
  return dtype == TENON_DTYPE_F16 ? "Float16" : "BFloat16";
}

bool is_low_precision_arithmetic(const ScalarValue& value) {
  static const std::set<std::string> functions = {"abs", "min", "max"};
  static const std::set<std::string> signs = {"+", "-", "*", "/", "<", ">", "<=", ">="};
  switch (value.form) {
    case ScalarValue::Literal:
    case ScalarValue::Variable:
      return true;
    case ScalarValue::Conditional:
    case ScalarValue::Select:
      break;
    case ScalarValue::Unary:
      if (value.text != "-") return false;
      break;
    case ScalarValue::Binary:
      if (value.type.varying && !signs.count(value.text)) return false;
      break;
    case ScalarValue::Function:
      if (value.type.varying && !functions.count(value.text)) return false;
      break;
    default:
      return !value.type.varying;
  }
  return std::all_of(value.children.begin(), value.children.end(), is_low_precision_arithmetic);
}

static bool has_several(const std::vector<CpuKernel>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [](const CpuKernel& kernel) { return !kernel.op->element_steps.empty(); });
}

std::string cpu_file(const std::string& file, const std::string& kind,
                     const std::vector<CpuKernel>& kernels) {
  std::string text = generated_line({file});
  if (kernels.empty())
    return cat(text, "// No operator of this file has a generated ", kind, " kernel.\n");
  std::string body, rows;
  for (const CpuKernel& kernel : kernels) {
    body += kernel.definition;
    body += fill(
        R"(tenon_status run_@op@(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
    uint32_t, tenon_err* err) {
  return run_@kind@(kernel_@op@, ctx, args, nargs, outs, err);
}

)",
        {{"op", kernel.op->name}, {"kind", kind}});
    rows +=
        cat("    ", kind, "_kernel(kernel_", kernel.op->name, ", run_", kernel.op->name, "),\n");
  }
  return text + fill(R"(#include "@header@.hpp"

#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

@body@const tenon_kernel_def kKernels[] = {
@rows@};

}  // namespace

KernelList @kind@_@stem@_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
)",
                     {{"kind", kind},
                      {"header", kind == "reduction"    ? "reduce/low_precision"
                                 : has_several(kernels) ? "elementwise/several_results"
                                                        : "elementwise/elementwise"},
                      {"body", body},
                      {"rows", rows},
                      {"stem", stem(file)}});
}

std::vector<OutputFile> emit_cpu_kernels(const Package& package, const EmitOptions&) {
  std::vector<OutputFile> files;
  std::string tables = generated_line(package.files);
  for (const std::string& file : package.files) {
    auto add = [&](const char* kind, const std::vector<CpuKernel>& kernels) {
      std::string name = cat(kind, "_", stem(file));
      files.push_back({cat("cpu/", name, ".cpp"), cpu_file(file, kind, kernels)});
      if (!kernels.empty()) tables += cat("TENON_CPU_TABLE(", name, "_kernels)\n");
    };
    std::vector<CpuKernel> elementwise = cpu_elementwise_kernels(package, file);
    for (CpuKernel& kernel : cpu_several_results_kernels(package, file))
      elementwise.push_back(std::move(kernel));
    add("elementwise", elementwise);
    add("reduction", cpu_reduction_kernels(package, file));
  }
  files.push_back({"cpu/tables.inc", tables});
  return files;
}

}  // namespace tenon::codegen
