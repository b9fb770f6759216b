// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "binding/binding.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

constexpr const char* kHeader = R"(@generated@
// Kernels that call a vendor's library, with the signatures of @library@.
#pragma once

#include <span>

#include "@header@"

namespace @namespace@ {

struct Binding {
  Function* function;
  tenon_kernel_def kernel;
};
std::span<Binding> bindings();

}  // namespace @namespace@
)";

constexpr const char* kKernel = R"(
// @origin@: @source@
Function function_@name@{.name = "@function@"@symbol@@reuse@};
tenon_status run_@name@(tenon_ctx* ctx, [[maybe_unused]] const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                        tenon_err* err) try {
  Call call(ctx, "@op@", function_@name@, err);
  return call.@run@@parameters@);
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}
int32_t can_run_@name@(const tenon_value* args, uint32_t nargs) {
  return takes_shapes(args, nargs)@conditions@;
}
)";

// What conditions are made of.
constexpr const char* kConditions = R"(
[[maybe_unused]] bool all_are(const tenon_value& list, int64_t value) {
  const int64_t* first = tenon_arg_ints(&list);
  return std::all_of(first, first + tenon_arg_count(&list), [&](int64_t one) { return one == value; });
}
[[maybe_unused]] bool all_have(const tenon_value& list, uint64_t dtypes) {
  const tenon_tensor* const* first = tenon_arg_tensors(&list);
  return std::all_of(first, first + tenon_arg_count(&list),
                     [&](const tenon_tensor* one) { return (dtypes >> one->dtype & 1) != 0; });
}
[[maybe_unused]] bool has_dtype(const tenon_value& value, int dtype) {
  return value.tag != TENON_VALUE_TENSOR || tenon_arg_tensor(&value)->dtype == dtype;
}
[[maybe_unused]] bool same_shape(const tenon_value& x, const tenon_value& y) {
  const tenon_tensor *a = tenon_arg_tensor(&x), *b = tenon_arg_tensor(&y);
  return std::equal(a->shape, a->shape + a->ndim, b->shape, b->shape + b->ndim);
}
)";

constexpr const char* kRow = R"(    {&function_@name@,
     {.struct_size = sizeof(tenon_kernel_def), .traits = @traits@, .op = "@op@", .device = nullptr, .schema_hash = 0,
      .dtype_mask = @mask@u, .score = 0, .reserved = 0, .boxed = run_@name@, .typed = nullptr,
      .can_run = can_run_@name@}},
)";

std::string traits_of(const Binding& binding) {
  std::vector<std::string> traits;
  if (!binding.deterministic) traits.push_back("TENON_KERNEL_NONDETERMINISTIC");
  if (binding.broadcasts) traits.push_back("TENON_KERNEL_BROADCAST");
  return traits.empty() ? "0" : join(traits, " | ");
}

}  // namespace

std::vector<OutputFile> emit_bindings(const BindingSet& set) {
  std::map<std::string, int> counts;  // an operator may be bound more than once
  std::string kernels, rows;
  for (const Binding& binding : set.bindings) {
    const std::string base = cat(binding.op->name, binding.suffix);
    const int count = counts[base]++;
    const std::string name = count ? cat(base, "_", count) : base;
    kernels += fill(
        kKernel,
        {{"origin", binding.where.origin()},
         {"source", binding.source},
         {"name", name},
         {"function", binding.function},
         {"symbol", binding.symbol.empty() ? "" : cat(", .symbol = \"", binding.symbol, "\"")},
         {"reuse", binding.reusable ? "" : ", .is_reusable = false"},
         {"op", binding.op->qualified_name()},
         {"run", binding.run},
         {"parameters", join(binding.parameters, ", ")},
         {"conditions",
          join(binding.conditions, "", [](const std::string& one) { return cat(" && ", one); })}});
    rows += fill(kRow, {{"name", name},
                        {"traits", traits_of(binding)},
                        {"op", binding.op->qualified_name()},
                        {"mask", hex64(binding.dtypes)}});
  }
  const std::string generated = generated_line(set.files);
  return {{"bindings.hpp", fill(kHeader, {{"generated", generated},
                                          {"header", set.header},
                                          {"library", set.library},
                                          {"namespace", set.name_space}})},
          {"bindings.cpp",
           cat(generated,
               "\n#include \"bindings.hpp\"\n\n#include <algorithm>\n#include <new>\n#include "
               "<string_view>\n\nnamespace ",
               set.name_space, " {\nnamespace {\n", kConditions, kernels,
               "\nBinding kBindings[] = {\n", rows,
               "};\n\n}  // namespace\n\nstd::span<Binding> bindings() { return kBindings; }\n\n}  "
               "// namespace ",
               set.name_space, "\n")}};
}

}  // namespace tenon::codegen
