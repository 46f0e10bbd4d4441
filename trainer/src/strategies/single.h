#pragma once

#include <levin/trainer/strategy.h>

namespace levin {

/// One process on one device.
class SingleDevice : public Strategy {
 public:
  explicit SingleDevice(Device device) : Strategy(device) {}
  std::string name() const override { return "single"; }
  void setup(nn::Module& module) override { module.to(device()); }
  void reduce_in_backward(const std::vector<Parameter>&) override {}
  void finish_reduction(const std::vector<Parameter>&) override {}
};

}  // namespace levin
