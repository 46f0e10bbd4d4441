#pragma once
// Numbers of a device that the host reads when they have arrived: nobody waits for them meanwhile.

#include <levin/core/tensor.h>

#include <memory>

namespace levin {

/// One number on its way from a device to the host. Of a CPU tensor it is there at once; a CUDA device copies it to
/// page-locked memory when its stream comes to that; other devices are read, and waited for, by value(). Copies of a
/// HostRead are the same one.
class HostRead {
 public:
  explicit HostRead(double value) : value_(value) {}
  /// Queues the copy on the current stream. Throws ShapeError unless the tensor has one element. Not for captures.
  explicit HostRead(const Tensor& number);

  /// Whether the number is there; never waits.
  bool ready() const { return !pending_ || pending_->ready(); }
  /// The number; waits unless ready().
  double value() const;

  /// The device's side of a read.
  struct Pending {
    virtual ~Pending() = default;
    virtual bool ready() = 0;
    virtual void copy_to(void* to, std::size_t bytes) = 0;  ///< waits unless ready
  };

 private:
  double value_ = 0;
  DType dtype_ = DType::f64;
  std::shared_ptr<Pending> pending_;
};

}  // namespace levin
