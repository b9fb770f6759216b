// SPDX-License-Identifier: Apache-2.0
#include "groups/jit_loop.hpp"

#include <tenon/abi.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#ifdef TENON_HAS_XBYAK
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>
#endif

namespace tenon::graph {
namespace {

constexpr std::pair<std::string_view, Arithmetic> kNames[] = {
    {"tenon::add", Arithmetic::kAdd},
    {"tenon::subtract", Arithmetic::kSubtract},
    {"tenon::multiply", Arithmetic::kMultiply},
    {"tenon::divide", Arithmetic::kDivide},
    {"tenon::maximum", Arithmetic::kMaximum},
    {"tenon::minimum", Arithmetic::kMinimum},
    {"tenon::negative", Arithmetic::kNegative},
    {"tenon::abs", Arithmetic::kAbsolute},
    {"tenon::square", Arithmetic::kSquare},
    {"tenon::sqrt", Arithmetic::kSquareRoot},
    {"tenon::reciprocal", Arithmetic::kReciprocal},
    {"tenon::relu", Arithmetic::kRelu}};

// Registers for results. Two more hold operands on their way, and one a mask of AVX2.
constexpr int kRegisters = 12;

bool calls_function(const ChainStep& step) {
  return step.arithmetic == Arithmetic::kFunction || step.arithmetic == Arithmetic::kBinaryFunction;
}

// Where each result lives: in a register from its step to the last one that reads it, or, where a
// function is called in between, which may use all registers, on the stack.
class Registers {
 public:
  explicit Registers(const std::vector<ChainStep>& steps) : last_(steps.size()) {
    for (uint32_t i = 0; i < steps.size(); ++i) {
      last_[i] = i;
      for (int k = 0; k < operand_count(steps[i].arithmetic); ++k)
        if (steps[i].sources[k].kind == ChainStep::Source::kResult)
          last_[steps[i].sources[k].index] = i;
    }
    for (uint32_t i = 0; i < steps.size(); ++i) {
      int slot = -1;
      for (uint32_t k = i + 1; k < last_[i] && slot < 0; ++k)
        if (calls_function(steps[k])) slot = slots_++;
      slot_.push_back(slot);
    }
    for (uint32_t i = 0; i < steps.size(); ++i) {
      // An operand that is read for the last time leaves its register to the result.
      for (uint32_t k = 0; k < i; ++k)
        if (last_[k] == i && slot_[k] < 0) is_taken_[of_[k]] = false;
      const auto* free = std::find(is_taken_, is_taken_ + kRegisters, false);
      if (free == is_taken_ + kRegisters) return;
      of_.push_back(static_cast<int>(free - is_taken_));
      is_taken_[of_.back()] = last_[i] != i && slot_[i] < 0;
      ++fitting_;
    }
  }
  // The register in which a step leaves its result.
  int of(size_t step) const { return of_[step]; }
  // The place on the stack from which later steps read it; -1: they read the register.
  int slot(size_t step) const { return slot_[step]; }
  int slots() const { return slots_; }
  size_t fitting() const { return fitting_; }

 private:
  std::vector<uint32_t> last_;
  std::vector<int> of_, slot_;
  int slots_ = 0;
  bool is_taken_[kRegisters] = {};
  size_t fitting_ = 0;
};

}  // namespace

std::optional<Arithmetic> arithmetic_named(std::string_view op) {
  for (const auto& [name, arithmetic] : kNames)
    if (name == op) return arithmetic;
  return std::nullopt;
}

int operand_count(Arithmetic arithmetic) {
  return arithmetic <= Arithmetic::kBinaryFunction ? 2 : 1;
}

size_t JitLoop::fitting(const std::vector<ChainStep>& steps) { return Registers(steps).fitting(); }

#ifdef TENON_HAS_XBYAK

namespace {

enum class Level : uint8_t { kNone, kAvx2, kAvx512 };

Level level() {
  static const Level found = [] {
    const char* given = std::getenv("TENON_MACHINE_CODE");
    const std::string_view wanted = given ? given : "";
    if (wanted == "0") return Level::kNone;
    const Xbyak::util::Cpu cpu;
    if (wanted != "avx2" && cpu.has(Xbyak::util::Cpu::tAVX512F) &&
        cpu.has(Xbyak::util::Cpu::tAVX512DQ) && cpu.has(Xbyak::util::Cpu::tAVX512VL))
      return Level::kAvx512;
    return cpu.has(Xbyak::util::Cpu::tAVX2) ? Level::kAvx2 : Level::kNone;
  }();
  return found;
}

}  // namespace

class JitLoop::Assembler : public Xbyak::CodeGenerator {
 public:
  Assembler(const std::vector<ChainStep>& steps, int32_t dtype, uint32_t bytes)
      : CodeGenerator(4096, Xbyak::AutoGrow),
        registers_(steps),
        is_wide_(bytes == 64),
        is_double_(dtype == TENON_DTYPE_F64),
        has_calls_(std::any_of(steps.begin(), steps.end(), calls_function)),
        size_(is_double_ ? 8 : 4),
        offset_(has_calls_ ? r12 : rdx),
        next_(has_calls_ ? r13 : rcx),
        end_(has_calls_ ? r14 : rsi) {
    for (const ChainStep& step : steps) {
      for (int k = 0; k < operand_count(step.arithmetic); ++k)
        if (step.sources[k].kind != ChainStep::Source::kResult)
          arrays_ = std::max(arrays_, step.sources[k].index + 1);
      arrays_ = std::max(arrays_, static_cast<uint32_t>(step.stored_to + 1));
    }
    assemble(steps);
    ready(PROTECT_RE);
  }

 private:
  using Source = ChainStep::Source;

  // void (void* const* arrays in rdi, int64_t count in rsi). Where functions are called, the
  // addresses of arrays stay in memory: calls preserve few registers.
  void assemble(const std::vector<ChainStep>& steps) {
    const Xbyak::Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
    for (const Xbyak::Reg64& each : saved) push(each);
    if (has_calls_) {
      mov(rbp, rsp);
      sub(rsp, std::max(1, registers_.slots()) * kSlot);
      and_(rsp, -kSlot);
      mov(rbx, rdi);
    } else {
      for (uint32_t i = 0; i < arrays_; ++i) mov(array(i), ptr[rdi + 8 * i]);
    }
    imul(end_, rsi, size_);  // in bytes
    xor_(offset_, offset_);
    loop(steps, is_wide_ ? 64 : 32, false);
    loop(steps, size_, true);
    vzeroupper();  // on both levels vectors are wider than those of SSE
    if (has_calls_) mov(rsp, rbp);
    for (int i = 5; i >= 0; --i) pop(saved[i]);
    ret();
    align(32);
    L(constants_);
    if (is_double_) {
      dq(0x8000000000000000), dq(0x7fffffffffffffff), dq(0x3ff0000000000000);
    } else {
      dd(0x80000000), dd(0x7fffffff), dd(0x3f800000);
    }
  }

  Xbyak::Reg64 array(uint32_t index) const {
    static constexpr int kCodes[kMaxArrays] = {
        Xbyak::Operand::RAX, Xbyak::Operand::RBX, Xbyak::Operand::RBP, Xbyak::Operand::R8,
        Xbyak::Operand::R9,  Xbyak::Operand::R10, Xbyak::Operand::R11, Xbyak::Operand::R12,
        Xbyak::Operand::R13, Xbyak::Operand::R14};
    return Xbyak::Reg64(kCodes[index]);
  }
  // The first element of an array. The next address may be in the same register.
  Xbyak::RegExp first(uint32_t index) {
    if (!has_calls_) return array(index);
    mov(rax, ptr[rbx + 8 * index]);
    return rax;
  }

  // All whole vectors, or all single elements, that are left.
  void loop(const std::vector<ChainStep>& steps, int bytes, bool is_single) {
    is_single_ = is_single;
    Xbyak::Label again, end;
    lea(next_, ptr[offset_ + bytes]);
    cmp(next_, end_);
    jg(end, T_NEAR);
    L(again);
    for (size_t i = 0; i < steps.size(); ++i) {
      emit(steps[i], result(i));
      if (const int slot = registers_.slot(i); slot >= 0) store_whole(slot, registers_.of(i));
    }
    mov(offset_, next_);
    add(next_, bytes);
    cmp(next_, end_);
    jle(again, T_NEAR);
    L(end);
  }

  Xbyak::Xmm vector(int index) const {
    if (is_single_) return Xbyak::Xmm(index);
    if (is_wide_) return Xbyak::Zmm(index);
    return Xbyak::Ymm(index);
  }
  Xbyak::Xmm result(size_t step) const { return vector(registers_.of(step)); }
  // As functions take and return them, whatever the loop needs of them.
  Xbyak::Xmm whole(int index) const {
    if (is_wide_) return Xbyak::Zmm(index);
    return Xbyak::Ymm(index);
  }
  void store_whole(int slot, int from) { vmovups(ptr[rsp + slot * kSlot], whole(from)); }

  void load(const Xbyak::Xmm& to, const Xbyak::Address& from) {
    if (is_single_)
      is_double_ ? vmovsd(to, from) : vmovss(to, from);
    else
      is_double_ ? vmovupd(to, from) : vmovups(to, from);
  }
  void repeat(const Xbyak::Xmm& to, const Xbyak::Address& from) {
    if (is_single_) return load(to, from);
    is_double_ ? vbroadcastsd(Xbyak::Ymm(to.getIdx(), to.getKind(), to.getBit()), from)
               : vbroadcastss(to, from);
  }
  void store(const Xbyak::Address& to, const Xbyak::Xmm& from) {
    if (is_single_)
      is_double_ ? vmovsd(to, from) : vmovss(to, from);
    else
      is_double_ ? vmovupd(to, from) : vmovups(to, from);
  }

  // The register of an operand: a result's own, or one of two others, into which it is loaded.
  Xbyak::Xmm operand(const Source& source, int other) {
    const Xbyak::Xmm to = vector(kRegisters + other);
    if (source.kind == Source::kResult) {
      const int slot = registers_.slot(source.index);
      if (slot < 0) return result(source.index);
      vmovups(whole(kRegisters + other), ptr[rsp + slot * kSlot]);
    } else if (source.kind == Source::kArray) {
      load(to, ptr[first(source.index) + offset_]);
    } else {
      repeat(to, ptr[first(source.index)]);
    }
    return to;
  }
  Xbyak::Xmm constant(int index) {  // sign, all but the sign, one
    const Xbyak::Xmm to = vector(kRegisters + 1);
    if (is_single_)
      load(to, ptr[rip + constants_ + index * size_]);
    else
      repeat(to, ptr[rip + constants_ + index * size_]);
    return to;
  }

// One operation in its four forms.
#define TENON_FORMS(name, to, x, y)                                    \
  (is_single_ ? (is_double_ ? name##sd(to, x, y) : name##ss(to, x, y)) \
              : (is_double_ ? name##pd(to, x, y) : name##ps(to, x, y)))

  void emit(const ChainStep& step, const Xbyak::Xmm& to) {
    const Xbyak::Xmm x = operand(step.sources[0], 0);
    switch (step.arithmetic) {
      case Arithmetic::kAdd:
        TENON_FORMS(vadd, to, x, operand(step.sources[1], 1));
        break;
      case Arithmetic::kSubtract:
        TENON_FORMS(vsub, to, x, operand(step.sources[1], 1));
        break;
      case Arithmetic::kMultiply:
        TENON_FORMS(vmul, to, x, operand(step.sources[1], 1));
        break;
      case Arithmetic::kDivide:
        TENON_FORMS(vdiv, to, x, operand(step.sources[1], 1));
        break;
      case Arithmetic::kMaximum:
      case Arithmetic::kMinimum:
        choose(to, x, operand(step.sources[1], 1), step.arithmetic == Arithmetic::kMaximum);
        break;
      case Arithmetic::kRelu: {
        const Xbyak::Xmm zero = vector(kRegisters + 1);
        bits(zero, zero, zero, 'x');
        choose(to, x, zero, true);
        break;
      }
      case Arithmetic::kNegative:
        bits(to, x, constant(0), 'x');
        break;
      case Arithmetic::kAbsolute:
        bits(to, x, constant(1), '&');
        break;
      case Arithmetic::kSquare:
        TENON_FORMS(vmul, to, x, x);
        break;
      case Arithmetic::kReciprocal:
        TENON_FORMS(vdiv, to, constant(2), x);
        break;
      case Arithmetic::kSquareRoot:
        if (is_single_)
          is_double_ ? vsqrtsd(to, x, x) : vsqrtss(to, x, x);
        else
          is_double_ ? vsqrtpd(to, x) : vsqrtps(to, x);
        break;
      case Arithmetic::kFunction:
        call_function(step, to, x, x);
        break;
      case Arithmetic::kBinaryFunction:
        call_function(step, to, x, operand(step.sources[1], 1));
        break;
    }
    if (step.stored_to >= 0) store(ptr[first(static_cast<uint32_t>(step.stored_to)) + offset_], to);
  }

  // Nothing is in a register that is read behind the call. Elements behind a single one are what
  // they are: each element of the result is that of its own operands.
  void call_function(const ChainStep& step, const Xbyak::Xmm& to, const Xbyak::Xmm& x,
                     const Xbyak::Xmm& y) {
    if (step.arithmetic == Arithmetic::kBinaryFunction) {
      // Either may be where the other one has to go.
      vmovaps(whole(kRegisters + 1), whole(y.getIdx()));
      vmovaps(whole(0), whole(x.getIdx()));
      vmovaps(whole(1), whole(kRegisters + 1));
    } else if (x.getIdx() != 0) {
      vmovaps(whole(0), whole(x.getIdx()));
    }
    mov(rax, reinterpret_cast<uint64_t>(step.function));
    call(rax);
    if (to.getIdx() != 0) vmovaps(whole(to.getIdx()), whole(0));
  }

  void bits(const Xbyak::Xmm& to, const Xbyak::Xmm& x, const Xbyak::Xmm& y, char sign) {
    if (sign == 'x')
      is_double_ ? vxorpd(to, x, y) : vxorps(to, x, y);
    else
      is_double_ ? vandpd(to, x, y) : vandps(to, x, y);
  }

  // x > y ? x : y, which is y where either is NaN; then x where x is NaN.
  void choose(const Xbyak::Xmm& to, const Xbyak::Xmm& x, const Xbyak::Xmm& y, bool is_maximum) {
    const Xbyak::Xmm chosen = vector(kRegisters + 2);
    if (is_maximum)
      TENON_FORMS(vmax, chosen, x, y);
    else
      TENON_FORMS(vmin, chosen, x, y);
    constexpr uint8_t kUnordered = 3;
    if (is_wide_ && !is_single_) {
      is_double_ ? vcmppd(k1, x, x, kUnordered) : vcmpps(k1, x, x, kUnordered);
      is_double_ ? vblendmpd(to | k1, chosen, x) : vblendmps(to | k1, chosen, x);
    } else {
      const Xbyak::Xmm mask = vector(kRegisters + 3);
      is_double_ ? vcmppd(mask, x, x, kUnordered) : vcmpps(mask, x, x, kUnordered);
      is_double_ ? vblendvpd(to, chosen, x, mask) : vblendvps(to, chosen, x, mask);
    }
  }
#undef TENON_FORMS

  static constexpr int kSlot = 64;  // bytes on the stack

  Registers registers_;
  bool is_wide_, is_double_, has_calls_, is_single_ = false;
  int size_;
  uint32_t arrays_ = 0;
  Xbyak::Label constants_;
  const Xbyak::Reg64 offset_, next_, end_;  // in bytes
};

JitLoop::~JitLoop() = default;

std::unique_ptr<JitLoop> JitLoop::of(const std::vector<ChainStep>& steps, int32_t dtype,
                                     uint32_t bytes) {
  const uint32_t widest = level() == Level::kAvx512 ? 64 : 32;
  if (level() == Level::kNone || bytes > widest || fitting(steps) != steps.size() ||
      (dtype != TENON_DTYPE_F32 && dtype != TENON_DTYPE_F64))
    return nullptr;
  try {
    std::unique_ptr<JitLoop> code(new JitLoop);
    code->assembler_ = std::make_unique<Assembler>(steps, dtype, bytes ? bytes : widest);
    code->function_ = code->assembler_->getCode<void (*)(void* const*, int64_t)>();
    return code;
  } catch (const std::exception&) {  // no memory that may be executed; the kernels run
    return nullptr;
  }
}

#else

class JitLoop::Assembler {};
JitLoop::~JitLoop() = default;
std::unique_ptr<JitLoop> JitLoop::of(const std::vector<ChainStep>&, int32_t, uint32_t) {
  return nullptr;
}

#endif

}  // namespace tenon::graph
