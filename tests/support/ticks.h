#pragma once
// Time as this process has it: how often a thread of it slept for 10 ms. A machine that stands still or runs other
// programs delays the ticks as it delays what is measured.

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
