// SPDX-License-Identifier: Apache-2.0
// tenon/schema.hpp: text to the parts of an operator's definition, and the refusals.
#include <gtest/gtest.h>
#include <tenon/schema.hpp>

#include <cmath>
#include <cstring>
#include <string>

namespace tenon {
namespace {

std::string refused(const char* text) {
  try {
    Schema schema(text);
    return "accepted: " + schema.canonical();
  } catch (const SchemaError& error) {
    return error.what();
  }
}

tenon_op_def definition(const Schema& schema) {
  tenon_op_def def = {};
  schema.fill(def);
  return def;
}

TEST(Schema, FillsTheDefinition) {
  Schema schema(
      "acme::swiglu( Tensor x,Tensor? g = none,*,float limit=0.5)->(Tensor out,Tensor kept)");
  tenon_op_def def = definition(schema);
  EXPECT_EQ(def.struct_size, sizeof(tenon_op_def));
  EXPECT_STREQ(def.name, "acme::swiglu");
  EXPECT_STREQ(def.schema,
               "acme::swiglu(Tensor x, Tensor? g=none, *, float limit=0.5) -> "
               "(Tensor out, Tensor kept)");
  EXPECT_EQ(def.schema_hash, schema::fnv1a(def.schema));
  EXPECT_EQ(schema.name_space(), "acme");
  EXPECT_EQ(schema.short_name(), "swiglu");
  EXPECT_EQ(def.flags, 0u);
  ASSERT_EQ(def.nouts, 2u);
  EXPECT_STREQ(def.out_names[0], "out");
  EXPECT_STREQ(def.out_names[1], "kept");
  ASSERT_EQ(def.nparams, 3u);
  EXPECT_EQ(def.param_size, sizeof(tenon_param_def));
  EXPECT_STREQ(def.params[0].name, "x");
  EXPECT_EQ(def.params[0].kind, TENON_PARAM_TENSOR);
  EXPECT_EQ(def.params[0].flags, 0u);
  EXPECT_EQ(def.params[1].flags, TENON_PARAM_FLAG_OPTIONAL | TENON_PARAM_FLAG_HAS_DEFAULT);
  EXPECT_EQ(def.params[1].default_value.tag, TENON_VALUE_NONE);
  EXPECT_EQ(def.params[2].flags, TENON_PARAM_FLAG_HAS_DEFAULT | TENON_PARAM_FLAG_KEYWORD_ONLY);
  EXPECT_EQ(def.params[2].default_value.v.f, 0.5);
}

TEST(Schema, LeavesAloneWhatItDoesNotSay) {
  Schema schema("a::f(Tensor[] xs) -> Tensor[]");
  tenon_op_def def = {};
  def.flags = TENON_OP_COMPOSITE;
  def.doc = "doc";
  schema.fill(def);
  EXPECT_EQ(def.flags, TENON_OP_COMPOSITE | TENON_OP_LIST_OUTPUT);
  EXPECT_STREQ(def.doc, "doc");
}

TEST(Schema, ReadsEveryKindAndItsDefaults) {
  Schema schema(
      "a::f(Tensor t=1, int i=-3, float f=2, bool b=true, Scalar s=0.5, str m='a b', dtype "
      "d=float16, "
      "device? v=none, int[] n=[1, -2], float[] r=[0.5, inf], Tensor[]? ts=none) -> Tensor");
  tenon_op_def def = definition(schema);
  const int32_t kinds[] = {TENON_PARAM_TENSOR, TENON_PARAM_INT,    TENON_PARAM_FLOAT,
                           TENON_PARAM_BOOL,   TENON_PARAM_SCALAR, TENON_PARAM_STRING,
                           TENON_PARAM_DTYPE,  TENON_PARAM_DEVICE, TENON_PARAM_INTS,
                           TENON_PARAM_FLOATS, TENON_PARAM_TENSORS};
  ASSERT_EQ(def.nparams, std::size(kinds));
  for (uint32_t i = 0; i < def.nparams; ++i) EXPECT_EQ(def.params[i].kind, kinds[i]) << i;
  auto value = [&](int i) { return def.params[i].default_value; };
  EXPECT_EQ(value(0).tag, TENON_VALUE_INT);
  EXPECT_EQ(value(0).v.i, 1);
  EXPECT_EQ(value(1).v.i, -3);
  EXPECT_EQ(value(2).tag, TENON_VALUE_FLOAT);
  EXPECT_EQ(value(2).v.f, 2.0);
  EXPECT_EQ(value(3).tag, TENON_VALUE_BOOL);
  EXPECT_EQ(value(3).v.i, 1);
  EXPECT_EQ(value(4).v.f, 0.5);
  EXPECT_EQ(std::string(static_cast<const char*>(value(5).v.p), value(5).aux), "a b");
  EXPECT_EQ(value(6).v.i, TENON_DTYPE_F16);
  EXPECT_EQ(value(7).tag, TENON_VALUE_NONE);
  ASSERT_EQ(value(8).aux, 2u);
  EXPECT_EQ(static_cast<const int64_t*>(value(8).v.p)[1], -2);
  ASSERT_EQ(value(9).aux, 2u);
  EXPECT_TRUE(std::isinf(static_cast<const double*>(value(9).v.p)[1]));
  EXPECT_EQ(value(10).tag, TENON_VALUE_NONE);
}

TEST(Schema, KeepsNumbersAsTheyAreWritten) {
  EXPECT_EQ(Schema("a::f(float x=1e-5, int y=-9223372036854775808) -> Tensor").canonical(),
            "a::f(float x=1e-5, int y=-9223372036854775808) -> Tensor");
  Schema schema("a::f(float x=-nan, float y=-inf) -> Tensor");
  EXPECT_TRUE(std::isnan(definition(schema).params[0].default_value.v.f));
  EXPECT_EQ(definition(schema).params[1].default_value.v.f, -HUGE_VAL);
}

TEST(Schema, SaysWhereWhatWasExpectedAndWhatWasGot) {
  EXPECT_EQ(refused("swiglu(Tensor x) -> Tensor"),
            "column 7: expected `::` after the namespace `swiglu`, got `(`");
  EXPECT_EQ(refused("(Tensor x) -> Tensor"),
            "column 1: expected an operator name: `namespace::operator(...) -> ...`, got `(`");
  EXPECT_EQ(
      refused("acme::Swiglu(Tensor x) -> Tensor"),
      "column 7: expected a name like `acme::log_softmax` ([a-z][a-z0-9_]*, not ending in _), "
      "got `acme::Swiglu`");
  EXPECT_EQ(
      refused("acme::add_(Tensor x) -> Tensor"),
      "column 7: expected a name like `acme::log_softmax` ([a-z][a-z0-9_]*, not ending in _), "
      "got `acme::add_`");
  EXPECT_EQ(refused("acme::class(Tensor x) -> Tensor"),
            "column 7: `acme::class` has a reserved word (C++, Python or generated code); choose "
            "another name");
  EXPECT_EQ(
      refused("a::f(Tenso x) -> Tensor"),
      "column 6: expected a type (Tensor Tensor[] int float bool Scalar str dtype device int[] "
      "float[]), got `Tenso`; did you mean `Tensor`?");
  EXPECT_EQ(refused("a::f(Tensor x, int n=0.5) -> Tensor"),
            "column 22: default of `n`: expected a value of type int, got `0.5`");
  EXPECT_EQ(refused("a::f(str mode=fast) -> Tensor"),
            "column 15: default of `mode`: expected a value of type str, got `fast`");
  EXPECT_EQ(refused("a::f(int n=99999999999999999999) -> Tensor"),
            "column 12: `99999999999999999999` does not fit into 64 bits");
  EXPECT_EQ(refused("a::f(int n=(1)) -> Tensor"), "column 12: expected a default value, got `(`");
  EXPECT_EQ(refused("a::f(int[] n=[[1]]) -> Tensor"),
            "column 15: expected a default value, got `[`");
  EXPECT_EQ(refused("a::f(Tensor x, Tensor x) -> Tensor"),
            "column 23: two parameters are called `x`");
  EXPECT_EQ(refused("a::f(int n=1, Tensor x) -> Tensor"),
            "column 22: `x` needs a default, because `n` before it has one");
  EXPECT_EQ(refused("a::f(Tensor x, *) -> Tensor"), "column 17: expected a parameter after `*`");
  EXPECT_EQ(refused("a::f(Tensor x, *, *, int n) -> Tensor"),
            "column 19: expected one `*`, got two");
  EXPECT_EQ(refused("a::f(Tensor x)"), "column 15: expected `->`, got the end");
  EXPECT_EQ(refused("a::f(Tensor x) -> int"), "column 19: results are Tensor or Tensor[], got int");
  EXPECT_EQ(refused("a::f(Tensor x) -> ()"), "column 20: expected at least one result");
  EXPECT_EQ(refused("a::f(Tensor x) -> (Tensor a, Tensor a)"),
            "column 38: two results are called `a`");
  EXPECT_EQ(refused("a::f(Tensor x) -> (Tensor[] a, Tensor b)"),
            "column 40: a Tensor[] result must be the only one");
  EXPECT_EQ(refused("a::f(Tensor x) -> (Tensor x)"),
            "column 28: `x` is a parameter and a result; rename one");
  EXPECT_EQ(refused("a::f(Tensor x) -> Tensor;"), "column 25: unknown character `;`");
  EXPECT_EQ(refused("a::f(Tensor x) -> Tensor Tensor"),
            "column 26: expected the end, got `Tensor`");
  EXPECT_EQ(refused("a::f(str s='x) -> Tensor"),
            "column 12: expected `'` after the text that starts at column 12");
  EXPECT_EQ(refused(""),
            "column 1: expected an operator name: `namespace::operator(...) -> ...`, got the end");
}

TEST(Schema, RefusesMoreParametersThanACallCanHave) {
  std::string text = "a::f(Tensor x0";
  for (int i = 1; i < 33; ++i) text += ", Tensor x" + std::to_string(i);
  EXPECT_EQ(refused((text + ") -> Tensor").c_str()),
            "column 1: expected at most 32 parameters, got 33");
}

bool same_value(const tenon_value& a, const tenon_value& b) {
  if (a.tag != b.tag || a.aux != b.aux) return false;
  size_t bytes = a.tag == TENON_VALUE_STRING ? a.aux : size_t{a.aux} * 8;
  if (a.tag >= TENON_VALUE_INTS) return bytes == 0 || std::memcmp(a.v.p, b.v.p, bytes) == 0;
  if (a.tag == TENON_VALUE_FLOAT && std::isnan(a.v.f)) return std::isnan(b.v.f);
  return a.v.i == b.v.i;
}

// What the generator wrote for every operator of Tenon, this header reads.
TEST(Schema, AgreesWithEveryOperatorOfTheHost) {
  const tenon_host* host = tenon_host_get(TENON_ABI_EPOCH);
  tenon_err* err = host->err_create();
  ASSERT_EQ(TENON_OK, host->plugin_load(TENON_TEST_STANDARD_OPS, err)) << host->err_text(err);
  host->err_destroy(err);
  uint32_t count = host->op_count();
  ASSERT_GT(count, 250u);
  for (uint32_t id = 0; id < count; ++id) {
    const tenon_op_def* theirs = host->op_def(host->op_at(id));
    SCOPED_TRACE(theirs->schema);
    Schema schema(theirs->schema);
    tenon_op_def ours = definition(schema);
    EXPECT_STREQ(ours.name, theirs->name);
    EXPECT_STREQ(ours.schema, theirs->schema);
    EXPECT_EQ(ours.schema_hash, theirs->schema_hash);
    EXPECT_EQ(ours.flags, theirs->flags & TENON_OP_LIST_OUTPUT);
    ASSERT_EQ(ours.nouts, theirs->nouts);
    for (uint32_t i = 0; i < ours.nouts; ++i) EXPECT_STREQ(ours.out_names[i], theirs->out_names[i]);
    ASSERT_EQ(ours.nparams, theirs->nparams);
    for (uint32_t i = 0; i < ours.nparams; ++i) {
      constexpr uint32_t kUnsaid = TENON_PARAM_FLAG_PROMOTE | TENON_PARAM_FLAG_BROADCAST;
      EXPECT_STREQ(ours.params[i].name, theirs->params[i].name);
      EXPECT_EQ(ours.params[i].kind, theirs->params[i].kind);
      EXPECT_EQ(ours.params[i].flags, theirs->params[i].flags & ~kUnsaid);
      EXPECT_TRUE(same_value(ours.params[i].default_value, theirs->params[i].default_value));
    }
  }
}

}  // namespace
}  // namespace tenon
