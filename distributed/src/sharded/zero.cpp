#include <fmt/format.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>
#include <levin/distributed/fsdp.h>
#include <levin/distributed/zero.h>
#include <levin/optim/clip.h>

#include <algorithm>
#include <unordered_map>

#include "src/sharded/shard_reducer.h"

namespace levin::distributed {

struct ZeroRedundancyOptimizer::Impl {
  optim::Optimizer& optimizer;
  std::shared_ptr<ProcessGroup> group;
  ZeroOptions options;
  std::vector<std::shared_ptr<const FlatUnit>> units{};
  std::unordered_map<const TensorImpl*, const UnitEntry*> of_parameter{}, of_piece{};
  std::unique_ptr<ShardReducer> reducer{};  // with stage 2

  std::vector<const FlatUnit*> unit_list() const {
    std::vector<const FlatUnit*> list;
    for (const auto& unit : units) list.push_back(unit.get());
    return list;
  }
  bool steps_pieces_always() const { return options.stage == 2; }
  const UnitEntry* entry_of(const Parameter& p) const {
    const auto own = of_parameter.find(p.impl()), piece = of_piece.find(p.impl());
    return own != of_parameter.end() ? own->second : piece != of_piece.end() ? piece->second : nullptr;
  }
  /// Makes the optimizer step the pieces, or the full parameters.
  void put(bool pieces) const {
    for (optim::ParamGroup& g : optimizer.param_groups())
      for (Parameter& p : g.params)
        if (const UnitEntry* e = entry_of(p)) p = pieces ? e->piece : e->parameter;
  }
  void share_updates() const;
};

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(optim::Optimizer& optimizer, std::shared_ptr<ProcessGroup> group,
                                                 const ZeroOptions& options)
    : impl_(std::unique_ptr<Impl>(new Impl{.optimizer = optimizer, .group = std::move(group), .options = options})) {
  if (options.stage != 1 && options.stage != 2)
    throw ValueError(fmt::format("[zero] stage {}: an optimizer has the stages 1 and 2; FullyShardedDataParallel is 3.",
                                 options.stage));
  require_elementwise(optimizer);
  for (const auto& [name, t] : optimizer.state_dict())
    if (name.starts_with("state."))
      throw ValueError(
          "[zero] the optimizer has state already. Divide it before its first step, and load state through the "
          "ZeroRedundancyOptimizer.");
  if (options.stage == 2)
    impl_->reducer = std::make_unique<ShardReducer>(
        impl_->group, ShardReducer::Options{.find_unused_parameters = options.find_unused_parameters});
  take_parameters();
}

ZeroRedundancyOptimizer::~ZeroRedundancyOptimizer() = default;

void ZeroRedundancyOptimizer::take_parameters() {
  const no_grad guard;
  std::vector<Parameter> fresh;
  for (const Parameter& p : impl_->optimizer.parameters())
    if (!impl_->entry_of(p)) fresh.push_back(p);
  if (fresh.empty()) return;
  std::reverse(fresh.begin(), fresh.end());  // gradients become ready in reverse order
  for (const auto& members : divide_into_units(fresh, impl_->options.bucket_cap_mb)) {
    const auto unit = std::make_shared<const FlatUnit>(FlatUnit::of_parameters(members, *impl_->group));
    impl_->units.push_back(unit);
    for (const UnitEntry& e : unit->entries()) {
      impl_->of_parameter[e.parameter.impl()] = &e;
      impl_->of_piece[e.piece.impl()] = &e;
    }
    if (impl_->reducer) impl_->reducer->add(unit);
  }
  if (impl_->steps_pieces_always()) impl_->put(true);
}

void ZeroRedundancyOptimizer::before_step() {
  if (impl_->steps_pieces_always()) return;
  const no_grad guard;
  for (const auto& unit : impl_->units)
    for (const UnitEntry& e : unit->entries()) {
      require_dense_grad("ZeroRedundancyOptimizer", e.parameter);
      const Tensor grad = e.parameter.grad();
      e.piece.set_grad(grad.defined() ? grad.detach().contiguous().view({-1}).narrow(0, e.own_begin, e.piece.numel())
                                      : Tensor());
    }
  impl_->put(true);
}

void ZeroRedundancyOptimizer::after_step() {
  const no_grad guard;
  if (!impl_->steps_pieces_always()) {
    impl_->put(false);
    for (const auto& unit : impl_->units)
      for (const UnitEntry& e : unit->entries()) e.piece.set_grad({});
  }
  impl_->share_updates();
}

// Gathers the next unit while one is unpacked.
void ZeroRedundancyOptimizer::Impl::share_updates() const {
  struct Sent {
    Tensor whole;
    Work work;
  };
  const auto send = [&](const FlatUnit& unit) {
    const Tensor whole = unit.empty_whole();
    unit.pack(whole);
    return Sent{whole, group->all_gather(whole, unit.own(whole))};
  };
  if (units.empty()) return;
  Sent sent = send(*units.front());
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Sent now = sent;
    if (u + 1 < units.size()) sent = send(*units[u + 1]);
    now.work.wait();
    units[u]->unpack_others(now.whole);
  }
}

void ZeroRedundancyOptimizer::step() {
  before_step();
  impl_->optimizer.step();
  after_step();
}

void ZeroRedundancyOptimizer::step_unless(const Tensor& found_inf) {
  before_step();
  impl_->optimizer.step_unless(found_inf);
  after_step();
}

void ZeroRedundancyOptimizer::zero_grad(bool set_to_none) {
  impl_->optimizer.zero_grad(set_to_none);
  if (!impl_->steps_pieces_always()) return;
  for (const auto& unit : impl_->units)
    for (const UnitEntry& e : unit->entries()) e.parameter.set_grad({});
}

Tensor ZeroRedundancyOptimizer::clip_grad_norm_(double max_norm, double norm_type) {
  const auto parameters = impl_->optimizer.parameters();
  if (!impl_->steps_pieces_always()) return optim::clip_grad_norm_(parameters, max_norm, {.norm_type = norm_type});
  return clip_grad_norm_of_pieces_(parameters, max_norm, *impl_->group, norm_type);
}

void ZeroRedundancyOptimizer::set_sync(bool on) {
  if (impl_->reducer) impl_->reducer->set_sync(on);
}

void ZeroRedundancyOptimizer::reduce() {
  if (impl_->reducer) impl_->reducer->reduce(impl_->unit_list());
}

StateDict ZeroRedundancyOptimizer::state_dict() {
  impl_->put(true);
  StateDict whole = gather_state(impl_->optimizer, impl_->unit_list(), *impl_->group);
  if (!impl_->steps_pieces_always()) impl_->put(false);
  return whole;
}

void ZeroRedundancyOptimizer::load_state_dict(const StateDict& whole) {
  impl_->put(true);
  load_state(impl_->optimizer, impl_->unit_list(), whole);
  if (!impl_->steps_pieces_always()) impl_->put(false);
}

std::vector<Shard> ZeroRedundancyOptimizer::shards() {
  impl_->put(true);
  auto own = state_shards(impl_->optimizer, impl_->unit_list(), impl_->group->rank());
  if (!impl_->steps_pieces_always()) impl_->put(false);
  return own;
}

std::vector<Parameter> ZeroRedundancyOptimizer::full_parameters(std::vector<Parameter> pieces) const {
  for (Parameter& p : pieces)
    if (const UnitEntry* e = impl_->entry_of(p)) p = e->parameter;
  return pieces;
}

bool ZeroRedundancyOptimizer::steps(const Parameter& p) const { return impl_->entry_of(p) != nullptr; }
int ZeroRedundancyOptimizer::stage() const { return impl_->options.stage; }
int64_t ZeroRedundancyOptimizer::overlapped() const { return impl_->reducer ? impl_->reducer->overlapped() : 0; }

HeldBytes ZeroRedundancyOptimizer::held_bytes() const {
  HeldBytes held;
  const auto bytes = [](const Tensor& t) { return t.defined() ? t.numel() * size_of(t.dtype()) : 0; };
  for (const auto& unit : impl_->units)
    for (const UnitEntry& e : unit->entries()) {
      held.parameters += bytes(e.parameter);
      held.gradients += bytes(e.parameter.grad()) + bytes(e.piece.grad());
    }
  impl_->put(true);
  for (const auto& [name, t] : impl_->optimizer.state_dict())
    if (name.starts_with("state.") && !name.ends_with(".step")) held.state += bytes(t);
  if (!impl_->steps_pieces_always()) impl_->put(false);
  return held;
}

}  // namespace levin::distributed
