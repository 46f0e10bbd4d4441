#pragma once
// Sets the order in which the emulator runs the threads and blocks of kernels, and the work of several streams.

#include <cstdint>
#include <string>
#include <string_view>

namespace levin::test {

/// Sets for its lifetime an order that depends on `name`, one of 1024; 0 is the order by number. LEVIN_EMULATOR_SEED in
/// the environment sets one for all names. Outside of the emulator the hardware decides.
class ThreadOrder {
 public:
  explicit ThreadOrder(std::string_view name);
  ~ThreadOrder();
  ThreadOrder(const ThreadOrder&) = delete;
  ThreadOrder& operator=(const ThreadOrder&) = delete;
  /// Returns the information to repeat this order: " (LEVIN_EMULATOR_SEED=5)"; empty outside of the emulator.
  std::string note() const { return note_; }

 private:
  [[maybe_unused]] std::uint64_t before_ = 0;  ///< the emulator's previous seed
  std::string note_;
};

}  // namespace levin::test
