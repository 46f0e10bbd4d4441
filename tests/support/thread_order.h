#pragma once
// In which order the emulator runs the threads and blocks of kernels, and work of several streams.

#include <cstdint>
#include <string>
#include <string_view>

namespace levin::test {

/// Until this goes, an order that belongs to `name`, one out of 1024; 0 is the order of the numbers.
/// LEVIN_EMULATOR_SEED in the environment chooses one for all names. Outside of the emulator the hardware chooses.
class ThreadOrder {
 public:
  explicit ThreadOrder(std::string_view name);
  ~ThreadOrder();
  ThreadOrder(const ThreadOrder&) = delete;
  ThreadOrder& operator=(const ThreadOrder&) = delete;
  /// What somebody needs to run in this order again: " (LEVIN_EMULATOR_SEED=5)"; empty outside of the emulator.
  std::string note() const { return note_; }

 private:
  [[maybe_unused]] std::uint64_t before_ = 0;  ///< of the emulator
  std::string note_;
};

}  // namespace levin::test
