#pragma once
// An operation is one explicit typed table: a column a device type, filled where the operation is defined.
//
//   extern constinit Kernel<void(const SoftmaxArgs&, Stream&)> softmax;      // contract header
//   constinit Kernel<void(const SoftmaxArgs&, Stream&)> softmax{"softmax", cpu::softmax};   // one source
//   softmax(args, stream);                                                  // the stream's device chooses the column

#include <levin/core/tensor_view.h>

#include <atomic>

namespace levin::kernels {

/// Told of every kernel call: the profiler counts with it, tests learn which tables were exercised.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  virtual void called(const char* kernel, Device device) = 0;
};

/// Sets the process's observer, null for none; returns the former one.
KernelObserver* set_observer(KernelObserver* observer);

namespace detail {
extern std::atomic<KernelObserver*> observer;
[[noreturn]] void missing(const char* kernel, Device device);
}  // namespace detail

template <class Signature>
class Kernel;

template <class Args>
class Kernel<void(const Args&, Stream&)> {
 public:
  using Function = void (*)(const Args&, Stream&);

  constexpr Kernel(const char* name, Function cpu, Function cuda = nullptr)
      : name_(name), columns_{cpu, cuda, nullptr, nullptr} {}

  /// Runs the column of the stream's device; throws DeviceError when it is empty.
  void operator()(const Args& args, Stream& stream) const {
    const Function f = columns_[static_cast<int>(stream.device().type)];
    if (!f) detail::missing(name_, stream.device());
    if (KernelObserver* o = detail::observer.load(std::memory_order_relaxed)) o->called(name_, stream.device());
    f(args, stream);
  }

  /// Fills a column, for accelerators built out of tree.
  void set(DeviceType type, Function f) { columns_[static_cast<int>(type)] = f; }
  bool has(DeviceType type) const { return columns_[static_cast<int>(type)] != nullptr; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  Function columns_[kDeviceTypeCount];
};

}  // namespace levin::kernels
