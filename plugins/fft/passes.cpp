// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set and element type: the lines of a pass, as many at a time as a vector has elements, and the
// rest of them one by one.
#include "passes.hpp"

#include <algorithm>

#include "group.hpp"
#include "line.hpp"
#include "real.hpp"

namespace tenon::fft::TENON_FFT_ISA {
namespace {

constexpr int kMaxAxes = 64;

// The lines of a pass in an order in which consecutive ones are close together in memory.
class Lines {
 public:
  explicit Lines(const Pass& pass) {
    for (int32_t i = 0; i < pass.ndim; ++i)
      if (i != pass.axis && pass.shape[i] != 1) axes_[count_++] = i;
    std::stable_sort(axes_, axes_ + count_, [&](int32_t a, int32_t b) {
      return distance(pass.in_strides[a]) < distance(pass.in_strides[b]);
    });
    for (int32_t i = 0; i < count_; ++i) {
      const int32_t axis = axes_[i];
      extents_[i] = pass.shape[axis];
      in_strides_[i] = pass.in_strides[axis];
      out_strides_[i] = pass.out_strides[axis];
      total_ *= extents_[i];
    }
  }
  int64_t total() const { return total_; }
  // How many consecutive lines begin `bytes` after one another on both sides.
  int64_t adjacent(int64_t bytes) const {
    return count_ > 0 && in_strides_[0] == bytes && out_strides_[0] == bytes ? extents_[0] : 1;
  }
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  void advance() {
    for (int32_t i = 0; i < count_; ++i) {
      in_ += in_strides_[i];
      out_ += out_strides_[i];
      if (++index_[i] < extents_[i]) return;
      in_ -= extents_[i] * in_strides_[i];
      out_ -= extents_[i] * out_strides_[i];
      index_[i] = 0;
    }
  }

 private:
  static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

  int32_t axes_[kMaxAxes], count_ = 0;
  int64_t extents_[kMaxAxes], in_strides_[kMaxAxes], out_strides_[kMaxAxes], index_[kMaxAxes] = {};
  int64_t total_ = 1, in_ = 0, out_ = 0;
};

// Lines are transformed one by one where a line fills vectors by itself and there are few of them, or where its
// numbers are adjacent in memory and a group of such lines would not fit into a cache. With vectors of 64 bytes
// that is the first one, as was measured on an Intel Xeon; with those of 32 bytes a group is faster, by 0.5 to 0.9
// on a Zen 3, as long as it fits into the second.
template <class T>
bool is_group(int64_t lines, int64_t length, bool lie_together) {
  if (length < 4 * kLanes<T>) return lines > 1;
  constexpr int64_t kLongest = kVectorBytes == 64
                                   ? 24 * kLanes<T>
                                   : kPanelBytes / (2 * int64_t{sizeof(Complex<Vector<T>>)}) + 1;
  return 2 * lines > kLanes<T> && !(lie_together && length >= kLongest);
}

// Brings a line, or the beginning of a long one, close before it is transformed: the stages of a transform read and
// write it in strides, which no prefetcher of a processor foresees. A thousand lines of 1024 numbers take
// three quarters of the time that they take without.
template <int kWrite>
void prefetch(const char* memory, int64_t bytes) {
  bytes = std::min<int64_t>(bytes, 16 << 10);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(memory + i, kWrite, kWrite ? 3 : 2);
}

// Calls run_group(in, out, lines) and run_line(in, out). A group of fewer lines than a vector has elements is
// filled up with its last one; `lines` says how many count.
template <class T, class RunGroup, class RunLine>
void for_lines(const Pass& pass, RunGroup run_group, RunLine run_line) {
  constexpr int n = kLanes<T>;
  Lines lines(pass);
  char* const in = static_cast<char*>(const_cast<void*>(pass.in));
  char* const out = static_cast<char*>(pass.out);
  const int64_t length = pass.shape[pass.axis];
  const auto is_one_line = [&](int64_t stride) {
    return stride == int64_t{sizeof(T)} || stride == 2 * int64_t{sizeof(T)};
  };
  const bool lie_together =
      is_one_line(pass.in_strides[pass.axis]) && is_one_line(pass.out_strides[pass.axis]);
  // Of both sides, as half of a real line's numbers are complex.
  const int64_t bytes_of_line =
      length * std::min(pass.in_strides[pass.axis], pass.out_strides[pass.axis]);
  for (int64_t left = lines.total(); left > 0;) {
    if (!is_group<T>(left, length, lie_together)) {
      const char* const from = in + lines.in();
      char* const to = out + lines.out();
      lines.advance();
      --left;
      if (left > 0 && lie_together) {
        prefetch<0>(in + lines.in(), bytes_of_line);
        prefetch<1>(out + lines.out(), bytes_of_line);
      }
      run_line(from, to);
      continue;
    }
    Group<T> from, to;
    from.stride = pass.in_strides[pass.axis];
    to.stride = pass.out_strides[pass.axis];
    const int count = static_cast<int>(std::min<int64_t>(n, left));
    for (int l = 0; l < n; ++l) {
      from.lines[l] = l < count ? in + lines.in() : from.lines[count - 1];
      to.lines[l] = l < count ? out + lines.out() : to.lines[count - 1];
      if (l < count) lines.advance();
    }
    run_group(from, to);
    left -= count;
  }
}

// A line whose numbers may be apart, as one whose numbers are not, and back.
template <class T, int kParts>
const T* packed(const char* line, int64_t stride, int64_t count, T* room) {
  if (stride == kParts * int64_t{sizeof(T)}) return reinterpret_cast<const T*>(line);
  for (int64_t i = 0; i < count; ++i)
    for (int part = 0; part < kParts; ++part)
      room[kParts * i + part] = reinterpret_cast<const T*>(line + i * stride)[part];
  return room;
}
template <class T, int kParts>
void unpack(const T* from, char* line, int64_t stride, int64_t count) {
  if (reinterpret_cast<const char*>(from) == line) return;
  for (int64_t i = 0; i < count; ++i)
    for (int part = 0; part < kParts; ++part)
      reinterpret_cast<T*>(line + i * stride)[part] = from[kParts * i + part];
}

// Made when the first line or group needs it.
template <class T>
struct Rooms {
  using Value = Complex<Vector<T>>;
  LineTransform<T>& line(int64_t n) {
    if (!transform) {
      transform = std::make_unique<LineTransform<T>>(n);
      packed = Buffer<T>(4 * n + 8);
    }
    return *transform;
  }
  const Plan<T>& group(int64_t n) {
    if (!plan) {
      plan = plan_of<T>(n);
      const int64_t rows = plan->rows() + 1;  // a real line has one number more than its half
      data = Buffer<Value>(rows);
      work = Buffer<Value>(rows);
    }
    return *plan;
  }
  Value* run(bool swap) {
    if (swap) swap_rows(data.data());
    Value* const result = transform_columns(*plan, 1, data.data(), work.data());
    if (swap) swap_rows(result);
    return result;
  }

  std::unique_ptr<LineTransform<T>> transform;
  Buffer<T> packed;
  std::shared_ptr<const Plan<T>> plan;
  Buffer<Value> data, work;

 private:
  void swap_rows(Value* rows) const {
    for (int64_t i = 0; i < plan->n; ++i) rows[i] = swapped(rows[i]);
  }
};

// Adjacent lines are the columns of a matrix, panels of which are transformed without a copy.
template <class T>
bool run_as_columns(const Pass& pass) {
  using V = Vector<T>;
  using Value = Complex<V>;
  const int64_t n = pass.shape[pass.axis];
  Lines lines(pass);
  const int64_t columns = lines.adjacent(2 * sizeof(T));
  if (2 * columns <= kLanes<T>) return false;
  const auto plan = plan_of<T>(n);
  const int64_t panel = std::clamp<int64_t>(
      kPanelBytes / (2 * plan->rows() * int64_t{sizeof(Value)}), 1, vectors_of<T>(columns));
  const Buffer<Value> data(plan->rows() * panel), work(plan->rows() * panel);
  for (int64_t left = lines.total(); left > 0; left -= columns) {
    const Memory<T, V> memory{static_cast<const char*>(pass.in) + lines.in(),
                              static_cast<char*>(pass.out) + lines.out(),
                              pass.in_strides[pass.axis],
                              pass.out_strides[pass.axis],
                              {!pass.forward, static_cast<T>(pass.scale)},
                              columns};
    for (int64_t begin = 0; begin < vectors_of<T>(columns); begin += panel)
      transform_columns<T, V>(*plan, std::min(panel, vectors_of<T>(columns) - begin),
                              memory.from(begin), memory.from(begin), data.data(), work.data());
    for (int64_t i = 0; i < columns; ++i) lines.advance();
  }
  return true;
}

template <class T>
void complex_to_complex(const Pass& pass) {
  if (run_as_columns<T>(pass)) return;
  const int64_t n = pass.shape[pass.axis];
  const T scale = static_cast<T>(pass.scale);
  Rooms<T> rooms;
  for_lines<T>(
      pass,
      [&](const Group<T>& in, const Group<T>& out) {
        rooms.group(n);
        load_complex(in, n, rooms.data.data());
        store_complex(out, n, rooms.run(!pass.forward), scale);
      },
      [&](const char* in, char* out) {
        LineTransform<T>& transform = rooms.line(n);
        const int64_t stride = pass.out_strides[pass.axis];
        const T* const from = packed<T, 2>(in, pass.in_strides[pass.axis], n, rooms.packed.data());
        T* const to = stride == 2 * int64_t{sizeof(T)} ? reinterpret_cast<T*>(out)
                                                       : rooms.packed.data() + 2 * n;
        transform.run(from, to, {!pass.forward, scale});
        unpack<T, 2>(to, out, stride, n);
      });
}

// Reads and writes a number of a line or a group, for take_apart and put_together.
template <class V>
struct Numbers {
  Complex<V>* data;
  Complex<V> operator()(int64_t k) const { return data[k]; }
  void operator()(int64_t k, Complex<V> z) const { data[k] = z; }
};
// Writes it with its parts swapped: the inverse transform is one between such numbers.
template <class V>
struct SwappedNumbers : Numbers<V> {
  using Numbers<V>::operator();
  void operator()(int64_t k, Complex<V> z) const { this->data[k] = swapped(z); }
};

template <class T>
void real_to_complex(const Pass& pass) {
  const int64_t n = pass.shape[pass.axis], half = n / 2;
  const bool even = n % 2 == 0;
  const int64_t in_stride = pass.in_strides[pass.axis], out_stride = pass.out_strides[pass.axis];
  const T scale = static_cast<T>(pass.scale);
  const auto roots = even ? half_roots_of<T>(n) : nullptr;
  Rooms<T> rooms;
  for_lines<T>(
      pass,
      [&](const Group<T>& in, const Group<T>& out) {
        rooms.group(even ? half : n);
        auto* const rows = rooms.data.data();
        if (even) {
          Vector<T>* const to = parts<T>(rows);
          load_real(in, n, [&](int64_t i, Vector<T> v) { to[i] = v; });
        } else {
          load_real(in, n, [&](int64_t i, Vector<T> v) { rows[i] = {v, Vector<T>{}}; });
        }
        auto* const result = rooms.run(false);
        if (even) take_apart(n, *roots, Numbers<Vector<T>>{result});
        store_complex(out, half + 1, result, scale);
      },
      [&](const char* in, char* out) {
        LineTransform<T>& transform = rooms.line(even ? half : n);
        T* const room = rooms.packed.data();
        T* to = room + n + 2;
        if (even) {
          if (out_stride == 2 * int64_t{sizeof(T)}) to = reinterpret_cast<T*>(out);
          transform.run(packed<T, 1>(in, in_stride, n, room), to, {false, scale});
          take_apart_line(n, *roots, to);
        } else {
          for (int64_t i = 0; i < n; ++i) {
            room[2 * i] = *reinterpret_cast<const T*>(in + i * in_stride);
            room[2 * i + 1] = 0;
          }
          to = room + 2 * n;
          transform.run(room, to, {false, scale});
        }
        unpack<T, 2>(to, out, out_stride, half + 1);
      });
}

template <class T>
void complex_to_real(const Pass& pass) {
  const int64_t n = pass.shape[pass.axis], half = n / 2;
  const bool even = n % 2 == 0;
  const int64_t in_stride = pass.in_strides[pass.axis], out_stride = pass.out_strides[pass.axis];
  const T scale = static_cast<T>(pass.scale);
  const auto roots = even ? half_roots_of<T>(n) : nullptr;
  Rooms<T> rooms;
  for_lines<T>(
      pass,
      [&](const Group<T>& in, const Group<T>& out) {
        rooms.group(even ? half : n);
        auto* const rows = rooms.data.data();
        load_complex(in, half + 1, rows);
        if (even) {
          put_together(n, *roots, SwappedNumbers<Vector<T>>{{rows}});
        } else {
          rows[0] = {Vector<T>{}, rows[0].re};
          for (int64_t k = 1; k <= half; ++k) {
            const auto z = rows[k];
            rows[k] = swapped(z);
            rows[n - k] = {-z.im, z.re};
          }
        }
        auto* const result = rooms.run(false);  // whose parts are swapped, too
        if (even) {
          const Vector<T>* const from = parts<T>(result);
          store_real(out, n, [&](int64_t i) { return from[i ^ 1] * scale; });
        } else {
          store_real(out, n, [&](int64_t i) { return result[i].im * scale; });
        }
      },
      [&](const char* in, char* out) {
        LineTransform<T>& transform = rooms.line(even ? half : n);
        T* const room = rooms.packed.data();
        if (even) {
          const T* const from = packed<T, 2>(in, in_stride, half + 1, room + n + 2);
          put_together_line(n, *roots, from, room);
          T* const to = out_stride == int64_t{sizeof(T)} ? reinterpret_cast<T*>(out) : room;
          transform.run(room, to, {true, scale});
          unpack<T, 1>(to, out, out_stride, n);
        } else {
          for (int64_t k = 0; k <= half; ++k) {
            const T* const from = reinterpret_cast<const T*>(in + k * in_stride);
            room[2 * k] = from[0];
            room[2 * k + 1] = from[1];
          }
          room[1] = 0;
          for (int64_t k = 1; k <= half; ++k) {
            room[2 * (n - k)] = room[2 * k];
            room[2 * (n - k) + 1] = -room[2 * k + 1];
          }
          transform.run(room, room, {true, scale});
          for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(out + i * out_stride) = room[2 * i];
        }
      });
}

}  // namespace

template <>
const Passes& passes<TENON_FFT_ELEMENT>() {
  using T = TENON_FFT_ELEMENT;
  static constexpr Passes kPasses = {complex_to_complex<T>, real_to_complex<T>, complex_to_real<T>};
  return kPasses;
}

}  // namespace tenon::fft::TENON_FFT_ISA
