#pragma once
// While a thread captures work of the CPU (levin/autograd/captured_step.h), kernel calls are kept instead of run, and
// the memory of new tensors comes from the capture's own pool.

#include <levin/core/device.h>
#include <levin/core/intrusive.h>

#include <functional>

namespace levin {

class Storage;

namespace detail {

/// A kernel call with a copy of its arguments in `data`.
struct CapturedCall {
  void (*run)(const void* data, Stream& stream);       ///< calls the kernel's function
  void (*observed)(const void* data, Stream& stream);  ///< calls it through its table, as the observer wants
  const void* data;
};

/// A capture in progress.
class HostCapture {
 public:
  /// Returns memory for a new tensor, 64-byte aligned, which keeps its address as long as the capture or the tensor
  /// lives; `release` is set to what the tensor's storage calls at its end. Throws OutOfMemory.
  virtual void* allocate(std::size_t bytes, std::function<void()>& release) = 0;
  /// Keeps the memory of a tensor that a kernel will use, unless it is the capture's own.
  virtual void keep(const IntrusivePtr<Storage>& storage) = 0;
  /// Returns memory for a call's data, which lives as long as the captured work.
  virtual void* argument_memory(std::size_t bytes, std::size_t alignment) = 0;
  /// Appends a call.
  virtual void add(const CapturedCall& call) = 0;

 protected:
  ~HostCapture() = default;
};

/// The calling thread's capture, null for none.
inline constinit thread_local HostCapture* host_capture = nullptr;

[[noreturn]] void refuse_captured(const char* op, const char* what);

/// Throws StateError while the calling thread captures; `what` says what is not possible, and the remedy.
inline void require_not_captured(const char* op, const char* what) {
  if (host_capture) [[unlikely]] refuse_captured(op, what);
}

}  // namespace detail
}  // namespace levin
