// SPDX-License-Identifier: Apache-2.0
// Binding files of libraries of C and C++: the mangled names are those that the compiler makes, and what a parameter
// is made of.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>

#include "binding/binding.hpp"
#include "binding/mangle.hpp"
#include "run.hpp"

#define EXPORTED __attribute__((visibility("default"), used))

// Functions of a library, whose names in the symbol table of this program are compared.
struct __attribute__((visibility("default"))) half {
  uint16_t bits;
};
namespace acme::nn {
struct __attribute__((visibility("default"))) Context {};
using Sizes = std::vector<int64_t>;

EXPORTED int reset() { return 1; }
EXPORTED int close(Context*) { return 2; }
template <typename T>
EXPORTED int add(Context*, const T*, const T*, T*, int64_t) {
  return 3;
}
template <typename T>
EXPORTED int broadcast(Context*, const T*, T*, const Sizes&, const Sizes&) {
  return 4;
}
template <typename TX, typename TW, typename TY, typename TGEMM>
EXPORTED int fc(Context*, const TX*, const TW*, TY*, bool, const float*, float*) {
  return 5;
}
template <typename T, int MODE>
EXPORTED int batched(Context*, const T*, double) {
  return 6;
}
template <typename T>
EXPORTED int concat(Context*, const std::vector<const T*>&, T*, const std::vector<Sizes>&, int) {
  return 7;
}
template int add<float>(Context*, const float*, const float*, float*, int64_t);
template int add<half>(Context*, const half*, const half*, half*, int64_t);
template int add<bool>(Context*, const bool*, const bool*, bool*, int64_t);
template int broadcast<int8_t>(Context*, const int8_t*, int8_t*, const Sizes&, const Sizes&);
template int fc<half, half, half, int16_t>(Context*, const half*, const half*, half*, bool,
                                           const float*, float*);
template int batched<float, 0>(Context*, const float*, double);
template int concat<half>(Context*, const std::vector<const half*>&, half*,
                          const std::vector<Sizes>&, int);
}  // namespace acme::nn

namespace tenon::codegen::testing {
namespace {

namespace fs = std::filesystem;

// What the function returns that this program has under the mangled name of the prototype; -1: none.
int found(const std::string& name, std::vector<std::pair<std::string, std::string>> template_args,
          const std::vector<std::string>& parameters) {
  Prototype prototype{"acme::nn", name, std::move(template_args), {}};
  for (std::string_view text : parameters) prototype.parameters.push_back(read_type(text, {}));
  void* function = dlsym(RTLD_DEFAULT, mangled(prototype, {"half"}).c_str());
  // The functions look at none of their arguments.
  return function ? reinterpret_cast<int (*)(...)>(function)(0, 0, 0, 0, 0, 0, 0) : -1;
}

TEST(Mangle, IsWhatTheCompilerMakes) {
  EXPECT_EQ(found("reset", {}, {}), 1);
  EXPECT_EQ(found("close", {}, {"Context*"}), 2);
  for (const char* type : {"float", "half", "bool"})
    EXPECT_EQ(found("add", {{"T", type}}, {"Context*", "const T*", "const T*", "T*", "int64_t"}), 3)
        << type;
  EXPECT_EQ(found("broadcast", {{"T", "int8_t"}},
                  {"Context*", "const T*", "T*", "const std::vector<int64_t>&",
                   "const std::vector<int64_t>&"}),
            4);
  EXPECT_EQ(found("fc", {{"TX", "half"}, {"TW", "half"}, {"TY", "half"}, {"TGEMM", "int16_t"}},
                  {"Context*", "const TX*", "const TW*", "TY*", "bool", "const float*", "float*"}),
            5);
  EXPECT_EQ(found("batched", {{"T", "float"}, {"MODE", "0"}}, {"Context*", "const T*", "double"}),
            6);
  EXPECT_EQ(found("concat", {{"T", "half"}},
                  {"Context*", "const std::vector<const T*>&", "T*",
                   "const std::vector<std::vector<int64_t>>&", "int"}),
            7);
}

TEST(Mangle, OfOtherParametersIsAnotherName) {
  EXPECT_EQ(found("add", {{"T", "float"}}, {"Context*", "const T*", "const T*", "T*", "int"}), -1);
  EXPECT_EQ(found("add", {{"T", "double"}}, {"Context*", "const T*", "const T*", "T*", "int64_t"}),
            -1);
}

constexpr const char* kOperators = R"(namespace: acme
ops:
- op: shift
  doc: "Adds."
  sig: (Tensor x, Tensor y, float by=1.0, bool twice=false, int[]? axis=none) -> Tensor
  kind: kernel
  dtypes: {allow: floating}
  shape: same(x)
- op: join
  doc: "Joins."
  sig: (Tensor[] tensors, int axis=0, int[] sizes=[1]) -> Tensor
  kind: kernel
  dtypes: {allow: floating}
  shape: native
)";

constexpr const char* kLibrary =
    "namespace: acme\nheader: call.hpp\nlibrary: acme 1.0\nscope: acme::nn\nglobal_types: [half]\n"
    "types: {float32: float, float16: half, int64: int64_t, bool: bool}\n";
constexpr const char* kLibraryOfC =
    "namespace: acme\nheader: call.hpp\nlibrary: acme 1.0\ntypes: {float32: float, float64: "
    "double}\n"
    "letters: {float32: s, float64: d}\n";

// The generated source of an entry for `op`, or the first error.
std::string generated(const std::string& op, const std::string& lines,
                      const char* head = kLibrary) {
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("prototype_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string operators = folder / "operators.yaml", bindings = folder / "bindings.yaml";
  std::ofstream(operators) << kOperators;
  std::ofstream(bindings) << head << "bindings:\n- op: acme::" << op << "\n"
                          << lines << "  source: page\n";
  Loaded loaded;
  load({}, {operators}, loaded);
  EXPECT_EQ(std::vector<std::string>{}, loaded.errors);
  BindingSet set;
  std::vector<std::string> errors;
  load_bindings(bindings, loaded.package, set, errors);
  fs::remove_all(folder);
  if (!errors.empty()) return errors[0].substr(bindings.size() + 1);
  return emit_bindings(set).at(1).text;
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

TEST(Prototype, MakesAKernelOfEachDtype) {
  const std::string code = generated(
      "shift",
      "  call: add<T>(Context*, const T* x, const T* y, T* out, int64_t numel of out, float by, "
      "bool true)\n"
      "  dtypes: float16|float32\n  only: {axis: none}\n  unneeded: [twice]\n  broadcast: true\n");
  expect_in(
      code,
      "Function function_shift_float32{.name = \"add<float>\", .symbol = \"_ZN4acme2nn3addIf");
  expect_in(code, "Function function_shift_float16{.name = \"add<half>\"");
  expect_in(
      code,
      "call.run(call.context(), call.data<const float>(args[0]), call.data<const float>(args[1]), "
      "call.data<float>(outs[0]), call.numel(outs[0]), static_cast<float>(call.number(args[2])), "
      "true)");
  // The first tensor chose the kernel; the dtype of others is asked.
  expect_in(code,
            "return takes_shapes(args, nargs) && args[4].tag == TENON_VALUE_NONE && "
            "has_dtype(args[1], TENON_DTYPE_F32);");
  expect_in(code, ".traits = TENON_KERNEL_BROADCAST");
}

TEST(Prototype, TakesShapesAxesAndPointers) {
  const std::string code = generated(
      "shift",
      "  call: norm<TX = T, TY = int64_t>(Context*, const TX* x, const bool* y, TY* out, const\n"
      "    std::vector<int64_t>& shape of x like out, const std::vector<int64_t>& axis of x, int "
      "dim -1 of x,\n"
      "    const float* null, double by)\n"
      "  dtypes: float32\n  only: {twice: false, x.shape: y.shape}\n");
  expect_in(code, "\"norm<float, int64_t>\"");
  expect_in(
      code,
      "call.data<const bool>(args[1]), call.data<int64_t>(outs[0]), call.shape(args[0], outs[0]), "
      "call.axes(args[4], args[0]), call.narrow<int>(call.dim(args[0], -1)), "
      "static_cast<const float*>(nullptr), static_cast<double>(call.number(args[2]))");
  expect_in(code, "same_shape(args[0], args[1])");
  expect_in(code, "has_dtype(args[1], TENON_DTYPE_BOOL)");
}

TEST(Prototype, TakesListsOfTensorsAndOfIntegers) {
  expect_in(
      generated(
          "join",
          "  call: concat<T>(Context*, const std::vector<const T*>& tensors, T* out, const\n"
          "    std::vector<std::vector<int64_t>>& shapes of tensors, int64_t axis of out, const\n"
          "    std::vector<int64_t>& 2 of sizes)\n  dtypes: float32\n"),
      "call.pointers<const float>(args[0]), call.data<float>(outs[0]), call.shapes(args[0]), "
      "call.axis(args[1], outs[0]), call.ints(args[2], 2)");
}

TEST(Prototype, OfCHasALetterForEachDtype) {
  const std::string code =
      generated("shift",
                "  call: acme_?add(int 3, const T* x, const T* y, T by, T* out, int numel of x)\n"
                "  dtypes: float32|float64\n  only: {twice: false, axis: none}\n",
                kLibraryOfC);
  expect_in(code, "Function function_shift_float32{.name = \"acme_sadd\"};");
  expect_in(code, "Function function_shift_float64{.name = \"acme_dadd\"};");
  expect_in(code,
            "call.run(int{3}, call.data<const double>(args[0]), call.data<const double>(args[1]), "
            "static_cast<double>(call.number(args[2])), call.data<double>(outs[0]), "
            "call.narrow<int>(call.numel(args[0])))");
}

TEST(Prototype, WorksInPlaceAndReturns) {
  const std::string code =
      generated("shift",
                "  call: ?axpy(int numel of x, T by, const T* y, int 1, T* out from x, int 1)\n"
                "  dtypes: float32\n  only: {twice: false, axis: none}\n  returns: T out\n",
                kLibraryOfC);
  expect_in(code, "call.run_into<float>(outs[0], call.narrow<int>(call.numel(args[0])), ");
  expect_in(code, "int{1}, call.copied<float>(outs[0], args[0]), int{1})");
}

// A function that returns a double, called as one that returns a float, gives any number.
TEST(Prototype, SaysTheTypeThatAFunctionOfCReturns) {
  const std::string entry =
      "  call: acme_mean(const T* x, size_t 1, const T* y, T by, size_t numel of x)\n"
      "  dtypes: float32\n  only: {twice: false, axis: none}\n";
  expect_in(
      generated("shift", entry + "  returns: double out\n", kLibraryOfC),
      "call.run_into_as<float, double>(outs[0], call.data<const float>(args[0]), size_t{1}, ");
  expect_in(generated("shift", entry + "  returns: int out\n", kLibraryOfC),
            "call.run_into_as<float, int>(outs[0], ");
  expect_in(generated("shift", entry + "  returns: float out\n", kLibraryOfC),
            "call.run_into<float>(outs[0], ");
  for (const char* unclear : {"out", "void out", "T* out"})
    expect_in(generated("shift", entry + "  returns: " + unclear + "\n", kLibraryOfC),
              "11: `returns`: expected the type that the function returns (T, float, double or an "
              "integer's) and a result of shift, such as `T out`; got `" +
                  std::string(unclear) + "`");
  expect_in(generated("shift",
                      "  call: add<T>(const T* x, const T* y, float by)\n"
                      "  dtypes: float32\n  only: {twice: false, axis: none}\n"
                      "  returns: T out\n"),
            "12: `returns`: functions of C++ in a `scope` return a status, as an int");
}

TEST(Prototype, TakesIntegersWithoutASign) {
  for (const char* type : {"size_t", "uint64_t", "uint32_t", "uint16_t", "uint8_t"}) {
    const std::string call =
        std::string("  call: ?add(") + type + " 3, const T* x, const T* y, T by, T* out, ";
    const std::string rest = "  dtypes: float32\n  only: {twice: false, axis: none}\n";
    const std::string code = generated("shift", call + type + " numel of x)\n" + rest, kLibraryOfC);
    expect_in(code, std::string(type) + "{3}");
    expect_in(code, std::string("call.narrow<") + type + ">(call.numel(args[0]))");
    EXPECT_EQ(generated("shift", call + type + " -1)\n" + rest, kLibraryOfC),
              std::string("8: `call`: expected a ") + type + ", which has no sign, got -1");
  }
}

TEST(Prototype, RefusesWhatItCannotMake) {
  const std::string rest = "  dtypes: float32\n  only: {twice: false, axis: none}\n";
  EXPECT_EQ(
      generated("shift",
                "  call: add<T>(Context*, const T* x, const T* y, int64_t by, T* out)\n" + rest),
      "9: `call`: `int64_t by` cannot be made for shift(Tensor x, Tensor y, float by=1.0, bool "
      "twice=false, int[]? axis=none) -> Tensor; docs/bindings.md lists what a parameter of this "
      "type is "
      "made of");
  EXPECT_EQ(generated("shift", "  call: add<T>(Context*, const T* x, T* out, float by)\n" + rest),
            "9: the call does not use the parameter `y` of shift; pass it on, or write the value "
            "that the "
            "function assumes in `only`");
  EXPECT_EQ(
      generated("shift", "  call: add<T>(const double* x, const T* y, float by, T* out)\n" + rest),
      "9: `call`: `types` has no dtype for double");
  EXPECT_EQ(
      generated("shift",
                "  call: add<T>(const T* x, const T* y, float by, T* out)\n  dtypes: bfloat16\n"
                "  only: {twice: false, axis: none}\n"),
      "10: `dtypes`: `types` of the file has none for bfloat16");
  EXPECT_EQ(generated("shift",
                      "  call: ?dot(const T* x, const T* y, T by)\n" + rest + "  returns: T sum\n",
                      kLibraryOfC),
            "11: `returns`: shift has no result `sum`");
  EXPECT_EQ(generated("shift", "  call: ?add(const T* x, const T* y, float by, T* out)\n" + rest),
            "9: `call`: `letters` has none for float32");
  EXPECT_EQ(generated("shift", "  call: add<T>(const T* x, const T* y, float by, T* out)\n" + rest,
                      kLibraryOfC),
            "8: `call`: expected a template of C++ in the file's `scope`, got `add<T>`");
}

}  // namespace
}  // namespace tenon::codegen::testing
