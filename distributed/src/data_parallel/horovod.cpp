#include <fmt/format.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>
#include <levin/distributed/horovod.h>

#include <algorithm>
#include <charconv>

#include "src/clock.h"
#include "src/data_parallel/exchange.h"
#include "src/data_parallel/flat.h"
#include "src/data_parallel/ordered_average.h"

namespace levin::distributed {

namespace {

template <class N>
void read_number(const Environment& env, const char* variable, N& number) {
  const auto found = env.find(variable);
  if (found == env.end()) return;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw ValueError(fmt::format("[horovod] {} is \"{}\". Give a number that is not negative.", variable, text));
}

CommStages rounded_average(ProcessGroup& group, const Tensor& buffer) {
  const Tensor rounded = buffer.to(kFloat16);
  CommStages stages = ordered_average(group, rounded);
  stages.emplace_back([rounded, buffer] { buffer.copy_(rounded); });
  return stages;
}

// A message with one or more gradients.
struct Message {
  std::vector<std::size_t> parameters;
  std::vector<Tensor> gradients;
  Tensor buffer;  // (elements of all), or the single gradient itself
  CommStages stages;
};

}  // namespace

HorovodOptions horovod_options(const Environment& env, HorovodOptions options) {
  read_number(env, "HOROVOD_FUSION_THRESHOLD", options.fusion_threshold);
  read_number(env, "HOROVOD_CYCLE_TIME", options.cycle_time);
  return options;
}

struct FusedExchange::Impl {
  std::vector<Parameter> parameters;
  std::shared_ptr<ProcessGroup> group;  // a group of its own, so that its calls can begin at any time in backward
  HorovodOptions options;
  std::vector<HookHandle> hooks;
  bool sync = true;

  // State of the current step
  std::vector<int> passes;           // number of backward passes that have added to each gradient
  std::vector<std::uint8_t> ready;   // on this rank
  std::vector<std::uint8_t> agreed;  // ready on all ranks, so that its exchange has begun
  std::size_t left = 0;              // number of gradients that are not agreed
  bool asking = false;
  Tensor asked;  // (parameters): 1 if ready on this rank; after the answer, if ready on all ranks
  Work answer;
  Clock::time_point next_cycle{};
  std::vector<Message> messages;
  int64_t cycles = 0;
  std::vector<std::vector<std::size_t>> last_groups;
  int64_t last_cycles = 0;

  void reset();
  void gradient_ready(std::size_t p);
  void advance(bool wait);
  void take_answer();
  void send(const std::vector<std::size_t>& members);
  void finish_messages();
  void synchronize();
};

void FusedExchange::Impl::reset() {
  passes.assign(parameters.size(), 0);
  ready.assign(parameters.size(), 0);
  agreed.assign(parameters.size(), 0);
  left = parameters.size();
  messages.clear();
  cycles = 0;
}

void FusedExchange::Impl::gradient_ready(std::size_t p) {
  require_dense_grad("horovod", parameters[p]);
  if (!sync) return;
  if (ready[p] != 0)
    throw GradError(
        fmt::format("[horovod] the gradient of {} is being exchanged, and another backward adds to it. Call "
                    "step() or synchronize() first, or raise backward_passes_per_step.",
                    parameters[p].name));
  if (++passes[p] < options.backward_passes_per_step) return;
  const no_grad guard;
  ready[p] = 1;
  advance(/*wait=*/false);
}

// Handles an answer that has arrived, or waits for it, and begins the next negotiation if it is due.
void FusedExchange::Impl::advance(bool wait) {
  if (asking && (wait || answer.is_completed())) take_answer();
  if (asking || left == 0) return;
  const auto now = Clock::now();
  if (!wait && now < next_cycle) return;
  next_cycle =
      now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(options.cycle_time));
  asked = from_data(ready, {static_cast<int64_t>(ready.size())});
  answer = group->all_reduce(asked, ReduceOp::min);
  asking = true;
  ++cycles;
}

void FusedExchange::Impl::take_answer() {
  answer.wait();
  asking = false;
  const auto everywhere = asked.to_vector<std::uint8_t>();
  std::vector<std::size_t> waiting;
  for (std::size_t p = parameters.size(); p-- > 0;) {
    if (everywhere[p] != 0 && agreed[p] == 0) waiting.push_back(p);
  }
  for (const std::size_t p : waiting) agreed[p] = 1;
  left -= waiting.size();
  // Gradients that do not fit, in type or size, go into the next message.
  while (!waiting.empty()) {
    const Tensor& first = parameters[waiting.front()];
    std::vector<std::size_t> members, others;
    int64_t bytes = 0;
    for (const std::size_t p : waiting) {
      const Tensor& t = parameters[p];
      const int64_t own = t.numel() * size_of(t.dtype());
      const bool fits = t.dtype() == first.dtype() && t.device() == first.device() &&
                        (members.empty() || bytes + own <= options.fusion_threshold);
      (fits ? members : others).push_back(p);
      if (fits) bytes += own;
    }
    send(members);
    waiting = std::move(others);
  }
}

void FusedExchange::Impl::send(const std::vector<std::size_t>& members) {
  Message m{.parameters = members, .gradients = {}, .buffer = {}, .stages = {}};
  for (const std::size_t p : members) m.gradients.push_back(parameters[p].grad());
  const bool as_it_lies = members.size() == 1 && m.gradients[0].is_contiguous();
  m.buffer = as_it_lies ? m.gradients[0] : packed(m.gradients);
  const bool round = options.compression == Compression::fp16 && size_of(m.buffer.dtype()) > 2;
  m.stages = round ? rounded_average(*group, m.buffer) : ordered_average(*group, m.buffer);
  messages.push_back(std::move(m));
}

void FusedExchange::Impl::finish_messages() {
  std::vector<CommStages> all;
  for (const Message& m : messages) all.push_back(m.stages);
  run_stages(all);
  for (const Message& m : messages) {
    if (!m.buffer.is_same(m.gradients.front())) unpack(m.buffer, m.gradients);
  }
}

void FusedExchange::Impl::synchronize() {
  const no_grad guard;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p].grad().defined()) parameters[p].set_grad(zeros(parameters[p].sizes(), like(parameters[p])));
    ready[p] = 1;
  }
  while (left > 0) advance(/*wait=*/true);
  finish_messages();
  last_groups.clear();
  for (const Message& m : messages) last_groups.push_back(m.parameters);
  last_cycles = cycles;
  reset();
}

FusedExchange::FusedExchange(std::vector<Parameter> parameters, std::shared_ptr<ProcessGroup> group,
                             const HorovodOptions& options)
    : impl_(std::make_shared<Impl>()) {
  if (group->is_part_of_world())
    throw ValueError(
        fmt::format("[horovod] this group has {} of the ranks only, and Horovod's exchange is among all of them. Give "
                    "it the group of all ranks.",
                    group->size()));
  if (options.fusion_threshold < 0 || !(options.cycle_time >= 0) || options.backward_passes_per_step < 1)
    throw ValueError(
        fmt::format("[horovod] fusion_threshold is {}, cycle_time {} and backward_passes_per_step {}. Give 0 or more, "
                    "0 or more, and 1 or more.",
                    options.fusion_threshold, options.cycle_time, options.backward_passes_per_step));
  std::erase_if(parameters, [](const Parameter& p) { return !p.requires_grad(); });
  impl_->parameters = std::move(parameters);
  impl_->group = group_of_its_own(*group);
  impl_->options = options;
  impl_->reset();
  for (std::size_t p = 0; p < impl_->parameters.size(); ++p) {
    impl_->hooks.push_back(impl_->parameters[p].register_post_accumulate_grad_hook(
        [impl = impl_.get(), p](const Tensor&) { impl->gradient_ready(p); }));
  }
}

FusedExchange::~FusedExchange() {
  for (HookHandle& h : impl_->hooks) h.remove();
}

void FusedExchange::set_sync(bool on) { impl_->sync = on; }
void FusedExchange::synchronize() { impl_->synchronize(); }
bool FusedExchange::in_flight() const {
  return std::ranges::any_of(impl_->ready, [](std::uint8_t r) { return r != 0; });
}
int64_t FusedExchange::cycles() const { return impl_->last_cycles; }

std::vector<std::vector<std::string>> FusedExchange::groups() const {
  std::vector<std::vector<std::string>> names;
  for (const auto& members : impl_->last_groups) {
    names.emplace_back();
    for (const std::size_t p : members) names.back().push_back(impl_->parameters[p].name);
  }
  return names;
}

DistributedOptimizer::DistributedOptimizer(optim::Optimizer& optimizer, const std::shared_ptr<ProcessGroup>& group,
                                           const HorovodOptions& options)
    : optimizer_(optimizer), exchange_(optimizer.parameters(), group, options) {}

void DistributedOptimizer::synchronize() {
  exchange_.synchronize();
  synchronized_ = true;
}

void DistributedOptimizer::step() {
  if (!synchronized_ || exchange_.in_flight()) synchronize();
  synchronized_ = false;
  optimizer_.step();
}

void DistributedOptimizer::zero_grad(bool set_to_none) {
  if (exchange_.in_flight())
    throw GradError(
        "[horovod] zero_grad() between backward() and step(): gradients are being exchanged. Call it before "
        "backward, or after step.");
  optimizer_.zero_grad(set_to_none);
}

}  // namespace levin::distributed
