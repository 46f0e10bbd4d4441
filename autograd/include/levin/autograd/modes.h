#pragma once
// Thread-local switches of recording.

#include <levin/core/tensor.h>

namespace levin {

namespace detail {
struct AutogradModes {
  bool grad = true;
  bool inference = false;
  bool anomaly = false;
};
inline constinit thread_local AutogradModes autograd_modes{};
}  // namespace detail

/// True if the calling thread records operations.
inline bool grad_enabled() { return detail::autograd_modes.grad; }
/// True if the calling thread is under inference_mode, or under detect_anomaly.
inline bool inference_enabled() { return detail::autograd_modes.inference; }
inline bool anomaly_enabled() { return detail::autograd_modes.anomaly; }

/// Sets all switches for a scope and restores the previous ones afterwards. Base of the guards below.
class ModeGuard {
 public:
  /// Sets the switches to `modes`.
  explicit ModeGuard(detail::AutogradModes modes) : before_(detail::autograd_modes) { set(modes); }
  ~ModeGuard() { set(before_); }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 protected:
  /// Returns the switches of the calling thread.
  static detail::AutogradModes current() { return detail::autograd_modes; }

 private:
  static void set(const detail::AutogradModes& modes) {
    detail::autograd_modes = modes;
    detail::inference_mode_on = modes.inference;
  }
  detail::AutogradModes before_;
};

/// Turns recording on or off for a scope: `GradMode off(false);`
struct GradMode : ModeGuard {
  /// Begins the scope.
  explicit GradMode(bool on) : ModeGuard({on, current().inference, current().anomaly}) {}
};

/// Nothing is recorded in this scope: `no_grad guard;`
struct no_grad : ModeGuard {
  no_grad() : ModeGuard({false, current().inference, current().anomaly}) {}
};

/// Operations are recorded in this scope, also inside of a no_grad: `enable_grad guard;`
struct enable_grad : ModeGuard {
  enable_grad() : ModeGuard({true, current().inference, current().anomaly}) {}
};

/// Nothing is recorded, and the tensors made here can never be saved for backward or require grad; cheaper than
/// no_grad.
struct inference_mode : ModeGuard {
  /// Begins the scope; `on` = false ends inference_mode inside of another one.
  explicit inference_mode(bool on = true)
      : ModeGuard({on ? false : current().grad, on, current().anomaly}) {}
};

/// Makes backward check every gradient for NaN; it throws GradError that names the forward operation that produced it.
struct detect_anomaly : ModeGuard {
  /// Begins the scope, which has to enclose the call of backward(); `on` = false turns the check off.
  explicit detect_anomaly(bool on = true) : ModeGuard({current().grad, current().inference, on}) {}
};

}  // namespace levin
