#pragma once
// Dynamic loss scaling, with PyTorch's defaults and semantics.

#include <levin/core/state_dict.h>
#include <levin/kernels/host_read.h>
#include <levin/optim/optimizer.h>

#include <deque>

namespace levin {

struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;   ///< above 1
  double backoff_factor = 0.5;  ///< between 0 and 1
  int growth_interval = 2000;   ///< good steps after which the scale grows
  bool enabled = true;          ///< false: scale() and step() do nothing of their own
  double min_scale = 1.0;       ///< the scale never falls below; 0: no floor
  int max_skips = 20;           ///< skipped steps in a row after which update() throws LossDiverged; 0: never
};

/// Multiplies the loss so that small float16 gradients don't vanish, and skips steps whose gradients overflowed:
///
///   scaler.scale(loss).backward();
///   scaler.unscale_(opt);  // where gradients are clipped or looked at
///   scaler.step(opt);
///   scaler.update();
///
/// Scale, growth tracker and what was found stay on the parameters' device, and a good step never waits for them. Each
/// update sends the host the number of steps skipped in a row, and looks at those numbers that have arrived. Once half
/// of max_skips is seen, updates wait for their numbers, so that LossDiverged comes with the step that is the last
/// straw; where the host runs more than max_skips / 2 steps ahead of the device, it comes that much later. Replays of
/// a captured graph are not looked at. Micikevicius et al. 2018, "Mixed precision training".
class GradScaler {
 public:
  using Options = GradScalerOptions;
  /// Throws ValueError for factors out of range.
  explicit GradScaler(const Options& options = {});

  /// loss * scale, differentiable; the loss itself when disabled.
  Tensor scale(const Tensor& loss);
  std::vector<Tensor> scale(const std::vector<Tensor>& losses);
  /// Divides the gradients of the optimizer's parameters by the scale, once between updates. Throws GradError when
  /// called twice or after step(), ValueError for float16 gradients.
  void unscale_(optim::Optimizer& optimizer);
  /// unscale_() where that was not done, then the optimizer's step unless a gradient is infinite or NaN. Throws
  /// GradError when called twice between updates or when no parameter has a gradient.
  void step(optim::Optimizer& optimizer);
  /// After all optimizers' steps: grows or shrinks the scale. Throws LossDiverged (see max_skips), naming the first
  /// parameter whose gradient is not finite.
  void update();
  /// For loops that decide about the step themselves: divides these gradients by the scale. One float32 on their device
  /// comes back, not 0 where a gradient is infinite or NaN, for Optimizer::step_unless(); undefined when disabled or
  /// without any gradient. Then update_with(), with what all processes agreed on.
  Tensor unscale_(const std::vector<Parameter>& parameters);
  void update_with(const Tensor& found_inf);
  /// Sets the scale; the growth tracker goes on.
  void update(double new_scale);

  /// Whether a gradient of this optimizer was infinite or NaN since the last update; reads it from the device.
  bool found_inf(const optim::Optimizer& optimizer) const;
  double get_scale() const;
  int get_growth_tracker() const;
  bool is_enabled() const { return options_.enabled; }

  /// scale, growth_factor, backoff_factor, growth_interval, _growth_tracker, as PyTorch names them; empty when
  /// disabled.
  StateDict state_dict() const;
  /// Throws StateError where an entry is absent.
  void load_state_dict(const StateDict& state);

 private:
  enum class Stage { ready, unscaled, stepped };
  struct Seen {
    const optim::Optimizer* optimizer;  ///< null for parameters given by themselves
    std::vector<Parameter> parameters;
    Stage stage = Stage::ready;
    Tensor found_inf{};
    std::string first_bad{};  ///< of a step that may be the last: the parameter whose gradient is not finite
  };

  Seen& seen(const optim::Optimizer& optimizer);
  void move_to(Device device);
  void unscale(Seen& s);
  bool look_at_skips(bool wait);
  void watch_skips();
  [[noreturn]] void diverged() const;

  Options options_;
  Tensor scale_, tracker_, skips_;  ///< one float32 each
  std::vector<Seen> seen_;          ///< since the last update
  std::deque<HostRead> skip_reads_;  ///< of skips_ after each update, as far as they have not arrived
  int known_skips_ = 0;              ///< the newest that has arrived
};

}  // namespace levin
