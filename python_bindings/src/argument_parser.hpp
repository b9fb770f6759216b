// SPDX-License-Identifier: Apache-2.0
// From Python arguments to boxed values, driven by an operator's parameter table.
#pragma once

#include "operator_type.hpp"
#include "tensor_object.hpp"

namespace tenon::python {

// Memory that boxed values borrow for one call: lists, and the objects that must outlive the call.
class ArgumentArena {
 public:
  ArgumentArena() {}
  ~ArgumentArena() {
    if (blocks_ || kept_count_) release();
  }
  ArgumentArena(const ArgumentArena&) = delete;
  ArgumentArena& operator=(const ArgumentArena&) = delete;

  // Uninitialised room for `count` values of 8 bytes; NULL with MemoryError.
  void* take(size_t count) {
    if (count <= kInlineWords - used_) [[likely]] {
      void* memory = inline_ + used_;
      used_ += count;
      return memory;
    }
    return take_from_heap(count);
  }
  // Hold `owned` until the call is over. False: too many, `owned` dropped, Python error set.
  bool keep(PyObject* owned);

  int64_t work = 0;          // elements that the call will touch, roughly
  bool has_batched = false;  // an argument is batched: the call is Python's

 private:
  struct Block {
    Block* next;
  };
  static constexpr size_t kInlineWords = 32, kMaxKept = 32;
  void* take_from_heap(size_t count);
  void release();
  size_t used_ = 0;
  Block* blocks_ = nullptr;
  size_t kept_count_ = 0;
  int64_t inline_[kInlineWords];
  PyObject* kept_[kMaxKept];
};

// Arguments as given by Python's vectorcall protocol, boxed.
struct ParsedCall {
  tenon_value values[kMaxParameters];
  uint32_t count = 0;         // values to pass: all that the operator has
  PyObject* first = nullptr;  // borrowed: the argument of parameter 0
  PyObject* out = nullptr;    // borrowed: the keyword `out`
  ArgumentArena arena;
};

// False: TypeError (or what a conversion raised) is set, or call.arena.has_batched.
bool parse_arguments(const OperatorObject& self, PyObject* const* objects, Py_ssize_t positional,
                     PyObject* keyword_names, ParsedCall& call);

// Box a Python or NumPy number. 1: done, 0: not a number, -1: Python error set.
int box_number(PyObject* object, tenon_value& value, ArgumentArena* arena);

}  // namespace tenon::python
