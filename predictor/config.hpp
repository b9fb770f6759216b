// SPDX-License-Identifier: Apache-2.0
// What a predictor is to be like: texts by key, so that new keys change no function and no binding.
#pragma once

#include <tenon/predictor.h>

#include <map>
#include <string>
#include <vector>

namespace tenon::predictor {

// All keys, also those that this version does not do.
const std::vector<tenon_config_key_info>& config_keys();

class Config {
 public:
  explicit Config(std::string path);

  // Throws Error for keys and values that there are not.
  void set(const std::string& key, const std::string& value);
  const std::string& get(const std::string& key) const;

  const std::string& path() const { return path_; }
  bool is_on(const std::string& key) const { return get(key) == "true"; }
  // Elements of a list that commas divide, without spaces around them and without empty ones.
  std::vector<std::string> list(const std::string& key) const;

 private:
  std::string path_;
  std::map<std::string, std::string> values_;
};

// A value of `subgraphs`: "onnxruntime: threads=2". Options are in the claimer's own grammar.
struct ChosenClaimer {
  std::string name, options;
};
std::vector<ChosenClaimer> parse_claimers(const std::string& text);

// Pieces of `text` between `divider`s, without spaces around them and without empty ones.
std::vector<std::string> pieces(const std::string& text, char divider);

}  // namespace tenon::predictor
