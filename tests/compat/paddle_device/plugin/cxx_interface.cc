// SPDX-License-Identifier: Apache-2.0
// As a plugin of the C++ interface is: it needs a function of the framework's own classes.
namespace phi {
class CustomContext {
 public:
  void Wait() const;
};
}  // namespace phi

extern "C" __attribute__((visibility("default"))) void InitPlugin(void*) {
  phi::CustomContext().Wait();
}
