#include "src/sharded/flat_unit.h"

#include <fmt/format.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>
#include <levin/distributed/fsdp.h>
#include <levin/nn/set_data.h>
#include <levin/optim/clip.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace levin::distributed {

FlatUnit::FlatUnit(const std::vector<Parameter>& parameters, const ProcessGroup& group)
    : options_(like(parameters.front())), rank_(group.rank()), size_(group.size()) {
  options_.requires_grad = false;
  int64_t numel = 0;
  for (const Parameter& p : parameters) {
    entries_.push_back({.parameter = p, .sizes = p.sizes(), .begin = numel, .numel = p.numel(), .piece = p});
    numel += p.numel();
  }
  part_ = std::max<int64_t>(1, (numel + size_ - 1) / size_);
  for (UnitEntry& e : entries_) {
    e.own_begin = std::clamp<int64_t>(rank_ * part_ - e.begin, 0, e.numel);
    e.own_end = std::clamp<int64_t>((rank_ + 1) * part_ - e.begin, 0, e.numel);
  }
}

namespace {

Parameter leaf(const Parameter& of, const Tensor& values) {
  return {of.name, values.requires_grad_(of.requires_grad())};
}

}  // namespace

Tensor own_elements(const UnitEntry& e, const Tensor& parameter) {
  return parameter.view({-1}).narrow(0, e.own_begin, e.own_end - e.own_begin);
}

FlatUnit FlatUnit::of_parameters(const std::vector<Parameter>& parameters, const ProcessGroup& group) {
  const no_grad guard;
  FlatUnit unit(parameters, group);
  for (UnitEntry& e : unit.entries_) {
    if (!e.parameter.is_contiguous()) nn::set_data(e.parameter, e.parameter.detach().contiguous());
    e.piece = leaf(e.parameter, own_elements(e, e.parameter.detach()));
  }
  return unit;
}

FlatUnit FlatUnit::of_shard(const std::vector<Parameter>& parameters, const ProcessGroup& group) {
  const no_grad guard;
  FlatUnit unit(parameters, group);
  unit.shard_ = zeros({unit.part_}, unit.options_);
  for (UnitEntry& e : unit.entries_) {
    e.piece = leaf(e.parameter, unit.piece_of(unit.shard_, e));
    e.piece.detach().copy_(own_elements(e, e.parameter.detach().contiguous()));
  }
  return unit;
}

Tensor FlatUnit::piece_of(const Tensor& part, const UnitEntry& e) const {
  const int64_t at = std::clamp<int64_t>(e.begin + e.own_begin - rank_ * part_, 0, part_);
  return part.narrow(0, at, e.own_end - e.own_begin);
}

Tensor FlatUnit::take_gradients() const {
  const Tensor whole = zeros({part_ * size_}, options_);
  for (const UnitEntry& e : entries_) {
    require_dense_grad("sharding", e.parameter);
    const Tensor grad = e.parameter.grad();
    if (!grad.defined()) continue;
    whole.narrow(0, e.begin, e.numel).view(e.sizes).copy_(grad.detach());
    e.parameter.set_grad({});
  }
  return whole;
}

void FlatUnit::pack(const Tensor& whole) const {
  const Tensor part = own(whole);
  for (const UnitEntry& e : entries_) piece_of(part, e).copy_(e.piece.detach());
}

void FlatUnit::unpack_others(const Tensor& whole) const {
  for (const UnitEntry& e : entries_) {
    const Tensor to = e.parameter.detach().view({-1}), from = whole.narrow(0, e.begin, e.numel);
    const auto copy = [&](int64_t begin, int64_t end) {
      if (begin < end) to.narrow(0, begin, end - begin).copy_(from.narrow(0, begin, end - begin));
    };
    copy(0, e.own_begin);
    copy(e.own_end, e.numel);
  }
}

std::vector<std::vector<Parameter>> divide_into_units(const std::vector<Parameter>& parameters, double cap_mb) {
  std::vector<std::vector<Parameter>> units, open;
  const auto bytes = [](const std::vector<Parameter>& members) {
    double sum = 0;
    for (const Parameter& p : members) sum += static_cast<double>(p.numel() * size_of(p.dtype()));
    return sum;
  };
  for (const Parameter& p : parameters) {
    const auto fits = [&](const std::vector<Parameter>& members) {
      return members.front().dtype() == p.dtype() && members.front().device() == p.device();
    };
    auto unit = std::find_if(open.begin(), open.end(), fits);
    if (unit == open.end()) unit = open.insert(open.end(), std::vector<Parameter>{});
    unit->push_back(p);
    if (bytes(*unit) < cap_mb * 1024 * 1024) continue;
    units.push_back(std::move(*unit));
    open.erase(unit);
  }
  units.insert(units.end(), open.begin(), open.end());
  return units;
}

void require_elementwise(const optim::Optimizer& optimizer) {
  if (optimizer.is_elementwise()) return;
  throw ValueError(
      fmt::format("[zero] {} looks at whole parameters (their shapes or norms), and a rank has pieces of them. Use an "
                  "optimizer that is elementwise, such as AdamW, or --strategy ddp.",
                  optimizer.name()));
}

namespace {

/// Returns the names of an optimizer's pieces, by address.
std::map<const TensorImpl*, std::string> names_of(const optim::Optimizer& optimizer) {
  std::map<const TensorImpl*, std::string> names;
  for (const Parameter& p : optimizer.parameters()) names[p.impl()] = p.name;
  return names;
}

// The step counter is the same for all elements; every other entry has one value per element.
bool is_divided(const std::string& slot) { return slot != "step"; }

}  // namespace

StateDict gather_state(const optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units,
                       ProcessGroup& group) {
  const no_grad guard;
  const StateDict own = optimizer.state_dict();
  const auto names = names_of(optimizer);
  struct Part {
    const UnitEntry* entry;
    std::string name;
    Tensor values;
  };
  std::map<std::string, Tensor> whole;
  for (const FlatUnit* unit : units) {
    std::map<std::string, std::vector<Part>> slots;
    for (const UnitEntry& e : unit->entries()) {
      const auto known = names.find(e.piece.impl());
      if (known == names.end()) continue;
      const std::string prefix = "state." + known->second + ".";
      for (const auto& [slot, t] : own.sub(prefix))
        if (is_divided(slot)) slots[slot].push_back({&e, prefix + slot, t});
    }
    for (const auto& [slot, parts] : slots) {
      const Tensor part = zeros({unit->part()}, like(unit->empty_part()));
      for (const Part& p : parts) unit->piece_of(part, *p.entry).copy_(p.values);
      const Tensor all = group.rank() == 0 ? unit->empty_whole() : Tensor();
      group.gather(all, part, 0).wait();
      if (group.rank() != 0) continue;
      for (const Part& p : parts)
        whole[p.name] = all.narrow(0, p.entry->begin, p.entry->numel).view(p.entry->sizes).clone();
    }
  }
  StateDict result;
  if (group.rank() != 0) return result;
  for (const auto& [name, t] : own) {
    const auto found = whole.find(name);
    result.merge("", {{name, found == whole.end() ? t : found->second}});
  }
  return result;
}

namespace {

/// The entries of the parameters whose pieces an optimizer steps, by their names in the optimizer.
class Divided {
 public:
  Divided(const optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units) {
    const auto names = names_of(optimizer);
    for (const FlatUnit* unit : units)
      for (const UnitEntry& e : unit->entries())
        if (const auto known = names.find(e.piece.impl()); known != names.end()) entries_[known->second] = &e;
  }
  /// Returns the entry that a key of the optimizer's state belongs to; null if the state is not sharded.
  const UnitEntry* find(const std::string& key) const {
    const auto dot = key.rfind('.');
    if (!key.starts_with("state.") || !is_divided(key.substr(dot + 1))) return nullptr;
    const auto found = entries_.find(key.substr(6, dot - 6));
    return found == entries_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::string, const UnitEntry*> entries_;
};

}  // namespace

void add_shard(std::vector<Shard>& shards, const UnitEntry& e, const std::string& name, const Tensor& own, int rank) {
  if (own.numel() > 0) shards.push_back({name, own, e.own_begin, e.sizes});
  if (e.numel == 0 && rank == 0) shards.push_back({name, zeros(e.sizes, like(own)), 0, e.sizes});
}

std::vector<Shard> state_shards(const optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units,
                                int rank) {
  const no_grad guard;
  const Divided divided(optimizer, units);
  std::vector<Shard> shards;
  const StateDict own = optimizer.state_dict();
  for (const auto& [name, t] : own) {
    if (const UnitEntry* e = divided.find(name))
      add_shard(shards, *e, name, t, rank);
    else if (rank == 0)
      shards.push_back({name, t, 0, t.sizes()});
  }
  return shards;
}

void load_state(optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units, const StateDict& whole) {
  const no_grad guard;
  const Divided divided(optimizer, units);
  StateDict own;
  for (const auto& [name, t] : whole) {
    const UnitEntry* e = divided.find(name);
    if (e && t.sizes() != e->sizes)
      throw StateError(fmt::format("[load_state_dict] \"{}\" is {} there and the parameter {}. Nothing was loaded.",
                                   name, to_string(t.sizes()), to_string(e->sizes)));
    own.merge("", {{name, e ? own_elements(*e, t.contiguous()) : t}});
  }
  optimizer.load_state_dict(own);
}

Tensor clip_grad_norm_of_pieces_(const std::vector<Parameter>& pieces, double max_norm, ProcessGroup& group,
                                 double norm_type) {
  const no_grad guard;
  const bool largest = std::isinf(norm_type);
  std::vector<Tensor> grads, norms;
  for (const Parameter& p : pieces)
    if (p.grad().defined() && p.numel() > 0) grads.push_back(p.grad().detach());
  for (const Tensor& g : grads) norms.push_back(norm(g, norm_type).to(grads[0].device(), kFloat64));
  const Device device = pieces.empty() ? kCpu : pieces[0].device();
  Tensor total = norms.empty() ? zeros({}, {.dtype = kFloat64, .device = device}) : norm(stack(norms), norm_type);
  if (!largest) total = pow(total, norm_type);
  total = total.contiguous();
  group.all_reduce(total, largest ? ReduceOp::max : ReduceOp::sum).wait();
  if (!largest) total = pow(total, 1.0 / norm_type);
  optim::clip_grads_with_norm_(pieces, max_norm, total);
  return total;
}

}  // namespace levin::distributed
