#include <levin/autograd/checkpoint.h>

#include "errors.h"

#include <levin/autograd/autocast.h>
#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/core/generator.h>

#include <vector>

namespace levin::detail {

struct CheckpointedCall::Frame : std::enable_shared_from_this<Frame> {
  std::function<void()> run_again;
  bool preserve_rng_state = true;
  GeneratorState random{};       ///< before the first run
  AutocastState autocast{};      ///< of the first run
  std::size_t saved = 0;         ///< tensors that the first run saved
  std::vector<Tensor> computed;  ///< of the second run; empty between backward passes

  Tensor tensor(std::size_t i) {
    if (computed.empty()) compute();
    return computed[i];
  }

 private:
  void compute() {
    Generator& generator = default_generator();
    const GeneratorState now = generator.state();
    const AutocastState outer = std::exchange(autocast_state, autocast);
    if (preserve_rng_state) generator.set_state(random);
    std::vector<Tensor> list;
    const auto restore = [&] {
      autocast_state = outer;
      if (preserve_rng_state) generator.set_state(now);
    };
    try {
      enable_grad guard;
      saved_tensors_hooks hooks(
          [&list](const Tensor& x) -> std::any {
            list.push_back(x.detach());
            return {};
          },
          [](const std::any&) -> Tensor {
            throw GradError("[checkpoint] the function must not call backward on what it computes.");
          });
      run_again();
    } catch (...) {
      restore();
      throw;
    }
    restore();
    if (list.size() != saved)
      fail<GradError>(
          "[checkpoint] the second run saved {} tensors, the first one {}; the function must compute the same both "
          "times.",
          list.size(), saved);
    computed = std::move(list);
    const auto forget = [frame = shared_from_this()] { frame->computed.clear(); };
    on_backward_end(forget, forget);
  }
};

CheckpointedCall::CheckpointedCall(std::function<void()> run_again, bool preserve_rng_state)
    : frame_(std::make_shared<Frame>()) {
  frame_->run_again = std::move(run_again);
  frame_->preserve_rng_state = preserve_rng_state;
}

void CheckpointedCall::run(const std::function<void()>& forward) const {
  frame_->random = default_generator().state();
  frame_->autocast = autocast_state;
  saved_tensors_hooks hooks(
      [frame = frame_](const Tensor&) -> std::any { return frame->saved++; },
      [frame = frame_](const std::any& number) { return frame->tensor(std::any_cast<std::size_t>(number)); });
  forward();
}

}  // namespace levin::detail
