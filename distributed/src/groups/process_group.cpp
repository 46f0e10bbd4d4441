// Checks the arguments of collectives and hands them to the implementations.

#include <fmt/format.h>
#include <levin/distributed/process_group.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "src/clock.h"
#include "src/groups/work.h"

namespace levin::distributed {

namespace {

using Kind = Collective::Kind;

void check_tensor(Kind kind, const char* what, const Tensor& t) {
  if (!t.defined()) throw ValueError(fmt::format("[{}] the {} is an undefined tensor.", to_string(kind), what));
  if (!t.is_contiguous()) {
    throw ValueError(fmt::format("[{}] the {} of shape {} is not contiguous; give a contiguous() copy.",
                                 to_string(kind), what, levin::to_string(t.sizes())));
  }
}

void check_op(Kind kind, const Tensor& t, ReduceOp op) {
  if (op == ReduceOp::avg && !t.is_floating()) {
    throw DTypeError(fmt::format("[{}] avg is for floating types, this is {}; reduce with sum and divide.",
                                 to_string(kind), name_of(t.dtype())));
  }
}

// Checks that `whole` holds `parts` times the elements of `part`.
void check_pair(Kind kind, const char* whole_name, const Tensor& whole, const Tensor& part, int parts) {
  if (whole.dtype() != part.dtype()) {
    throw DTypeError(fmt::format("[{}] input and output differ: {} and {}.", to_string(kind), name_of(part.dtype()),
                                 name_of(whole.dtype())));
  }
  if (whole.numel() != parts * part.numel()) {
    throw ShapeError(fmt::format("[{}] the {} has {} elements; {} ranks with {} each need {}.", to_string(kind),
                                 whole_name, whole.numel(), parts, part.numel(), parts * part.numel()));
  }
}

void check_splits(const char* name, const std::vector<int64_t>& splits, int64_t numel, int size) {
  const int64_t sum = std::accumulate(splits.begin(), splits.end(), int64_t{0});
  const bool negative = std::any_of(splits.begin(), splits.end(), [](int64_t n) { return n < 0; });
  if (static_cast<int>(splits.size()) != size || sum != numel || negative) {
    throw ShapeError(
        fmt::format("[all_to_all] the {} splits are {} numbers with the sum {}; {} ranks and {} elements need "
                    "as many, none negative.",
                    name, splits.size(), sum, size, numel));
  }
}

std::vector<int64_t> equal_parts(const char* name, int64_t numel, int size) {
  if (numel % size != 0) {
    throw ShapeError(fmt::format("[all_to_all] {} elements of the {} do not divide among {} ranks; give splits.", numel,
                                 name, size));
  }
  return std::vector<int64_t>(static_cast<std::size_t>(size), numel / size);
}

}  // namespace

std::string to_string(ReduceOp op) {
  constexpr const char* kNames[] = {"sum", "avg", "min", "max", "product"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string to_string(Kind kind) {
  constexpr const char* kNames[] = {"all_reduce",     "reduce",     "broadcast", "all_gather",
                                    "reduce_scatter", "all_to_all", "gather",    "scatter",
                                    "barrier",        "send",       "recv"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool Work::is_completed() const {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

void Work::wait(std::optional<Duration> timeout) const {
  if (!state_ || (!timeout && !is_completed() && state_->order_streams())) return;
  if (!timeout) state_->help();
  std::unique_lock lock(state_->mutex);
  const auto done = [&] { return state_->done; };
  if (!timeout) {
    state_->changed.wait(lock, done);
  } else if (!state_->changed.wait_for(lock, Milliseconds(*timeout), done)) {
    throw CollectiveTimeout(fmt::format("[{}] not done after {} s of waiting.", state_->name, timeout->seconds()));
  }
  if (state_->error) std::rethrow_exception(state_->error);
}

std::exception_ptr Work::exception() const {
  if (!state_) return nullptr;
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

void ProcessGroup::check_rank(const char* operation, int rank) const {
  if (rank < 0 || rank >= size()) {
    throw ValueError(
        fmt::format("[{}] rank {} is not in this group of {}; ranks count from 0.", operation, rank, size()));
  }
}

void ProcessGroup::check_members(const std::vector<int>& ranks) const {
  for (const int r : ranks) check_rank("new_group", r);
  if (ranks.empty() || std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) {
    throw ValueError("[new_group] the list of ranks is empty or names one twice.");
  }
}

std::shared_ptr<ProcessGroup> ProcessGroup::as_part(std::shared_ptr<ProcessGroup> made) const {
  made->part_of_world_ = part_of_world_ || made->size() < size();
  return made;
}

Tensor ProcessGroup::shared_empty(const Shape& sizes, const TensorOptions& options) { return empty(sizes, options); }

namespace {
constinit thread_local bool t_alone = false;
}

NoCollectives::NoCollectives() : before_(std::exchange(t_alone, true)) {}
NoCollectives::~NoCollectives() { t_alone = before_; }

Work ProcessGroup::start(Collective collective) {
  if (t_alone && size() > 1)
    throw UsageError(fmt::format("[{}] this code runs on rank {} alone, and the other ranks would not take part.",
                                 to_string(collective.kind), rank()));
  ++begun_.at(static_cast<std::size_t>(collective.kind));
  return begin(std::move(collective));
}

Work ProcessGroup::all_reduce(const Tensor& t, ReduceOp op) {
  check_tensor(Kind::all_reduce, "tensor", t);
  check_op(Kind::all_reduce, t, op);
  return start({.kind = Kind::all_reduce, .output = t, .op = op});
}

Work ProcessGroup::reduce(const Tensor& t, int root, ReduceOp op) {
  check_rank("reduce", root);
  check_tensor(Kind::reduce, "tensor", t);
  check_op(Kind::reduce, t, op);
  return start({.kind = Kind::reduce, .output = t, .op = op, .root = root});
}

Work ProcessGroup::broadcast(const Tensor& t, int root) {
  check_rank("broadcast", root);
  check_tensor(Kind::broadcast, "tensor", t);
  return start({.kind = Kind::broadcast, .output = t, .root = root});
}

Work ProcessGroup::all_gather(const Tensor& output, const Tensor& input) {
  check_tensor(Kind::all_gather, "output", output);
  check_tensor(Kind::all_gather, "input", input);
  check_pair(Kind::all_gather, "output", output, input, size());
  return start({.kind = Kind::all_gather, .output = output, .input = input});
}

Work ProcessGroup::reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op) {
  check_tensor(Kind::reduce_scatter, "output", output);
  check_tensor(Kind::reduce_scatter, "input", input);
  check_pair(Kind::reduce_scatter, "input", input, output, size());
  check_op(Kind::reduce_scatter, input, op);
  return start({.kind = Kind::reduce_scatter, .output = output, .input = input, .op = op});
}

Work ProcessGroup::all_to_all(const Tensor& output, const Tensor& input, const AllToAllOptions& options) {
  check_tensor(Kind::all_to_all, "output", output);
  check_tensor(Kind::all_to_all, "input", input);
  if (output.dtype() != input.dtype()) check_pair(Kind::all_to_all, "output", output, input, 1);
  auto from = options.output_splits.empty() ? equal_parts("output", output.numel(), size()) : options.output_splits;
  auto to = options.input_splits.empty() ? equal_parts("input", input.numel(), size()) : options.input_splits;
  check_splits("output", from, output.numel(), size());
  check_splits("input", to, input.numel(), size());
  return start({.kind = Kind::all_to_all,
                .output = output,
                .input = input,
                .output_splits = std::move(from),
                .input_splits = std::move(to)});
}

Work ProcessGroup::gather(const Tensor& output, const Tensor& input, int root) {
  check_rank("gather", root);
  check_tensor(Kind::gather, "input", input);
  if (rank_ == root) {
    check_tensor(Kind::gather, "output", output);
    check_pair(Kind::gather, "output", output, input, size());
  }
  return start({.kind = Kind::gather, .output = rank_ == root ? output : Tensor(), .input = input, .root = root});
}

Work ProcessGroup::scatter(const Tensor& output, const Tensor& input, int root) {
  check_rank("scatter", root);
  check_tensor(Kind::scatter, "output", output);
  if (rank_ == root) {
    check_tensor(Kind::scatter, "input", input);
    check_pair(Kind::scatter, "input", input, output, size());
  }
  return start({.kind = Kind::scatter, .output = output, .input = rank_ == root ? input : Tensor(), .root = root});
}

Work ProcessGroup::send(const Tensor& t, int to, int tag) {
  check_rank("send", to);
  check_tensor(Kind::send, "tensor", t);
  if (to == rank_) throw ValueError(fmt::format("[send] rank {} sends to itself; copy the tensor.", to));
  return start({.kind = Kind::send, .input = t, .root = to, .tag = tag});
}

Work ProcessGroup::recv(const Tensor& t, int from, int tag) {
  check_rank("recv", from);
  check_tensor(Kind::recv, "tensor", t);
  if (from == rank_) throw ValueError(fmt::format("[recv] rank {} receives from itself; copy the tensor.", from));
  return start({.kind = Kind::recv, .output = t, .root = from, .tag = tag});
}

Work ProcessGroup::barrier() { return start({.kind = Kind::barrier}); }

}  // namespace levin::distributed
