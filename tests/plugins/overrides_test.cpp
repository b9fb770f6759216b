// SPDX-License-Identifier: Apache-2.0
// Consent to overrides, as programs in C give it. tests/plugins/test_overrides.py has what users
// see.
#include "faulty/parts.hpp"
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/status.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

namespace slots = core::slots;

Outcome allow(const char* plugin, int32_t allowed = 1) {
  tenon_err err;
  tenon_status status = slots::plugin_allow_overrides(plugin, allowed, &err);
  return {status, status == TENON_OK ? "OK" : err.text};
}

// Kernels of "extra_kernels": for an operator of "package", on the device of "null".
bool are_held_back() {
  return describe().find(R"("overrides":1,"held_back":1)") != std::string::npos;
}

TEST(Overrides, WaitForConsentByNameOrPath) {
  for (const char* plugin : {"null", "package", "extra_kernels"})
    ASSERT_TRUE(is_ok(load(plugin_path(plugin))));
  EXPECT_TRUE(are_held_back());
  EXPECT_TRUE(is_ok(allow("extra_kernels")));
  EXPECT_FALSE(are_held_back());
  EXPECT_TRUE(is_ok(allow(plugin_path("extra_kernels").c_str(), 0)));
  EXPECT_TRUE(are_held_back());
  EXPECT_TRUE(is_ok(allow("*")));
  EXPECT_TRUE(are_held_back()) << "a name goes before *";
}

TEST(Overrides, ConsentToAllAppliesToWhoWasNotNamed) {
  for (const char* plugin : {"null", "package", "extra_kernels"})
    ASSERT_TRUE(is_ok(load(plugin_path(plugin))));
  EXPECT_TRUE(is_ok(allow("*")));
  EXPECT_FALSE(are_held_back());
  EXPECT_TRUE(is_ok(allow("*", 0)));
  EXPECT_TRUE(are_held_back());
}

TEST(Overrides, OfTablesThatTheProgramAttachesNeedNone) {
  static Parts parts;
  make_sound(parts);
  parts.kernel.op = "package::twice";
  parts.kernel.device = "null";
  parts.plugin.device = nullptr;
  parts.plugin.nops = 0;
  parts.plugin.start = nullptr;
  for (const char* plugin : {"null", "package"}) ASSERT_TRUE(is_ok(load(plugin_path(plugin))));
  tenon_err err;
  ASSERT_EQ(slots::plugin_attach(&parts.plugin, "a test", &err), TENON_OK) << err.text;
  EXPECT_EQ(describe().find(R"("overrides":1)"), std::string::npos) << describe();
}

TEST(Overrides, ConsentNeedsAPlugin) {
  EXPECT_TRUE(is_refused(allow(nullptr), "NOT_FOUND", "expected the name of a plugin, a path"));
  EXPECT_TRUE(is_refused(allow("Fast CPU"), "NOT_FOUND", "got 'Fast CPU'"));
  EXPECT_TRUE(is_refused(allow("./nowhere.so"), "NOT_FOUND", "./nowhere.so cannot be read"));
  std::string other = TENON_TEST_PLUGIN_DIR "/libabsent_note.so";
  EXPECT_TRUE(is_refused(allow(other.c_str()), "NO_NOTE", other + " is no Tenon plugin"));
}

}  // namespace
}  // namespace tenon::test
