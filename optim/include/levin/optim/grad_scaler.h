#pragma once
// Dynamic loss scaling, with PyTorch's defaults and semantics.

#include <levin/core/state_dict.h>
#include <levin/kernels/host_read.h>
#include <levin/optim/optimizer.h>

#include <deque>

namespace levin {

/// Options of GradScaler, with PyTorch's defaults. PyTorch has neither min_scale nor max_skips.
struct GradScalerOptions {
  double init_scale = 65536.0;  ///< scale before the first update; above 0
  double growth_factor = 2.0;   ///< factor of the scale after growth_interval good steps; above 1
  double backoff_factor = 0.5;  ///< factor of the scale after a skipped step; between 0 and 1
  int growth_interval = 2000;   ///< consecutive good steps after which the scale grows
  bool enabled = true;          ///< false: scale() returns the loss and step() just steps
  double min_scale = 1.0;       ///< lower bound of the scale; 0: no bound
  int max_skips = 20;           ///< consecutive skipped steps after which update() throws LossDiverged; 0: never
};

/// Scales the loss so that small float16 gradients do not underflow, and skips steps whose gradients overflowed:
///
///   scaler.scale(loss).backward();
///   scaler.unscale_(opt);  // only if gradients are clipped or read
///   scaler.step(opt);
///   scaler.update();
///
/// The scale, the growth tracker and found_inf stay on the parameters' device, and a good step never waits for them.
/// Each update starts a copy of the number of consecutive skipped steps to the host, and reads the copies that have
/// arrived. Once that number reaches half of max_skips, updates wait for their copies, so that LossDiverged is thrown
/// at the step that reaches max_skips; if the host runs more than max_skips / 2 steps ahead of the device, it is thrown
/// that much later. Replays of a captured graph are not checked. Micikevicius et al. 2018, "Mixed precision training".
class GradScaler {
 public:
  using Options = GradScalerOptions;
  /// Throws ValueError for options out of range.
  explicit GradScaler(const Options& options = {});

  /// Returns loss * scale, differentiable, of the loss's shape; the loss itself when disabled. The state moves to the
  /// loss's device.
  Tensor scale(const Tensor& loss);
  std::vector<Tensor> scale(const std::vector<Tensor>& losses);
  /// Divides the gradients of the optimizer's parameters by the scale, at most once between updates. Throws GradError
  /// when called twice, after step() or when no parameter has a gradient; ValueError for float16 gradients; DeviceError
  /// for parameters on several devices.
  void unscale_(optim::Optimizer& optimizer);
  /// Calls unscale_() if that was not done, then steps the optimizer unless a gradient is infinite or NaN. Throws what
  /// unscale_() throws, and GradError when called twice between updates.
  void step(optim::Optimizer& optimizer);
  /// Multiplies the scale by backoff_factor if a gradient since the last update was not finite, or by growth_factor
  /// after growth_interval updates in a row without that. To be called after the steps of all optimizers. Throws
  /// LossDiverged (see max_skips), which names the first parameter whose gradient is not finite, and GradError when
  /// nothing was unscaled.
  void update();
  /// Divides the gradients of these parameters by the scale, for loops that decide about the step themselves. Returns
  /// one float32 on their device for Optimizer::step_unless(), nonzero if a gradient is infinite or NaN; undefined when
  /// disabled or when there is no gradient. Call update_with() after the step, with the value that all processes agreed
  /// on (one element; undefined counts as 0); it acts as update() does.
  Tensor unscale_(const std::vector<Parameter>& parameters);
  void update_with(const Tensor& found_inf);
  /// Sets the scale and ends the step without looking at its gradients; the growth tracker is unchanged. Throws
  /// ValueError unless the scale is above 0.
  void update(double new_scale);

  /// True if a gradient of this optimizer was infinite or NaN since the last update; waits for the device.
  bool found_inf(const optim::Optimizer& optimizer) const;
  /// Returns the scale (1 when disabled), and the number of good steps since it last changed; both wait for the device.
  double get_scale() const;
  int get_growth_tracker() const;
  /// False if the option `enabled` was false: then nothing is scaled or skipped.
  bool is_enabled() const { return options_.enabled; }

  /// Returns scale, growth_factor, backoff_factor, growth_interval and _growth_tracker, as PyTorch names them; empty
  /// when disabled.
  StateDict state_dict() const;
  /// Loads the entries of state_dict(); throws StateError if one is missing.
  void load_state_dict(const StateDict& state);

 private:
  enum class Stage { ready, unscaled, stepped };
  struct Seen {
    const optim::Optimizer* optimizer;  ///< null for parameters given without an optimizer
    std::vector<Parameter> parameters;
    Stage stage = Stage::ready;
    Tensor found_inf{};
    std::string first_bad{};  ///< first parameter whose gradient is not finite, if the step may be the last
  };

  Seen& seen(const optim::Optimizer& optimizer);
  void move_to(Device device);
  void unscale(Seen& s);
  bool look_at_skips(bool wait);
  void watch_skips();
  [[noreturn]] void diverged() const;

  Options options_;
  Tensor scale_, tracker_, skips_;   ///< one float32 each
  std::vector<Seen> seen_;           ///< optimizers and parameters seen since the last update
  std::deque<HostRead> skip_reads_;  ///< copies of skips_ after each update that have not arrived
  int known_skips_ = 0;              ///< the latest value that has arrived
};

}  // namespace levin
