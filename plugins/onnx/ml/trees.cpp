// SPDX-License-Identifier: Apache-2.0
// Ensembles of trees. All trees are one table of nodes; a row of the input goes down all of them at once, a level with each step, and
// stays in the leaf that it comes to.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "convert/converters.hpp"
#include "ml/scores.hpp"

namespace tenon::onnx {
namespace {

constexpr int64_t kMaxNodes = int64_t{1} << 24, kMaxCells = int64_t{1} << 28;
constexpr int kMaxLevels = 512;
enum Mode { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember, kLeaf };
enum class Aggregate { kAverage, kSum, kMin, kMax };

struct TreeNode {
  int64_t feature = 0;
  double value = 0;
  Mode mode = kLeaf;
  int64_t yes = -1, no = -1;  // the nodes to go to
  bool is_yes_for_nan = false;
  Floats members;
  std::map<int64_t, double> weights;  // of a leaf, by result
};

struct Forest {
  std::vector<TreeNode> nodes;
  Ints roots;
  int64_t results = 1;
  Aggregate aggregate = Aggregate::kSum;
};

class Traversal {
 public:
  Traversal(Conversion& c, const Forest& forest, const Tensor& x)
      : c_(c), forest_(forest), x_(x), dtype_(x->dtype) {}

  // [rows, results]
  Tensor run() {
    check_features();
    const int64_t levels = depth(), trees = static_cast<int64_t>(forest_.roots.size());
    Tensor at = c_.call("reshape", {known_ints(forest_.roots), Ints{1, trees}});
    if (levels > 0) make_tables();
    for (int64_t level = 0; level < levels; ++level) at = next(at);
    if (levels == 0) {
      // A row for each of X, whose number may be open.
      const Tensor column =
          c_.call("isnan", {c_.call("narrow", {x_, int64_t{1}, int64_t{0}, int64_t{1}})});
      at = c_.call("where", {column, at, at});
    }
    return aggregated(at, trees);
  }

 private:
  void check_features() const {
    for (const TreeNode& node : forest_.nodes)
      if (node.mode != kLeaf && (node.feature < 0 || node.feature >= x_->shape[1]))
        c_.fail("expected nodes of features from 0 to " + std::to_string(x_->shape[1] - 1) +
                ", as X has so many columns, got one of " + std::to_string(node.feature));
  }

  // The longest way down, in nodes that are no leaves. Throws Error where a node is its own ancestor.
  int64_t depth() const {
    std::vector<int64_t> level(forest_.nodes.size(), -1);
    std::vector<std::pair<int64_t, int>> now, then;
    int64_t levels = 0;
    std::vector<int64_t> layer = forest_.roots;
    std::sort(layer.begin(), layer.end());
    for (;; ++levels) {
      std::set<int64_t> below;
      for (int64_t index : layer) {
        const TreeNode& node = forest_.nodes[static_cast<size_t>(index)];
        if (node.mode == kLeaf) continue;
        below.insert(node.yes);
        below.insert(node.no);
      }
      if (below.empty()) return levels;
      if (levels >= kMaxLevels)
        c_.fail(
            "expected trees of at most 512 levels, got deeper ones; does a node lead to itself?");
      layer.assign(below.begin(), below.end());
    }
  }

  template <class Get>
  Tensor integers(Get get) const {
    Ints list;
    for (const TreeNode& node : forest_.nodes) list.push_back(get(node));
    return known_ints(list);
  }

  void make_tables() {
    Floats values;
    std::vector<bool> nan;
    size_t members = 0;
    for (size_t i = 0; i < forest_.nodes.size(); ++i) {
      const TreeNode& node = forest_.nodes[i];
      values.push_back(node.value);
      nan.push_back(node.is_yes_for_nan);
      if (node.mode != kLeaf) modes_.insert(node.mode);
      members = std::max(members, node.members.size());
    }
    const auto count = static_cast<int64_t>(forest_.nodes.size());
    features_ = integers([](const TreeNode& node) { return node.feature; });
    values_ = known_table(values, {count}, dtype_);
    if (modes_.size() > 1)
      mode_ = integers([](const TreeNode& node) { return int64_t{node.mode}; });
    if (std::find(nan.begin(), nan.end(), true) != nan.end()) nan_ = known_truths(nan);
    // First where the answer is no, then where it is yes.
    Ints children;
    int64_t self = 0;
    for (const TreeNode& node : forest_.nodes) {
      children.push_back(node.mode == kLeaf ? self : node.no);
      children.push_back(node.mode == kLeaf ? self : node.yes);
      ++self;
    }
    children_ = known_ints(children);
    if (members > 0) {
      if (static_cast<int64_t>(members) * count > kMaxCells)
        c_.refuse("more than 2^28 members of sets");
      Floats sets;
      for (const TreeNode& node : forest_.nodes)
        for (size_t k = 0; k < members; ++k)
          sets.push_back(k < node.members.size() ? node.members[k]
                                                 : std::numeric_limits<double>::quiet_NaN());
      members_ = known_table(sets, {count, static_cast<int64_t>(members)}, dtype_);
    }
  }

  Tensor row(const Tensor& table, const Tensor& at) const {
    return c_.call("index_select", {table, at, 0});
  }

  Tensor answer(Mode mode, const Tensor& x, const Tensor& value, const Tensor& at) const {
    switch (mode) {
      case kLessEqual:
        return c_.call("less_equal", {x, value});
      case kLess:
        return c_.call("less", {x, value});
      case kGreaterEqual:
        return c_.call("greater_equal", {x, value});
      case kGreater:
        return c_.call("greater", {x, value});
      case kEqual:
        return c_.call("equal", {x, value});
      case kNotEqual:
        return c_.call("not_equal", {x, value});
      default:
        return c_.call(
            "any",
            {c_.call("equal", {c_.call("unsqueeze", {x, Ints{2}}), row(members_, at)}), Ints{2}});
    }
  }

  Tensor next(const Tensor& at) const {
    // All rows begin in the same nodes.
    const bool is_first = is_known(at);
    const Tensor features = row(features_, at), value = row(values_, at),
                 x = is_first ? c_.call("index_select",
                                        {x_, c_.call("reshape", {features, Ints{-1}}), 1})
                              : c_.call("gather", {x_, features, 1});
    Tensor is_yes;
    for (const Mode mode : modes_) {
      const Tensor one = answer(mode, x, value, at);
      is_yes = !is_yes ? one
                       : c_.call("where",
                                 {c_.call("equal", {row(mode_, at), int64_t{mode}}), one, is_yes});
    }
    if (nan_)
      is_yes = c_.call("logical_or",
                       {is_yes, c_.call("logical_and", {c_.call("isnan", {x}), row(nan_, at)})});
    const Tensor place =
        c_.call("add", {c_.call("multiply", {at, int64_t{2}}), c_.cast(is_yes, TENON_DTYPE_I64)});
    return row(children_, place);
  }

  // Of the leaves [rows, trees].
  Tensor aggregated(const Tensor& leaves, int64_t trees) const {
    const bool is_extreme =
        forest_.aggregate == Aggregate::kMin || forest_.aggregate == Aggregate::kMax;
    const double none = !is_extreme ? 0.0
                        : forest_.aggregate == Aggregate::kMin
                            ? std::numeric_limits<double>::infinity()
                            : -std::numeric_limits<double>::infinity();
    const auto count = static_cast<int64_t>(forest_.nodes.size());
    if (count * forest_.results > kMaxCells) c_.refuse("more than 2^28 weights of leaves");
    Floats weights(static_cast<size_t>(count * forest_.results), none);
    for (size_t i = 0; i < forest_.nodes.size(); ++i)
      for (const auto& [result, weight] : forest_.nodes[i].weights)
        weights[i * static_cast<size_t>(forest_.results) + static_cast<size_t>(result)] = weight;
    const Tensor each = row(known_table(weights, {count, forest_.results}, dtype_), leaves);
    if (is_extreme) {
      const char* op = forest_.aggregate == Aggregate::kMin ? "min" : "max";
      const Tensor made = c_.call(op, {each, Ints{1}});
      return c_.call("where", {c_.call("equal", {made, none}), 0.0, made});
    }
    const Tensor sum = c_.call("sum", {each, Ints{1}});
    if (forest_.aggregate == Aggregate::kSum) return sum;
    return c_.call("divide", {sum, static_cast<double>(trees)});
  }

  Conversion& c_;
  const Forest& forest_;
  const Tensor x_;
  const int32_t dtype_;
  std::set<Mode> modes_;
  Tensor features_, values_, mode_, nan_, children_, members_;
};

Floats numbers_of(Conversion& c, const std::string& name) {
  const std::string as_tensor = name + "_as_tensor";
  const bool has_both = c.schema.find_attribute(as_tensor) != nullptr;
  const Value value =
      has_both && c.has_attribute(as_tensor) ? c.attribute(as_tensor) : c.attribute(name);
  return value.is_none() ? Floats() : floats_of(value, name);
}

Aggregate aggregate_named(Conversion& c, const std::string& name) {
  if (name == "SUM") return Aggregate::kSum;
  if (name == "AVERAGE") return Aggregate::kAverage;
  if (name == "MIN") return Aggregate::kMin;
  if (name == "MAX") return Aggregate::kMax;
  c.fail("attribute `aggregate_function`: expected SUM, AVERAGE, MIN or MAX, got `" + name + "`");
}

Mode mode_named(Conversion& c, const std::string& name) {
  static const std::map<std::string, Mode> names = {{"BRANCH_LEQ", kLessEqual},
                                                    {"BRANCH_LT", kLess},
                                                    {"BRANCH_GTE", kGreaterEqual},
                                                    {"BRANCH_GT", kGreater},
                                                    {"BRANCH_EQ", kEqual},
                                                    {"BRANCH_NEQ", kNotEqual},
                                                    {"LEAF", kLeaf}};
  const auto found = names.find(name);
  if (found == names.end())
    c.fail(
        "attribute `nodes_modes`: expected LEAF or BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ, got `" +
        name + "`");
  return found->second;
}

// Nodes that lead to themselves are below no root.
void check_reached(Conversion& c, const Forest& forest) {
  std::vector<bool> is_reached(forest.nodes.size());
  Ints open = forest.roots;
  while (!open.empty()) {
    const auto index = static_cast<size_t>(open.back());
    open.pop_back();
    if (is_reached[index]) continue;
    is_reached[index] = true;
    if (forest.nodes[index].mode == kLeaf) continue;
    open.push_back(forest.nodes[index].yes);
    open.push_back(forest.nodes[index].no);
  }
  if (std::find(is_reached.begin(), is_reached.end(), false) != is_reached.end())
    c.fail("expected trees, got a node that no root leads to; does a node lead to itself?");
}

// Of TreeEnsembleRegressor and TreeEnsembleClassifier, whose leaves' attributes begin with `kind`: "target", "class".
Forest forest_of(Conversion& c, const std::string& kind) {
  const Ints trees = c.integers("nodes_treeids"), ids = c.integers("nodes_nodeids"),
             features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
             no = c.integers("nodes_falsenodeids"),
             nan = c.integers("nodes_missing_value_tracks_true");
  const Value mode_value = c.attribute("nodes_modes");
  const Texts modes = mode_value.get<Texts>() ? *mode_value.get<Texts>() : Texts();
  const Floats values = numbers_of(c, "nodes_values");
  const size_t count = ids.size();
  if (static_cast<int64_t>(count) > kMaxNodes) c.refuse("more than 2^24 nodes");
  for (const size_t other :
       {trees.size(), features.size(), yes.size(), no.size(), modes.size(), values.size()})
    if (other != count)
      c.fail("expected attributes `nodes_*` of as many elements each, got " +
             std::to_string(count) + " and " + std::to_string(other));
  if (!nan.empty() && nan.size() != count)
    c.fail("attribute `nodes_missing_value_tracks_true`: expected one for each node");
  std::map<std::pair<int64_t, int64_t>, int64_t> indices;
  for (size_t i = 0; i < count; ++i)
    if (!indices.emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i)).second)
      c.fail("expected each node of a tree once, got node " + std::to_string(ids[i]) + " of tree " +
             std::to_string(trees[i]) + " twice");
  const auto place = [&](int64_t tree, int64_t id) {
    const auto found = indices.find({tree, id});
    if (found == indices.end())
      c.fail("expected node " + std::to_string(id) + " of tree " + std::to_string(tree) +
             ", to which another one leads, got none");
    return found->second;
  };
  Forest forest;
  std::vector<bool> is_below(count);
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    node.mode = mode_named(c, modes[i]);
    node.feature = features[i];
    node.value = values[i];
    node.is_yes_for_nan = !nan.empty() && nan[i] != 0;
    if (node.mode != kLeaf) {
      node.yes = place(trees[i], yes[i]);
      node.no = place(trees[i], no[i]);
      is_below[static_cast<size_t>(node.yes)] = is_below[static_cast<size_t>(node.no)] = true;
    }
    forest.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < count; ++i)
    if (!is_below[i]) forest.roots.push_back(static_cast<int64_t>(i));
  if (forest.roots.empty()) c.fail("expected a tree with a root, got none");
  check_reached(c, forest);
  const Ints leaf_trees = c.integers(kind + "_treeids"), leaf_ids = c.integers(kind + "_nodeids"),
             results = c.integers(kind + "_ids");
  const Floats weights = numbers_of(c, kind + "_weights");
  if (leaf_ids.size() != leaf_trees.size() || results.size() != leaf_ids.size() ||
      weights.size() != leaf_ids.size())
    c.fail("expected attributes `" + kind + "_*` of as many elements each");
  for (size_t i = 0; i < leaf_ids.size(); ++i) {
    if (results[i] < 0 || results[i] > kMaxNodes)
      c.fail("attribute `" + kind + "_ids`: expected numbers from 0 on, got " +
             std::to_string(results[i]));
    forest.nodes[static_cast<size_t>(place(leaf_trees[i], leaf_ids[i]))].weights[results[i]] +=
        weights[i];
  }
  return forest;
}

Tensor with_base(Conversion& c, const Tensor& scores, const Floats& base) {
  if (base.empty()) return scores;
  if (base.size() != 1 && static_cast<int64_t>(base.size()) != scores->shape[1])
    c.fail("attribute `base_values`: expected " + std::to_string(scores->shape[1]) + ", got " +
           std::to_string(base.size()));
  return c.call("add",
                {scores, known_table(base, {static_cast<int64_t>(base.size())}, scores->dtype)});
}

void check_results(Conversion& c, const Forest& forest) {
  if (forest.results < 1 || forest.results > kMaxNodes)
    c.fail("expected at least one result, got " + std::to_string(forest.results));
  for (const TreeNode& node : forest.nodes)
    if (!node.weights.empty() && node.weights.rbegin()->first >= forest.results)
      c.fail("expected leaves of results below " + std::to_string(forest.results) +
             ", got one of " + std::to_string(node.weights.rbegin()->first));
}

}  // namespace

Values convert_tree_ensemble_regressor(Conversion& c) {
  Forest forest = forest_of(c, "target");
  forest.results = c.integer("n_targets", 1);
  forest.aggregate = aggregate_named(c, c.text("aggregate_function"));
  check_results(c, forest);
  const Tensor x = as_rows(c, as_floats(c, c.tensor("X")));
  const Tensor scores = with_base(c, Traversal(c, forest, x).run(), numbers_of(c, "base_values"));
  return {c.cast(post_transformed(c, scores, c.text("post_transform")), TENON_DTYPE_F32)};
}

Values convert_tree_ensemble_classifier(Conversion& c) {
  Forest forest = forest_of(c, "class");
  const Labels labels(c, "classlabels_strings", "classlabels_int64s");
  const auto classes = static_cast<int64_t>(labels.count());
  std::set<int64_t> scored;
  bool is_positive = true;
  for (const TreeNode& node : forest.nodes)
    for (const auto& [result, weight] : node.weights) {
      scored.insert(result);
      is_positive = is_positive && weight >= 0;
    }
  forest.results = classes;
  const Floats base = numbers_of(c, "base_values");
  const bool is_binary = classes == 2 && scored.size() == 1;
  if (is_binary) {
    // Scores of one class say what the other one's are.
    for (TreeNode& node : forest.nodes)
      if (!node.weights.empty()) node.weights = {{0, node.weights.begin()->second}};
    forest.results = 1;
    if (*scored.begin() != 0)
      c.refuse(
          "leaves that score the second of two classes alone: runtimes differ in what the first "
          "one's scores are");
    if (base.size() == 2)
      c.refuse("attribute `base_values` of both classes, where leaves score one");
  }
  check_results(c, forest);
  const Tensor x = as_rows(c, as_floats(c, c.tensor("X")));
  const Tensor scores = c.cast(with_base(c, Traversal(c, forest, x).run(), base), TENON_DTYPE_F32);
  return classified(c, labels, scores, c.text("post_transform"),
                    {is_positive ? 0.5 : 0.0, is_positive});
}

namespace {

// Members of sets stand one after another, NaN between them.
void read_members(Conversion& c, Forest& forest) {
  const Value given = c.attribute("membership_values");
  const Floats all = given.is_none() ? Floats() : floats_of(given, "membership_values");
  size_t at = 0;
  for (TreeNode& node : forest.nodes) {
    if (node.mode != kMember) continue;
    if (at >= all.size())
      c.fail("attribute `membership_values`: expected a set for each node of that mode");
    for (; at < all.size() && !std::isnan(all[at]); ++at) node.members.push_back(all[at]);
    ++at;
  }
}

Forest forest_of_tensors(Conversion& c) {
  const Ints features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
             no = c.integers("nodes_falsenodeids"), yes_leaf = c.integers("nodes_trueleafs"),
             no_leaf = c.integers("nodes_falseleafs"), results = c.integers("leaf_targetids"),
             nan = c.integers("nodes_missing_value_tracks_true");
  const Ints modes = ints_of(c.attribute("nodes_modes"), "nodes_modes");
  const Floats values = floats_of(c.attribute("nodes_splits"), "nodes_splits"),
               weights = floats_of(c.attribute("leaf_weights"), "leaf_weights");
  const size_t count = features.size();
  for (const size_t other :
       {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), modes.size(), values.size()})
    if (other != count)
      c.fail("expected attributes `nodes_*` of as many elements each, got " +
             std::to_string(count) + " and " + std::to_string(other));
  if (!nan.empty() && nan.size() != count)
    c.fail("attribute `nodes_missing_value_tracks_true`: expected one for each node");
  if (results.size() != weights.size())
    c.fail("expected attributes `leaf_*` of as many elements each");
  if (static_cast<int64_t>(count + results.size()) > kMaxNodes) c.refuse("more than 2^24 nodes");
  Forest forest;
  const auto place = [&](int64_t id, int64_t is_leaf) {
    const size_t limit = is_leaf ? results.size() : count;
    if (id < 0 || id >= static_cast<int64_t>(limit))
      c.fail("expected nodes and leaves that are there, got " + std::to_string(id) + " of " +
             std::to_string(limit));
    return is_leaf ? static_cast<int64_t>(count) + id : id;
  };
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    if (modes[i] < 0 || modes[i] > kMember)
      c.fail("attribute `nodes_modes`: expected 0 to 6, got " + std::to_string(modes[i]));
    node.mode = static_cast<Mode>(modes[i]);
    node.feature = features[i];
    node.value = values[i];
    node.is_yes_for_nan = !nan.empty() && nan[i] != 0;
    node.yes = place(yes[i], yes_leaf[i]);
    node.no = place(no[i], no_leaf[i]);
    forest.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    TreeNode leaf;
    if (results[i] < 0) c.fail("attribute `leaf_targetids`: expected numbers from 0 on");
    leaf.weights[results[i]] = weights[i];
    forest.nodes.push_back(std::move(leaf));
  }
  for (int64_t root : c.integers("tree_roots")) forest.roots.push_back(place(root, 0));
  if (forest.roots.empty()) c.fail("attribute `tree_roots`: expected one at least");
  read_members(c, forest);
  return forest;
}

}  // namespace

Values convert_tree_ensemble(Conversion& c) {
  Forest forest = forest_of_tensors(c);
  forest.results = c.integer("n_targets", 1);
  static constexpr Aggregate kAggregates[] = {Aggregate::kAverage, Aggregate::kSum, Aggregate::kMin,
                                              Aggregate::kMax};
  static constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                "PROBIT"};
  const int64_t aggregate = c.integer("aggregate_function"),
                transform = c.integer("post_transform");
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    c.fail("expected aggregate_function 0 to 3 and post_transform 0 to 4, got " +
           std::to_string(aggregate) + " and " + std::to_string(transform));
  forest.aggregate = kAggregates[aggregate];
  check_results(c, forest);
  const Tensor& x = c.tensor("X");
  const Tensor scores = Traversal(c, forest, as_rows(c, as_floats(c, x))).run();
  return {c.cast(post_transformed(c, scores, kTransforms[transform]), x->dtype)};
}

}  // namespace tenon::onnx
