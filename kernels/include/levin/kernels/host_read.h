#pragma once
// Reads numbers from a device asynchronously: the host does not wait until it asks for the value.

#include <levin/core/tensor.h>

#include <memory>

namespace levin {

/// One number on its way from a device to the host. A number of a CPU tensor is ready at once; a CUDA device copies it
/// to page-locked memory in stream order; on other devices, value() waits and reads it. Copies of a HostRead share one
/// read.
class HostRead {
 public:
  /// Holds a number that is known already.
  explicit HostRead(double value) : value_(value) {}
  /// Queues the copy on the current stream. Throws ShapeError unless the tensor has one element. Must not be used
  /// during capture.
  explicit HostRead(const Tensor& number);

  /// True if the number has arrived; never waits.
  bool ready() const { return !pending_ || pending_->ready(); }
  /// Returns the number; waits unless ready().
  double value() const;

  /// The device's part of a read.
  struct Pending {
    virtual ~Pending() = default;
    virtual bool ready() = 0;                               ///< never waits
    virtual void copy_to(void* to, std::size_t bytes) = 0;  ///< waits unless ready
  };

 private:
  double value_ = 0;
  DType dtype_ = DType::f64;
  std::shared_ptr<Pending> pending_;
};

}  // namespace levin
