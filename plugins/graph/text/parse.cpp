// SPDX-License-Identifier: Apache-2.0
// Reads the text form. A text comes from anywhere: every size is checked before it is believed, and
// what is read is verified before a caller gets it.
#include <tenon/error.hpp>
#include <tenon/operator_traits.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "ir/verify.hpp"
#include "rewrite/fragment.hpp"
#include "text/size_reader.hpp"
#include "text/text.hpp"

namespace tenon::graph {
namespace {

constexpr size_t kMaxValues = 1u << 24;  // of one graph

// An operator that the program uses, and how calls by an earlier signature are translated to the
// one of now.
struct Callee {
  const tenon_op* op = nullptr;
  std::map<std::string, std::string> renamed;          // parameters: then, now
  std::vector<std::pair<uint32_t, Attribute>> values;  // what such calls do not say
};

class Parser : SizeReader {
 public:
  // `sizes`: of the dimensions; NULL: those that were recorded.
  Parser(std::string_view text, const Sizes* sizes) : SizeReader(text, sizes) {}

  ProgramPtr run() {
    read_format();
    ProgramPtr program(new Program);
    while (accept_word("dimension")) read_dimension();
    while (accept_word("require")) read_requirement();
    if (accept_word("detached")) program->is_detached = true, end_line();
    if (accept_word("inputs_apart")) program->needs_disjoint_inputs = true, end_line();
    if (accept_word("refuses_gradients")) program->refuses_gradients = quoted(), end_line();
    while (accept_word("operator")) read_operator();
    whole_ = &program->graph;
    read_body(program->graph, 0);
    skip_blanks();
    if (at_ < text_.size()) fail("expected the end after 'return'");
    verify(program->graph);
    if (!given_ && has_dimensions()) {
      check_sites();
      dimensions_.text = text_;
      dimensions_.parse = &parse_program;
      program->dimensions = std::make_unique<Dimensions>(std::move(dimensions_));
      program->instances = std::make_unique<Instances>();
    }
    return program;
  }

 private:
  // -- values -------------------------------------------------------------------------------------
  ValueId new_id(Graph& graph) {
    expect('%');
    const auto number = integer<uint32_t>();
    if (number != graph.values.size() || number >= kMaxValues)
      fail("expected values in order, %" + std::to_string(graph.values.size()) + " next, got %" +
           std::to_string(number));
    return number;
  }
  ValueId known_id(const Graph& graph) {
    expect('%');
    const auto number = integer<uint32_t>();
    if (number >= graph.values.size())
      fail("value %" + std::to_string(number) + " is used before a step makes it");
    return number;
  }
  tenon_device_id device() {
    const std::string name(word());
    tenon_device_id id = TENON_DEVICE_NONE;
    ErrorSink err;
    if (host->device_find(name.c_str(), &id, err) != TENON_OK)
      fail("device '" + name + "': " + host->err_text(err));
    return id;
  }
  int32_t dtype(std::string_view name) const {
    const int32_t id = host->dtype_find(std::string(name).c_str());
    if (id < 0) fail("unknown dtype '" + std::string(name) + "'");
    return id;
  }
  Type type() {
    Type type;
    type.dtype = dtype(word());
    type.shape = integers();
    if (type.shape.size() > TENON_MAX_NDIM) fail("a shape with too many axes");
    skip_spaces();
    type.device = device();
    return type;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> list;
    axes_.clear();
    expect('[');
    if (accept(']')) return list;
    do {
      skip_spaces();
      const size_t begin = at_;
      names_dimension_ = false;
      list.push_back(may_be_unknown_ && accept('?') ? kUnknown : size());
      if (has_dimensions()) axes_.push_back(dimension_in(text_.substr(begin, at_ - begin)));
    } while (accept(','));
    expect(']');
    return list;
  }

  // Of a step's result: "?" is a size that the operator's own rule says.
  Type result_type() {
    may_be_unknown_ = has_dimensions();
    Type made = type();
    may_be_unknown_ = false;
    return made;
  }
  static bool is_unknown(const Type& type) {
    return std::count(type.shape.begin(), type.shape.end(), kUnknown) > 0;
  }
  void infer(const Graph& graph, const Step& step, std::vector<Type>& fresh) const {
    if (std::none_of(fresh.begin(), fresh.end(), is_unknown)) return;
    if (step.kind != StepKind::kCall || step.given != 0)
      fail("expected sizes of the results, got '?'");
    for_each_operand(step, [&](ValueId id) {
      if (id >= graph.values.size())
        fail("value %" + std::to_string(id) + " is used before it is made");
    });
    const std::vector<Type> types = inferred_types(graph, step);
    for (size_t i = 0; i < fresh.size() && i < types.size(); ++i) fresh[i] = types[i];
  }

  // Whose size an expression is that was just read.
  int32_t dimension_in(std::string_view expression) const {
    if (const auto found = find_dimension(expression)) return static_cast<int32_t>(*found);
    return names_dimension_ || expression == "?" ? int32_t{TENON_GRAPH_SIZE_FOLLOWS}
                                                 : int32_t{TENON_GRAPH_SIZE_FIXED};
  }
  // Of the value of the program that was added last; regions have none.
  void keep_axes(const Graph& graph, std::vector<int32_t> axes) {
    if (&graph == whole_ && has_dimensions()) dimensions_.of_values.push_back(std::move(axes));
  }

  // -- sizes of inputs ---------------------------------------------------------------------------
  // Axes whose size is a dimension and nothing else.
  void read_sites(uint32_t input, size_t begin) {
    at_ = text_.find('[', begin) + 1;
    for (uint32_t axis = 0; peek() != ']'; ++axis) {
      const std::string_view name = word();
      skip_spaces();
      if (const auto found = find_dimension(name); found && (peek() == ',' || peek() == ']'))
        dimensions_.sites.push_back({input, axis, *found});
      while (peek() != ',' && peek() != ']') ++at_;
      accept(',');
    }
    at_ = text_.find('\n', at_);
  }
  void check_sites() const {
    for (uint32_t i = 0; i < dimensions_.list.size(); ++i)
      if (std::none_of(dimensions_.sites.begin(), dimensions_.sites.end(),
                       [&](const Dimensions::Site& site) { return site.dimension == i; }))
        fail("dimension '" + dimensions_.list[i].name + "' is the size of no axis of an input");
  }

  // -- lines -------------------------------------------------------------------------------------
  void read_format() {
    constexpr std::string_view kBegin = "tenon.program ";
    if (!text_.starts_with(kBegin)) fail("expected the first line 'tenon.program 1' or '... 2'");
    at_ = kBegin.size();
    const auto format = integer<uint32_t>();
    if (format < 1 || format > 2)
      fail("expected a program of format 1 or 2, got one of format " + std::to_string(format) +
           "; load it with a later version of Tenon, or export it again with this one");
    has_names_ = format == 2;
    end_line();
  }

  // The name of the input or result that was added last, if it has one.
  void read_name(const std::vector<ValueId>& list, std::vector<std::string>& names) {
    skip_spaces();
    if (!has_names_ || peek() != '"') return;
    names.resize(list.size());
    names.back() = quoted();
  }

  void read_operator() {
    const std::string name(word());
    const std::string digits(word());
    uint64_t hash = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail("expected the schema hash of '" + name + "', got '" + digits + "'");
    const tenon_op* op = host->op_find(name.c_str());
    if (!op || !host->op_def(op))
      fail("operator '" + name + "' is unknown; load the plugin or operator file that defines it");
    Callee callee{.op = op};
    const tenon_op_def& def = *host->op_def(op);
    if (def.schema_hash != hash && !find_earlier(def, hash, callee))
      fail("operator '" + name + "' has the signature " + def.schema +
           " here, and the program was made with another one; export it again with this version");
    operators_[name] = std::move(callee);
    end_line();
  }

  // Has the operator had this signature? Its traits say how a call by it is translated
  // (opdefs/README.md, `earlier`).
  bool find_earlier(const tenon_op_def& def, uint64_t hash, Callee& callee) {
    std::string_view change;
    bool is_found = false;
    for_each_trait(def, "earlier: ", [&](std::string_view line) {
      uint64_t earlier = 0;
      const auto [end, error] =
          std::from_chars(line.data(), line.data() + line.size(), earlier, 16);
      if (error != std::errc() || earlier != hash) return false;
      change = line.substr(static_cast<size_t>(end - line.data()));
      return is_found = true;
    });
    const std::pair before(std::exchange(text_, change), std::exchange(at_, 0));
    for (skip_spaces(); at_ < text_.size(); skip_spaces()) {
      const std::string name(word());
      if (text_.substr(at_, 2) == "->") {
        at_ += 2;
        callee.renamed[name] = word();
        continue;
      }
      const uint32_t index = parameter(def, name);
      expect('=');
      skip_spaces();
      callee.values.emplace_back(index, attribute(def.params[index].kind));
    }
    std::tie(text_, at_) = before;
    return is_found;
  }

  // The parameter of this name.
  uint32_t parameter(const tenon_op_def& def, const std::string& name) const {
    uint32_t index = 0;
    while (index < def.nparams && name != def.params[index].name) ++index;
    if (index >= def.nparams)
      fail("[" + std::string(def.name) + "] no parameter `" + name + "` in " + def.schema);
    return index;
  }

  void read_body(Graph& graph, int depth) {
    if (depth > kMaxDepth) fail("too many regions inside one another");
    for (;;) {
      skip_blanks();
      if (accept_word("return")) break;
      if (accept_word("input")) {
        const size_t begin = at_;
        read_typed(graph, graph.inputs);
        if (depth == 0) read_name(graph.inputs, graph.input_names);
        if (depth == 0 && has_dimensions())
          read_sites(static_cast<uint32_t>(graph.inputs.size() - 1), begin);
        end_line();
      } else if (accept_word("leaf")) {
        read_leaf(graph, false);
      } else if (accept_word("grad")) {
        read_grad(graph);
      } else if (accept_word("constant")) {
        read_leaf(graph, true);
      } else {
        read_step(graph, depth);
      }
    }
    skip_spaces();
    while (peek() == '%') {
      graph.results.push_back(known_id(graph));
      if (depth == 0) read_name(graph.results, graph.result_names);
      if (!accept(',')) break;
      skip_spaces();
    }
    if (!graph.input_names.empty()) graph.input_names.resize(graph.inputs.size());
    if (!graph.result_names.empty()) graph.result_names.resize(graph.results.size());
    if (at_ < text_.size()) end_line();
  }

  void read_typed(Graph& graph, std::vector<ValueId>& list) {
    const ValueId id = new_id(graph);
    expect(':');
    graph.add_value(type());
    keep_axes(graph, std::move(axes_));
    list.push_back(id);
  }

  void read_grad(Graph& graph) {
    GradUpdate update;
    update.tensor = known_id(graph);
    expect('=');
    if (!accept_word("none")) update.grad = known_id(graph);
    if (accept_word("from")) {
      if (!accept_word("none")) fail("expected 'from none'");
      update.from_none = true;
    }
    graph.grads.push_back(update);
    end_line();
  }

  void read_leaf(Graph& graph, bool is_constant) {
    std::vector<ValueId> id;
    read_typed(graph, id);
    Leaf leaf;
    leaf.value = id[0];
    leaf.is_constant = is_constant;
    skip_spaces();
    if (peek() == '"') leaf.name = quoted();
    graph.leaves.push_back(std::move(leaf));
    end_line();
  }

  void read_step(Graph& graph, int depth) {
    Step step;
    // New results become values after the arguments were read: a step cannot take what it makes.
    std::vector<Type> fresh;
    std::vector<std::vector<int32_t>> axes;  // of these
    do {
      skip_spaces();
      const size_t begin = at_;
      expect('%');
      const auto number = integer<uint32_t>();
      if (accept(':')) {
        if (number != graph.values.size() + fresh.size() || number >= kMaxValues) {
          at_ = begin;
          fail("expected values in order, %" + std::to_string(graph.values.size() + fresh.size()) +
               " next");
        }
        fresh.push_back(result_type());
        axes.push_back(std::move(axes_));
      } else {
        if (number >= graph.values.size() || step.results.size() >= 32)
          fail("value %" + std::to_string(number) + " is written before a step makes it");
        step.given |= 1u << step.results.size();
      }
      step.results.push_back(number);
    } while (accept(','));
    expect('=');
    read_callee(graph, step);
    if (accept_word("no_grad")) step.is_recorded = false;
    if (accept_word("at")) {
      step.location.file = quoted();
      expect(':');
      step.location.line = integer<int32_t>();
    }
    infer(graph, step, fresh);
    for (size_t i = 0; i < fresh.size(); ++i) {
      graph.add_value(std::move(fresh[i]));
      keep_axes(graph, std::move(axes[i]));
    }
    if (accept('{')) {
      do {
        end_line();
        step.regions.emplace_back();
        read_body(step.regions.back(), depth + 1);
        expect('}');
      } while (step.regions.size() < 3 && accept('{'));
    }
    end_line();
    graph.steps.push_back(std::move(step));
  }

  void read_callee(const Graph& graph, Step& step) {
    const std::string name(word());
    static const std::map<std::string, StepKind, std::less<>> kStructural = {
        {"view", StepKind::kView},
        {"detach", StepKind::kDetach},
        {"cond", StepKind::kCond},
        {"while", StepKind::kWhile},
        {"scan", StepKind::kScan}};
    if (auto known = kStructural.find(name); known != kStructural.end()) {
      step.kind = known->second;
    } else {
      auto op = operators_.find(name);
      if (op == operators_.end())
        fail("'" + name + "' has no line 'operator " + name + " HASH' at the top");
      callee_ = &op->second;
      step.op = callee_->op;
      step.schema_hash = host->op_def(step.op)->schema_hash;
      step.name = name;
      const tenon_op_def& def = *host->op_def(step.op);
      for (uint32_t i = 0; i < def.nparams; ++i)
        step.operands.push_back(Operand::of(default_of(def.params[i])));
      for (const auto& [index, value] : callee_->values) step.operands[index] = Operand::of(value);
    }
    expect('(');
    if (accept(')')) return;
    uint32_t position = 0;
    do read_argument(graph, step, position);
    while (accept(','));
    expect(')');
  }

  static Attribute default_of(const tenon_param_def& param) {
    return param.flags & TENON_PARAM_FLAG_HAS_DEFAULT ? Attribute(param.default_value)
                                                      : Attribute();
  }

  void read_argument(const Graph& graph, Step& step, uint32_t& position) {
    const size_t begin = at_;
    std::string name(word());
    if (name.empty() || !accept('=')) {
      at_ = begin;
      name.clear();
    }
    if (step.kind != StepKind::kCall) return read_structural(graph, step, name);
    const tenon_op_def& def = *host->op_def(step.op);
    if (const auto renamed = callee_->renamed.find(name); renamed != callee_->renamed.end())
      name = renamed->second;
    const uint32_t index = name.empty() ? position++ : parameter(def, name);
    if (index >= def.nparams)
      fail("[" + std::string(def.name) + "] no parameter " + std::to_string(index) + " in " +
           def.schema);
    step.operands[index] = operand(graph, def.params[index].kind);
  }

  void read_structural(const Graph& graph, Step& step, const std::string& name) {
    if (name.empty()) {
      step.operands.push_back(Operand::of(known_id(graph)));
    } else if (name == "strides") {
      step.strides = integers();
    } else if (name == "base_strides") {
      step.base_strides = integers();
    } else if (name == "offset") {
      step.offset = size();
    } else if (name == "carried") {
      step.carried = integer<uint32_t>();
    } else if (name == "scanned") {
      step.scanned = integer<uint32_t>();
    } else {
      fail("unknown attribute '" + name + "'");
    }
  }

  Operand operand(const Graph& graph, int32_t kind) {
    skip_spaces();
    if (peek() == '%') return Operand::of(known_id(graph));
    if (peek() == '[' && kind == TENON_PARAM_TENSORS) {
      Operand list;
      list.kind = Operand::kList;
      expect('[');
      if (accept(']')) return list;
      do {
        skip_spaces();
        list.list.push_back(known_id(graph));
      } while (accept(','));
      expect(']');
      return list;
    }
    return Operand::of(attribute(kind));
  }

  Attribute attribute(int32_t kind) {
    if (peek() == '"') {
      const std::string text = quoted();
      return Attribute(boxed(std::string_view(text)));
    }
    if (accept('@')) return Attribute(boxed_device(device()));
    if (peek() == '[') return list_attribute(kind);
    const char c = peek();
    if ((c >= '0' && c <= '9') || c == '-' || c == '(') return Attribute(number());
    const size_t begin = at_;
    const std::string_view name = word();
    if (find_dimension(name)) {
      at_ = begin;
      return Attribute(boxed(size()));
    }
    if (name == "none") return Attribute();
    if (name == "true" || name == "false") return Attribute(boxed(name == "true"));
    if (name == "nan" || name == "inf") return Attribute(boxed(special(name)));
    if (name == "complex") {
      double parts[2];
      expect('(');
      parts[0] = real();
      expect(',');
      parts[1] = real();
      expect(')');
      return Attribute(boxed_complex(parts));
    }
    if (name.empty()) fail("expected an argument, got '" + rest() + "'");
    return Attribute(boxed_dtype(dtype(name)));
  }

  Attribute list_attribute(int32_t kind) {
    if (kind != TENON_PARAM_FLOATS) {
      const std::vector<int64_t> list = integers();
      return Attribute(boxed(list.data(), list.size()));
    }
    std::vector<double> list;
    expect('[');
    if (!accept(']')) {
      do list.push_back(real());
      while (accept(','));
      expect(']');
    }
    return Attribute(boxed(list.data(), list.size()));
  }

  static double special(std::string_view name) {
    return name == "nan" ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  }

  // An integer, or a float if it has a point, an exponent or a name.
  tenon_value number() {
    skip_spaces();
    size_t end = at_ + (peek() == '-' ? 1 : 0);
    const char first = end < text_.size() ? text_[end] : '\0';
    const bool is_special = text_.substr(end, 3) == "nan" || text_.substr(end, 3) == "inf";
    if (!(first >= '0' && first <= '9') && !is_special) return boxed(size());
    auto is_part = [&](char c) {
      return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == '+' || c == '-' ||
             (c >= 'a' && c <= 'z');
    };
    while (end < text_.size() && is_part(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    if (word == "-nan" || word == "-inf") {
      at_ = end;
      return boxed(-special(word.substr(1)));
    }
    if (word.find_first_of(".e") == std::string_view::npos) return boxed(size());
    double value = 0;
    auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || stop != word.data() + word.size())
      fail("expected a number, got '" + rest() + "'");
    at_ = end;
    return boxed(scaled(value));
  }
  double real() {
    skip_spaces();
    if (accept_word("nan")) return special("nan");
    if (accept_word("inf")) return special("inf");
    const tenon_value value = number();
    return value.tag == TENON_VALUE_FLOAT ? value.v.f : static_cast<double>(value.v.i);
  }

  static constexpr int64_t kUnknown = -1;
  bool may_be_unknown_ = false;
  const Graph* whole_ = nullptr;
  std::vector<int32_t> axes_;  // of the list of sizes that was read last, see Dimensions::of_values
  bool has_names_ = false;     // the text may name inputs and results
  std::map<std::string, Callee, std::less<>> operators_;
  const Callee* callee_ = nullptr;  // of the step that is read
};

}  // namespace

ProgramPtr parse_program(std::string_view text, const Sizes* sizes) {
  return Parser(text, sizes).run();
}

}  // namespace tenon::graph
