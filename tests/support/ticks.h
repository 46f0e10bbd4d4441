#pragma once
// Measures time by how often a thread of this process has slept for 10 ms. A machine that is suspended or busy delays
// the ticks as it delays the measured code.

#include <atomic>
#include <chrono>
#include <thread>

namespace levin::test {

/// Counts from its construction on.
class Ticks {
 public:
  static constexpr int kPerSecond = 100;

  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++count_) std::this_thread::sleep_for(std::chrono::milliseconds(1000 / kPerSecond));
  }};
};

}  // namespace levin::test
