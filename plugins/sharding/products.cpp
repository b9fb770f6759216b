// SPDX-License-Identifier: Apache-2.0
// Rules whose axes have letters: "... m k, ... k n -> ... m n; k: sum".
#include <algorithm>
#include <cctype>

#include "rules.hpp"

namespace tenon::sharding {
namespace {

// The letters of a tensor's axes, without `...`, which are its first `leading` axes.
struct Named {
  std::string letters;
  int64_t leading = 0;
  bool is_there = false;

  int64_t find(char letter) const {
    const size_t at = letters.find(letter);
    return at == letters.npos ? -1 : leading + static_cast<int64_t>(at);
  }
};

// `dropped`: axes in brackets that operands lack, added to by them.
bool name_axes(const ShardingRule::Axes& axes, int64_t ndim, Named& named, std::string& dropped) {
  named = {axes.letters, 0, true};
  const bool has_leading = named.letters.starts_with('.');
  if (has_leading) named.letters.erase(0, 1);
  auto count = static_cast<int64_t>(named.letters.size());
  if (axes.optional && ndim == count - 1) {
    std::erase(named.letters, axes.optional);
    dropped += axes.optional;
    --count;
  }
  named.leading = ndim - count;
  return named.leading >= 0 && (has_leading || named.leading == 0);
}

}  // namespace

bool Rules::add_product(const ShardingRule& rule) {
  // In the order of tensor parameters, of which some may be absent.
  std::vector<Named> operands(call.operands.size()), results(call.results.size());
  std::string dropped;
  size_t tensor_param = 0;
  for (uint32_t i = 0; i < call.def.nparams; ++i) {
    if (call.def.params[i].kind != TENON_PARAM_TENSOR) continue;
    if (tensor_param == rule.operands.size()) return false;
    const ShardingRule::Axes& axes = rule.operands[tensor_param++];
    if (call.args[i].tag == TENON_VALUE_NONE) continue;
    bool found = false;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (call.operands[k].param != i) continue;
      found = name_axes(axes, tensor(k).ndim, operands[k], dropped);
    }
    if (!found) return false;  // a number, or other axes
  }
  if (results.size() != rule.results.size()) return false;
  int64_t leading = 0;
  for (size_t k = 0; k < results.size(); ++k) {
    ShardingRule::Axes axes = rule.results[k];
    for (char letter : dropped) std::erase(axes.letters, letter);
    if (!name_axes(axes, result(k).ndim, results[k], dropped)) return false;
    leading = std::max(leading, results[k].leading);
  }

  std::string letters;
  for (const Named& named : operands)
    for (char letter : named.letters)
      if (std::islower(static_cast<unsigned char>(letter)) && letters.find(letter) == letters.npos)
        letters += letter;
  for (char letter : letters) {
    Candidate made = empty();
    int64_t size = -1;
    bool fits = true;
    for (size_t k = 0; k < operands.size(); ++k) {
      const int64_t i = operands[k].find(letter);
      if (i < 0) continue;
      fits = fits && (size < 0 || tensor(k).shape[i] == size);
      size = tensor(k).shape[i];
      made.operands[k] = Placement::shard(i);
    }
    const auto contraction = std::find_if(rule.contractions.begin(), rule.contractions.end(),
                                          [&](const auto& each) { return each.letter == letter; });
    for (size_t k = 0; k < results.size() && fits; ++k) {
      const int64_t to = results[k].find(letter);
      if (to >= 0) {
        fits = result(k).shape[to] == size;
        made.results[k] = Placement::shard(to);
      } else if (contraction == rule.contractions.end()) {
        fits = false;
      } else {
        const int32_t reduce = contraction->reduce == "sum"   ? TENON_REDUCE_SUM
                               : contraction->reduce == "max" ? TENON_REDUCE_MAX
                                                              : TENON_REDUCE_MIN;
        made.results[k] = Placement::partial(reduce);
        fits = place_partial(contraction->added, reduce, made.operands);
      }
    }
    if (fits && size != 1) add(std::move(made));
  }

  for (int64_t d = 0; d < leading; ++d) {
    Candidate made = empty();
    bool fits = true;
    int64_t size = -1;
    for (size_t k = 0; k < results.size(); ++k) {
      const int64_t to = d - (leading - results[k].leading);
      fits = fits && to >= 0;
      if (!fits) break;
      size = result(k).shape[to];
      made.results[k] = Placement::shard(to);
    }
    for (size_t k = 0; k < operands.size() && fits; ++k) {
      const int64_t i = d - (leading - operands[k].leading);
      if (operands[k].is_there && i >= 0 && i < operands[k].leading && tensor(k).shape[i] == size)
        made.operands[k] = Placement::shard(i);
    }
    if (fits && size != 1) add(std::move(made));
  }
  add_linear(rule);
  return true;
}

}  // namespace tenon::sharding
