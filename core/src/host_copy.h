#pragma once
// Access of the host to the elements of a tensor on any device.

#include <levin/core/capture/host_capture.h>
#include <levin/core/tensor.h>

#include <vector>

namespace levin::detail {

/// Refers to the memory of a CPU tensor, or copies the memory of a tensor on any other device.
class HostCopy {
 public:
  explicit HostCopy(const Tensor& t) : first_(t.raw_data()) {
    if (t.device() == kCpu) {
      require_not_captured("to_vector", "no values can be read or printed now. Read them after a replay");
      return;
    }
    const Storage& storage = *t.storage();
    bytes_.resize(storage.bytes());
    Stream stream = current_stream(t.device());
    device_backend(t.device()).copy(bytes_.data(), kCpu, storage.data(), t.device(), bytes_.size(), stream);
    first_ = bytes_.data() + t.storage_offset() * size_of(t.dtype());
  }

  /// Returns a pointer to the element with index zero on every axis.
  const void* first() const { return first_; }

 private:
  std::vector<std::byte> bytes_;
  const void* first_;
};

}  // namespace levin::detail
