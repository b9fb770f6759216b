// SPDX-License-Identifier: Apache-2.0
#include "composed.hpp"

#include <tenon/error.hpp>
#include <tenon/text.hpp>

#include <algorithm>
#include <mutex>
#include <string_view>

namespace tenon::parts {
namespace {

std::mutex kinds_mutex;
std::vector<const Kind*>& kinds() {
  static std::vector<const Kind*> all;
  return all;
}

[[gnu::cold]] tenon_status fail_part(const Kind& kind, uint32_t part, tenon_status code,
                                     const char* why, tenon_err* err) {
  return fail(err, code,
              std::string(kind.name) + ": part `" + kind.part_names[part] + "`: expected " + why);
}

// The parts fit the kind, and one another.
tenon_status check_parts(const Kind& kind, int32_t ndim, const int64_t* shape,
                         tenon_tensor* const* parts, const int64_t* words, tenon_err* err) {
  for (uint32_t i = 0; i < kind.nparts; ++i) {
    if (!parts[i]) return fail_part(kind, i, TENON_INVALID_ARGUMENT, "a tensor, got none", err);
    if (parts[i]->flags & TENON_TENSOR_COMPOSED)
      return fail_part(kind, i, TENON_UNSUPPORTED,
                       "a tensor with memory, got one that is composed of others", err);
    if (parts[i]->device != parts[kind.values]->device)
      return fail_part(kind, i, TENON_INVALID_ARGUMENT,
                       "the device of the values; move it with .to()", err);
  }
  return kind.check(ndim, shape, parts, words, err);
}

Composed* new_composed(const Kind& kind, tenon_tensor* const* parts, const int64_t* words) {
  auto* made = new Composed{&kind, {}, {}};
  made->parts.reserve(kind.nparts);
  for (uint32_t i = 0; i < kind.nparts; ++i) made->parts.push_back(Tensor::borrow(parts[i]));
  made->words.assign(words, words + kind.nwords);
  return made;
}

}  // namespace

tenon_status kind_register(const Kind* kind, tenon_err* err) {
  if (!kind || kind->struct_size < sizeof(Kind) || !kind->name || !kind->check ||
      !kind->part_names || kind->nparts < 1 || kind->nparts > 8 || kind->nwords > 64 ||
      kind->values >= kind->nparts)
    return fail(err, TENON_INVALID_ARGUMENT,
                "a kind of composed tensors: expected struct_size, name, part_names, check, 1 to 8 "
                "parts of which `values` is one, and at most 64 words");
  return guarded(err, [&] {
    std::lock_guard lock(kinds_mutex);
    for (const Kind*& known : kinds())
      if (std::string_view(known->name) == kind->name)
        throw Error(TENON_ALREADY_EXISTS,
                    std::string("a kind of composed tensors `") + kind->name + "` exists already");
    kinds().push_back(kind);
  });
}

const Kind* kind_find(const char* name) {
  std::lock_guard lock(kinds_mutex);
  for (const Kind* kind : kinds())
    if (name && std::string_view(kind->name) == name) return kind;
  return nullptr;
}

tenon_status create(const Kind* kind, int32_t ndim, const int64_t* shape,
                    tenon_tensor* const* parts, const int64_t* words, tenon_tensor** out,
                    tenon_err* err) {
  if (tenon_status status = check_parts(*kind, ndim, shape, parts, words, err)) return status;
  const tenon_tensor& values = *parts[kind->values];
  const int32_t serving = kind->layer >= 0 ? kind->layer : layer;
  tenon_tensor* made;
  if (tenon_status status = host->tensor_create_composed(values.device, values.dtype, ndim, shape,
                                                         serving, &made, err))
    return status;
  const tenon_status kept =
      guarded(err, [&] { host->ext_set(made, slot, new_composed(*kind, parts, words)); });
  if (kept != TENON_OK) return host->tensor_release(made), kept;
  *out = made;
  return TENON_OK;
}

tenon_status replace(tenon_tensor* tensor, tenon_tensor* const* parts, const int64_t* words,
                     tenon_err* err) {
  Composed* before = composed_of(tensor);
  if (!before)
    return fail(err, TENON_INVALID_ARGUMENT,
                "replace: expected a composed tensor, got a plain one");
  const Kind& kind = *before->kind;
  if (tenon_status status = check_parts(kind, tensor->ndim, tensor->shape, parts, words, err))
    return status;
  if (parts[kind.values]->dtype != tensor->dtype || parts[kind.values]->device != tensor->device)
    return fail(err, TENON_TYPE_MISMATCH,
                std::string(kind.name) + ": expected elements of dtype " +
                    host->dtype_name(tensor->dtype) + " on the tensor's device, got " +
                    host->dtype_name(parts[kind.values]->dtype));
  return guarded(err, [&] {
    host->ext_set(tensor, slot, new_composed(kind, parts, words));
    host->tensor_bump_version(tensor);
    delete before;
  });
}

Tensor compose(Scope& scope, const Kind* kind, const std::vector<int64_t>& shape,
               const std::vector<Tensor>& parts) {
  if (!scope.ok()) return {};
  std::vector<tenon_tensor*> handles;
  for (const Tensor& part : parts) handles.push_back(part.get());
  const std::vector<int64_t> words(kind->nwords);
  tenon_tensor* made;
  if (!scope.check(create(kind, static_cast<int32_t>(shape.size()), shape.data(), handles.data(),
                          words.data(), &made, scope.err())))
    return {};
  return Tensor::adopt(made);
}

Tensor with_values(Scope& scope, const tenon_tensor* like, const Tensor& values) {
  if (!scope.ok()) return {};
  const Composed& whole = *composed_of(like);
  tenon_tensor* handles[8];
  for (uint32_t i = 0; i < whole.kind->nparts; ++i) handles[i] = whole.parts[i].get();
  handles[whole.kind->values] = values.get();
  tenon_tensor* made;
  if (!scope.check(create(whole.kind, like->ndim, like->shape, handles, whole.words.data(), &made,
                          scope.err())))
    return {};
  return Tensor::adopt(made);
}

}  // namespace tenon::parts
