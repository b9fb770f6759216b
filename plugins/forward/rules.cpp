// SPDX-License-Identifier: Apache-2.0
// Three ways to a product with the Jacobian J of a call:
//
//   elementwise  J is diagonal, so that its product with a vector is that of its transpose: the rule of the gradient,
//                given the tangent in the place of the gradient.
//   linear       the operator itself, called with the tangent in the place of an argument. A line of kLinear says of
//                which; views and copies need none.
//   any other    the gradient is linear in the vector that it is given. The gradient of that is the product
//                (Townsend, A new trick for calculating Jacobian vector products, 2017).
#include "rules.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include "operators.hpp"
#include "tangents.hpp"

namespace tenon::forward {
namespace {

constexpr uint32_t kMaxArguments = 64;

// The operators that are linear in each of some arguments while the others stay; a list is one argument. `without`: an
// argument that is added to the product, as biases are; -1: none.
struct Linear {
  std::string_view op;
  uint64_t arguments;
  int32_t without = -1;
};
constexpr Linear kLinear[] = {
    {"tenon::concat", 1},    {"tenon::conv2d", 3, 2}, {"tenon::copy_to_device", 1},
    {"tenon::cumsum", 1},    {"tenon::gather", 1},    {"tenon::index", 1},
    {"tenon::linear", 3, 2}, {"tenon::matmul", 3},    {"tenon::mean", 1},
    {"tenon::sum", 1},
};
// Operators that are not elementwise and whose Jacobian is its own transpose.
constexpr std::string_view kSymmetric[] = {"tenon::softmax"};

const Linear* linear(std::string_view name) {
  const auto* found = std::find_if(std::begin(kLinear), std::end(kLinear),
                                   [&](const Linear& line) { return line.op == name; });
  return found == std::end(kLinear) ? nullptr : found;
}

tenon_tensor* tensor_in(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}

bool is_complex(const tenon_tensor* x) {
  return x->dtype == TENON_DTYPE_C64 || x->dtype == TENON_DTYPE_C128;
}
bool is_differentiable(const tenon_tensor* x) {
  return x->dtype >= TENON_DTYPE_F8E4M3 && x->dtype <= TENON_DTYPE_C128;
}

std::vector<tenon_tensor*> handles(const std::vector<Tensor>& tensors) {
  std::vector<tenon_tensor*> result;
  for (const Tensor& each : tensors) result.push_back(each.get());
  return result;
}

[[noreturn]] void refuse(const tenon_op_def& def, const char* what) {
  std::string_view name = def.name;
  if (name.starts_with("tenon::")) name.remove_prefix(7);
  throw Error(TENON_UNSUPPORTED, "forward mode: [" + std::string(name) + "] " + what);
}

class Product {
 public:
  Product(const Call& call, const ArgumentTangents& tangents)
      : call_(call), tangents_(tangents), def_(*host->op_def(call.op)), results_(call.nouts) {
    for (uint32_t i = 0; i < call.nargs; ++i)
      for (const Tensor& tangent : tangents[i])
        if (tangent) {
          has_ |= uint64_t{1} << i;
          has_complex_ |= is_complex(tangent.get());
        }
    for (uint32_t k = 0; k < call.nouts; ++k)
      if (const tenon_tensor* out = tensor_in(call.outs[k])) {
        depends_ |= is_differentiable(out);
        has_complex_ |= is_complex(out);
      }
  }

  ResultTangents compute() {
    if (!depends_ || def_.flags & TENON_OP_NO_GRAD) return {std::move(results_), unknown_};
    const bool moves = def_.flags & (TENON_OP_VIEW | TENON_OP_CONVERT | TENON_OP_MATERIALIZE);
    if (moves && has_ == 1 && call_.nouts == 1)
      add_linear(0, Linear{{}, 1});
    else
      by_line_and_gradient(linear(def_.name));
    return {std::move(results_), unknown_};
  }

 private:
  // Arguments that the line does not name, as biases are, follow from the gradient.
  void by_line_and_gradient(const Linear* line) {
    for (uint32_t i = 0; line && i < call_.nargs; ++i)
      if (has_ & line->arguments & uint64_t{1} << i) add_linear(i, *line);
    if (line) has_ &= ~line->arguments;
    if (has_) by_gradient();
  }

  void add_to(uint32_t k, Tensor term) {
    results_[k] = results_[k] ? add(results_[k], term) : std::move(term);
  }

  // -- linear -------------------------------------------------------------------------------------

  void add_linear(uint32_t i, const Linear& line) {
    std::vector<tenon_value> args(call_.args, call_.args + call_.nargs);
    std::vector<Tensor> zeros;
    std::vector<tenon_tensor*> list;
    if (args[i].tag == TENON_VALUE_TENSORS) {
      auto* elements = static_cast<tenon_tensor* const*>(args[i].v.p);
      for (uint32_t k = 0; k < args[i].aux; ++k) {
        if (!tangents_[i][k]) zeros.push_back(zeros_like(elements[k]));
        list.push_back(tangents_[i][k] ? tangents_[i][k].get() : zeros.back().get());
      }
      args[i].v.p = list.data();
    } else {
      args[i].v.p = tangents_[i][0].get();
    }
    if (line.without >= 0 && static_cast<uint32_t>(line.without) < call_.nargs)
      args[static_cast<uint32_t>(line.without)] = kNoValue;
    add_to(0, call_one(call_.op, std::move(args)));
  }

  // -- by the gradient ----------------------------------------------------------------------------

  void by_gradient() {
    rule_ = rules->rule(call_.op);
    if (!rule_)
      refuse(def_,
             "has no gradient, of which its tangent would follow; use detach() if no derivative "
             "should pass here");
    if (call_.nargs > kMaxArguments) refuse(def_, "has too many arguments");
    has_ &= rule_->diff_args;
    if (!has_) return;
    const bool holomorphic = rule_->flags & TENON_GRAD_RULE_HOLOMORPHIC;
    if (has_complex_ && !holomorphic && !(rule_->flags & TENON_GRAD_RULE_COMPLEX))
      refuse(def_, "has no gradient for complex tensors");
    const bool is_symmetric =
        def_.flags & TENON_OP_ELEMENTWISE ||
        std::find(std::begin(kSymmetric), std::end(kSymmetric), def_.name) != std::end(kSymmetric);
    if (is_symmetric && call_.nouts == 1 && (!has_complex_ || holomorphic) && by_diagonal()) return;
    by_transposition();
  }

  // What the rule makes of gradients of the results. Owned values.
  struct Gradients {
    explicit Gradients(uint32_t count) : values(count, kNoValue) {}
    ~Gradients() {
      for (tenon_value& value : values) {
        if (value.tag == TENON_VALUE_TENSOR)
          host->tensor_release(static_cast<tenon_tensor*>(value.v.p));
        if (value.tag == TENON_VALUE_TENSORS)
          host->list_release(static_cast<tenon_tensor**>(value.v.p), value.aux);
      }
    }
    Gradients(const Gradients&) = delete;
    Tensor of(uint32_t i, uint32_t k) const {
      if (values[i].tag == TENON_VALUE_TENSOR)
        return Tensor::borrow(static_cast<tenon_tensor*>(values[i].v.p));
      if (values[i].tag != TENON_VALUE_TENSORS || k >= values[i].aux) return {};
      return Tensor::borrow(static_cast<tenon_tensor**>(values[i].v.p)[k]);
    }
    std::vector<tenon_value> values;
  };

  void run_rule(const std::vector<tenon_tensor*>& given, uint64_t needs,
                Gradients& gradients) const {
    std::vector<tenon_tensor*> outs;
    for (uint32_t k = 0; k < call_.nouts; ++k) outs.push_back(tensor_in(call_.outs[k]));
    ErrorSink err;
    err.check(rules->run(rule_, call_.args, call_.nargs, outs.data(), given.data(), call_.nouts,
                         needs, gradients.values.data(), err));
  }

  // False: the rule does not answer with one number for each, and nothing has been done.
  bool by_diagonal() {
    tenon_tensor* out = tensor_in(call_.outs[0]);
    Tensor sum;
    for (uint32_t i = 0; i < call_.nargs; ++i) {
      if (!(has_ >> i & 1)) continue;
      if (call_.args[i].tag != TENON_VALUE_TENSOR) return false;
      const Tensor given = formed_as(tangents_[i][0], out);
      Gradients gradients(call_.nargs);
      run_rule({given.get()}, uint64_t{1} << i, gradients);
      const Tensor term = gradients.of(i, 0);
      if (!term) continue;
      if (!has_shape_of(term.get(), out)) return false;
      const Tensor formed = formed_as(term, out);
      sum = sum ? add(sum, formed) : formed;
    }
    results_[0] = std::move(sum);
    return true;
  }

  // Of some operators only the first result passes gradients, and the rule refuses one for another (the mean and variance
  // of batch_norm). Those results depend on the arguments in a way that nothing tells.
  void by_transposition() {
    std::vector<uint32_t> indices;
    for (uint32_t k = 0; k < call_.nouts; ++k)
      if (const tenon_tensor* out = tensor_in(call_.outs[k]); out && is_differentiable(out))
        indices.push_back(k);
    try {
      by_transposition(indices);
    } catch (const Error& error) {
      if (error.code() != TENON_UNSUPPORTED || indices.size() < 2) throw;
      by_transposition({indices[0]});
      for (size_t n = 1; n < indices.size(); ++n) unknown_ |= uint64_t{1} << indices[n];
    }
  }

  void by_transposition(const std::vector<uint32_t>& indices) {
    const bool records = autograd->set_enabled(1);
    struct Restore {
      bool records;
      ~Restore() { autograd->set_enabled(records); }
    } restore{records};
    const bool conjugates = has_complex_ && rule_->flags & TENON_GRAD_RULE_HOLOMORPHIC;

    // The vectors that the gradient is linear in, and the gradients. Their values do not matter.
    std::vector<Tensor> vectors, conjugated;
    std::vector<tenon_tensor*> given(call_.nouts, nullptr);
    ErrorSink err;
    for (uint32_t k : indices) {
      tenon_tensor* out = tensor_in(call_.outs[k]);
      vectors.push_back(zeros_like(out));
      given[k] = vectors.back().get();
      err.check(autograd->set_requires_grad(given[k], 1, err));
      if (!conjugates || !is_complex(out)) continue;
      conjugated.push_back(conjugate(vectors.back()));
      given[k] = conjugated.back().get();
    }
    Gradients gradients(call_.nargs);
    run_rule(given, has_, gradients);

    std::vector<Tensor> pulled, seeds;
    for (uint32_t i = 0; i < call_.nargs; ++i)
      for (uint32_t k = 0; k < tangents_[i].size(); ++k) {
        if (!(has_ >> i & 1) || !tangents_[i][k]) continue;
        Tensor gradient = gradients.of(i, k);
        if (!gradient || !autograd->requires_grad(gradient.get())) continue;
        if (conjugates && is_complex(gradient.get())) gradient = conjugate(gradient);
        // A gradient that is wider than its argument would be summed; the transpose of that is
        // repetition.
        seeds.push_back(formed_as(tangents_[i][k], gradient.get()));
        pulled.push_back(std::move(gradient));
      }
    if (pulled.empty()) return;

    const std::vector<tenon_tensor*> outputs = handles(pulled), directions = handles(seeds),
                                     inputs = handles(vectors);
    std::vector<tenon_tensor*> found(vectors.size(), nullptr);
    const uint32_t flags =
        TENON_BACKWARD_ALLOW_UNUSED | (records ? TENON_BACKWARD_CREATE_GRAPH : 0);
    err.check(autograd->gradients(outputs.data(), directions.data(),
                                  static_cast<uint32_t>(outputs.size()), inputs.data(),
                                  static_cast<uint32_t>(inputs.size()), found.data(), flags, err));
    for (size_t n = 0; n < found.size(); ++n)
      if (found[n]) add_to(indices[n], Tensor::adopt(found[n]));
  }

  const Call& call_;
  const ArgumentTangents& tangents_;
  const tenon_op_def& def_;
  std::vector<Tensor> results_;
  uint64_t has_ = 0;      // arguments with a tangent
  uint64_t unknown_ = 0;  // results whose tangent nothing tells
  bool depends_ = false, has_complex_ = false;
  const tenon_grad_rule* rule_ = nullptr;
};

}  // namespace

ResultTangents result_tangents(const Call& call, const ArgumentTangents& tangents) {
  return Product(call, tangents).compute();
}

}  // namespace tenon::forward
