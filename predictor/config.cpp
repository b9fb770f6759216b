// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <tenon/error.hpp>
#include <tenon/schema/words.hpp>

#include <algorithm>
#include <charconv>

#include "sizes.hpp"
#include "warmup.hpp"

namespace tenon::predictor {
namespace {

using Info = tenon_config_key_info;

constexpr Info available(const char* name, const char* default_value, const char* text) {
  return {sizeof(Info), 1, name, default_value, text};
}
constexpr Info planned(const char* name, const char* text) {
  return {sizeof(Info), 0, name, "", text};
}

[[noreturn]] void refuse(const std::string& key, const std::string& expected,
                         const std::string& value) {
  throw Error(TENON_INVALID_ARGUMENT,
              "config: `" + key + "`: expected " + expected + ", got '" + value + "'");
}

void check_one_of(const std::string& key, const std::vector<std::string>& words,
                  const std::string& value) {
  if (std::find(words.begin(), words.end(), value) != words.end()) return;
  std::string expected;
  for (size_t i = 0; i < words.size(); ++i)
    expected += (i == 0 ? "'" : i + 1 == words.size() ? " or '" : ", '") + words[i] + "'";
  refuse(key, expected + schema::did_you_mean(value, words), value);
}

bool is_number(const std::string& value, int64_t least, int64_t most) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size() && number >= least &&
         number <= most;
}

// What can be told without the program. Names of devices, passes and rewrites are looked up when it is loaded.
void check_value(const std::string& key, const std::string& value) {
  if (key == "numerics") check_one_of(key, {"exact", "ulp", "fast"}, value);
  if (key == "fallback") check_one_of(key, {"allow", "warn", "deny"}, value);
  if (key == "dtype") check_one_of(key, {"", "float16", "bfloat16"}, value);
  if (key == "profile") check_one_of(key, {"true", "false"}, value);
  if (key == "warmup") parse_shapes(value);
  if (key == "subgraphs") parse_claimers(value);
  if (key == "sizes") parse_sizes(value);
  if (key == "shapes") parse_named_shapes(value);
  constexpr int64_t kYear = int64_t{1000} * 3600 * 24 * 365, kMaxThreads = 1024, kSecond = 1000000;
  if (key == "deadline_ms" && !is_number(value, 0, kYear))
    refuse(key, "a number of milliseconds, or 0 for no deadline", value);
  if (key == "threads" && !value.empty() && !is_number(value, 1, kMaxThreads))
    refuse(key, "a number of threads from 1 to 1024, or nothing for the process's pool", value);
  if (key == "spin_us" && !value.empty() && !is_number(value, 0, kSecond))
    refuse(key, "a number of microseconds from 0 to 1000000", value);
}

std::string trimmed(const std::string& text) {
  const std::vector<std::string> all = pieces(text, '\0');
  return all.empty() ? "" : all[0];
}

std::vector<std::string> names_of_keys() {
  std::vector<std::string> names;
  for (const Info& info : config_keys()) names.emplace_back(info.name);
  return names;
}

const Info& info_of(const std::string& key) {
  for (const Info& info : config_keys())
    if (key == info.name) return info;
  const std::vector<std::string> names = names_of_keys();
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  throw Error(TENON_NOT_FOUND, "config: there is no key `" + key + "`" +
                                   schema::did_you_mean(key, names) + "; the keys are " + all);
}

}  // namespace

const std::vector<Info>& config_keys() {
  static const std::vector<Info> kKeys = {
      available(
          "device", "",
          "devices in order of preference, 'cuda:0,cpu': the first one that is there runs the "
          "program; empty: the one that it was exported for"),
      available(
          "fallback", "warn",
          "what happens where the device has no kernel for a step, so that the host would run "
          "it: allow; warn: say so once; deny: loading fails and lists the steps"),
      available("numerics", "exact",
                "how far results may be from those of the exported function: exact, ulp, fast (see "
                "docs/rewrites.md); fast also folds normalisations by constants"),
      available("dtype", "",
                "float16 or bfloat16: operators that mixed precision has in it compute in it, with "
                "weights cast once, and inputs and outputs as they are; empty: as exported"),
      available("passes", "",
                "passes that change the program when it is loaded, 'fold,fold_scales'; those of "
                "`numerics` run first"),
      available("without", "", "rewrites that `numerics` does not use, 'silu,gelu'"),
      available(
          "warmup", "",
          "runs on zeros before loading ends, so that the first run is a warm one: 'recorded', "
          "or shapes of the inputs, 'x=1x3x224x224,mask=1x224; x=8x3x224x224,mask=8x224'"),
      available("sizes", "",
                "of a .onnx model: what it leaves open, by name: 'batch=8', or 'batch=1:64' for a "
                "size that each run chooses"),
      available("shapes", "",
                "of a .onnx model: shapes of inputs whose open sizes have no name, 'x=1x4' or "
                "'x=1:64x4'; one for each tensor of a sequence"),
      available("profile", "false", "true: runs are timed, see tenon_predictor_profile"),
      available(
          "deadline_ms", "0",
          "a run that takes longer ends with DEADLINE_EXCEEDED before its next step; 0: never"),
      available("threads", "",
                "threads that a run may use, the caller's included: the predictor and each clone "
                "have a pool of their own; empty: all share the process's pool "
                "(tenon_predictor_set_process_threads, tenon.set_num_threads, TENON_NUM_THREADS)"),
      available("spin_us", "",
                "microseconds that a thread of that pool waits for work before it sleeps; empty: "
                "as those of the process's pool; it needs `threads`"),
      available(
          "subgraphs", "",
          "claimers that are offered the steps on the host before kernels are, options behind "
          "a colon, 'onnxruntime: exclude=softmax; threads=2'; several divided by '|'; what they "
          "leave goes by `fallback`"),
      planned("affinity", "bind the process to processors (taskset) instead"),
      planned("memory", "results are allocated when they are needed and kept for later runs"),
      planned("instances", "programs of the last 32 sizes are kept"),
      planned("cache_dir",
              "write packed weights into a file of their own: tenon_predictor_save_optimized"),
      planned("isolated", "load the device's plugin with isolated=True instead"),
      planned("deterministic", "use tenon.use_deterministic_algorithms, which is for the process"),
  };
  return kKeys;
}

Config::Config(std::string path) : path_(std::move(path)) {
  for (const Info& info : config_keys()) values_[info.name] = info.default_value;
}

void Config::set(const std::string& key, const std::string& value) {
  const Info& info = info_of(key);
  if (!info.is_available)
    throw Error(TENON_UNSUPPORTED, "config: `" + key + "` is not there yet: " + info.text);
  check_value(key, value);
  values_[key] = value;
}

const std::string& Config::get(const std::string& key) const {
  info_of(key);
  return values_.find(key)->second;
}

std::vector<std::string> Config::list(const std::string& key) const {
  return pieces(get(key), ',');
}

std::vector<ChosenClaimer> parse_claimers(const std::string& text) {
  std::vector<ChosenClaimer> claimers;
  for (const std::string& each : pieces(text, '|')) {
    const size_t colon = std::min(each.find(':'), each.size());
    ChosenClaimer made = {trimmed(each.substr(0, colon)),
                          trimmed(each.substr(std::min(colon + 1, each.size())))};
    if (made.name.empty())
      refuse("subgraphs", "names of claimers, with options behind a colon", text);
    claimers.push_back(std::move(made));
  }
  return claimers;
}

std::vector<std::string> pieces(const std::string& text, char divider) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(divider, begin), text.size());
    const size_t first = text.find_first_not_of(' ', begin);
    if (first < end) {
      const size_t last = text.find_last_not_of(' ', end - 1);
      found.push_back(text.substr(first, last + 1 - first));
    }
    begin = end + 1;
  }
  return found;
}

}  // namespace tenon::predictor
