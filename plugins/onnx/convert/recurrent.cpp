// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM, a few steps for each element of the sequence: every activation, peephole, clip and length that ONNX has.
#include <algorithm>
#include <functional>

#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

constexpr int64_t kMaxLength = 4096;

// An activation of the node for one direction.
using Activation = std::function<Tensor(const Tensor&)>;

struct Direction {
  Tensor weight, recurrence;     // [I, gates * H], [H, gates * H]
  Tensor bias, recurrence_bias;  // [gates * H]
  Tensor peepholes;              // [3 * H]; empty: none
  Tensor hidden, cell;           // [N, H]
  std::vector<Activation> activations;
  bool is_reversed = false;
};

class Network {
 public:
  Network(Conversion& c, int64_t gates, std::vector<std::string> standard, bool has_cell)
      : c_(c), gates_(gates), standard_(std::move(standard)), has_cell_(has_cell) {
    x_ = c.tensor("X");
    is_batch_first_ = c.integer("layout") != 0;
    if (x_->ndim != 3) c.fail("expected X of 3 axes, got " + describe(*x_.get()));
    if (is_batch_first_) x_ = c.call("transpose", {x_, 0, 1});
    length_ = x_->shape[0];
    batch_ = x_->shape[1];
    const Tensor& recurrence = c.tensor("R");
    if (recurrence->ndim != 3) c.fail("expected R of 3 axes, got " + describe(*recurrence.get()));
    hidden_ = recurrence->shape[2];
    directions_ = c.text("direction") == "bidirectional" ? 2 : 1;
    if (length_ > kMaxLength)
      c.refuse("a sequence of " + std::to_string(length_) + " elements; expected at most " +
               std::to_string(kMaxLength));
    if (recurrence->shape[0] != directions_ || recurrence->shape[1] != gates_ * hidden_ ||
        c.integer("hidden_size", hidden_) != hidden_)
      c.fail("expected R of [" + std::to_string(directions_) + ", " +
             std::to_string(gates_ * hidden_) + ", " + std::to_string(hidden_) + "], got " +
             describe(*recurrence.get()));
    if (c.has("sequence_lens")) lengths_ = c.cast(c.tensor("sequence_lens"), TENON_DTYPE_I64);
  }

  // step(direction, x's part of the gates [N, gates * H]) changes hidden and cell.
  using Step = std::function<void(Direction&, const Tensor&)>;
  Values run(const Step& step) {
    Values all, last, last_cell;
    for (int64_t d = 0; d < directions_; ++d) {
      Direction direction = make(d);
      all.emplace_back(run_direction(direction, step));
      last.emplace_back(direction.hidden);
      if (has_cell_) last_cell.emplace_back(direction.cell);
    }
    // [T, D, N, H], or batches first
    Tensor out = c_.call("stack", {all, 1}), hidden = c_.call("stack", {last, 0});
    if (is_batch_first_) {
      out = c_.call("permute", {out, Ints{2, 0, 1, 3}});
      hidden = c_.call("transpose", {hidden, 0, 1});
    }
    Values results{out, hidden};
    if (has_cell_) {
      Tensor cell = c_.call("stack", {last_cell, 0});
      results.emplace_back(is_batch_first_ ? c_.call("transpose", {cell, 0, 1}) : cell);
    }
    return results;
  }

  int64_t hidden() const { return hidden_; }
  // Gate `index` of [N, gates * H] or [gates * H].
  Tensor gate(const Tensor& gates, int64_t index) const {
    return c_.call("narrow", {gates, -1, index * hidden_, hidden_});
  }
  Tensor clipped(const Tensor& x) const {
    return c_.has_attribute("clip") ? c_.call("clip", {x, -c_.number("clip"), c_.number("clip")})
                                    : x;
  }

 private:
  Tensor part(const Tensor& tensor, int64_t d) const { return c_.call("select", {tensor, 0, d}); }

  Direction make(int64_t d) const {
    Direction direction;
    direction.is_reversed = c_.text("direction") == "reverse" || d == 1;
    const std::string text = c_.text("direction");
    if (text != "forward" && text != "reverse" && text != "bidirectional" && text != "foward")
      c_.fail("attribute `direction`: got `" + text + "`");
    direction.weight = c_.call("transpose", {part(c_.tensor("W"), d)});
    direction.recurrence = c_.call("transpose", {part(c_.tensor("R"), d)});
    if (c_.has("B")) {
      const Tensor both = part(c_.tensor("B"), d);
      direction.bias = c_.call("narrow", {both, 0, 0, gates_ * hidden_});
      direction.recurrence_bias = c_.call("narrow", {both, 0, gates_ * hidden_, gates_ * hidden_});
    }
    direction.hidden = initial("initial_h", d);
    if (has_cell_) {
      direction.cell = initial("initial_c", d);
      if (c_.has("P")) direction.peepholes = part(c_.tensor("P"), d);
    }
    direction.activations = activations(d);
    return direction;
  }

  Tensor initial(const char* name, int64_t d) const {
    if (!c_.has(name))
      return c_.call("full", {Ints{batch_, hidden_}, 0.0, {"dtype", Dtype{x_->dtype}}});
    return c_.call("select", {c_.tensor(name), is_batch_first_ ? 1 : 0, d});
  }

  std::vector<Activation> activations(int64_t d) const {
    const Value given = c_.attribute("activations");
    const Texts* names = given.get<Texts>();
    const Floats alphas = floats_of(or_empty("activation_alpha"), "activation_alpha"),
                 betas = floats_of(or_empty("activation_beta"), "activation_beta");
    const auto count = standard_.size();
    const bool is_standard = !names || names->empty() || !c_.has_attribute("activations");
    if (!is_standard && names->size() != count * static_cast<size_t>(directions_))
      c_.fail("attribute `activations`: expected " +
              std::to_string(count * static_cast<size_t>(directions_)) + ", got " +
              std::to_string(names->size()));
    std::vector<Activation> result;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = static_cast<size_t>(d) * count + i;
      const std::string name = is_standard ? standard_[i] : (*names)[at];
      const auto number = [&](const Floats& list, double otherwise) {
        return at < list.size() ? list[at] : otherwise;
      };
      result.push_back(
          activation(name, number(alphas, default_alpha(name)), number(betas, default_beta(name))));
    }
    return result;
  }

  Value or_empty(const char* name) const {
    const Value value = c_.attribute(name);
    return value.is_none() ? Value(Floats()) : value;
  }

  static double default_alpha(const std::string& name) {
    if (name == "HardSigmoid") return 0.2;
    return name == "LeakyRelu" ? 0.01 : 1.0;
  }
  static double default_beta(const std::string& name) { return name == "HardSigmoid" ? 0.5 : 1.0; }

  Activation activation(const std::string& name, double alpha, double beta) const {
    Conversion& c = c_;
    const auto plain = [&c](const char* op) -> Activation {
      return [&c, op](const Tensor& x) { return c.call(op, {x}); };
    };
    if (name == "Sigmoid") return plain("sigmoid");
    if (name == "Tanh") return plain("tanh");
    if (name == "Relu") return plain("relu");
    if (name == "Softsign") return plain("softsign");
    if (name == "Softplus") return plain("softplus");
    if (name == "LeakyRelu")
      return [&c, alpha](const Tensor& x) { return c.call("leaky_relu", {x, alpha}); };
    if (name == "Elu") return [&c, alpha](const Tensor& x) { return c.call("elu", {x, alpha}); };
    if (name == "HardSigmoid")
      return [&c, alpha, beta](const Tensor& x) {
        return c.call("clip", {c.call("add", {c.call("multiply", {x, alpha}), beta}), 0.0, 1.0});
      };
    if (name == "Affine")
      return [&c, alpha, beta](const Tensor& x) {
        return c.call("add", {c.call("multiply", {x, alpha}), beta});
      };
    if (name == "ScaledTanh")
      return [&c, alpha, beta](const Tensor& x) {
        return c.call("multiply", {c.call("tanh", {c.call("multiply", {x, beta})}), alpha});
      };
    c.refuse("activation `" + name + "`");
  }

  Tensor run_direction(Direction& direction, const Step& step) {
    const Tensor flat = c_.call("reshape", {x_, Ints{length_ * batch_, x_->shape[2]}});
    Tensor gates = c_.call("matmul", {flat, direction.weight});
    if (direction.bias) gates = c_.call("add", {gates, direction.bias});
    gates = c_.call("reshape", {gates, Ints{length_, batch_, gates_ * hidden_}});
    Values outputs(static_cast<size_t>(length_));
    for (int64_t i = 0; i < length_; ++i) {
      const int64_t t = direction.is_reversed ? length_ - 1 - i : i;
      const Tensor hidden = direction.hidden, cell = direction.cell;
      step(direction, c_.call("select", {gates, 0, t}));
      Tensor out = direction.hidden;
      if (lengths_) {
        const Tensor is_inside =
            c_.call("reshape", {c_.call("greater", {lengths_, t}), Ints{batch_, 1}});
        direction.hidden = c_.call("where", {is_inside, direction.hidden, hidden});
        if (has_cell_) direction.cell = c_.call("where", {is_inside, direction.cell, cell});
        out = c_.call("where", {is_inside, out, c_.call("zeros_like", {out})});
      }
      outputs[static_cast<size_t>(t)] = out;
    }
    if (length_ == 0) c_.refuse("a sequence of no elements");
    return c_.call("stack", {outputs, 0});
  }

  Conversion& c_;
  const int64_t gates_;
  const std::vector<std::string> standard_;
  const bool has_cell_;
  Tensor x_, lengths_;
  bool is_batch_first_ = false;
  int64_t length_ = 0, batch_ = 0, hidden_ = 0, directions_ = 1;
};

Tensor plus(Conversion& c, const Tensor& x, const Tensor& y) {
  return y ? c.call("add", {x, y}) : x;
}

Tensor recurrent_part(Conversion& c, const Direction& d) {
  return plus(c, c.call("matmul", {d.hidden, d.recurrence}), d.recurrence_bias);
}

}  // namespace

Values convert_rnn(Conversion& c) {
  Network network(c, 1, {"Tanh"}, false);
  return network.run([&](Direction& d, const Tensor& gates) {
    d.hidden = d.activations[0](network.clipped(plus(c, gates, recurrent_part(c, d))));
  });
}

Values convert_gru(Conversion& c) {
  Network network(c, 3, {"Sigmoid", "Tanh"}, false);
  const bool is_linear_first = c.integer("linear_before_reset") != 0;
  return network.run([&](Direction& d, const Tensor& gates) {
    const auto& f = d.activations;
    const Tensor recurrent = recurrent_part(c, d);
    const auto gate = [&](int64_t i) {
      return f[0](network.clipped(plus(c, network.gate(gates, i), network.gate(recurrent, i))));
    };
    const Tensor update = gate(0), reset = gate(1);
    Tensor candidate;
    if (is_linear_first) {
      candidate = c.call("multiply", {reset, network.gate(recurrent, 2)});
    } else {
      const Tensor weight = network.gate(d.recurrence, 2);
      candidate = c.call("matmul", {c.call("multiply", {reset, d.hidden}), weight});
      if (d.recurrence_bias) candidate = plus(c, candidate, network.gate(d.recurrence_bias, 2));
    }
    candidate = f[1](network.clipped(plus(c, network.gate(gates, 2), candidate)));
    const Tensor kept = c.call("multiply", {update, d.hidden}),
                 taken = c.call("multiply", {c.call("subtract", {1.0, update}), candidate});
    d.hidden = c.call("add", {taken, kept});
  });
}

Values convert_lstm(Conversion& c) {
  Network network(c, 4, {"Sigmoid", "Tanh", "Tanh"}, true);
  const bool is_coupled = c.integer("input_forget") != 0;
  return network.run([&](Direction& d, const Tensor& given) {
    const auto& f = d.activations;
    const Tensor gates = plus(c, given, recurrent_part(c, d));
    // Gates are in the order input, output, forget, cell; so are peepholes, without the cell.
    const auto gate = [&](int64_t i, const Tensor& cell) {
      Tensor x = network.gate(gates, i);
      if (d.peepholes) x = plus(c, x, c.call("multiply", {network.gate(d.peepholes, i), cell}));
      return f[0](network.clipped(x));
    };
    const Tensor input = gate(0, d.cell),
                 forget = is_coupled ? c.call("subtract", {1.0, input}) : gate(2, d.cell),
                 candidate = f[1](network.clipped(network.gate(gates, 3)));
    d.cell = c.call("add",
                    {c.call("multiply", {forget, d.cell}), c.call("multiply", {input, candidate})});
    const Tensor output = gate(1, d.cell);
    d.hidden = c.call("multiply", {output, f[2](d.cell)});
  });
}

}  // namespace tenon::onnx
