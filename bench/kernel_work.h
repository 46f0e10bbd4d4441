#pragma once

#include <levin/kernels/kernel.h>

namespace levin::bench {

/// Adds up the work of the kernels that run while it lives, by their contracts.
class KernelWork final : public kernels::KernelObserver {
 public:
  KernelWork() : previous_(kernels::set_observer(this)) {}
  ~KernelWork() override { kernels::set_observer(previous_); }
  KernelWork(const KernelWork&) = delete;
  KernelWork& operator=(const KernelWork&) = delete;
  void called(const char*, Device) override { ++calls; }
  void returned(const char*, const std::type_info&, const void*, const kernels::Work& work, const Stream&) override {
    bytes += work.bytes;
    flops += work.flops;
  }
  int calls = 0;
  double bytes = 0, flops = 0;

 private:
  kernels::KernelObserver* previous_;
};

}  // namespace levin::bench
