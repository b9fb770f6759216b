// SPDX-License-Identifier: Apache-2.0
// The operators in a plugin's table.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <unordered_set>

#include "kernel_core/dispatch/arguments.hpp"
#include "kernel_core/plugin/sized_copy.hpp"
#include "kernel_core/plugin/tables.hpp"

namespace tenon::core {
namespace {

constexpr uint32_t kAmpFlags = TENON_OP_AMP_LOW | TENON_OP_AMP_HIGH | TENON_OP_AMP_WIDEST;
constexpr uint32_t kKnownFlags = TENON_OP_VIEW | TENON_OP_DATA_DEPENDENT | TENON_OP_ELEMENTWISE |
                                 TENON_OP_COMPOSITE | TENON_OP_RANDOM | TENON_OP_CONVERT |
                                 TENON_OP_MATERIALIZE | TENON_OP_LIST_OUTPUT | TENON_OP_NO_GRAD |
                                 TENON_OP_INTERNAL | TENON_OP_NO_METHOD | TENON_OP_PRIMITIVE |
                                 TENON_OP_TO_PRIMITIVES | TENON_OP_STRIDED | kAmpFlags;
constexpr uint32_t kKnownParamFlags = TENON_PARAM_FLAG_OPTIONAL | TENON_PARAM_FLAG_HAS_DEFAULT |
                                      TENON_PARAM_FLAG_KEYWORD_ONLY | TENON_PARAM_FLAG_PROMOTE |
                                      TENON_PARAM_FLAG_BROADCAST;

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

std::string hex(uint64_t value) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%016" PRIx64, value);
  return text;
}

// Lists of tensors are empty, tensors are numbers, and whatever is pointed at is there.
bool has_sound_default(const tenon_param_def& param) {
  tenon_value value = param.default_value;
  bool is_pointer = value.tag >= TENON_VALUE_INTS;
  if (is_pointer && !value.v.p && (value.aux > 0 || value.tag == TENON_VALUE_COMPLEX)) return false;
  if (value.tag == TENON_VALUE_TENSOR || (value.tag == TENON_VALUE_TENSORS && value.aux > 0))
    return false;
  int64_t integer;
  return accept_value(param, value, integer);
}

// Empty, or what is wrong.
std::string find_fault(const tenon_param_def& param) {
  if (!param.name || !*param.name) return "it has no name";
  if (param.kind < TENON_PARAM_TENSOR || param.kind > TENON_PARAM_FLOATS)
    return "kind " + std::to_string(param.kind) + " is unknown";
  if (param.flags & ~kKnownParamFlags) return "flags " + hex(param.flags) + " are unknown";
  if ((param.flags & TENON_PARAM_FLAG_HAS_DEFAULT) && !has_sound_default(param))
    return "its default does not fit its kind";
  return {};
}

// A definition that equals the host's own is nothing new.
bool is_reserved(const Manifest& manifest, std::string_view space, const tenon_op_def& op) {
  if (space != "tenon" || manifest.may_define_tenon) return false;
  const Operator* known = find_operator(op.name);
  return !known || !known->is_defined || known->def.schema_hash != op.schema_hash;
}

std::string find_fault(const Manifest& manifest, tenon_op_def& op, const Tables& tables) {
  std::string_view name = op.name;
  size_t colons = name.find("::");
  if (colons == name.npos || colons == 0 || colons + 2 == name.size())
    return "expected a name like namespace::operator";
  std::string_view space = name.substr(0, colons);
  if (!manifest.is_attached && std::find(manifest.namespaces.begin(), manifest.namespaces.end(),
                                         space) == manifest.namespaces.end())
    return "the note does not list its namespace; tenon_add_plugin(... NAMESPACES " +
           std::string(space) + ")";
  if (!op.schema || !std::string_view(op.schema).starts_with(op.name + std::string("(")))
    return "expected a schema that begins with its name and a parenthesis";
  if (uint64_t expected = fnv1a(op.schema); op.schema_hash != expected)
    return "schema_hash: expected " + hex(expected) + " for '" + op.schema + "', got " +
           hex(op.schema_hash);
  if (is_reserved(manifest, space, op))
    return "the namespace tenon is reserved for the host's own plugins; use one of your own";
  if (op.flags & ~kKnownFlags) return "flags " + hex(op.flags) + " are unknown";
  if (std::popcount(op.flags & kAmpFlags) > 1)
    return "expected at most one of TENON_OP_AMP_LOW, _HIGH and _WIDEST, got flags " +
           hex(op.flags);
  if (op.nparams > kMaxParams)
    return "expected at most " + std::to_string(kMaxParams) + " parameters, got " +
           std::to_string(op.nparams);
  if (op.nouts == 0 || op.nouts > kMaxOutputs)
    return "expected 1 to " + std::to_string(kMaxOutputs) + " results, got " +
           std::to_string(op.nouts);
  if (op.compute > TENON_COMPUTE_OUTPUT || op.shape > TENON_SHAPE_BROADCAST ||
      op.out_dtype > TENON_OUT_REAL)
    return "compute, shape or out_dtype is unknown";
  if (op.reserved != 0 && !tables.is_newer()) return "reserved is not 0";
  if (op.dtype_mask == 0 || !accept_dtype_mask(tables, op.dtype_mask))
    return "dtype_mask " + hex(op.dtype_mask) + " is empty or has unknown bits";
  return {};
}

// Replace the plugin's parameter array by a copy in the host's layout.
Refusal take_params(const Manifest& manifest, tenon_op_def& op, Tables& tables) {
  if (Refusal refusal = check_array(manifest, "parameters", op.params, op.nparams, op.param_size,
                                    sizeof(tenon_param_def)))
    return refusal;
  auto& copies = tables.params.emplace_back(std::make_unique<tenon_param_def[]>(op.nparams));
  for (uint32_t i = 0; i < op.nparams; ++i) {
    const char* theirs = reinterpret_cast<const char*>(op.params) + size_t{i} * op.param_size;
    copy_sized(copies[i], theirs, op.param_size);
    if (std::string fault = find_fault(copies[i]); !fault.empty())
      return refuse_table(manifest, "operator " + std::string(op.name) + ", parameter " +
                                        std::to_string(i) + ": " + fault);
  }
  op.params = copies.get();
  op.param_size = sizeof(tenon_param_def);
  return accepted();
}

}  // namespace

Refusal check_operators(const Manifest& manifest, Tables& tables) {
  const tenon_plugin& plugin = tables.plugin;
  constexpr size_t kMandatory = offsetof(tenon_op_def, infer);
  if (Refusal refusal =
          check_array(manifest, "operators", plugin.ops, plugin.nops, plugin.op_size, kMandatory))
    return refusal;
  tables.ops.resize(plugin.nops);
  std::unordered_set<std::string_view> names;
  for (uint32_t i = 0; i < plugin.nops; ++i) {
    const char* theirs = reinterpret_cast<const char*>(plugin.ops) + size_t{i} * plugin.op_size;
    uint32_t size;
    std::memcpy(&size, theirs, sizeof size);
    std::string which = "operator " + std::to_string(i);
    if (size > plugin.op_size || !is_plausible_size(size, kMandatory))
      return refuse_table(manifest,
                          "struct_size of " + which + ": " + describe_size(size, kMandatory),
                          "write sizeof(tenon_op_def) to every entry and to op_size");
    tenon_op_def& op = tables.ops[i];
    copy_sized(op, theirs, size);
    op.struct_size = sizeof op;
    if (!op.name) return refuse_table(manifest, which + " has no name");
    if (!names.insert(op.name).second)
      return refuse_table(manifest, "operator " + std::string(op.name) + " is listed twice");
    if (std::string fault = find_fault(manifest, op, tables); !fault.empty())
      return refuse_table(manifest, "operator " + std::string(op.name) + ": " + fault,
                          "generate the table with tenon-codegen");
    if (Refusal refusal = take_params(manifest, op, tables)) return refusal;
  }
  return accepted();
}

}  // namespace tenon::core
