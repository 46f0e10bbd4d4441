#pragma once
// Gradient checkpointing: trades time for memory (Chen et al. 2016).

#include <levin/autograd/saved_tensors.h>
#include <levin/core/tensor.h>

#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace levin {

namespace detail {

/// A call whose saved tensors are dropped, and which runs again when backward needs the first of them.
class CheckpointedCall {
 public:
  CheckpointedCall(std::function<void()> run_again, bool preserve_rng_state);
  /// Runs `forward` with its saved tensors replaced by their numbers.
  void run(const std::function<void()>& forward) const;

 private:
  struct Frame;
  std::shared_ptr<Frame> frame_;
};

}  // namespace detail

/// Arguments of checkpoint.
struct CheckpointOptions {
  bool preserve_rng_state = true;  ///< the second run draws the numbers of the first one, for dropout
};

/// Calls f(arguments...) without keeping what its operations save; backward calls f a second time to compute them
/// again. f and the arguments are kept (by value) until then; f must compute the same both times, which GradError
/// reports where the number or the sizes of its saved tensors differ. Works with any arguments and results, under
/// autocast, nested, and for gradients of gradients.
///
///   Tensor y = checkpoint([&](const Tensor& x) { return block(x); }, x);
template <class F, class... A>
auto checkpoint(const CheckpointOptions& options, F f, const A&... arguments) {
  using Result = std::invoke_result_t<F&, const A&...>;
  auto call = std::make_shared<std::pair<F, std::tuple<A...>>>(std::move(f), std::tuple<A...>(arguments...));
  detail::CheckpointedCall checkpointed([call] { std::apply(call->first, std::as_const(call->second)); },
                                        options.preserve_rng_state);
  std::optional<Result> result;
  checkpointed.run([&] { result.emplace(std::apply(call->first, std::as_const(call->second))); });
  return Result(std::move(*result));
}
template <class F, class... A>
requires(!std::is_same_v<std::remove_cvref_t<F>, CheckpointOptions>) auto checkpoint(F f, const A&... arguments) {
  return checkpoint(CheckpointOptions{}, std::move(f), arguments...);
}

}  // namespace levin
