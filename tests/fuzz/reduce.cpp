#include "fuzz/reduce.h"

#include <algorithm>

namespace levin::fuzz {

namespace {

using Choices = test::Draw::Choices;

class Reducer {
 public:
  Reducer(Choices failing, const Fails& fails, int attempts)
      : best_(std::move(failing)), fails_(fails), attempts_(attempts) {}

  Choices run() {
    bool better = true;
    while (better && attempts_ > 0) {
      better = false;
      for (const std::size_t length : {64, 16, 8, 4, 2, 1}) better |= blocks(length);
      better |= numbers();
      if (!better) better = parts();
    }
    return best_;
  }

 private:
  bool accept(Choices candidate) {
    while (!candidate.empty() && candidate.back() == 0) candidate.pop_back();  // missing choices are 0
    const bool simpler = candidate.size() < best_.size() || (candidate.size() == best_.size() && candidate < best_);
    if (!simpler || attempts_-- <= 0 || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  /// Removes blocks, or sets them to 0.
  bool blocks(std::size_t length) {
    bool better = false;
    for (std::size_t at = best_.size(); at-- > 0 && attempts_ > 0;) {
      if (at + length > best_.size()) continue;
      const auto begin = static_cast<std::ptrdiff_t>(at), end = static_cast<std::ptrdiff_t>(at + length);
      Choices shorter = best_;
      shorter.erase(shorter.begin() + begin, shorter.begin() + end);
      if (accept(std::move(shorter))) {
        better = true;
        continue;
      }
      Choices zeros = best_;
      std::fill(zeros.begin() + begin, zeros.begin() + end, 0u);
      if (zeros != best_) better |= accept(std::move(zeros));
    }
    return better;
  }

  /// Halves single choices, then counts them down.
  bool numbers() {
    bool better = false;
    for (std::size_t at = 0; at < best_.size() && attempts_ > 0; ++at)
      for (bool smaller = true; smaller && at < best_.size() && best_[at] > 0;) {
        smaller = false;
        for (const std::uint32_t v : {best_[at] / 2, best_[at] - 1}) {
          Choices candidate = best_;
          candidate[at] = v;
          if (accept(std::move(candidate))) {
            smaller = better = true;
            break;
          }
        }
      }
    return better;
  }

  /// Counts one of the first choices down, which may be a number of parts, and removes a block for the part that is
  /// gone.
  bool parts() {
    constexpr std::size_t kCounts = 4, kLongest = 8;
    for (std::size_t count = 0; count < kCounts && count < best_.size(); ++count)
      for (std::size_t length = 1; best_[count] > 0 && length <= kLongest; ++length)
        for (std::size_t at = count + 1; at + length <= best_.size() && attempts_ > 0; ++at) {
          Choices fewer = best_;
          --fewer[count];
          const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
          fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(length));
          if (accept(std::move(fewer))) return true;
        }
    return false;
  }

  Choices best_;
  const Fails& fails_;
  int attempts_;
};

}  // namespace

Choices reduced(Choices failing, const Fails& fails, int attempts) {
  return Reducer(std::move(failing), fails, attempts).run();
}

}  // namespace levin::fuzz
