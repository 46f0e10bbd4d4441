#pragma once
// Seeds of samplers, loaders and splits that were given none: they come from the default generator, so that manual_seed
// reaches them.

#include <cstdint>
#include <memory>

namespace levin::data {

/// Draws a seed from the default generator; uses one counter. Ranks with the same manual_seed that have drawn equally
/// often get the same seed, although their other random numbers differ.
std::uint64_t draw_seed();

/// The seed of an order. Copies share it: a sampler and its copy, or the shares of a loader, have one order.
class OrderSeed {
 public:
  /// A seed that is drawn (see draw_seed) when it is first asked for.
  OrderSeed();
  /// A seed that is given, which assign() does not replace.
  OrderSeed(std::uint64_t seed);  // NOLINT: implicit
  /// The seed of the default generator when it is first asked for, which draws nothing. For loaders without an order of
  /// their own, so that they leave all other random numbers as they are.
  static OrderSeed of_default_generator();

  /// Returns the seed, which is drawn at the first call. Threads may call it at the same time.
  std::uint64_t value() const;
  /// Replaces a seed that was not given to the constructor: by that of a checkpoint, or of rank zero.
  void assign(std::uint64_t seed) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace levin::data
