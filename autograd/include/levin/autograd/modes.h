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

inline bool grad_enabled() { return detail::autograd_modes.grad; }
inline bool inference_enabled() { return detail::autograd_modes.inference; }
inline bool anomaly_enabled() { return detail::autograd_modes.anomaly; }

/// Sets all switches for a scope and restores the previous ones afterwards. Base of the guards below.
class ModeGuard {
 public:
  explicit ModeGuard(detail::AutogradModes modes) : before_(detail::autograd_modes) { set(modes); }
  ~ModeGuard() { set(before_); }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 protected:
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
  explicit GradMode(bool on) : ModeGuard({on, current().inference, current().anomaly}) {}
};

/// Nothing is recorded in this scope: `no_grad guard;`
struct no_grad : ModeGuard {
  no_grad() : ModeGuard({false, current().inference, current().anomaly}) {}
};

struct enable_grad : ModeGuard {
  enable_grad() : ModeGuard({true, current().inference, current().anomaly}) {}
};

/// Nothing is recorded and the tensors made here can never take part in recording; cheaper than no_grad.
struct inference_mode : ModeGuard {
  explicit inference_mode(bool on = true)
      : ModeGuard({on ? false : current().grad, on, current().anomaly}) {}
};

/// Makes backward check every gradient for NaN and name the forward operation that produced it.
struct detect_anomaly : ModeGuard {
  explicit detect_anomaly(bool on = true) : ModeGuard({current().grad, current().inference, on}) {}
};

}  // namespace levin
