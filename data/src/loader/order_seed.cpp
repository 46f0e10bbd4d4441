#include <levin/core/rank_stream.h>
#include <levin/data/order_seed.h>

#include <mutex>
#include <optional>

namespace levin::data {

std::uint64_t draw_seed() {
  Generator common;
  common.set_state(of_rank(default_generator().reserve(1), 0));
  return common.next_u64();
}

struct OrderSeed::State {
  std::mutex mutex;
  std::optional<std::uint64_t> value;
  bool given = false;
  bool draws = true;
};

OrderSeed::OrderSeed() : state_(std::make_shared<State>()) {}

OrderSeed::OrderSeed(std::uint64_t seed) : OrderSeed() {
  state_->value = seed;
  state_->given = true;
}

OrderSeed OrderSeed::of_default_generator() {
  OrderSeed seed;
  seed.state_->draws = false;
  return seed;
}

std::uint64_t OrderSeed::value() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->value) state_->value = state_->draws ? draw_seed() : default_generator().seed();
  return *state_->value;
}

void OrderSeed::assign(std::uint64_t seed) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->given) state_->value = seed;
}

}  // namespace levin::data
