// SPDX-License-Identifier: Apache-2.0
// The device as PyTorch sees it: which one is current, streams and events, generators, and the hooks by which
// torch.accelerator finds it.
#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <mutex>

#include "runtime.hpp"

namespace tenon_torch {

const tenon_host* the_host = nullptr;

namespace {

std::string the_kind;
uint32_t the_kind_number = 0;
int the_device_count = 0;
thread_local c10::DeviceIndex the_current_device = 0;

constexpr auto kType = c10::DeviceType::PrivateUse1;

// -- streams and events -----------------------------------------------------------------------------------

// Streams of a device, which live as long as the process. Id 0 is the device's synchronous stream, and all there is on
// devices without streams.
c10::Stream next_stream(c10::Device device, int priority) {
  constexpr size_t kStreams = 8;
  static std::mutex mutex;
  static std::array<std::array<tenon_stream, kStreams>, 256> pool{};
  static size_t next = 0;
  std::lock_guard lock(mutex);
  tenon_stream& slot = pool.at(static_cast<size_t>(device.index()))[next++ % kStreams];
  tenon_status status = TENON_OK;
  if (!slot) status = host().stream_create(device_id(device.index()), priority, &slot, errors());
  if (status == TENON_UNSUPPORTED)
    host().err_clear(errors());
  else
    check(status, "a stream");
  return c10::Stream(c10::Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(slot));
}

tenon_stream stream_of(const c10::Stream& stream) {
  return reinterpret_cast<tenon_stream>(stream.id());
}
c10::Stream stream_on(c10::Device device, tenon_stream stream) {
  return c10::Stream(c10::Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(stream));
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kType, the_current_device}; }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) the_current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return stream_on(indexed(device), host().stream_current(device_id(indexed(device).index())));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, indexed(device));
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return next_stream(indexed(device), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    tenon_device_id device = device_id(stream.device_index());
    return stream_on(stream.device(), host().stream_set_current(device, stream_of(stream)));
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(the_device_count);
  }

  // On a device without events none is made, and its work has ended when a call returns.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index,
              const c10::EventFlag) const override {
    tenon_device_id device = device_id(index >= 0 ? index : stream.device_index());
    if (!*event) {
      tenon_event made = nullptr;
      tenon_status status = host().event_create(device, &made, errors());
      if (status == TENON_UNSUPPORTED) return host().err_clear(errors());
      check(status, "an event");
      *event = new Event{device, made};
    }
    auto* known = static_cast<Event*>(*event);
    check(host().event_record(known->device, known->event, stream_of(stream), errors()),
          "Event.record");
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (auto* known = static_cast<Event*>(event))
      check(host().event_wait(known->device, known->event, stream_of(stream), errors()),
            "Event.wait");
  }
  bool queryEvent(void* event) const override {
    int32_t is_done = 1;
    if (auto* known = static_cast<Event*>(event))
      check(host().event_query(known->device, known->event, &is_done, errors()), "Event.query");
    return is_done;
  }
  void synchronizeEvent(void* event) const override {
    if (auto* known = static_cast<Event*>(event))
      check(host().event_sync(known->device, known->event, errors()), "Event.synchronize");
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    auto* known = static_cast<Event*>(event);
    if (known) host().event_destroy(known->device, known->event);
    delete known;
  }
  bool queryStream(const c10::Stream& stream) const override {
    void* event = nullptr;
    record(&event, stream, stream.device_index(), c10::EventFlag::PYTORCH_DEFAULT);
    bool is_done = queryEvent(event);
    destroyEvent(event, stream.device_index());
    return is_done;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    tenon_device_id device = device_id(stream.device_index());
    tenon_stream known = stream_of(stream);
    check(
        known ? host().stream_sync(device, known, errors()) : host().device_sync(device, errors()),
        "Stream.synchronize");
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    check(host().device_sync(device_id(index >= 0 ? index : the_current_device), errors()),
          "synchronize");
  }

 private:
  struct Event {
    tenon_device_id device;
    tenon_event event;
  };
  static c10::Device indexed(c10::Device device) {
    return device.has_index() ? device : c10::Device(kType, the_current_device);
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// -- generators -------------------------------------------------------------------------------------------

// A seed and the number of counters drawn so far. That of a device is the host's; others keep their own, and
// GeneratorScope lends it to the host for a call.
struct Generator final : c10::GeneratorImpl {
  Generator(c10::DeviceIndex index, bool is_default)
      : c10::GeneratorImpl(c10::Device(kType, index),
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        is_default_(is_default) {}
  static c10::DeviceType device_type() { return kType; }

  std::pair<uint64_t, uint64_t> get() const {
    if (!is_default_) return {seed_, offset_};
    uint64_t seed = 0, offset = 0;
    host().random_get(device_id(device().index()), &seed, &offset);
    return {seed, offset};
  }
  void put(uint64_t seed, uint64_t offset) {
    if (is_default_)
      host().random_set(device_id(device().index()), seed, offset);
    else
      seed_ = seed, offset_ = offset;
  }
  bool is_default() const { return is_default_; }

  void set_current_seed(uint64_t seed) override { put(seed, 0); }
  void set_offset(uint64_t offset) override { put(get().first, offset); }
  uint64_t get_offset() const override { return get().second; }
  uint64_t current_seed() const override { return get().first; }
  uint64_t seed() override {
    put(c10::detail::getNonDeterministicRandom(), 0);
    return get().first;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK_VALUE(state.numel() == sizeof(uint64_t) * 2 &&
                          state.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                          state.is_contiguous(),
                      "set_state: expected 16 uint8 numbers on the CPU, as get_state gives them");
    uint64_t words[2];
    std::memcpy(words, state.data(), sizeof words);
    put(words[0], words[1]);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto [seed, offset] = get();
    uint64_t words[2] = {seed, offset};
    at::Tensor state =
        at::empty({sizeof words}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    std::memcpy(state.data_ptr(), words, sizeof words);
    return state.getIntrusivePtr();
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index(), false);
    auto [seed, offset] = get();
    copy->put(seed, offset);
    return copy;
  }
  bool is_default_;
  uint64_t seed_ = c10::default_rng_seed_val, offset_ = 0;
};

// -- hooks ------------------------------------------------------------------------------------------------

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return the_device_count > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return the_host != nullptr; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(the_device_count);
  }
  c10::DeviceIndex getCurrentDevice() const override { return the_current_device; }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = the_current_device;
    set_current_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? the_current_device : exchangeDevice(index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    static auto* all = new std::array<at::Generator, 256>;
    static std::mutex mutex;
    if (index < 0) index = the_current_device;
    device_id(index);
    std::lock_guard lock(mutex);
    at::Generator& known = (*all)[static_cast<size_t>(index)];
    if (!known.defined()) known = at::make_generator<Generator>(index, true);
    return known;
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(index < 0 ? the_current_device : index, false);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }
};

}  // namespace

const std::string& kind() { return the_kind; }
int device_count() { return the_device_count; }

void start(const std::string& library, const std::string& name) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  TORCH_CHECK(opened, "expected ", library, " to be loaded in this process: ", dlerror());
  auto get = reinterpret_cast<decltype(&tenon_host_get)>(dlsym(opened, "tenon_host_get"));
  const tenon_host* table = get ? get(TENON_ABI_EPOCH) : nullptr;
  TORCH_CHECK(table, library, " does not speak epoch ", TENON_ABI_EPOCH, " of Tenon's ABI");
  the_host = table;
  tenon_device_id first = TENON_DEVICE_NONE;
  tenon_status status = table->plugin_load_default(errors());
  if (status == TENON_OK) status = table->device_find(name.c_str(), &first, errors());
  if (status != TENON_OK) {
    the_host = nullptr;
    std::string text = table->err_text(errors());
    table->err_clear(errors());
    TORCH_CHECK(false, text);
  }
  the_kind = name;
  the_kind_number = TENON_DEVICE_KIND(first);
  the_device_count = static_cast<int>(table->device_count(the_kind_number));
  at::RegisterPrivateUse1HooksInterface(new Hooks);
}

tenon_device_id device_id(c10::DeviceIndex index) {
  TORCH_CHECK_INDEX(index >= 0 && index < the_device_count, "expected the index of a device of \"",
                    the_kind, "\", 0 to ", the_device_count - 1, ", got ", static_cast<int>(index));
  return TENON_DEVICE_ID(the_kind_number, static_cast<unsigned>(index));
}

tenon_err* errors() {
  struct Sink {
    const tenon_host* table = the_host;
    tenon_err* err = the_host->err_create();
    ~Sink() { table->err_destroy(err); }
  };
  static thread_local Sink sink;
  return sink.err;
}

void raise(tenon_status status, const char* what) {
  std::string text = host().err_text(errors());
  host().err_clear(errors());
  if (text.empty()) text = std::string(what) + ": status " + std::to_string(status);
  TORCH_CHECK_VALUE(status != TENON_INVALID_ARGUMENT, text);
  TORCH_CHECK_TYPE(status != TENON_TYPE_MISMATCH, text);
  TORCH_CHECK_INDEX(status != TENON_OUT_OF_RANGE, text);
  TORCH_CHECK_NOT_IMPLEMENTED(status != TENON_UNSUPPORTED, text);
  TORCH_CHECK_WITH(OutOfMemoryError, status != TENON_OUT_OF_MEMORY, text);
  TORCH_CHECK(false, text);
}

c10::DeviceIndex current_device() { return the_current_device; }
void set_current_device(c10::DeviceIndex index) {
  device_id(index);
  the_current_device = index;
}

GeneratorScope::GeneratorScope(c10::ArrayRef<c10::IValue> arguments) {
  for (const c10::IValue& each : arguments) {
    if (!each.isGenerator()) continue;
    generator_ = each.toGenerator();
    if (!generator_.defined()) continue;
    TORCH_CHECK_VALUE(generator_.device().type() == kType, "expected a generator of the device \"",
                      the_kind, "\", got one of ", generator_.device());
    auto* own = generator_.get<Generator>();
    if (own->is_default()) return;
    device_ = device_id(generator_.device().index());
    host().random_get(device_, &seed_, &offset_);
    auto [seed, offset] = own->get();
    host().random_set(device_, seed, offset);
    return;
  }
}

GeneratorScope::~GeneratorScope() {
  if (device_ == TENON_DEVICE_NONE) return;
  uint64_t seed = 0, offset = 0;
  host().random_get(device_, &seed, &offset);
  generator_.get<Generator>()->put(seed, offset);
  host().random_set(device_, seed_, offset_);
}

}  // namespace tenon_torch
