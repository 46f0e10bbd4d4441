#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/data_parallel.h>
#include <levin/distributed/pipeline.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <utility>

namespace levin::distributed {

namespace {

constexpr int kLongest = 8;  // maximum number of dimensions of a message
constexpr int kActivation = 0, kGradient = 1;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Returns the header that is sent before a tensor: its type, its number of dimensions and its sizes.
Tensor head_of(const Tensor& t) {
  if (t.dim() > kLongest || !t.is_floating())
    throw ShapeError(fmt::format("[Pipeline] a stage gave {} of {}. Give floating numbers of up to {} dimensions.",
                                 to_string(t.sizes()), name_of(t.dtype()), kLongest));
  std::vector<int64_t> head = {static_cast<int64_t>(t.dtype()), t.dim()};
  head.insert(head.end(), t.sizes().begin(), t.sizes().end());
  head.resize(kLongest + 2);
  return from_data(head, {kLongest + 2});
}

}  // namespace

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
  Tensor input, output;  // the last stage's output is its share of the loss
};

Pipeline::Pipeline(nn::Module& stage, std::shared_ptr<ProcessGroup> group, const PipelineOptions& options)
    : Pipeline(Stage([&stage](const Tensor& x) { return stage(x); }), std::move(group), options) {}

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

void Pipeline::send(const Tensor& t, int to, bool gradient) {
  const Tensor values = t.detach().contiguous();
  for (const Tensor& message : {head_of(values), values})
    sends_.emplace_back(group_->send(message, to, gradient ? kGradient : kActivation), message);
  std::erase_if(sends_, [](const auto& s) { return s.first.is_completed() && !s.first.exception(); });
}

namespace {

Tensor for_message(const Tensor& head, Device device) {
  const auto numbers = head.to_vector<int64_t>();
  const std::span<const int64_t> sizes(numbers.data() + 2, static_cast<std::size_t>(numbers[1]));
  return empty(Shape{sizes}, {.dtype = static_cast<DType>(numbers[0]), .device = device});
}

}  // namespace

Tensor Pipeline::receive(int from, bool gradient) const {
  const int tag = gradient ? kGradient : kActivation;
  const Tensor head = empty({kLongest + 2}, {.dtype = kInt64});
  group_->recv(head, from, tag).wait();
  const Tensor t = for_message(head, options_.device);
  group_->recv(t, from, tag).wait();
  return t;
}

Tensor Pipeline::from_last(const Tensor& t) const {
  const int last = group_->size() - 1;
  const Tensor head = is_last() ? head_of(t) : empty({kLongest + 2}, {.dtype = kInt64});
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
  const double start = now();
  auto result = f();
  times_.computing += now() - start;
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
  const auto forward = [&](int number, const Tensor& from_before) {
    const int64_t size = sizes[static_cast<std::size_t>(number)], at = std::exchange(row, row + size);
    const Tensor y = stage_(is_first() ? x.narrow(0, at, size) : from_before);
    if (!is_last()) return y;
    const double share = static_cast<double>(size) / static_cast<double>(rows);
    const Tensor part = loss(y, target.narrow(0, at, size)) * share;
    const no_grad guard;
    total.add_(part.detach().cpu().to(kFloat64).reshape({}));
    return part;
  };
  const auto backward = [](const Tensor& output, const Tensor& gradient) { output.backward(gradient); };
  run(static_cast<int>(sizes.size()), {forward, backward});
  group_->broadcast(total, group_->size() - 1).wait();
  return total;
}

void Pipeline::run(int micro_batches, const PipelineSteps& steps) {
  const double start = now();
  const int before = group_->rank() - 1, behind = group_->rank() + 1;
  schedule_ = one_f_one_b(group_->rank(), group_->size(), micro_batches);
  std::deque<Kept> kept;
  const auto forward = [&](int number) {
    Kept k;
    if (!is_first()) k.input = receive(before, false).requires_grad_();
    k.output = timed([&] { return steps.forward(number, k.input); });
    if (!is_last()) send(k.output, behind, false);
    kept.push_back(std::move(k));
    most_alive_ = std::max(most_alive_, static_cast<int>(kept.size()));
  };
  const auto backward = [&] {
    const Kept k = std::move(kept.front());
    kept.pop_front();
    const Tensor gradient = is_last() ? Tensor() : receive(behind, true).to(k.output.device());
    const Tensor input_gradient = timed([&] {
      const bool records = k.output.defined() && k.output.requires_grad();
      if (records) steps.backward(k.output, gradient);  // skipped where the first stage is frozen
      return is_first() ? Tensor() : k.input.grad();
    });
    if (is_first()) return;
    send(input_gradient.defined() ? input_gradient : zeros(k.input.sizes(), like(k.input)), before, true);
  };
  for (const PipelineAction& action : schedule_) {
    if (action.forward)
      forward(action.micro_batch);
    else
      backward();
  }
  finish_sends();
  times_.whole += now() - start;
}

Tensor Pipeline::forward(const Tensor& x, bool on_all) {
  const no_grad guard;
  int64_t row = 0;
  std::vector<Tensor> outputs;
  auto sizes = part_sizes(x);
  if (sizes.empty()) sizes.push_back(0);
  for (const int64_t size : sizes) {
    const Tensor y = stage_(is_first() ? x.narrow(0, row, size) : receive(group_->rank() - 1, false));
    row += size;
    if (is_last())
      outputs.push_back(y);
    else
      send(y, group_->rank() + 1, false);
  }
  finish_sends();
  const Tensor joined = outputs.empty() ? Tensor() : outputs.size() == 1 ? outputs[0] : cat(outputs, 0);
  return on_all ? from_last(joined) : joined;
}

}  // namespace levin::distributed
