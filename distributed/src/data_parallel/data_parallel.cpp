#include <fmt/format.h>
#include <levin/autograd/autocast.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/parallel.h>
#include <levin/core/side_by_side.h>
#include <levin/distributed/data_parallel.h>
#include <levin/kernels/cuda.h>
#include <levin/nn/functional_call.h>
#include <levin/nn/set_data.h>

#include <algorithm>
#include <deque>
#include <latch>
#include <optional>
#include <span>

#include "src/data_parallel/replicas.h"
#include "src/groups/task_queue.h"

namespace levin::distributed {

namespace {

std::vector<Tensor> tensors_of(const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<Tensor> tensors;
  for (const auto& entry : named) tensors.push_back(entry.second);
  return tensors;
}

/// Frees a replica's tensor, which holds values only during a call.
void let_go(const Tensor& t) { nn::set_data(t, empty({0}, {.dtype = t.dtype()})); }

/// The thread-local state of the calling thread (autograd modes, autocast, stream), for use on another thread.
class Surroundings {
 public:
  explicit Surroundings(Device device) : device_(device), stream_(current_stream(device)) {}

  template <class F>
  void call(Generator& generator, const F& f) const {
    const ModeGuard modes(modes_);
    const DefaultGeneratorGuard random(generator);
    std::optional<autocast> lower;
    if (autocast_.enabled) lower.emplace(autocast_.dtype, true, autocast_.cache);
    std::optional<cuda::StreamGuard> stream;
    if (device_.type == DeviceType::cuda) stream.emplace(cuda::Stream(stream_));
    f();
  }

 private:
  Device device_;
  Stream stream_;
  detail::AutogradModes modes_ = detail::autograd_modes;
  detail::AutocastState autocast_ = detail::autocast_state;
};

}  // namespace

struct DataParallel::Impl {
  Impl(nn::Module& m, std::vector<Device> d, bool turns) : module(m), devices(std::move(d)), in_turns(turns) {}
  ~Impl() {
    for (TaskQueue& queue : queues) queue.finish();
  }

  nn::Module& replica(std::size_t r) { return r == 0 || in_turns ? module : *copies[r - 1]; }
  void check_home() const;
  void refresh();
  std::vector<std::vector<Tensor>> replicate(std::size_t n);
  std::unique_ptr<nn::Substitution> stand_in(std::size_t r, const std::vector<Tensor>& values);
  std::vector<Generator> other_generators(std::size_t n) const;
  void side_by_side(std::size_t n, const std::function<void(std::size_t)>& f);
  void one_by_one(std::size_t n, const std::function<void(std::size_t)>& f);

  nn::Module& module;
  const std::vector<Device> devices;
  const bool in_turns;
  std::vector<std::unique_ptr<nn::Module>> copies;
  std::shared_ptr<BytesMoved> moved = std::make_shared<BytesMoved>();
  std::deque<TaskQueue> queues;  // one per replica
};

std::unique_ptr<nn::Module> DataParallel::copy_of(const nn::Module& module) {
  const nn::Cloner cloner;
  auto copy = module.fresh();
  if (!copy) {
    throw ValueError(
        fmt::format("[DataParallel] a {} cannot be cloned from its base class, the only type known "
                    "here. Pass it by its own type, or make it with add.",
                    module.type_name()));
  }
  nn::Cloner::copy_state(module, *copy);
  return copy;
}

DataParallel::DataParallel(nn::Module& module, std::vector<Device> devices, const Copies& another)
    : impl_(std::make_unique<Impl>(module, std::move(devices), another == nullptr)) {
  if (impl_->devices.empty()) throw ValueError("[DataParallel] there is no device. Name one or more.");
  for (const Device d : impl_->devices) require_device(d);
  impl_->check_home();
  if (impl_->in_turns) return;
  for (std::size_t r = 1; r < impl_->devices.size(); ++r) {
    impl_->copies.push_back(another());
    for (const auto& entry : impl_->copies.back()->named_parameters()) let_go(entry.second);
    for (const auto& entry : impl_->copies.back()->named_buffers()) let_go(entry.second);
  }
}

DataParallel::DataParallel(nn::Module& module, std::vector<Device> devices)
    : DataParallel(module, std::move(devices), Copies([&module] { return copy_of(module); })) {}

DataParallel DataParallel::in_turns(nn::Module& module, std::vector<Device> devices) {
  return DataParallel(module, std::move(devices), Copies());
}

DataParallel::~DataParallel() = default;
DataParallel::DataParallel(DataParallel&&) noexcept = default;

nn::Module& DataParallel::module() const { return impl_->module; }
const std::vector<Device>& DataParallel::devices() const { return impl_->devices; }

DataParallelBytes DataParallel::bytes() const {
  const BytesMoved& m = *impl_->moved;
  return {m.parameters, m.inputs, m.outputs, m.output_gradients, m.parameter_gradients, m.input_gradients};
}

std::vector<int64_t> DataParallel::part_sizes(int64_t batch, std::size_t devices) {
  const auto n = static_cast<int64_t>(devices);
  const int64_t size = std::max<int64_t>(1, (batch + n - 1) / n);
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < batch; at += size) sizes.push_back(std::min(size, batch - at));
  return sizes;
}

Tensor DataParallel::operator()(const Tensor& x) {
  return run({x}, [](nn::Module& replica, const std::vector<Tensor>& parts) {
    return std::vector<Tensor>{replica(parts[0])};
  })[0];
}

std::vector<Tensor> DataParallel::run(const std::vector<Tensor>& inputs, const ReplicaForward& forward) {
  return run(inputs, [&](std::size_t, nn::Module& replica, const std::vector<Tensor>& parts) {
    return forward(replica, parts);
  });
}

std::vector<Tensor> DataParallel::run(const std::vector<Tensor>& inputs, const NumberedForward& forward) {
  Impl& i = *impl_;
  i.check_home();
  const auto sizes = part_sizes(batch_of(inputs), i.devices.size());
  const std::size_t n = std::max<std::size_t>(1, sizes.size());
  if (n == 1) {
    std::vector<Tensor> there;
    for (const Tensor& x : inputs) there.push_back(x.to(i.devices[0]));
    return forward(0, i.module, there);
  }

  std::vector<std::vector<Tensor>> parts(n), outputs(n);
  for (const Tensor& x : inputs) {
    const auto pieces = scatter(x, sizes, i.devices, i.moved);
    for (std::size_t r = 0; r < n; ++r) parts[r].push_back(pieces[r]);
  }
  const auto compute = [&](std::size_t r) {
    outputs[r] = forward(r, i.replica(r), parts[r]);
    // An output may be a parameter itself, which goes back to its module: return a view of it.
    for (Tensor& y : outputs[r]) y = y.defined() ? y.view(y.sizes()) : y;
  };
  const auto values = i.replicate(n);
  if (i.in_turns) {
    i.one_by_one(n, [&](std::size_t r) {
      const auto replica = i.stand_in(r, values[r]);
      compute(r);
    });
  } else {
    i.refresh();
    std::vector<std::unique_ptr<nn::Substitution>> replicas;
    for (std::size_t r = 0; r < n; ++r) replicas.push_back(i.stand_in(r, values[r]));
    i.side_by_side(n, compute);
  }
  std::vector<Tensor> result;
  for (std::size_t k = 0; k < outputs[0].size(); ++k) {
    std::vector<Tensor> pieces;
    for (const auto& list : outputs) {
      if (list.size() != outputs[0].size() || !list[k].defined())
        throw ValueError("[DataParallel] the replicas gave different numbers of outputs, or undefined ones.");
      pieces.push_back(list[k]);
    }
    result.push_back(gather(pieces, i.devices[0], i.moved));
  }
  return result;
}

void DataParallel::Impl::check_home() const {
  const auto check = [&](const auto& entry) {
    if (entry.second.device() == devices[0]) return;
    throw DeviceError(
        fmt::format("[DataParallel] {} is on {}, but the first of the devices is {}. Move the module "
                    "there: module.to(...).",
                    entry.first, to_string(entry.second.device()), to_string(devices[0])));
  };
  for (const auto& entry : module.named_parameters()) check(entry);
  for (const auto& entry : module.named_buffers()) check(entry);
}

// Updates the replicas' training flags, which may have changed since the last call.
void DataParallel::Impl::refresh() {
  const auto originals = std::as_const(module).named_modules();
  for (const auto& copy : copies) {
    const auto own = copy->named_modules();
    for (std::size_t k = 0; k < own.size(); ++k) {  // parents first, and a parent's flag reaches its children
      if (own[k].second->is_training() != originals[k].second->is_training())
        own[k].second->train(originals[k].second->is_training());
    }
  }
}

// Returns each replica's parameters, followed by the buffers of all but the first, which has the module's own.
std::vector<std::vector<Tensor>> DataParallel::Impl::replicate(std::size_t n) {
  const std::span<const Device> places(devices.data(), n);
  std::vector<std::vector<Tensor>> values(n);
  for (const auto& entry : module.named_parameters()) {
    const auto copies_of_it = distributed::replicate(entry.second, places, moved);
    for (std::size_t r = 0; r < n; ++r) values[r].push_back(copies_of_it[r]);
  }
  for (std::size_t r = 1; r < n; ++r)
    for (const auto& entry : module.named_buffers()) values[r].push_back(buffer_copy(entry.second, places[r], *moved));
  return values;
}

std::unique_ptr<nn::Substitution> DataParallel::Impl::stand_in(std::size_t r, const std::vector<Tensor>& values) {
  auto places = replica(r).named_parameters();
  if (r > 0)
    for (auto& buffer : replica(r).named_buffers()) places.push_back(std::move(buffer));
  return std::make_unique<nn::Substitution>(tensors_of(places), values);
}

std::vector<Generator> DataParallel::Impl::other_generators(std::size_t n) const {
  const Generator& own = default_generator();
  std::vector<Generator> others;
  for (std::size_t r = 1; r < n; ++r) others.push_back(own.fork(own.state().offset, r));
  return others;
}

void DataParallel::Impl::one_by_one(std::size_t n, const std::function<void(std::size_t)>& f) {
  Generator& own = default_generator();
  std::vector<Generator> others = other_generators(n);
  for (std::size_t r = 0; r < n; ++r) Surroundings(devices[r]).call(r == 0 ? own : others[r - 1], [&] { f(r); });
}

// Runs f(r) for each of n replicas on a thread of its own; returns when all have ended.
void DataParallel::Impl::side_by_side(std::size_t n, const std::function<void(std::size_t)>& f) {
  const int share = std::max(1, num_threads() / static_cast<int>(devices.size()));
  Generator& own = default_generator();
  std::vector<Generator> others = other_generators(n);
  std::vector<std::exception_ptr> errors(n);
  const auto rest = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(n));
  while (queues.size() < n) queues.emplace_back();
  for (std::size_t r = 0; r < n; ++r) {
    queues[r].add([&, r, rest, around = Surroundings(devices[r])] {
      try {
        limit_thread(share);
        around.call(r == 0 ? own : others[r - 1], [&] { f(r); });
      } catch (...) {
        errors[r] = std::current_exception();
      }
      rest->count_down();
    });
  }
  rest->wait();
  for (const std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
}

}  // namespace levin::distributed
