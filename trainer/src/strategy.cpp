#include <levin/core/config.h>
#include <levin/kernels/cuda.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <string_view>

namespace levin {
namespace {

/// One process on one device.
class SingleDevice final : public Strategy {
 public:
  explicit SingleDevice(Device device) : device_(device) {}
  std::string name() const override { return "single"; }
  Device device() const override { return device_; }
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void setup(nn::Module& module) override { module.to(device_); }
  Batch to_device(Batch batch) const override {
    for (Tensor& t : batch.tensors) t = t.to(device_);
    return batch;
  }
  void no_sync(bool) override {}
  void finish_reduction() override {}
  double reduce(double value, ReduceOp) override { return value; }
  Tensor reduce(const Tensor& value, ReduceOp) override { return value; }
  void barrier() override {}

 private:
  Device device_;
};

/// Whether "auto" means a GPU: not in the emulator, where it would be the slowest choice.
bool prefers_cuda() { return std::string_view(LEVIN_CUDA_FLAVOUR) == "ON" && cuda::is_available(); }

/// "[1]" is the device with that index, "1", "-1" and "auto" the first one where there is no other.
int device_index(const std::string& devices, int count) {
  if (devices == "auto" || devices == "1" || (devices == "-1" && count == 1)) return 0;
  if (devices.size() >= 3 && devices.front() == '[' && devices.back() == ']') {
    const std::string digits = devices.substr(1, devices.size() - 2);
    if (digits.find_first_not_of("0123456789") == std::string::npos && digits.size() < 4) {
      const int index = std::stoi(digits);
      if (index < count) return index;
    }
  }
  throw UsageError(
      fmt::format("--devices {}: this machine has {} cuda device{} (counted from 0), and a run uses one. "
                  "Use --devices 1, or its index as --devices [0].",
                  devices, count, count == 1 ? "" : "s"));
}

}  // namespace

Device choose_device(const std::string& accelerator, const std::string& devices) {
  if (accelerator == "cuda" || accelerator == "gpu" || (accelerator == "auto" && prefers_cuda())) {
    if (!cuda::is_available())
      throw UsageError(fmt::format("--accelerator {}: {}", accelerator, cuda::why_unavailable()));
    return cuda(device_index(devices, cuda::device_count()));
  }
  if (accelerator != "auto" && accelerator != "cpu")
    throw UsageError(fmt::format("--accelerator {}: there are cpu and cuda. Use one of them, or auto.", accelerator));
  if (devices != "auto" && devices != "1" && devices != "-1")
    throw UsageError(
        fmt::format("--devices {}: a run uses one device here, the CPU. Use --devices 1; "
                    "--threads sets how many cores it takes.",
                    devices));
  return kCpu;
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device) {
  if (name == "auto" || name == "single") return std::make_unique<SingleDevice>(device);
  throw UsageError("--strategy " + name + ": this build has one process on one device. Use --strategy single.");
}

}  // namespace levin
