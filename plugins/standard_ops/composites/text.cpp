// SPDX-License-Identifier: Apache-2.0
// Strings on devices that have no kernels for them. What moves and compares bytes is made of other operators there; what
// looks at characters, whose number of bytes says where the next one begins, goes to the host and back.
#include "composites/compose.hpp"
#include "composites/data_reads.hpp"

namespace tenon::standard_ops {
namespace {

// Of strings that are laid out one after the other: where each ends, how many bytes they are, and the string of each byte and
// its place in it.
struct TextLayout {
  Tensor ends, owner, within;
  int64_t total = 0;
};

TextLayout lay_out(Scope& scope, const char* op, const Tensor& lengths) {
  TextLayout layout;
  if (!scope.ok()) return layout;
  if (lengths->device == TENON_DEVICE_META) {
    scope.fail(TENON_UNSUPPORTED,
               "the number of bytes depends on the data, which meta tensors do not have; use a "
               "real device");
    return layout;
  }
  layout.ends = ops::cumsum(scope, lengths, 0);
  if (!scope.ok()) return layout;
  if (lengths->numel > 0) {
    Tensor last = ops::narrow(scope, layout.ends, 0, lengths->numel - 1, 1);
    if (is_recorded() &&
        !scope.check(expect_readable(op, last,
                                     " reads how many bytes there are, and a program has fixed "
                                     "shapes; call it on the CPU",
                                     scope.err())))
      return layout;
    last = ops::to_device(scope, ops::contiguous(scope, last), host->device_host());
    if (!scope.ok()) return layout;
    layout.total = *static_cast<const int64_t*>(last->data);
  }
  Tensor indices = numbers_to(scope, layout.total, lengths);
  layout.owner = ops::searchsorted(scope, layout.ends, indices, true);
  Tensor begin = ops::subtract(scope, layout.ends, lengths);
  layout.within = ops::subtract(scope, indices, ops::index_select(scope, begin, layout.owner, 0));
  return layout;
}

// Where the strings at `indices` begin.
Tensor begins_of(Scope& scope, const Tensor& offsets, const Tensor& indices) {
  if (!scope.ok()) return {};
  Tensor begins = ops::narrow(scope, offsets, 0, 0, offsets->numel - 1);
  return ops::index_select(scope, begins, indices, 0);
}

Tensor lengths_at(Scope& scope, const Tensor& offsets, const Tensor& indices) {
  if (!scope.ok()) return {};
  Tensor ends = ops::narrow(scope, offsets, 0, 1, offsets->numel - 1);
  return ops::subtract(scope, ops::index_select(scope, ends, indices, 0),
                       begins_of(scope, offsets, indices));
}

}  // namespace

TENON_DECOMPOSE(text_take) {
  Scope scope(err);
  Tensor text = operand(scope, args[0]), offsets = as_int64(scope, operand(scope, args[1])),
         indices = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const TextLayout layout = lay_out(scope, "text_take", lengths_at(scope, offsets, indices));
  Tensor begin = begins_of(scope, offsets, indices);
  Tensor from = ops::add(scope, ops::index_select(scope, begin, layout.owner, 0), layout.within);
  Tensor zero = ops::full(scope, {1}, int64_t{0}, TENON_DTYPE_I64, text->device);
  return finish(scope, outs, ops::index_select(scope, text, from, 0),
                ops::concat(scope, {zero, layout.ends}, 0));
}

// Strings of equal lengths are compared byte by byte, and their differences counted.
TENON_DECOMPOSE(text_equal) {
  Scope scope(err);
  Tensor text = operand(scope, args[0]), offsets = as_int64(scope, operand(scope, args[1])),
         other = operand(scope, args[2]), other_offsets = as_int64(scope, operand(scope, args[3]));
  if (!scope.ok()) return scope.status();
  const int64_t x = offsets->numel - 1, y = other_offsets->numel - 1, count = x == 1 ? y : x;
  const auto numbers = [&](int64_t strings) {
    return strings == 1 ? ops::full(scope, {count}, int64_t{0}, TENON_DTYPE_I64, text->device)
                        : numbers_to(scope, count, text);
  };
  Tensor mine = numbers(x), theirs = numbers(y);
  Tensor lengths = lengths_at(scope, offsets, mine);
  Tensor same = ops::equal(scope, lengths, lengths_at(scope, other_offsets, theirs));
  lengths = ops::where(scope, same, lengths, int64_t{0});
  const TextLayout layout = lay_out(scope, "text_equal", lengths);
  const auto bytes_of = [&](const Tensor& bytes, const Tensor& of, const Tensor& indices) {
    Tensor begin = ops::index_select(scope, begins_of(scope, of, indices), layout.owner, 0);
    return ops::index_select(scope, bytes, ops::add(scope, begin, layout.within), 0);
  };
  Tensor differs = ops::cast(
      scope,
      ops::not_equal(scope, bytes_of(text, offsets, mine), bytes_of(other, other_offsets, theirs)),
      TENON_DTYPE_I64);
  Tensor none = ops::full(scope, {count}, int64_t{0}, TENON_DTYPE_I64, text->device);
  Tensor faults = ops::index_add(scope, none, layout.owner, differs, 0);
  return finish(scope, outs, ops::logical_and(scope, same, ops::equal(scope, faults, int64_t{0})));
}

namespace {

// The operands of `op` on the host, whose kernels then are called.
std::vector<Tensor> on_host(Scope& scope, const tenon_value* args,
                            std::initializer_list<int> which) {
  std::vector<Tensor> tensors;
  for (const int i : which) {
    Tensor x = operand(scope, args[i]);
    if (scope.ok() && x->device == host->device_host())
      scope.fail(TENON_UNSUPPORTED, "expected a kernel for the host's device, which has none");
    tensors.push_back(ops::to_device(scope, ops::contiguous(scope, x), host->device_host()));
  }
  return tensors;
}

// A result on the device of the call.
Tensor back(Scope& scope, const Tensor& x, const tenon_value* args) {
  return ops::to_device(scope, x, tensor_of(args[0]).device);
}

}  // namespace

TENON_DECOMPOSE(text_lower) {
  Scope scope(err);
  const std::vector<Tensor> x = on_host(scope, args, {0, 1});
  if (!scope.ok()) return scope.status();
  const auto found = ops::text_lower(scope, x[0], x[1], text_of(args[2]));
  return finish(scope, outs, back(scope, found.out_text, args),
                back(scope, found.out_offsets, args));
}

TENON_DECOMPOSE(text_upper) {
  Scope scope(err);
  const std::vector<Tensor> x = on_host(scope, args, {0, 1});
  if (!scope.ok()) return scope.status();
  const auto found = ops::text_upper(scope, x[0], x[1], text_of(args[2]));
  return finish(scope, outs, back(scope, found.out_text, args),
                back(scope, found.out_offsets, args));
}

TENON_DECOMPOSE(text_split) {
  Scope scope(err);
  const std::vector<Tensor> x = on_host(scope, args, {0, 1});
  if (!scope.ok()) return scope.status();
  const auto found = ops::text_split(scope, x[0], x[1], text_of(args[2]), int_of(args[3]));
  return finish(scope, outs, back(scope, found.out_text, args),
                back(scope, found.out_offsets, args), back(scope, found.counts, args));
}

TENON_DECOMPOSE(text_find) {
  Scope scope(err);
  const std::vector<Tensor> x = on_host(scope, args, {0, 1});
  if (!scope.ok()) return scope.status();
  Tensor found = ops::text_find(scope, x[0], x[1], text_of(args[2]), text_of(args[3]));
  return finish(scope, outs, back(scope, found, args));
}

TENON_DECOMPOSE(text_hash) {
  Scope scope(err);
  const std::vector<Tensor> x = on_host(scope, args, {0, 1});
  if (!scope.ok()) return scope.status();
  return finish(scope, outs, back(scope, ops::text_hash(scope, x[0], x[1], int_of(args[2])), args));
}

TENON_DECOMPOSE(text_lookup) {
  Scope scope(err);
  const std::vector<Tensor> x = on_host(scope, args, {0, 1, 2, 3});
  if (!scope.ok()) return scope.status();
  Tensor found = ops::text_lookup(scope, x[0], x[1], x[2], x[3], int_of(args[4]));
  return finish(scope, outs, back(scope, found, args));
}

}  // namespace tenon::standard_ops
