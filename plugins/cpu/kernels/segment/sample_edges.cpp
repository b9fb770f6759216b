// SPDX-License-Identifier: Apache-2.0
// sample_edges: neighbours of nodes, of their neighbours and so on, at random. A draw depends on the seed, the hop, the node
// and its number alone, so that threads change no result. Only what is visited of the graph is read, and checked.
#include "index/indices.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/geometric.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

uint64_t mixed(uint64_t x) {  // SplitMix64 (Steele, Lea, Flood, 2014)
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

class Draws {
 public:
  Draws(uint64_t seed, uint64_t hop, uint64_t node) : key_(mixed(mixed(seed ^ hop << 56) ^ node)) {}
  uint64_t bits() { return mixed(key_ + ++count_); }
  // A whole number below `limit`, each as often as the others but for one part in 2^64 / limit.
  int64_t below(int64_t limit) {
    const auto product = static_cast<unsigned __int128>(bits()) * static_cast<uint64_t>(limit);
    return static_cast<int64_t>(product >> 64);
  }
  double fraction() { return static_cast<double>((bits() >> 11) + 1) * 0x1p-53; }  // (0, 1]

 private:
  uint64_t key_, count_ = 0;
};

// The graph, whose node i has the neighbours row[start[i]] to row[start[i + 1]].
struct Graph {
  const int64_t *row, *start;
  const float* weights;  // nullptr: all are alike
  int64_t nodes, edges;
};

// `size` different numbers below `degree`, in `out` (Floyd's algorithm: Bentley, Floyd, 1987).
void draw_different(Draws& draws, int64_t degree, int64_t size, std::vector<int64_t>& out) {
  constexpr int64_t kFew = 64;  // of which a search in order is fast
  if (size <= kFew) {
    for (int64_t last = degree - size; last < degree; ++last) {
      const int64_t drawn = draws.below(last + 1);
      const bool is_there = std::find(out.begin(), out.end(), drawn) != out.end();
      out.push_back(is_there ? last : drawn);
    }
    return;
  }
  out.resize(static_cast<size_t>(degree));
  for (int64_t i = 0; i < degree; ++i) out[static_cast<size_t>(i)] = i;
  for (int64_t i = 0; i < size; ++i)
    std::swap(out[static_cast<size_t>(i)], out[static_cast<size_t>(i + draws.below(degree - i))]);
  out.resize(static_cast<size_t>(size));
}

// Successive draws in proportion to weights are those of the smallest -log(u) / w (Efraimidis, Spirakis, 2006). What weighs
// nothing is never drawn.
void draw_weighted(Draws& draws, const float* weights, int64_t degree, int64_t size,
                   std::vector<std::pair<double, int64_t>>& keys, std::vector<int64_t>& out) {
  keys.clear();
  for (int64_t i = 0; i < degree; ++i)
    if (const double key = -std::log(draws.fraction()) / static_cast<double>(weights[i]);
        weights[i] > 0)
      keys.emplace_back(key, i);
  const auto count = std::min(keys.size(), static_cast<size_t>(size));
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end());
  for (size_t i = 0; i < count; ++i) out.push_back(keys[i].second);
}

// Numbers of nodes in the order in which they are added; an open table.
class Numbers {
 public:
  explicit Numbers(size_t expected) : table_(std::bit_ceil(2 * expected + 16), -1) {}
  const std::vector<int64_t>& nodes() const { return nodes_; }
  // The node's number, a new one if it has none.
  int64_t number_of(int64_t node) {
    if (2 * nodes_.size() >= table_.size()) grow();
    int64_t& place = table_[place_of(node)];
    if (place < 0) {
      place = static_cast<int64_t>(nodes_.size());
      nodes_.push_back(node);
    }
    return place;
  }

 private:
  size_t place_of(int64_t node) const {
    size_t at = mixed(static_cast<uint64_t>(node)) & (table_.size() - 1);
    while (table_[at] >= 0 && nodes_[static_cast<size_t>(table_[at])] != node)
      at = (at + 1) & (table_.size() - 1);
    return at;
  }
  void grow() {
    table_.assign(2 * table_.size(), -1);
    for (size_t i = 0; i < nodes_.size(); ++i)
      table_[place_of(nodes_[i])] = static_cast<int64_t>(i);
  }
  std::vector<int64_t> table_, nodes_;
};

struct Sample {
  std::vector<int64_t> source, target, edges;
};

// A place in the graph that is not what it has to be.
struct Fault {
  std::atomic<int64_t> node{-1}, edge{-1};
};

// The indices in `row` of the edges that are drawn for one node.
void draw_edges(const Graph& graph, Draws draws, int64_t node, int64_t size, Fault& fault,
                std::vector<int64_t>& out) {
  const int64_t begin = graph.start[node], end = graph.start[node + 1];
  if (begin < 0 || end < begin || end > graph.edges) {
    fault.node = node;
    return;
  }
  if (graph.weights)
    for (int64_t edge = begin; edge < end; ++edge)
      if (!(graph.weights[edge] >= 0) || std::isinf(graph.weights[edge])) fault.edge = edge;
  const int64_t degree = end - begin;
  std::vector<std::pair<double, int64_t>> keys;
  if (size < 0 || (!graph.weights && degree <= size)) {
    for (int64_t i = 0; i < degree; ++i)
      if (!graph.weights || graph.weights[begin + i] > 0) out.push_back(i);
  } else if (graph.weights) {
    draw_weighted(draws, graph.weights + begin, degree, size, keys, out);
  } else {
    draw_different(draws, degree, size, out);
  }
  for (int64_t& each : out) each += begin;
}

tenon_status draw_all(const Graph& graph, const int64_t* seeds, int64_t count, uint64_t seed,
                      std::span<const int64_t> sizes, Numbers& numbers, Sample& sample,
                      tenon_err* err) {
  for (int64_t i = 0; i < count; ++i)
    if (numbers.number_of(seeds[i]) != i)
      return fail_format(err, TENON_INVALID_ARGUMENT,
                         "[sample_edges] expected different nodes, got %lld again at position %lld",
                         static_cast<long long>(seeds[i]), static_cast<long long>(i));
  size_t first = 0;
  for (size_t hop = 0; hop < sizes.size(); ++hop) {
    const size_t last = numbers.nodes().size();
    std::vector<std::vector<int64_t>> drawn(last - first);
    Fault fault;
    const int64_t work = 64 * std::max<int64_t>(sizes[hop] < 0 ? 16 : sizes[hop], 1);
    parallel(static_cast<int64_t>(last - first), work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t node = numbers.nodes()[first + static_cast<size_t>(i)];
        draw_edges(graph, Draws(seed, hop, static_cast<uint64_t>(node)), node, sizes[hop], fault,
                   drawn[static_cast<size_t>(i)]);
      }
    });
    if (fault.node >= 0)
      return fail_format(
          err, TENON_INVALID_ARGUMENT,
          "[sample_edges] expected `start` to ascend from 0 to the %lld edges, got "
          "%lld and %lld at position %lld",
          static_cast<long long>(graph.edges), static_cast<long long>(graph.start[fault.node]),
          static_cast<long long>(graph.start[fault.node + 1]), static_cast<long long>(fault.node));
    if (fault.edge >= 0)
      return fail_format(err, TENON_INVALID_ARGUMENT,
                         "[sample_edges] expected finite weights of at least 0, got %g at position "
                         "%lld",
                         static_cast<double>(graph.weights[fault.edge]),
                         static_cast<long long>(fault.edge));
    for (size_t i = first; i < last; ++i) {
      for (const int64_t edge : drawn[i - first]) {
        const int64_t from = graph.row[edge];
        if (from < 0 || from >= graph.nodes)
          return fail_format(err, TENON_OUT_OF_RANGE,
                             "[sample_edges] expected neighbours from 0 to %lld, got %lld at "
                             "position %lld",
                             static_cast<long long>(graph.nodes - 1), static_cast<long long>(from),
                             static_cast<long long>(edge));
        sample.source.push_back(numbers.number_of(from));
        sample.target.push_back(static_cast<int64_t>(i));
        sample.edges.push_back(edge);
      }
    }
    first = last;
  }
  return TENON_OK;
}

tenon_status give(tenon_ctx* ctx, uint32_t index, const std::vector<int64_t>& values,
                  tenon_err* err) {
  const auto count = static_cast<int64_t>(values.size());
  tenon_tensor* out;
  const tenon_status status = host->output_alloc(ctx, index, TENON_DTYPE_I64, 1, &count, &out, err);
  if (status == TENON_OK && count > 0)
    std::memcpy(out->data, values.data(), values.size() * sizeof(int64_t));
  return status;
}

tenon_status sample_edges(tenon_ctx* ctx, const tenon_tensor* row, const tenon_tensor* start,
                          const tenon_tensor* nodes, const tenon_tensor* seed, const int64_t* sizes,
                          uint64_t sizes_count, const tenon_tensor* weights, tenon_err* err) {
  try {
    const Graph graph{data_of<int64_t>(row), data_of<int64_t>(start),
                      weights ? data_of<float>(weights) : nullptr, start->numel - 1, row->numel};
    const int64_t* seeds;
    tenon_status status = read_indices(ctx, "sample_edges", nodes, graph.nodes, &seeds, err);
    if (status != TENON_OK) return status;
    Numbers numbers(static_cast<size_t>(nodes->numel));
    Sample sample;
    status = draw_all(graph, seeds, nodes->numel, static_cast<uint64_t>(*data_of<int64_t>(seed)),
                      {sizes, sizes_count}, numbers, sample, err);
    if (status == TENON_OK) status = give(ctx, 0, sample.source, err);
    if (status == TENON_OK) status = give(ctx, 1, sample.target, err);
    if (status == TENON_OK) status = give(ctx, 2, numbers.nodes(), err);
    if (status == TENON_OK) status = give(ctx, 3, sample.edges, err);
    return status;
  } catch (...) {
    return fail_format(err, TENON_OUT_OF_MEMORY, "[sample_edges] out of host memory");
  }
}
TENON_BOX_sample_edges(sample_edges_boxed, sample_edges);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_sample_edges(sample_edges, nullptr, dtype_bit(TENON_DTYPE_I64), 0, 0)};

}  // namespace

KernelList sample_edges_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
