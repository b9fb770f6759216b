// SPDX-License-Identifier: Apache-2.0
// Plugins whose code or tables are wrong: each is refused for its own reason, nothing of it stays,
// and the next plugin loads.
#include <cstring>

#include "kernel_core/abi/slots.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

namespace slots = core::slots;

struct Case {
  const char* fault;
  const char* reason;
  const char* text;
};
void PrintTo(const Case& value, std::ostream* stream) { *stream << value.fault; }

class FaultyPlugin : public testing::TestWithParam<Case> {};

TEST_P(FaultyPlugin, IsRefusedAndLeavesNothing) {
  const Case& expected = GetParam();
  Outcome outcome = load_with_fault(expected.fault);
  EXPECT_TRUE(is_refused(outcome, expected.reason, expected.text));

  EXPECT_EQ(slots::op_find("faulty::twice"), nullptr);
  EXPECT_EQ(slots::service_find("faulty", 1), nullptr);
  EXPECT_EQ(find_device("faulty").status, TENON_NOT_FOUND);
  EXPECT_NE(describe().find(expected.reason), std::string::npos);

  // The same file without its fault, and another plugin.
  EXPECT_TRUE(is_ok(load_with_fault("none")));
  EXPECT_TRUE(is_ok(find_device("faulty:0")));
  EXPECT_TRUE(is_ok(load(plugin_path("null"))));
}

const Case kCases[] = {
    {"query_epoch", "QUERY_FAILED", "speaks ABI epoch 2 only"},
    {"query_fails", "QUERY_FAILED", "the licence server does not answer"},
    {"query_silent", "QUERY_FAILED", "gave no reason"},
    {"query_throws", "QUERY_FAILED", "query blew up"},
    {"query_throws_number", "QUERY_FAILED", "unknown type"},
    {"plugin_size_zero", "BAD_TABLE", "tenon_plugin: expected a multiple of 8 from 40"},
    {"plugin_size_small", "BAD_TABLE", "got 32"},
    {"plugin_size_odd", "BAD_TABLE", "multiple of 8"},
    {"plugin_size_huge", "BAD_TABLE", "got 4294967288"},
    {"plugin_features", "BAD_TABLE", "feature bits"},
    {"plugin_name_null", "BAD_TABLE", "is NULL"},
    {"plugin_vendor_null", "BAD_TABLE", "is NULL"},
    {"plugin_name_other", "BAD_TABLE", "the note says 'faulty' and the table 'somebody_else'"},
    {"device_absent", "BAD_TABLE", "the note promises device faulty"},
    {"device_size_zero", "BAD_TABLE", "struct_size of the device"},
    {"device_size_huge", "BAD_TABLE", "struct_size of the device"},
    {"device_kind_null", "BAD_TABLE", "kind"},
    {"device_kind_bad", "BAD_TABLE", "got 'Faulty:0'"},
    {"device_kind_undeclared", "BAD_TABLE", "DEVICES other"},
    {"device_free_null", "BAD_TABLE", "`free` is missing"},
    {"device_sync_null", "BAD_TABLE", "`sync` is missing"},
    {"async_partial", "BAD_TABLE", "lacks `stream_destroy`"},
    {"async_reserved", "BAD_TABLE", "reserved is not 0"},
    {"async_size_small", "BAD_TABLE", "async group"},
    {"enumerate_too_many", "BAD_TABLE", "got 4000000000"},
    {"enumerate_nothing_said", "BAD_TABLE", "at most 256 devices"},
    {"enumerate_no_driver", "NO_DEVICE", "libfaulty_driver.so.1 is not installed"},
    {"enumerate_throws", "BAD_TABLE", "no hardware today"},
    {"ops_null", "BAD_TABLE", "1 operators, but their array is NULL"},
    {"ops_too_many", "BAD_TABLE", "2000000000 operators are too many"},
    {"ops_twice_the_same", "BAD_TABLE", "operator faulty::twice is listed twice"},
    {"op_reserved", "BAD_TABLE", "reserved is not 0"},
    {"op_size_small", "BAD_TABLE", "element size of operators"},
    {"op_struct_size_zero", "BAD_TABLE", "struct_size of operator 0"},
    {"op_struct_size_past_element", "BAD_TABLE", "struct_size of operator 0"},
    {"op_name_null", "BAD_TABLE", "operator 0 has no name"},
    {"op_name_bare", "BAD_TABLE", "namespace::operator"},
    {"op_namespace_undeclared", "BAD_TABLE", "NAMESPACES tenon"},
    {"op_schema_null", "BAD_TABLE", "expected a schema"},
    {"op_schema_of_other", "BAD_TABLE", "expected a schema"},
    {"op_hash_wrong", "BAD_TABLE", "schema_hash: expected 0x"},
    {"op_flags_unknown", "BAD_TABLE", "flags 0x0000000080000004 are unknown"},
    {"op_compute_unknown", "BAD_TABLE", "compute, shape or out_dtype"},
    {"op_mask_empty", "BAD_TABLE", "dtype_mask"},
    {"op_params_null", "BAD_TABLE", "1 parameters, but their array is NULL"},
    {"op_params_too_many", "BAD_TABLE", "got 1000"},
    {"op_param_size_zero", "BAD_TABLE", "element size of parameters"},
    {"op_outs_none", "BAD_TABLE", "results, got 0"},
    {"op_rule_missing", "BAD_TABLE", "no shape rule"},
    {"op_composite_of_nothing", "BAD_TABLE", "composite without `decompose`"},
    {"op_list_of_kernel", "BAD_TABLE", "expected 1 result and TENON_OP_COMPOSITE in flags, got 1"},
    {"param_name_null", "BAD_TABLE", "parameter 0: it has no name"},
    {"param_kind_unknown", "BAD_TABLE", "kind 99"},
    {"param_flags_unknown", "BAD_TABLE", "are unknown"},
    {"param_default_null_list", "BAD_TABLE", "its default does not fit"},
    {"kernels_null", "BAD_TABLE", "1 kernels, but their array is NULL"},
    {"kernel_size_huge", "BAD_TABLE", "element size of kernels"},
    {"kernel_struct_size_zero", "BAD_TABLE", "struct_size of kernel 0"},
    {"kernel_op_null", "BAD_TABLE", "names no operator"},
    {"kernel_boxed_null", "BAD_TABLE", "`boxed` is NULL"},
    {"kernel_typed_unguarded", "BAD_TABLE", "schema_hash is 0"},
    {"kernel_mask_empty", "BAD_TABLE", "dtype_mask"},
    {"kernel_mask_unknown", "BAD_TABLE", "dtype_mask"},
    {"kernel_reserved", "BAD_TABLE", "reserved is not 0"},
    {"kernel_traits_unknown", "BAD_TABLE", "traits"},
    {"kernel_device_undeclared", "BAD_TABLE", "KERNELS_FOR cpu"},
    {"start_fails", "START_FAILED", "the licence has expired (vendor code 7)"},
    {"start_throws", "START_FAILED", "start blew up"},
    {"start_fails_silently", "START_FAILED", "code 2 and no text"},
};
INSTANTIATE_TEST_SUITE_P(Faults, FaultyPlugin, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.fault); });

TEST(OlderPlugin, WithoutTheLastMemberLoads) {
  EXPECT_TRUE(is_ok(load_with_fault("plugin_older")));
  EXPECT_TRUE(is_refused(unload("faulty"), "STOP_FAILED", "no stop function"));
}

TEST(NewerPlugin, WithMembersAndBitsThatTheHostDoesNotKnowLoads) {
  EXPECT_TRUE(is_ok(load_with_fault("plugin_newer")));
  EXPECT_TRUE(is_ok(find_device("faulty")));
}

TEST(OperatorConflict, RefusesTheSecondWithBothOrigins) {
  ASSERT_TRUE(is_ok(load_with_fault("none")));
  Outcome outcome = load(plugin_path("rival"));
  auto by = [](const char* name) {
    return std::string(name) + " 1.0.0 (" + std::filesystem::canonical(plugin_path(name)).string() +
           ")";
  };
  EXPECT_TRUE(is_refused(outcome, "OP_CONFLICT",
                         "operator faulty::twice is defined twice: 'faulty::twice(Tensor x) -> "
                         "Tensor' at parts.cpp:1 by " +
                             by("faulty") + ", and 'faulty::twice(Tensor y) -> Tensor' at " +
                             "rival.cpp:1 by " + by("rival") + "; rename one"));
}

TEST(OperatorConflict, IsNoneIfBothDefineTheSame) {
  Variable verbose("TENON_LOG", "info");
  ASSERT_TRUE(is_ok(load_with_fault("none")));
  Variable variable("TENON_TEST_FAULT", "same_operator");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(is_ok(load(plugin_path("rival"))));
  std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("operator faulty::twice of rival 1.0.0 ("), std::string::npos) << log;
  EXPECT_NE(log.find("is defined alike by faulty 1.0.0 ("), std::string::npos) << log;
}

TEST(DeviceConflict, RefusesTheSecondAndLeavesNothingOfIt) {
  Scratch scratch;
  ASSERT_TRUE(is_ok(load(plugin_path("null"))));
  std::filesystem::path file = scratch.copy("faulty", "faulty.so", [](tenon_note& note) {
    std::strcpy(note.json, R"({"kind":"device","devices":["null"],"namespaces":["faulty"]})");
  });
  Variable variable("TENON_TEST_FAULT", "device_kind_of_other");
  EXPECT_TRUE(is_refused(load(file), "NAME_TAKEN", "already provided by null 0.1.0"));
  EXPECT_EQ(slots::op_find("faulty::twice"), nullptr);
  EXPECT_TRUE(is_ok(find_device("null:0")));
}

TEST(FailedStart, ThatLeftALayerBehindKeepsTheLibraryMapped) {
  EXPECT_TRUE(
      is_refused(load_with_fault("start_with_layer_fails"), "START_FAILED", "it stays mapped"));
  EXPECT_EQ(slots::op_find("faulty::twice"), nullptr);
}

}  // namespace
}  // namespace tenon::test
