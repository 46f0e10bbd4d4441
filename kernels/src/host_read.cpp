#include "kernels/src/host_read.h"

#include <levin/core/error.h>

#include <fmt/format.h>

#include <cstring>

namespace levin {

namespace {

/// Used for devices without asynchronous copies.
struct ReadLater final : HostRead::Pending {
  explicit ReadLater(const Tensor& t) : tensor(t) {}
  bool ready() override { return false; }
  void copy_to(void* to, std::size_t bytes) override {
    Stream stream = current_stream(tensor.device());
    device_backend(tensor.device()).copy(to, kCpu, tensor.raw_data(), tensor.device(), bytes, stream);
  }
  Tensor tensor;
};

}  // namespace

HostRead::HostRead(const Tensor& number) : dtype_(number.dtype()) {
  if (number.numel() != 1)
    throw ShapeError(fmt::format("[HostRead] the tensor is {}. Read one number at a time.", to_string(number.sizes())));
  if (number.device() == kCpu) {
    value_ = number.item<double>();
    return;
  }
  pending_ = kernels::begin_host_read(number, static_cast<std::size_t>(size_of(dtype_)));
  if (!pending_) pending_ = std::make_shared<ReadLater>(number);
}

double HostRead::value() const {
  if (!pending_) return value_;
  alignas(16) std::byte bytes[16] = {};
  pending_->copy_to(bytes, static_cast<std::size_t>(size_of(dtype_)));
  return dispatch_all(dtype_, "HostRead", [&]<class T>() {
    T number;
    std::memcpy(&number, bytes, sizeof(T));
    return static_cast<double>(number);
  });
}

}  // namespace levin
