#include "found_inf.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/record.h>
#include <levin/autograd/row_gradient.h>
#include <levin/core/capture/recording.h>
#include <levin/kernels/amp.h>
#include <levin/optim/grad_scaler.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levin {

namespace {

/// Returns the address of one float32 on any device.
float* floats(const Tensor& t) { return static_cast<float*>(t.tensor_view().pointer); }

Tensor number(double value, Device device) { return full({}, value, {.dtype = kFloat32, .device = device}); }

[[noreturn]] void no_gradient(const optim::Optimizer& optimizer) {
  throw GradError(
      fmt::format("[GradScaler] no parameter of this {} has a gradient. Call backward() on the scaled loss "
                  "first.",
                  optimizer.name()));
}

/// Returns the first parameter whose gradient is not finite, as `"fc.weight" (inf)`; empty if all gradients are finite.
std::string first_not_finite(const std::vector<Parameter>& parameters) {
  for (const Parameter& p : parameters) {
    const Tensor g = gradient_values(p);
    if (!g.defined()) continue;
    for (const double v : g.to(kCpu).to_vector<double>())
      if (!std::isfinite(v)) return fmt::format("\"{}\" ({})", p.name, v);
  }
  return {};
}

}  // namespace

GradScaler::GradScaler(const Options& o) : options_(o) {
  if (!(o.growth_factor > 1.0) || !(o.backoff_factor > 0.0 && o.backoff_factor < 1.0) || !(o.init_scale > 0.0) ||
      o.growth_interval < 1)
    throw ValueError(
        fmt::format("[GradScaler] init_scale {}, growth_factor {}, backoff_factor {}, growth_interval {}: give a scale "
                    "above 0, a growth above 1, a backoff between 0 and 1 and an interval of 1 or more.",
                    o.init_scale, o.growth_factor, o.backoff_factor, o.growth_interval));
  scale_ = number(o.init_scale, kCpu);
  tracker_ = number(0, kCpu);
  skips_ = number(0, kCpu);
}

void GradScaler::move_to(Device device) {
  if (scale_.device() == device) return;
  for (Tensor* t : {&scale_, &tracker_, &skips_}) *t = t->to(device);
}

Tensor GradScaler::scale(const Tensor& loss) {
  if (!options_.enabled) return loss;
  move_to(loss.device());
  return mul(loss, scale_);
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& losses) {
  std::vector<Tensor> result;
  for (const Tensor& loss : losses) result.push_back(scale(loss));
  return result;
}

GradScaler::Seen& GradScaler::seen(const optim::Optimizer& optimizer) {
  for (Seen& s : seen_)
    if (s.optimizer == &optimizer) return s;
  seen_.push_back({&optimizer, optimizer.parameters()});
  return seen_.back();
}

void GradScaler::unscale(Seen& s) {
  const no_grad guard;
  std::vector<Tensor> kept;
  std::vector<kernels::AmpTensor> tensors;
  Device device = kCpu;
  for (const Parameter& p : s.parameters) {
    Tensor g = gradient_values(p);
    if (!g.defined()) continue;
    if (g.dtype() == kHalf)
      throw ValueError(
          fmt::format("[GradScaler] the gradient of \"{}\" is float16: unscaling would lose what scaling "
                      "saved. Keep the parameters in float32 and compute under autocast.",
                      p.name));
    if (!g.is_contiguous()) p.set_grad(g = g.contiguous());
    if (!tensors.empty() && p.device() != device)
      throw DeviceError(
          fmt::format("[GradScaler] parameters are on {} and on {}. Give each device an optimizer of its "
                      "own.",
                      to_string(device), to_string(p.device())));
    device = p.device();
    kept.push_back(g.detach());
    tensors.push_back({kept.back().tensor_view().pointer, kept.back().numel(), kept.back().dtype()});
  }
  if (tensors.empty()) return;
  move_to(device);
  s.found_inf = number(0, device);
  Stream stream = current_stream(device);
  kernels::amp_unscale({tensors, floats(scale_), floats(s.found_inf)}, stream);
  for (const Tensor& g : kept) end_in_place(g);
  // Clipping would spread values that are not finite to all gradients, so the first such parameter is found here.
  if (options_.max_skips > 0 && !recording(stream) && look_at_skips(false) && s.found_inf.item<float>() != 0.0f)
    s.first_bad = first_not_finite(s.parameters);
}

/// Reads the copies of skips_ that have arrived, or waits for all of them. True once at least half of max_skips
/// consecutive skips were seen.
bool GradScaler::look_at_skips(bool wait) {
  while (!skip_reads_.empty() && known_skips_ < options_.max_skips && (wait || skip_reads_.front().ready())) {
    known_skips_ = static_cast<int>(skip_reads_.front().value());
    skip_reads_.pop_front();
  }
  return 2 * known_skips_ >= options_.max_skips;
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  Seen& s = seen(optimizer);
  if (s.stage == Stage::unscaled)
    throw GradError("[GradScaler] unscale_() was already called on this optimizer since the last update().");
  if (s.stage == Stage::stepped) throw GradError("[GradScaler] unscale_() is called after step(). Call it before.");
  unscale(s);
  if (!s.found_inf.defined()) no_gradient(optimizer);
  s.stage = Stage::unscaled;
}

Tensor GradScaler::unscale_(const std::vector<Parameter>& parameters) {
  if (!options_.enabled) return {};
  seen_.push_back({nullptr, parameters});
  unscale(seen_.back());
  return seen_.back().found_inf;
}

void GradScaler::step(optim::Optimizer& optimizer) {
  if (!options_.enabled) return optimizer.step();
  Seen& s = seen(optimizer);
  if (s.stage == Stage::stepped)
    throw GradError("[GradScaler] step() was already called on this optimizer since the last update().");
  if (s.stage == Stage::ready) unscale(s);
  if (!s.found_inf.defined()) no_gradient(optimizer);
  optimizer.step_unless(s.found_inf);
  s.stage = Stage::stepped;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  const no_grad guard;
  Tensor found;
  for (const Seen& s : seen_)
    if (s.found_inf.defined()) found = found.defined() ? maximum(found, s.found_inf.to(found.device())) : s.found_inf;
  if (!found.defined())
    throw GradError("[GradScaler] update() needs a step() or unscale_() since the last one: nothing was checked.");
  update_with(found);
}

void GradScaler::update_with(const Tensor& found_inf) {
  if (!options_.enabled) return;
  const no_grad guard;
  const Tensor found = found_inf.defined() ? optim::found_inf_of("GradScaler", found_inf) : number(0, scale_.device());
  move_to(found.device());
  Stream stream = current_stream(found.device());
  kernels::amp_update_scale({.scale = floats(scale_),
                             .tracker = floats(tracker_),
                             .skips = floats(skips_),
                             .found_inf = floats(found),
                             .growth = static_cast<float>(options_.growth_factor),
                             .backoff = static_cast<float>(options_.backoff_factor),
                             .min_scale = static_cast<float>(options_.min_scale),
                             .growth_interval = options_.growth_interval},
                            stream);
  if (options_.max_skips > 0 && !recording(stream)) watch_skips();
  seen_.clear();
}

void GradScaler::watch_skips() {
  skip_reads_.emplace_back(skips_);
  if (look_at_skips(false)) look_at_skips(true);
  if (known_skips_ >= options_.max_skips) diverged();
}

void GradScaler::diverged() const {
  std::string first;
  for (const Seen& s : seen_)
    if (first.empty()) first = s.first_bad.empty() ? first_not_finite(s.parameters) : s.first_bad;
  throw LossDiverged(
      fmt::format("[GradScaler] {} steps in a row had gradients that are not finite, at last at a scale of {}; {}. "
                  "Lower the learning rate, or look for a division by zero in the loss.",
                  known_skips_, get_scale(),
                  first.empty() ? "this step's gradients are finite again" : "the first is that of " + first));
}

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return;
  if (!(new_scale > 0.0)) throw ValueError(fmt::format("[GradScaler] a scale of {} is not above 0.", new_scale));
  scale_ = number(new_scale, scale_.device());
  seen_.clear();
}

bool GradScaler::found_inf(const optim::Optimizer& optimizer) const {
  const auto s = std::ranges::find_if(seen_, [&](const Seen& e) { return e.optimizer == &optimizer; });
  return s != seen_.end() && s->found_inf.defined() && s->found_inf.item<float>() != 0.0f;
}

double GradScaler::get_scale() const { return options_.enabled ? scale_.item<double>() : 1.0; }
int GradScaler::get_growth_tracker() const { return static_cast<int>(tracker_.item<float>()); }

StateDict GradScaler::state_dict() const {
  StateDict state;
  if (!options_.enabled) return state;
  const auto put = [&](const char* name, double value) { state.set(name, tensor(value, {.dtype = kFloat64})); };
  put("scale", get_scale());
  put("growth_factor", options_.growth_factor);
  put("backoff_factor", options_.backoff_factor);
  put("growth_interval", options_.growth_interval);
  put("_growth_tracker", get_growth_tracker());
  return state;
}

void GradScaler::load_state_dict(const StateDict& state) {
  if (!options_.enabled) return;
  const auto get = [&](const char* name) {
    const Tensor* t = state.find(name);
    if (!t) throw StateError(fmt::format("[GradScaler] the state lacks \"{}\". Nothing was loaded.", name));
    return t->item<double>();
  };
  const double scale = get("scale"), growth = get("growth_factor"), backoff = get("backoff_factor");
  const double interval = get("growth_interval"), tracker = get("_growth_tracker");
  options_.growth_factor = growth;
  options_.backoff_factor = backoff;
  options_.growth_interval = static_cast<int>(interval);
  scale_ = number(scale, scale_.device());
  tracker_ = number(tracker, scale_.device());
  skips_ = number(0, scale_.device());
  skip_reads_.clear();
  known_skips_ = 0;
  seen_.clear();
}

}  // namespace levin
