// The fused optimizer steps as functions of (parameter, gradient, state...) that return the new parameter and state.

#include "cases/cases.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/optim.h>

#include <algorithm>
#include <cmath>

namespace levin::test {

namespace {

using kernels::AdagradStepArgs;
using kernels::AdamStepArgs;
using kernels::RmspropStepArgs;
using kernels::SgdStepArgs;

constexpr double kStep = 3;  // at the third step the bias corrections are neither 0 nor 1

kernels::OptimTensor tensor_of(const Tensors& x) {
  kernels::OptimTensor t;
  t.param = x[0].raw_data();
  t.grad = x[1].raw_data();
  if (x.size() > 2) t.first = x[2].raw_data();
  if (x.size() > 3) t.second = x[3].raw_data();
  if (x.size() > 4) t.third = x[4].raw_data();
  t.numel = x[0].numel();
  t.dtype = x[0].dtype();
  t.step = kStep;
  return t;
}

Tensors without_gradient(const Tensors& x) {
  Tensors result = x;
  result.erase(result.begin() + 1);
  return result;
}

enum class Numbers { host, device };  // the source of the step number and the learning rate

/// Steps a copy of the tensors and returns it.
template <class Args>
Tensors step(const kernels::Kernel<void(const Args&, Stream&)>& kernel, Args a, const Tensors& inputs, Numbers numbers,
             bool fresh = false) {
  const Tensors x = contiguous_copies(inputs);
  kernels::OptimTensor t = tensor_of(x);
  t.fresh = fresh;
  a.tensors = {&t, 1};
  const TensorOptions there{.dtype = DType::f64, .device = x[0].device()};
  const Tensor count = full({}, kStep - 1, there), lr = full({}, a.lr, there);
  if (numbers == Numbers::device) {
    t.count = static_cast<double*>(count.raw_data());
    a.lr_at = static_cast<const double*>(lr.raw_data());
    t.step = a.lr = 1e9;  // must not be read
  }
  Stream stream = current_stream(x[0].device());
  kernel(a, stream);
  return without_gradient(x);
}

TensorFunction sgd(const SgdStepArgs& a, bool fresh = false, Numbers numbers = Numbers::host) {
  return [=](const Tensors& inputs) { return step(kernels::sgd_step, a, inputs, numbers, fresh); };
}

TensorFunction sgd_reference(const SgdStepArgs& a, bool fresh = false) {
  return [=](const Tensors& inputs) -> Tensors {
    const Tensors x = contiguous_copies(inputs);
    for (int64_t i = 0; i < x[0].numel(); ++i) {
      double& p = x[0].data<double>()[i];
      double g = x[1].data<double>()[i] * (a.maximize ? -1 : 1) + (a.weight_decay != 0 ? a.weight_decay * p : 0);
      if (a.momentum != 0) {
        double& buffer = x[2].data<double>()[i];
        buffer = fresh ? g : a.momentum * buffer + (1 - a.dampening) * g;
        g = a.nesterov ? g + a.momentum * buffer : buffer;
      }
      p -= a.lr * g;
    }
    return without_gradient(x);
  };
}

TensorFunction adam(const AdamStepArgs& a, Numbers numbers = Numbers::host) {
  return [=](const Tensors& inputs) { return step(kernels::adam_step, a, inputs, numbers); };
}

TensorFunction adam_reference(const AdamStepArgs& a) {
  return [=](const Tensors& inputs) -> Tensors {
    const Tensors x = contiguous_copies(inputs);
    for (int64_t i = 0; i < x[0].numel(); ++i) {
      double &p = x[0].data<double>()[i], &m = x[2].data<double>()[i], &v = x[3].data<double>()[i];
      double g = x[1].data<double>()[i] * (a.maximize ? -1 : 1);
      if (a.decoupled)
        p *= 1 - a.lr * a.weight_decay;
      else if (a.weight_decay != 0)
        g += a.weight_decay * p;
      m = a.beta1 > 0.5 ? m + (1 - a.beta1) * (g - m) : g - a.beta1 * (g - m);  // like lerp
      v = a.beta2 * v + (1 - a.beta2) * g * g;
      double largest = v;
      if (a.amsgrad) {
        double& w = x[4].data<double>()[i];
        w = largest = std::isnan(v) ? v : std::max(w, v);
      }
      const double corrected = m / (1 - std::pow(a.beta1, kStep));
      p -= a.lr * corrected / (std::sqrt(largest / (1 - std::pow(a.beta2, kStep))) + a.eps);
    }
    return without_gradient(x);
  };
}

TensorFunction rmsprop(const RmspropStepArgs& a, Numbers numbers = Numbers::host) {
  return [=](const Tensors& inputs) { return step(kernels::rmsprop_step, a, inputs, numbers); };
}

TensorFunction rmsprop_reference(const RmspropStepArgs& a) {
  return [=](const Tensors& inputs) -> Tensors {
    const Tensors x = contiguous_copies(inputs);
    for (int64_t i = 0; i < x[0].numel(); ++i) {
      double &p = x[0].data<double>()[i], &v = x[2].data<double>()[i];
      const double g = x[1].data<double>()[i] * (a.maximize ? -1 : 1) + (a.weight_decay != 0 ? a.weight_decay * p : 0);
      v = a.alpha * v + (1 - a.alpha) * g * g;
      double w = v;
      if (a.centered) {
        double& m = x[4].data<double>()[i];
        m = a.alpha > 0.5 ? m + (1 - a.alpha) * (g - m) : g - a.alpha * (g - m);
        w = v - m * m < 0 ? 0.0 : v - m * m;
      }
      double d = g / (std::sqrt(w) + a.eps);
      if (a.momentum != 0) {
        double& buffer = x[3].data<double>()[i];
        d = buffer = a.momentum * buffer + d;
      }
      p -= a.lr * d;
    }
    return without_gradient(x);
  };
}

TensorFunction adagrad(const AdagradStepArgs& a, Numbers numbers = Numbers::host) {
  return [=](const Tensors& inputs) { return step(kernels::adagrad_step, a, inputs, numbers); };
}

TensorFunction adagrad_reference(const AdagradStepArgs& a) {
  return [=](const Tensors& inputs) -> Tensors {
    const Tensors x = contiguous_copies(inputs);
    for (int64_t i = 0; i < x[0].numel(); ++i) {
      double &p = x[0].data<double>()[i], &sum = x[2].data<double>()[i];
      const double g = x[1].data<double>()[i] * (a.maximize ? -1 : 1) + (a.weight_decay != 0 ? a.weight_decay * p : 0);
      sum += g * g;
      p -= a.lr / (1 + (kStep - 1) * a.lr_decay) * g / (std::sqrt(sum) + a.eps);
    }
    return without_gradient(x);
  };
}

/// Applies update(p, g, slots) to each element; g includes the sign and, unless it is decoupled, the weight decay.
template <class Args>
TensorFunction reference_of(const Args& a, double decay,
                            void (*update)(const Args&, double& p, double g, double** slots)) {
  return [=](const Tensors& inputs) -> Tensors {
    const Tensors x = contiguous_copies(inputs);
    for (int64_t i = 0; i < x[0].numel(); ++i) {
      double& p = x[0].data<double>()[i];
      double* slots[kernels::kOptimSlots] = {};
      for (std::size_t k = 2; k < x.size(); ++k) slots[k - 2] = x[k].data<double>() + i;
      const double g = x[1].data<double>()[i] * (a.maximize ? -1 : 1);
      update(a, p, decay == 0 ? g : g + decay * p, slots);
    }
    return without_gradient(x);
  };
}

template <class Args>
TensorFunction stepped(const kernels::Kernel<void(const Args&, Stream&)>& kernel, const Args& a, Numbers numbers,
                       bool fresh = false) {
  return [&kernel, a, numbers, fresh](const Tensors& inputs) { return step(kernel, a, inputs, numbers, fresh); };
}

void adadelta(const kernels::AdadeltaStepArgs& a, double& p, double g, double** s) {
  double &v = *s[0], &u = *s[1];
  v = a.rho * v + (1 - a.rho) * g * g;
  const double d = std::sqrt(u + a.eps) / std::sqrt(v + a.eps) * g;
  u = a.rho * u + (1 - a.rho) * d * d;
  p -= a.lr * d;
}

void adamax(const kernels::AdamaxStepArgs& a, double& p, double g, double** s) {
  double &m = *s[0], &u = *s[1];
  m += (1 - a.beta1) * (g - m);
  u = std::isnan(g) || std::isnan(u) ? NAN : std::max(a.beta2 * u, std::abs(g) + a.eps);
  p -= a.lr / (1 - std::pow(a.beta1, kStep)) * m / u;
}

void radam(const kernels::RadamStepArgs& a, double& p, double g, double** s) {
  double &m = *s[0], &v = *s[1];
  if (a.decoupled) p *= 1 - a.lr * a.weight_decay;
  m += (1 - a.beta1) * (g - m);
  v = a.beta2 * v + (1 - a.beta2) * g * g;
  const double power = std::pow(a.beta2, kStep), last = 2 / (1 - a.beta2) - 1;
  const double length = last - 2 * kStep * power / (1 - power), mean = m / (1 - std::pow(a.beta1, kStep));
  if (length > 5) {
    const double rect = std::sqrt((length - 4) * (length - 2) * last / ((last - 4) * (last - 2) * length));
    p -= a.lr * mean * rect * std::sqrt(1 - power) / (std::sqrt(v) + a.eps);
  } else {
    p -= a.lr * mean;
  }
}

template <bool fresh>
void rprop(const kernels::RpropStepArgs& a, double& p, double g, double** s) {
  double &last = *s[0], &size = *s[1];
  if (fresh) last = 0, size = a.lr;
  size = std::clamp(size * (g * last > 0 ? a.eta_plus : g * last < 0 ? a.eta_minus : 1), a.size_min, a.size_max);
  last = g * last < 0 ? 0 : g;
  p -= last > 0 ? size : last < 0 ? -size : 0;
}

void asgd(const kernels::AsgdStepArgs& a, double& p, double g, double** s) {
  const double eta = a.lr / std::pow(1 + a.lambd * a.lr * (kStep - 1), a.alpha), count = kStep - 1 - a.t0;
  p = (1 - a.lambd * eta) * p - eta * g;
  *s[0] = count > 1 ? *s[0] + (p - *s[0]) / count : p;
}

void lion(const kernels::LionStepArgs& a, double& p, double g, double** s) {
  double& m = *s[0];
  p *= 1 - a.lr * a.weight_decay;
  const double direction = a.beta1 * m + (1 - a.beta1) * g;
  p -= direction > 0 ? a.lr : direction < 0 ? -a.lr : 0;
  m = a.beta2 * m + (1 - a.beta2) * g;
}

using Slots = std::vector<Values>;
const Slots kNoSlots{}, kMomentum{uniform(-1, 1)}, kMoments{uniform(-1, 1), uniform(0.01, 2)},
    kAmsgrad{uniform(-1, 1), uniform(0.01, 2), uniform(0.01, 2)};
// The averages of squares exceed the squares of the averages.
const Slots kSquares{uniform(0.5, 2)}, kRmsprop{uniform(0.5, 2), uniform(-1, 1), uniform(-0.5, 0.5)};

std::vector<Sample> samples(const Slots& slots, std::initializer_list<Shape> shapes) {
  std::vector<Sample> result;
  for (const Shape& shape : shapes) {
    Sample s = sample({shape, shape});
    for (const Values& values : slots) s.inputs.push_back({.sizes = shape, .values = values});
    result.push_back(s);
  }
  return result;
}

OpCase step_case(const std::string& name, const Slots& slots, TensorFunction op, TensorFunction reference) {
  return {.name = name,
          .op = std::move(op),
          .reference = std::move(reference),
          .samples = samples(slots, {{}, {0}, {1}, {31}, {33}, {7, 13}, {1030}}),
          .draw = [slots](Draw& d) { return samples(slots, {d.shape(0, 4, 600)})[0]; },
          .large = samples(slots, {{50001}}),
          .limits = samples(slots, {{16384}, {16385}}),  // a parallel task has 16,384 elements
          .dtypes = kFloatTypes,
          .tolerance = {.ulps = 4, .scale = 2},
          .differentiable = false,
          .twice = false,
          .bench = samples(slots, {{1000000}})};
}

/// With beta1 = 0 the first moment is the gradient, however small that is compared with the previous moment.
OpCase forgetful_case() {
  const AdamStepArgs a{.tensors = {}, .lr = 0.05, .beta1 = 0.0};
  OpCase c = step_case("adam_step_forgetful", kMoments, adam(a), adam_reference(a));
  c.samples = samples(kMoments, {{1}, {33}});
  for (Sample& s : c.samples) s.inputs[1].values = uniform(1e-6, 1e-5), s.inputs[2].values = uniform(1, 2);
  c.large.clear();
  c.limits.clear();  // the other cases cover these sizes
  c.tolerance = {.ulps = 4};
  return c;
}

std::vector<OpCase> further_cases() {
  const kernels::AdadeltaStepArgs delta{.tensors = {}, .lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.1};
  const kernels::AdamaxStepArgs max{
      .tensors = {}, .lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1, .maximize = true};
  const kernels::RadamStepArgs first{.tensors = {}, .lr = 0.05, .weight_decay = 0.1, .maximize = true};
  const kernels::RadamStepArgs adapting{
      .tensors = {}, .lr = 0.05, .beta1 = 0.8, .beta2 = 0.2, .eps = 1e-3, .weight_decay = 0.1, .decoupled = true};
  const kernels::RpropStepArgs resilient{.tensors = {}, .lr = 0.05, .eta_plus = 1.5, .size_min = 0.1, .size_max = 0.9};
  const kernels::AsgdStepArgs before{.tensors = {}, .lr = 0.05, .lambd = 0.1, .weight_decay = 0.1, .maximize = true};
  const kernels::AsgdStepArgs average{.tensors = {}, .lr = 0.05, .lambd = 0.1, .alpha = 0.5, .t0 = -1.0};
  const kernels::LionStepArgs signs{.tensors = {}, .lr = 0.05, .beta1 = 0.8, .weight_decay = 0.1};
  const Slots squares{uniform(0.5, 2), uniform(0.5, 2)}, sizes{uniform(-1, 1), uniform(0.05, 1)};
  std::vector<OpCase> cases;
  for (const auto numbers : {Numbers::host, Numbers::device}) {
    const std::string suffix = numbers == Numbers::host ? "" : "_device_numbers";
    const auto add = [&](const std::string& name, const auto& kernel, const Slots& slots, const auto& a, double decay,
                         auto update) {
      cases.push_back(step_case(name + suffix, slots, stepped(kernel, a, numbers), reference_of(a, decay, update)));
    };
    add("adadelta_step", kernels::adadelta_step, squares, delta, 0.1, adadelta);
    add("adamax_step", kernels::adamax_step, kMoments, max, 0.1, adamax);
    add("radam_step", kernels::radam_step, kMoments, first, 0.1, radam);
    add("radam_step_adapting", kernels::radam_step, kMoments, adapting, 0.0, radam);
    add("rprop_step", kernels::rprop_step, sizes, resilient, 0.0, rprop<false>);
    add("asgd_step", kernels::asgd_step, kMomentum, before, 0.1, asgd);
    add("asgd_step_averaging", kernels::asgd_step, kMomentum, average, 0.0, asgd);
    add("lion_step", kernels::lion_step, kMomentum, signs, 0.0, lion);
  }
  cases.push_back(step_case("rprop_step_fresh", sizes, stepped(kernels::rprop_step, resilient, Numbers::host, true),
                            reference_of(resilient, 0.0, rprop<true>)));
  return cases;
}

}  // namespace

std::vector<OpCase> optim_cases() {
  const SgdStepArgs plain{.tensors = {}, .lr = 0.1, .weight_decay = 0.01};
  const SgdStepArgs momentum{.tensors = {}, .lr = 0.1, .momentum = 0.9, .dampening = 0.2, .maximize = true};
  const SgdStepArgs nesterov{.tensors = {}, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.05, .nesterov = true};
  const AdamStepArgs l2{.tensors = {}, .lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1};
  const AdamStepArgs decoupled{.tensors = {}, .lr = 0.05, .weight_decay = 0.1, .decoupled = true, .maximize = true};
  const AdamStepArgs amsgrad{.tensors = {}, .lr = 0.05, .amsgrad = true};
  const RmspropStepArgs rms{.tensors = {}, .lr = 0.05, .alpha = 0.9, .weight_decay = 0.1, .maximize = true};
  const RmspropStepArgs rms_momentum{.tensors = {}, .lr = 0.05, .alpha = 0.3, .eps = 1e-3, .momentum = 0.9};
  const RmspropStepArgs centered{
      .tensors = {}, .lr = 0.05, .alpha = 0.8, .weight_decay = 0.1, .momentum = 0.5, .centered = true};
  const AdagradStepArgs sums{.tensors = {}, .lr = 0.05, .lr_decay = 0.1, .weight_decay = 0.1, .maximize = true};
  std::vector<OpCase> cases = {
      step_case("sgd_step", kNoSlots, sgd(plain), sgd_reference(plain)),
      step_case("sgd_step_momentum", kMomentum, sgd(momentum), sgd_reference(momentum)),
      step_case("sgd_step_fresh", kMomentum, sgd(momentum, true), sgd_reference(momentum, true)),
      step_case("sgd_step_nesterov", kMomentum, sgd(nesterov), sgd_reference(nesterov)),
      step_case("adam_step", kMoments, adam(l2), adam_reference(l2)),
      step_case("adam_step_decoupled", kMoments, adam(decoupled), adam_reference(decoupled)),
      forgetful_case(),
      step_case("adam_step_amsgrad", kAmsgrad, adam(amsgrad), adam_reference(amsgrad)),
      step_case("sgd_step_device_numbers", kMomentum, sgd(momentum, false, Numbers::device), sgd_reference(momentum)),
      step_case("adam_step_device_numbers", kMoments, adam(decoupled, Numbers::device), adam_reference(decoupled)),
      step_case("rmsprop_step", kSquares, rmsprop(rms), rmsprop_reference(rms)),
      step_case("rmsprop_step_momentum", {kRmsprop[0], kRmsprop[1]}, rmsprop(rms_momentum),
                rmsprop_reference(rms_momentum)),
      step_case("rmsprop_step_centered", kRmsprop, rmsprop(centered), rmsprop_reference(centered)),
      step_case("rmsprop_step_device_numbers", kSquares, rmsprop(rms, Numbers::device), rmsprop_reference(rms)),
      step_case("adagrad_step", kSquares, adagrad(sums), adagrad_reference(sums)),
      step_case("adagrad_step_device_numbers", kSquares, adagrad(sums, Numbers::device), adagrad_reference(sums))};
  for (OpCase& c : further_cases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace levin::test
