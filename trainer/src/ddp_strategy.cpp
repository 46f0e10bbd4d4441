#include "ddp_strategy.h"

#include <levin/autograd/function.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/ddp.h>

#include <algorithm>
#include <utility>

#include "state_json.h"
#include "world.h"

namespace levin {
namespace {

using distributed::ProcessGroup;
using Operation = distributed::ReduceOp;

constexpr const char* kUnused = "ddp_find_unused_parameters_true";

Operation operation(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return Operation::sum;
    case ReduceOp::mean:
      return Operation::avg;
    case ReduceOp::min:
      return Operation::min;
    case ReduceOp::max:
      return Operation::max;
  }
  return Operation::sum;
}

/// (world_size, ...)
Tensor gathered(ProcessGroup& group, const Tensor& own) {
  std::vector<std::int64_t> sizes(own.sizes().begin(), own.sizes().end());
  sizes.insert(sizes.begin(), group.size());
  const Tensor all = empty(Shape{std::span<const std::int64_t>(sizes)}, like(own));
  group.all_gather(all, own.contiguous()).wait();
  return all;
}

struct AllGather : Function<AllGather> {
  static Tensor forward(Context& c, const Tensor& own, const std::shared_ptr<ProcessGroup>& group) {
    c.set(group);
    return gathered(*group, own);
  }
  /// What all ranks ask of this one's part.
  static Tensor backward(Context& c, const Tensor& g) {
    ProcessGroup& group = *c.get<std::shared_ptr<ProcessGroup>>();
    const Tensor sum = g.contiguous().clone();
    group.all_reduce(sum).wait();
    return sum.select(0, group.rank());
  }
};

/// Averages gradients where they lie, with zeros where a rank has none; one that no rank has stays away.
void average(ProcessGroup& group, const std::vector<Parameter>& parameters) {
  const no_grad guard;
  std::vector<std::uint8_t> has;
  for (const Parameter& p : parameters) has.push_back(p.grad().defined() ? 1 : 0);
  if (has.empty()) return;
  const Tensor anywhere = from_data(has, {static_cast<std::int64_t>(has.size())});
  group.all_reduce(anywhere, Operation::max).wait();
  std::vector<distributed::Work> works;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (anywhere.data<std::uint8_t>()[i] == 0) continue;
    if (!p.grad().defined()) p.set_grad(zeros(p.sizes(), like(p)));
    if (!p.grad().is_contiguous()) p.set_grad(p.grad().contiguous());
    works.push_back(group.all_reduce(p.grad(), Operation::avg));
  }
  for (const auto& work : works) work.wait();
}

class Ddp final : public Strategy {
 public:
  Ddp(std::string name, World& world, Device device)
      : name_(std::move(name)), world_(world), group_(world.group), device_(device) {}
  std::string name() const override { return "ddp"; }
  Device device() const override { return device_; }
  int rank() const override { return world_.info.rank; }
  int world_size() const override { return world_.info.world_size; }
  int local_rank() const override { return world_.info.local_rank; }
  int node_rank() const override { return world_.info.node_rank; }

  void setup(nn::Module& module) override {
    module.to(device_);
    distributed::share_module(module, *group_);
    // Every rank draws numbers of its own (dropout), from its own part of one stream: the seed stays common.
    GeneratorState random = default_generator().state();
    random.offset = (random.offset & kOffsets) | (static_cast<std::uint64_t>(rank()) << 48);
    default_generator().set_state(random);
  }
  Batch to_device(Batch batch) const override {
    for (Tensor& t : batch.tensors) t = t.to(device_);
    return batch;
  }
  void share_buffers(nn::Module& module) override {
    std::vector<Tensor> buffers;
    for (const auto& [name, b] : module.named_buffers()) buffers.push_back(b);
    distributed::broadcast_all(*group_, buffers);
  }

  void reduce_in_backward(const std::vector<Parameter>& parameters) override {
    std::vector<Parameter> watched;
    for (const Parameter& p : parameters)
      if (p.requires_grad()) watched.push_back(p);
    const auto same = [](const Parameter& a, const Parameter& b) { return a.is_same(b); };
    if (!reducer_ || !std::equal(watched.begin(), watched.end(), watched_.begin(), watched_.end(), same)) {
      reducer_.reset();
      reducer_ = std::make_unique<distributed::Reducer>(
          watched, group_, distributed::DistributedDataParallelOptions{.find_unused_parameters = name_ == kUnused});
      watched_ = watched;
    }
    reducer_->set_sync(true);
    reduced_ = true;
  }
  void finish_reduction(const std::vector<Parameter>& parameters) override {
    if (!std::exchange(reduced_, false)) return average(*group_, parameters);
    reducer_->set_sync(false);  // backward has waited for it
  }

  double reduce(double value, ReduceOp op) override {
    return reduce(full({}, value, {.dtype = kFloat64}), op).item<double>();
  }
  Tensor reduce(const Tensor& value, ReduceOp op) override {
    const Tensor out = value.detach().contiguous().clone();
    group_->all_reduce(out, operation(op)).wait();
    return out;
  }
  Tensor broadcast(const Tensor& value, int src) override {
    const Tensor out = value.detach().contiguous().clone();
    group_->broadcast(out, src).wait();
    return out;
  }
  StateMap broadcast(const StateMap& values, int src) override {
    return gather(rank() == src ? values : StateMap())[static_cast<std::size_t>(src)];
  }
  /// As JSON, in parts of one size.
  std::vector<StateMap> gather(const StateMap& own) override {
    const std::string text = to_json(own).dump();
    const Tensor size = full({}, static_cast<double>(text.size()), {.dtype = kInt64});
    const auto lengths = gathered(*group_, size).to_vector<std::int64_t>();
    const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    bytes.resize(static_cast<std::size_t>(longest));
    const auto all = gathered(*group_, from_data(bytes, {longest})).to_vector<std::uint8_t>();
    std::vector<StateMap> out;
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r) * longest;
      out.push_back(state_from_json(nlohmann::json::parse(begin, begin + lengths[r])));
    }
    return out;
  }
  Tensor all_gather(const Tensor& value, bool sync_grads) override {
    if (world_size() == 1) return sync_grads ? value : value.detach();
    return sync_grads ? AllGather::apply(value, group_) : gathered(*group_, value.detach());
  }
  void barrier() override { group_->barrier().wait(); }
  std::vector<std::uint8_t> any(const std::vector<std::uint8_t>& flags) override {
    const Tensor t = from_data(flags, {static_cast<std::int64_t>(flags.size())});
    group_->all_reduce(t, Operation::max).wait();
    return t.to_vector<std::uint8_t>();
  }
  void abort(const std::string& reason) override { group_->abort(reason); }

 private:
  static constexpr std::uint64_t kOffsets = (std::uint64_t{1} << 48) - 1;

  std::string name_;
  World& world_;
  std::shared_ptr<ProcessGroup> group_;
  Device device_;
  std::unique_ptr<distributed::Reducer> reducer_;
  std::vector<Parameter> watched_;  // by it
  bool reduced_ = false;            // in the backward of this window
};

}  // namespace

bool is_ddp(const std::string& name) {
  return name == "ddp" || name == "ddp_spawn" || name == kUnused || name == "ddp_find_unused_parameters_false";
}

std::unique_ptr<Strategy> make_ddp(const std::string& name, const std::vector<Device>& devices,
                                   const StrategyOptions& options) {
  World& world = join_world(static_cast<int>(devices.size()), options);
  const auto local = static_cast<std::size_t>(world.info.local_rank);
  // Under a launcher that started more ranks than "auto" knows of, each takes the device of its own number.
  if (local < devices.size()) return std::make_unique<Ddp>(name, world, devices[local]);
  const auto& known = devices[0];
  return std::make_unique<Ddp>(name, world, known == kCpu ? kCpu : cuda(static_cast<int>(local)));
}

}  // namespace levin
