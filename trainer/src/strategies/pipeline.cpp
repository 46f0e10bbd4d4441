// "pipeline": every rank holds some layers of the network, and a batch passes through them in micro-batches.
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/data_parallel.h>
#include <levin/distributed/ddp.h>
#include <levin/distributed/fsdp.h>
#include <levin/distributed/pipeline.h>
#include <levin/nn/forward_result.h>
#include <levin/trainer/module.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/strategies/stages.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "src/strategies/batch_rows.h"
#include "src/strategies/pipeline_module.h"
#include "src/strategies/random_streams.h"
#include "src/strategies/rank_strategy.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

using distributed::Pipeline;
using distributed::PipelineSteps;

constexpr std::int64_t kMostMicroBatches = 1024;

/// Thrown to end training_step on the first stage's rank, once the network's input is known.
struct Reached {};

class PipelineStrategy final : public RankStrategy, public Stages, public ShardedOptimizer, public ShardedWeights {
 public:
  PipelineStrategy(World& world, Device device, const StrategyOptions& o)
      : RankStrategy(world, device), micro_batches_(static_cast<int>(o.pipeline.micro_batches)),
        balance_(o.pipeline.balance) {}
  ~PipelineStrategy() override { hook_.remove(); }
  std::string name() const override { return "pipeline"; }
  bool syncs_logs() const override { return false; }  // all ranks log the same values
  int data_ranks() const override { return 1; }
  Stages* stages() override { return has_stages() ? this : nullptr; }
  ShardedOptimizer* sharded_optimizer() override { return has_stages() ? this : nullptr; }
  ShardedWeights* sharded_weights() override { return has_stages() ? this : nullptr; }

  void setup(nn::Module& module) override;
  void finish(nn::Module& module) override;
  void broadcast_buffers(nn::Module&) override {
    if (staged_ && !staged_->other_buffers().empty()) distributed::broadcast_all(group(), staged_->other_buffers());
  }
  void run_batch(const Batch& batch, BatchParts& parts) override;
  void reduce_in_backward(const std::vector<Parameter>&) override {}
  void finish_reduction(const std::vector<Parameter>&) override {}
  /// Parameters outside the network are stepped on rank 0.
  void after_step(const std::vector<Parameter>&) override {
    if (staged_ && !staged_->other_parameters().empty())
      distributed::broadcast_all(group(), staged_->other_parameters());
  }

  bool owns(const Tensor& parameter) const override { return !staged_ || staged_->owner(parameter) == rank(); }
  StateDict gather_state_dict(const StateDict& own) const override;
  void clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm) override {
    distributed::clip_grad_norm_of_pieces_(parameters, max_norm, group());
  }
  Tensor full_norms(const Tensor& norms, double type) const override { return norms_over_ranks(group(), norms, type); }
  StateDict full_optimizer_state(const Optimizers& optimizers) const override;
  void load_full_optimizer_state(Optimizers& optimizers, const StateDict& full) override;
  StateDict full_state_dict(const nn::Module& module) const override;
  void load_full_state_dict(nn::Module& module, const StateDict& full) override;

 private:
  /// State of the current batch.
  struct Step {
    BatchParts& parts;
    std::vector<Batch> pieces;
    RandomStreams random{};
    int piece = 0;
    std::vector<Tensor> inputs{};  // of this rank's layers
    int calls = 0;   // calls of the network in this micro-batch's training_step
  };

  bool has_stages() const { return world_size() > 1; }
  bool of(const nn::Module& module) const { return staged_ && &staged_->module() == &module; }
  std::vector<Batch> split(const Batch& batch) const;
  void check_same(const Batch& batch) const;
  void called(const Tensor& x);
  Tensor loss_of(Step& step, int piece, const std::vector<Tensor>& inputs) const;
  Tensor input_of(Step& step, int piece) const;
  std::vector<Tensor> layers(RandomStreams& random, int piece, const std::vector<Tensor>& inputs) const;
  Tensor evaluate(const Tensor& x);
  [[noreturn]] void never_called() const;
  /// Random streams of a micro-batch: training_step, then each stage.
  std::uint64_t stream(int piece, int stage) const {
    return static_cast<std::uint64_t>(piece * (world_size() + 1) + stage + 1);
  }

  int micro_batches_;
  std::string balance_;
  std::shared_ptr<distributed::ProcessGroup> in_order_;  // ranks in stage order
  std::unique_ptr<PipelineModule> staged_;
  std::string module_type_;
  HookHandle hook_;
  Step* step_ = nullptr;
};

void PipelineStrategy::setup(nn::Module& module) {
  if (!has_stages()) return module.to(device()), void();
  auto* const own = dynamic_cast<LevinModule*>(&module);
  if (!own)
    throw UsageError(
        fmt::format("[fabric] --strategy pipeline runs the steps of a LevinModule, and a {} has none. Use the Trainer, "
                    "or distributed::Pipeline.",
                    module.type_name()));
  nn::Sequential* const cut = own->pipeline_module();
  if (!cut)
    throw UsageError(
        fmt::format("[pipeline] {} has no child that is a Sequential. Override its pipeline_module() to name the "
                    "Sequential that is divided into stages.",
                    own->type_name()));
  hook_.remove();
  const auto layers = cut_into_stages(*cut, world_size(), balance_);
  staged_ = std::make_unique<PipelineModule>(module, *cut, layers, shared_group());
  module.to(device());
  distributed::share_module(module, group());
  const GeneratorState random = default_generator().state();
  const Tensor numbers = from_data(std::vector<std::int64_t>{static_cast<std::int64_t>(random.seed),
                                                             static_cast<std::int64_t>(random.offset)},
                                   {2});
  group().broadcast(numbers, 0).wait();
  const auto* const common = numbers.data<std::int64_t>();
  default_generator().set_state({static_cast<std::uint64_t>(common[0]), static_cast<std::uint64_t>(common[1])});
  if (!in_order_) {
    std::vector<int> ranks(static_cast<std::size_t>(world_size()));
    std::iota(ranks.rbegin(), ranks.rend(), 0);
    in_order_ = group().new_group(ranks);
  }
  module_type_ = own->type_name();
  staged_->drop_others();
  hook_ = cut->register_forward_pre_hook([this](nn::Module&, const std::vector<Tensor>& inputs) { called(inputs[0]); });
}

void PipelineStrategy::finish(nn::Module& module) {
  if (!of(module)) return;
  hook_.remove();
  staged_->collect_all();
  staged_.reset();
}

// --- a batch in training

void PipelineStrategy::check_same(const Batch& batch) const {
  const std::int64_t rows = batch.size();
  const Tensor range = from_data(std::vector<std::int64_t>{rows, -rows}, {2});
  group().all_reduce(range, ReduceOp::max).wait();
  const auto* const ends = range.data<std::int64_t>();
  if (ends[0] == -ends[1]) return;
  throw UsageError(
      fmt::format("[pipeline] one rank has a batch of {} samples and another one of {}, but all must have the same "
                  "batch. Use loaders that are not sharded by rank.",
                  -ends[1], ends[0]));
}

std::vector<Batch> PipelineStrategy::split(const Batch& batch) const {
  refuse_stated_samples(batch, "pipeline");
  std::vector<Batch> pieces;
  std::int64_t row = 0;
  const auto count = static_cast<std::size_t>(micro_batches_);
  for (const std::int64_t size : distributed::DataParallel::part_sizes(batch.size(), count)) {
    Batch& piece = pieces.emplace_back(batch);
    for (Tensor& t : piece.tensors) {
      if (!t.defined()) continue;
      if (t.dim() == 0 || t.size(0) != batch.size())
        throw ShapeError(
            fmt::format("[pipeline] a batch of {} samples has a tensor {}, which cannot be split by samples. Give it a "
                        "row for each.",
                        batch.size(), to_string(t.sizes())));
      t = t.narrow(0, row, size);
    }
    row += size;
  }
  return pieces;
}

void PipelineStrategy::run_batch(const Batch& batch, BatchParts& parts) {
  check_same(batch);
  Step step{.parts = parts, .pieces = split(batch)};
  struct Open {
    Step*& current;
    ~Open() { current = nullptr; }
  } const open{step_};
  step_ = &step;
  const auto forward = [&](int piece, const std::vector<Tensor>& received) -> std::vector<Tensor> {
    if (staged_->is_last()) return {loss_of(step, piece, received)};
    const auto inputs = staged_->is_first() ? std::vector{input_of(step, piece)} : received;
    return parts.compute([&] { return layers(step.random, piece, inputs); });
  };
  PipelineSteps steps{.forward = forward};
  if (staged_->is_last())
    steps.backward = [&](const std::vector<Tensor>& loss, const std::vector<Tensor>&) { parts.backward(loss[0]); };
  Pipeline pipeline([](const Tensor& x) { return x; }, in_order_,
                    {.micro_batches = micro_batches_, .device = device()});
  pipeline.run(static_cast<int>(step.pieces.size()), steps);
  step.random.agree(group());
}

Tensor PipelineStrategy::loss_of(Step& step, int piece, const std::vector<Tensor>& inputs) const {
  Tensor share;
  step.piece = piece;
  step.inputs = inputs;
  step.calls = 0;
  step.random.run(stream(piece, -1), [&] {
    const auto number = static_cast<std::size_t>(piece);
    share = step.parts.forward(number, step.pieces[number]);
  });
  step.inputs.clear();
  if (step.calls == 0) never_called();
  return share;
}

Tensor PipelineStrategy::input_of(Step& step, int piece) const {
  step.inputs.clear();
  step.random.run(stream(piece, -1), [&] {
    try {
      step.parts.begin(step.pieces[static_cast<std::size_t>(piece)]);
    } catch (const Reached&) {
    }
  });
  if (step.inputs.empty()) never_called();
  return std::exchange(step.inputs, {})[0];
}

std::vector<Tensor> PipelineStrategy::layers(RandomStreams& random, int piece,
                                             const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> outputs;
  random.run(stream(piece, staged_->own()), [&] { outputs = staged_->forward(inputs); });
  return outputs;
}

/// Runs in place of the network's forward and always throws: ForwardResult to return a value, or Reached.
void PipelineStrategy::called(const Tensor& x) {
  if (!step_) throw nn::ForwardResult{{evaluate(x)}};
  if (x.requires_grad())
    throw UsageError(
        fmt::format("[pipeline] the input of \"{}\" requires a gradient, which would end at the first stage: there are "
                    "trainable parameters before it. Move their layers into the Sequential, or freeze them.",
                    staged_->name()));
  if (staged_->is_first()) {
    step_->inputs = {x};
    throw Reached{};
  }
  if (++step_->calls > 1)
    throw UsageError(
        fmt::format("[pipeline] training_step of {} calls \"{}\" more than once, and the pipeline runs once for a "
                    "micro-batch. Call it once, with all samples, or use --strategy ddp.",
                    module_type_, staged_->name()));
  throw nn::ForwardResult{layers(step_->random, step_->piece, step_->inputs)};
}

void PipelineStrategy::never_called() const {
  throw UsageError(
      fmt::format("[pipeline] training_step of {0} does not call \"{1}\", which --strategy pipeline divides into "
                  "stages. Call it as {1}(x), or override pipeline_module().",
                  module_type_, staged_->name()));
}

/// Runs forward through the stages; all ranks get the output.
Tensor PipelineStrategy::evaluate(const Tensor& x) {
  if (grad_enabled())
    throw UsageError(
        fmt::format("[pipeline] \"{}\" is called with gradients outside of the Trainer's training_step, where forward "
                    "and backward go through the stages together. Call it under no_grad.",
                    staged_->name()));
  RandomStreams random;
  int piece = 0;
  const auto stage = [&](const std::vector<Tensor>& inputs) { return layers(random, piece++, inputs); };
  Pipeline pipeline(stage, in_order_, {.micro_batches = micro_batches_, .device = device()});
  const Tensor output = pipeline.forward(x, /*on_all=*/true);
  random.agree(group());
  return output;
}

// --- full state

StateDict PipelineStrategy::gather_state_dict(const StateDict& own) const {
  if (!staged_) return own;
  std::vector<std::string> names;
  std::vector<std::int64_t> kinds;
  for (const auto& [name, t] : own) {
    names.push_back(name);
    kinds.insert(kinds.end(), {static_cast<std::int64_t>(t.dtype()), t.device() == device() ? 1 : 0, t.dim()});
    kinds.insert(kinds.end(), t.sizes().begin(), t.sizes().end());
  }
  StateMap list;
  list.set("names", names);
  list.set("kinds", kinds);
  const auto lists = gather(list);
  if (rank() != 0) {
    for (const auto& [name, t] : own) group().send(t.detach().contiguous(), 0).wait();
    return {};
  }
  StateDict all = own;
  for (int r = 1; r < world_size(); ++r) {
    const StateMap& theirs = lists[static_cast<std::size_t>(r)];
    const auto numbers = theirs.get<std::vector<std::int64_t>>("kinds");
    auto at = numbers.begin();
    for (const auto& name : theirs.get<std::vector<std::string>>("names")) {
      const auto dtype = static_cast<DType>(*at++);
      const Device where = *at++ != 0 ? device() : kCpu;
      const auto dim = *at++;
      const std::vector<std::int64_t> sizes(at, at + dim);
      at += dim;
      const Tensor t = empty(Shape{std::span<const std::int64_t>(sizes)}, {.dtype = dtype, .device = where});
      group().recv(t, r).wait();
      all.set(name, t);
    }
  }
  return all;
}

StateDict PipelineStrategy::full_optimizer_state(const Optimizers& optimizers) const {
  std::vector<StateDict> states;
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    StateDict own;
    for (const auto& [name, t] : optimizers.optimizer(i).state_dict())
      if (rank() == 0 || name.starts_with("state.")) own.set(name, t);
    const StateDict all = gather_state_dict(own);
    StateDict in_order;  // in the order of a single process
    for (const Parameter& p : optimizers.optimizer(i).parameters())
      in_order.merge("state." + p.name + ".", all.sub("state." + p.name + "."));
    in_order.merge("param_groups.", all.sub("param_groups."));
    states.push_back(in_order);
  }
  return Optimizers::joined(states);
}

void PipelineStrategy::load_full_optimizer_state(Optimizers& optimizers, const StateDict& full) {
  const auto states = optimizers.parts(full);
  StateDict own;
  std::vector<StateDict> list;
  for (std::size_t i = 0; i < states.size(); ++i) {
    std::vector<std::string> foreign;
    for (const Parameter& p : optimizers.optimizer(i).parameters())
      if (!owns(p)) foreign.push_back("state." + p.name + ".");
    StateDict& kept = list.emplace_back();
    for (const auto& [name, t] : states[i])
      if (std::ranges::none_of(foreign, [&](const std::string& prefix) { return name.starts_with(prefix); }))
        kept.set(name, t);
  }
  optimizers.load_optimizer_state(Optimizers::joined(list));
}

StateDict PipelineStrategy::full_state_dict(const nn::Module& module) const {
  if (!of(module)) return module.state_dict();
  const StateDict all = gather_state_dict(staged_->own_weights());
  StateDict in_order;
  if (rank() == 0)
    for (const auto& [name, t] : module.state_dict()) in_order.set(name, all.at(name));
  return in_order;
}

void PipelineStrategy::load_full_state_dict(nn::Module& module, const StateDict& full) {
  if (!of(module)) return void(module.load_state_dict(full));
  staged_->allocate();
  StateDict given;
  const StateDict own = module.state_dict();
  for (const auto& [name, t] : full) given.set(name, t.defined() || !own.contains(name) ? t : own.at(name));
  struct Drop {
    PipelineModule& staged;
    ~Drop() { staged.drop_others(); }
  } const drop{*staged_};
  module.load_state_dict(given);
}

}  // namespace

void check_pipeline(const StrategyOptions& o) {
  if (o.pipeline.micro_batches < 1 || o.pipeline.micro_batches > kMostMicroBatches)
    throw UsageError(
        fmt::format("--pipeline-micro-batches {}: give 1 to {}.", o.pipeline.micro_batches, kMostMicroBatches));
  layers_of_stages(o.pipeline.balance);
}

std::unique_ptr<Strategy> make_pipeline(const StrategyChoice& choice) {
  return std::make_unique<PipelineStrategy>(choice.world(), choice.own_device(), *choice.options);
}

}  // namespace levin
