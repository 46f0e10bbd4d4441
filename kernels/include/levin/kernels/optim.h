#pragma once
// Contracts of the optimizers' steps. One call updates all tensors of a parameter group, so that many small tensors
// cost no more than one large one.
//
// The step number and the learning rate may be read from device memory, so that a captured step keeps counting and
// follows schedules. The values that depend on them (pow(beta, step) and lr * weight_decay, in double) are computed
// where the step runs, wherever they come from: a captured step gives the same bits as one that is not captured.

#include <levin/kernels/kernel.h>

#include <bit>
#include <span>

namespace levin::kernels {

/// One parameter with its gradient and state; all are contiguous, of one floating dtype (16-bit ones compute in f32)
/// and without overlap.
struct OptimTensor {
  void* param = nullptr;       ///< values, which the step changes
  const void* grad = nullptr;  ///< gradient, which it only reads
  /// The optimizer's slots 0, 1 and 2, in the contract's order.
  void *first = nullptr, *second = nullptr, *third = nullptr;
  int64_t numel = 0;           ///< number of elements of each
  DType dtype = DType::f32;    ///< type of all of them
  double step = 2.0;        ///< number of this step, starting at 1
  double* count = nullptr;  ///< on the stream's device: number of steps so far; replaces `step`, and the step adds 1
  bool fresh = false;       ///< the slots are not initialised yet
};
inline constexpr int kOptimSlots = 3;  ///< largest number of slots of a parameter

/// Loss-scaling state that only the stream's device knows; null if there is none.
struct StepGuard {
  const float* found_inf = nullptr;  ///< if not 0, the step changes nothing
  const float* skipped = nullptr;    ///< number of earlier steps that changed nothing; subtracted from a host `step`
};

/// Returns the minimum work of a step of `flops` per element: the parameters and the slots in use (one bit each)
/// are read and written once, the gradients are read.
inline Work optimizer_work(std::span<const OptimTensor> tensors, unsigned slots, double flops) {
  const double passes = 3 + 2 * std::popcount(slots);
  Work w;
  for (const auto& t : tensors) {
    w.dtype = t.dtype;
    w.bytes += passes * static_cast<double>(t.numel) * static_cast<double>(size_of(t.dtype));
    w.flops += flops * static_cast<double>(t.numel);
  }
  return w;
}

// Each contract states the formula, the hyperparameters and the slots: bit i of slots() is set if the step uses slot i;
// other slots may be null. kSlotSets lists the values of slots().

/// Stochastic gradient descent, with momentum and Nesterov's form of it (Sutskever et al. 2013):
///
///   g = grad (-grad to maximize) + weight_decay * param
///   buffer = fresh or step is 1 ? g : momentum * buffer + (1 - dampening) * g
///   g = nesterov ? g + momentum * buffer : buffer
///   param -= lr * g
///
/// Slots: momentum_buffer, with momentum.
struct SgdStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-3, momentum = 0.0, dampening = 0.0, weight_decay = 0.0;
  bool nesterov = false, maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b0, 0b1};
  unsigned slots() const { return kSlotSets[momentum != 0]; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), momentum != 0 ? 6 : 4); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const SgdStepArgs&, Stream&)> sgd_step;

/// Adam (Kingma & Ba 2015), AdamW with `decoupled` (Loshchilov & Hutter 2019), and AMSGrad (Reddi et al. 2018):
///
///   g = grad (-grad to maximize); decoupled: param *= 1 - lr * weight_decay, else g += weight_decay * param
///   m += (1 - beta1) (g - m);   v = beta2 v + (1 - beta2) g^2;   w = amsgrad ? max(most, v) : v
///   param -= lr / (1 - beta1^step) * m / (sqrt(w / (1 - beta2^step)) + eps)
///
/// Slots: m = exp_avg, v = exp_avg_sq, and with amsgrad max_exp_avg_sq.
struct AdamStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
  bool decoupled = false, amsgrad = false, maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b011, 0b111};
  unsigned slots() const { return kSlotSets[amsgrad]; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 15); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const AdamStepArgs&, Stream&)> adam_step;

/// RMSprop (Tieleman & Hinton 2012), centered by Graves 2013:
///
///   g = grad (-grad to maximize) + weight_decay * param
///   v = alpha v + (1 - alpha) g^2;   centered: m += (1 - alpha) (g - m), w = v - m^2, else w = v
///   d = g / (sqrt(w) + eps);   with momentum: buffer = momentum * buffer + d, d = buffer
///   param -= lr * d
///
/// w is clamped at 0, because rounding can make it negative. Slots: v = square_avg, with momentum momentum_buffer,
/// centered m = grad_avg.
struct RmspropStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0.0, momentum = 0.0;
  bool centered = false, maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b001, 0b011, 0b101, 0b111};
  unsigned slots() const { return 0b001u | (momentum != 0 ? 0b010u : 0u) | (centered ? 0b100u : 0u); }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 8 + (momentum != 0) * 2 + centered * 5); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const RmspropStepArgs&, Stream&)> rmsprop_step;

/// Adagrad (Duchi, Hazan & Singer 2011):
///
///   g = grad (-grad to maximize) + weight_decay * param
///   sum += g^2
///   param -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + eps)
///
/// Slots: sum.
struct AdagradStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-2, lr_decay = 0.0, eps = 1e-10, weight_decay = 0.0;
  bool maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b1};
  unsigned slots() const { return 0b1; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 7); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const AdagradStepArgs&, Stream&)> adagrad_step;

/// Adadelta (Zeiler 2012):
///
///   g = grad (-grad to maximize) + weight_decay * param
///   v = rho v + (1 - rho) g^2;   d = sqrt(u + eps) / sqrt(v + eps) * g;   u = rho u + (1 - rho) d^2
///   param -= lr * d
///
/// Slots: v = square_avg, u = acc_delta.
struct AdadeltaStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1.0, rho = 0.9, eps = 1e-6, weight_decay = 0.0;
  bool maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b11};
  unsigned slots() const { return 0b11; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 14); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const AdadeltaStepArgs&, Stream&)> adadelta_step;

/// Adamax (Kingma & Ba 2015, section 7.1):
///
///   g = grad (-grad to maximize) + weight_decay * param
///   m += (1 - beta1) (g - m);   u = max(beta2 u, |g| + eps)
///   param -= lr / (1 - beta1^step) * m / u
///
/// Slots: m = exp_avg, u = exp_inf.
struct AdamaxStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
  bool maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b11};
  unsigned slots() const { return 0b11; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 10); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const AdamaxStepArgs&, Stream&)> adamax_step;

/// RAdam (Liu et al. 2020):
///
///   g, m and v as in AdamStepArgs;   r = 2 / (1 - beta2) - 1;   r_t = r - 2 step beta2^step / (1 - beta2^step)
///   r_t > 5: param -= lr sqrt((r_t - 4) (r_t - 2) r / ((r - 4) (r - 2) r_t)) * m / (1 - beta1^step)
///                     * sqrt(1 - beta2^step) / (sqrt(v) + eps)
///   else: param -= lr * m / (1 - beta1^step)
///
/// Slots: m = exp_avg, v = exp_avg_sq.
struct RadamStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
  bool decoupled = false, maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b11};
  unsigned slots() const { return 0b11; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 13); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const RadamStepArgs&, Stream&)> radam_step;

/// Rprop (Riedmiller & Braun 1993):
///
///   g = grad (-grad to maximize);   s = g * last > 0 ? eta_plus : g * last < 0 ? eta_minus : 1
///   size = clamp((fresh or step is 1 ? lr : size) * s, size_min, size_max);   g = s is eta_minus ? 0 : g
///   param -= sign(g) * size;   last = g
///
/// Slots: last = prev, size = step_size.
struct RpropStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-2, eta_minus = 0.5, eta_plus = 1.2, size_min = 1e-6, size_max = 50.0;
  bool maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b11};
  unsigned slots() const { return 0b11; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 9); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const RpropStepArgs&, Stream&)> rprop_step;

/// Averaged stochastic gradient descent (Polyak & Juditsky 1992):
///
///   g = grad (-grad to maximize) + weight_decay * param;   eta = lr / (1 + lambd lr (step - 1))^alpha
///   param = (1 - lambd eta) param - eta g
///   average += (param - average) / max(1, step - 1 - t0), which is param until step t0 + 2
///
/// Slots: average = ax.
struct AsgdStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0.0;
  bool maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b1};
  unsigned slots() const { return 0b1; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 8); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const AsgdStepArgs&, Stream&)> asgd_step;

/// Lion (Chen et al. 2023):
///
///   g = grad (-grad to maximize);   param *= 1 - lr * weight_decay
///   param -= lr * sign(beta1 m + (1 - beta1) g);   m = beta2 m + (1 - beta2) g
///
/// Slots: m = exp_avg.
struct LionStepArgs {
  /// The group's parameters, the hyperparameters of the formula, and the state of loss scaling.
  std::span<const OptimTensor> tensors;
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0;
  bool maximize = false;
  StepGuard guard{};
  const double* lr_at = nullptr;  ///< on the stream's device; replaces lr

  /// The possible slots(), the slots of this call, and its minimum work.
  static constexpr unsigned kSlotSets[] = {0b1};
  unsigned slots() const { return 0b1; }
  Work work(std::string_view) const { return optimizer_work(tensors, slots(), 8); }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const LionStepArgs&, Stream&)> lion_step;

}  // namespace levin::kernels
