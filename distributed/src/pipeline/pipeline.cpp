#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/duration.h>
#include <levin/distributed/data_parallel.h>
#include <levin/distributed/pipeline.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

namespace levin::distributed {

namespace {

constexpr int kHeadSize = kMaxDims + 3;  // numbers in a header
constexpr int kActivation = 0, kGradient = 1;

/// Returns the header that is sent before a tensor: the number of tensors of the list that follow it, its type, its
/// number of dimensions and its sizes.
Tensor head_of(const Tensor& t, std::size_t following) {
  std::vector<int64_t> head = {static_cast<int64_t>(following), static_cast<int64_t>(t.dtype()), t.dim()};
  head.insert(head.end(), t.sizes().begin(), t.sizes().end());
  head.resize(kHeadSize);
  return from_data(head, {kHeadSize});
}

/// Throws ShapeError if a stage's outputs cannot be sent.
void check_outputs(const std::vector<Tensor>& outputs) {
  if (outputs.empty()) throw ShapeError("[Pipeline] a stage returned no tensor. Return at least one.");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].defined())
      throw ShapeError(fmt::format("[Pipeline] tensor {} of {} that a stage returned is undefined. Return a tensor, "
                                   "such as one without elements.",
                                   i, outputs.size()));
}

/// Returns the only output of the last stage.
Tensor only_output(const std::vector<Tensor>& outputs) {
  if (outputs.size() == 1) return outputs[0];
  throw ShapeError(fmt::format("[Pipeline] the last stage returned {} tensors. Return one, from which the loss is "
                               "computed.",
                               outputs.size()));
}

/// The tensors whose gradients the next stage sends back.
std::vector<Tensor> differentiable_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> kept;
  for (const Tensor& t : tensors)
    if (is_differentiable(t.dtype())) kept.push_back(t);
  return kept;
}

void backward_of_list(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients) {
  if (gradients.empty()) return outputs[0].backward();
  std::vector<Tensor> recorded, incoming;
  const auto differentiable = differentiable_of(outputs);
  for (std::size_t i = 0; i < differentiable.size(); ++i) {
    if (!differentiable[i].requires_grad()) continue;
    recorded.push_back(differentiable[i]);
    incoming.push_back(gradients[i].to(differentiable[i].device()));
  }
  levin::backward(recorded, incoming);
}

}  // namespace

const Tensor& PipelineStage::only(const std::vector<Tensor>& inputs) {
  if (inputs.size() == 1) return inputs[0];
  throw ShapeError(fmt::format("[Pipeline] the stage before sent {} tensors to a stage that takes one. Give this stage "
                               "a function of std::vector<Tensor>.",
                               inputs.size()));
}

std::string to_string(const PipelineAction& action) {
  return (action.forward ? "F" : "B") + std::to_string(action.micro_batch);
}

std::vector<PipelineAction> one_f_one_b(int stage, int stages, int micro_batches) {
  if (stage < 0 || stage >= stages || micro_batches < 0)
    throw ValueError(fmt::format("[one_f_one_b] stage {} of {} with {} micro-batches: stages count from 0.", stage,
                                 stages, micro_batches));
  const int warm_up = std::min(stages - stage - 1, micro_batches);
  std::vector<PipelineAction> actions;
  for (int i = 0; i < warm_up; ++i) actions.push_back({true, i});
  for (int i = warm_up; i < micro_batches; ++i) {
    actions.push_back({true, i});
    actions.push_back({false, i - warm_up});
  }
  for (int i = micro_batches - warm_up; i < micro_batches; ++i) actions.push_back({false, i});
  return actions;
}

std::vector<int64_t> balanced_stages(const std::vector<int64_t>& parameters, int stages) {
  const auto layers = static_cast<int>(parameters.size());
  if (stages < 1 || layers < stages)
    throw ValueError(fmt::format(
        "[balanced_stages] {} layers do not make {} stages. Give at least one layer per stage.", layers, stages));
  /// Returns the layers per stage if no stage may have more parameters than `most`; empty if that needs more stages.
  const auto filled = [&](int64_t most) {
    std::vector<int64_t> counts;
    for (int layer = 0; layer < layers;) {
      if (std::ssize(counts) == stages) return std::vector<int64_t>();
      const int left = stages - static_cast<int>(counts.size()) - 1;  // which need at least one layer each
      int64_t sum = 0, count = 0;
      while (layer < layers - left && sum + parameters[static_cast<std::size_t>(layer)] <= most) {
        sum += parameters[static_cast<std::size_t>(layer++)];
        ++count;
      }
      if (count == 0) return std::vector<int64_t>();
      counts.push_back(count);
    }
    return counts;
  };
  int64_t low = 0, high = std::accumulate(parameters.begin(), parameters.end(), int64_t{0});
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (filled(middle).empty())
      low = middle + 1;
    else
      high = middle;
  }
  return filled(low);
}

/// The tensors of a micro-batch that its backward needs.
struct Pipeline::Kept {
  std::vector<Tensor> inputs, outputs;  // the last stage's output is its share of the loss
};

Pipeline::Pipeline(nn::Module& stage, std::shared_ptr<ProcessGroup> group, const PipelineOptions& options)
    : Pipeline(Stage([&stage](const std::vector<Tensor>& inputs) { return stage.call(inputs); }), std::move(group),
               options) {}

Pipeline::Pipeline(Stage stage, std::shared_ptr<ProcessGroup> group, const PipelineOptions& options)
    : stage_(std::move(stage)), group_(std::move(group)), options_(options) {
  if (options.micro_batches < 1)
    throw ValueError(fmt::format("[Pipeline] {} micro-batches: give 1 or more.", options.micro_batches));
}

std::vector<int64_t> Pipeline::part_sizes(const Tensor& x) {
  if (is_first() && (!x.defined() || x.dim() == 0))
    throw ShapeError("[Pipeline] the first stage needs a batch with the samples along its first dimension.");
  const Tensor rows = full({1}, is_first() ? static_cast<double>(x.size(0)) : 0.0, {.dtype = kInt64});
  group_->broadcast(rows, 0).wait();
  return DataParallel::part_sizes(rows.item<int64_t>(), static_cast<std::size_t>(options_.micro_batches));
}

void Pipeline::send(const std::vector<Tensor>& tensors, int to, bool gradient) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor values = tensors[i].detach().contiguous();
    for (const Tensor& message : {head_of(values, tensors.size() - 1 - i), values})
      sends_.emplace_back(group_->send(message, to, gradient ? kGradient : kActivation), message);
  }
  std::erase_if(sends_, [](const auto& s) { return s.first.is_completed() && !s.first.exception(); });
}

namespace {

Tensor for_message(const Tensor& head, Device device) {
  const auto numbers = head.to_vector<int64_t>();
  const std::span<const int64_t> sizes(numbers.data() + 3, static_cast<std::size_t>(numbers[2]));
  return empty(Shape{sizes}, {.dtype = static_cast<DType>(numbers[1]), .device = device});
}

}  // namespace

std::vector<Tensor> Pipeline::receive(int from, bool gradient) const {
  const int tag = gradient ? kGradient : kActivation;
  std::vector<Tensor> tensors;
  for (int64_t following = 1; following > 0;) {
    const Tensor head = empty({kHeadSize}, {.dtype = kInt64});
    group_->recv(head, from, tag).wait();
    following = head.to_vector<int64_t>()[0];
    const Tensor t = tensors.emplace_back(for_message(head, options_.device));
    group_->recv(t, from, tag).wait();
  }
  return tensors;
}

Tensor Pipeline::from_last(const Tensor& t) const {
  const int last = group_->size() - 1;
  const Tensor head = is_last() ? head_of(t, 0) : empty({kHeadSize}, {.dtype = kInt64});
  group_->broadcast(head, last).wait();
  const Tensor values = is_last() ? t.contiguous() : for_message(head, options_.device);
  group_->broadcast(values, last).wait();
  return values;
}

void Pipeline::finish_sends() {
  for (const auto& [work, message] : sends_) work.wait();
  sends_.clear();
}

template <class F>
auto Pipeline::timed(const F& f) {
  const double start = monotonic_seconds();
  auto result = f();
  times_.computing += monotonic_seconds() - start;
  return result;
}

Tensor Pipeline::step(const Tensor& x, const Tensor& target, const Loss& loss) {
  const auto sizes = part_sizes(x);
  int64_t rows = 0;
  for (const int64_t size : sizes) rows += size;
  if (is_last() && (!target.defined() || target.dim() == 0 || target.size(0) != rows))
    throw ShapeError(fmt::format("[Pipeline] the batch has {} rows, the target {}. Give one for each.", rows,
                                 target.defined() ? to_string(target.sizes()) : "none"));
  const Tensor total = zeros({}, {.dtype = kFloat64});
  int64_t row = 0;  // first row of the next forward
  const auto forward = [&](int number, const std::vector<Tensor>& from_before) -> std::vector<Tensor> {
    const int64_t size = sizes[static_cast<std::size_t>(number)], at = std::exchange(row, row + size);
    auto outputs = stage_(is_first() ? std::vector{x.narrow(0, at, size)} : from_before);
    if (!is_last()) return outputs;
    const double share = static_cast<double>(size) / static_cast<double>(rows);
    const Tensor part = loss(only_output(outputs), target.narrow(0, at, size)) * share;
    const no_grad guard;
    total.add_(part.detach().cpu().to(kFloat64).reshape({}));
    return {part};
  };
  run(static_cast<int>(sizes.size()), {.forward = forward});
  group_->broadcast(total, group_->size() - 1).wait();
  return total;
}

void Pipeline::run(int micro_batches, const PipelineSteps& steps) {
  const double start = monotonic_seconds();
  const int before = group_->rank() - 1, behind = group_->rank() + 1;
  schedule_ = one_f_one_b(group_->rank(), group_->size(), micro_batches);
  std::deque<Kept> kept;
  const auto forward = [&](int number) {
    Kept k;
    if (!is_first()) k.inputs = receive(before, false);
    for (const Tensor& t : differentiable_of(k.inputs)) t.requires_grad_();
    k.outputs = timed([&] { return steps.forward(number, k.inputs); });
    if (!is_last()) {
      check_outputs(k.outputs);
      send(k.outputs, behind, false);
    }
    kept.push_back(std::move(k));
    most_alive_ = std::max(most_alive_, static_cast<int>(kept.size()));
  };
  const auto backward = [&] {
    const Kept k = std::move(kept.front());
    kept.pop_front();
    const bool expects = !is_last() && !differentiable_of(k.outputs).empty();
    const auto gradients = expects ? receive(behind, true) : std::vector<Tensor>();
    const auto input_gradients = timed([&] {
      const auto records = [](const Tensor& t) { return t.defined() && t.requires_grad(); };
      const bool all_frozen = std::ranges::none_of(k.outputs, records);
      if (!all_frozen) (steps.backward ? steps.backward : backward_of_list)(k.outputs, gradients);
      std::vector<Tensor> list;
      for (const Tensor& t : differentiable_of(k.inputs))
        list.push_back(t.grad().defined() ? t.grad() : zeros(t.sizes(), like(t)));
      return list;
    });
    send(input_gradients, before, true);
  };
  for (const PipelineAction& action : schedule_) {
    if (action.forward)
      forward(action.micro_batch);
    else
      backward();
  }
  finish_sends();
  times_.whole += monotonic_seconds() - start;
}

Tensor Pipeline::forward(const Tensor& x, bool on_all) {
  const no_grad guard;
  int64_t row = 0;
  std::vector<Tensor> outputs;
  auto sizes = part_sizes(x);
  if (sizes.empty()) sizes.push_back(0);
  for (const int64_t size : sizes) {
    const auto list = stage_(is_first() ? std::vector{x.narrow(0, row, size)} : receive(group_->rank() - 1, false));
    row += size;
    if (is_last()) {
      outputs.push_back(only_output(list));
    } else {
      check_outputs(list);
      send(list, group_->rank() + 1, false);
    }
  }
  finish_sends();
  const Tensor joined = outputs.empty() ? Tensor() : outputs.size() == 1 ? outputs[0] : cat(outputs, 0);
  return on_all ? from_last(joined) : joined;
}

}  // namespace levin::distributed
