#include "support/draw.h"

#include <levin/core/generator.h>

#include <algorithm>

namespace levin::test {

std::uint32_t Draw::word() { return philox(seed_, words_++, number_)[0]; }

void Draw::take(std::uint32_t answer) {
  taken_.push_back(answer);
  if (observe) observe(answer);
}

int64_t Draw::below(int64_t n) {
  const std::uint32_t most = static_cast<std::uint32_t>(std::max<int64_t>(1, n)) - 1;
  std::uint32_t answer = 0;
  if (random_) {
    answer = static_cast<std::uint32_t>(std::uint64_t{word()} * (std::uint64_t{most} + 1) >> 32);
  } else if (taken_.size() < given_.size()) {
    answer = std::min(given_[taken_.size()], most);
  }
  take(answer);
  return answer;
}

bool Draw::chance(int percent) {
  const bool wanted = random_ && static_cast<int>(word() % 100) < percent;
  const bool answer = random_ ? wanted : taken_.size() < given_.size() && given_[taken_.size()] != 0;
  take(answer ? 1 : 0);
  return answer;
}

int64_t Draw::size(int64_t most, bool may_be_empty) {
  if (may_be_empty && chance(3)) return 0;
  if (most > 8 && chance(15)) return between(1, most);
  return between(1, std::min<int64_t>(most, 6));
}

Shape Draw::shape(int least_dims, int most_dims, int64_t elements) {
  if (!at_hand.empty() && chance(60)) {
    const Shape known = of(at_hand);
    if (known.size() >= least_dims && known.size() <= most_dims && known.numel() <= elements) return known;
  }
  const int dims = static_cast<int>(between(least_dims, most_dims));
  Shape sizes;
  for (int d = 0; d < dims; ++d) {
    const int64_t room = elements / std::max<int64_t>(1, sizes.numel());
    sizes.push_back(size(std::max<int64_t>(1, std::min<int64_t>(40, room))));
  }
  return sizes;
}

int64_t Draw::axis(const Shape& shape) {
  const int64_t a = below(shape.size());
  return shape.size() > 0 && chance(25) ? a - shape.size() : a;
}

Shape Draw::axes(const Shape& shape) {
  Shape result;
  for (int d = 0; d < shape.size(); ++d)
    if (chance(40)) result.push_back(chance(20) ? d - shape.size() : d);
  return result;
}

Shape Draw::broadcasting_to(const Shape& shape) {
  Shape result(shape.begin() + (chance(20) ? below(shape.size() + 1) : 0), shape.end());
  for (int d = 0; d < result.size(); ++d)
    if (chance(20)) result[d] = 1;
  return result;
}

}  // namespace levin::test
