#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/ddp.h>
#include <levin/distributed/fsdp.h>
#include <levin/nn/set_data.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "src/sharded/gather_order.h"
#include "src/sharded/shard_reducer.h"

namespace levin::distributed {

namespace {

constexpr std::uint32_t kGenerations = 64;

/// The parameters of a module that do not belong to a unit within it.
struct Unit {
  nn::Module* module;
  std::string name;
  std::shared_ptr<const FlatUnit> flat;
  Tensor whole{};                // the gathered parameters, also while the gather is in flight
  Work work{};                   // the gather
  bool placed = false;           // whether the parameters are views of `whole`
  bool in_use = false;           // whether the module computes
  std::uint32_t version = 0;     // version of the gathered shard
  std::uint32_t generation = 0;  // number of different versions gathered so far
};

int64_t bytes_of(const Tensor& t) { return t.defined() ? t.numel() * size_of(t.dtype()) : 0; }

/// Returns a tensor with the parameter's shape that uses almost no memory.
Tensor stand_in(const UnitEntry& e) {
  TensorOptions options = like(e.parameter);
  return full({}, std::numeric_limits<double>::quiet_NaN(), options).expand(e.sizes);
}

bool encloses(const Unit& outer, const Unit& inner) {
  return outer.name.empty() || inner.name == outer.name || inner.name.starts_with(outer.name + ".");
}

using Groups = std::vector<std::pair<nn::Module*, std::pair<std::string, std::vector<Parameter>>>>;

/// Returns the parameters of each unit, children before parents and the root last. Shared parameters are the root's.
Groups choose_units(nn::Module& root, int64_t min_elements) {
  std::map<const TensorImpl*, int> owners;
  const auto modules = root.named_modules();
  for (const auto& [path, m] : modules)
    for (const auto& [name, p] : m->named_parameters(/*recurse=*/false)) ++owners[p.impl()];
  Groups groups;
  std::set<const TensorImpl*> taken;
  for (auto at = modules.rbegin(); at != modules.rend(); ++at) {
    const auto& [path, m] = *at;
    std::vector<Parameter> own;
    int64_t elements = 0;
    for (const auto& [name, p] : m->named_parameters()) {
      if (taken.contains(p.impl()) || (owners[p.impl()] > 1 && m != &root)) continue;
      own.emplace_back(path.empty() ? name : path + "." + name, p);
      elements += p.numel();
    }
    if (own.empty() || (elements < min_elements && m != &root)) continue;
    for (const Parameter& p : own) taken.insert(p.impl());
    groups.push_back({m, {path, own}});
  }
  return groups;
}

}  // namespace

struct FullyShardedDataParallel::Impl : std::enable_shared_from_this<Impl> {
  nn::Module* module;
  std::shared_ptr<ProcessGroup> group;
  FullyShardedOptions options;
  std::vector<Unit> units;
  std::unordered_map<const TensorImpl*, const UnitEntry*> of_parameter, of_piece;
  std::unique_ptr<ShardReducer> reducer;
  std::vector<HookHandle> hooks;
  GatherOrder training{/*with_backward=*/true}, evaluation{/*with_backward=*/false};
  GatherOrder* order = &training;  // of the current pass
  std::size_t current = 0;         // the unit that was needed last
  int64_t gathered = 0, peak = 0;  // bytes

  void make_units();
  void add_hooks();
  bool prefetches() const { return options.prefetch && !options.find_unused_parameters; }
  void begin_gather(Unit& u);
  void gather(Unit& u);
  void drop(Unit& u);
  void need(std::size_t u, bool in_backward);
  bool keep_for_next(std::size_t u, bool backward_comes);
  void gather_ahead();
  void drop_unneeded();
  void backward_done() {
    for (Unit& u : units) drop(u);
    training.done();
  }
  std::vector<const FlatUnit*> flats() const {
    std::vector<const FlatUnit*> list;
    for (const Unit& u : units) list.push_back(u.flat.get());
    return list;
  }
  std::map<std::string, const UnitEntry*> by_name() const;
};

void FullyShardedDataParallel::Impl::make_units() {
  const no_grad guard;
  for (const auto& [m, named] : choose_units(*module, options.min_elements)) {
    std::vector<Parameter> members = named.second;
    std::reverse(members.begin(), members.end());
    for (const auto& same_type : divide_into_units(members, std::numeric_limits<double>::infinity()))
      units.push_back({m, named.first, std::make_shared<const FlatUnit>(FlatUnit::of_shard(same_type, *group))});
  }
  for (Unit& u : units) {
    for (const UnitEntry& e : u.flat->entries()) {
      of_parameter[e.parameter.impl()] = &e;
      of_piece[e.piece.impl()] = &e;
      nn::set_data(e.parameter, stand_in(e));
    }
    reducer->add(u.flat);
  }
}

void FullyShardedDataParallel::Impl::begin_gather(Unit& u) {
  const no_grad guard;
  const std::uint32_t version = u.flat->shard().storage()->version();
  if (u.whole.defined() && u.version == version) return;
  const bool in_use = u.in_use;
  drop(u);
  u.in_use = in_use;
  if (u.version != version) u.generation = (u.generation + 1) % kGenerations;
  u.version = version;
  u.whole = u.flat->empty_whole();
  u.work = group->all_gather(u.whole, u.flat->shard());
  gathered += bytes_of(u.whole);
  peak = std::max(peak, gathered);
}

void FullyShardedDataParallel::Impl::gather(Unit& u) {
  const no_grad guard;
  begin_gather(u);
  if (u.placed) return;
  u.work.wait();
  u.work = Work();
  // A graph recorded with other values must see that these are different.
  for (std::uint32_t i = 0; i < u.generation; ++i) u.whole.storage()->bump_version();
  for (const UnitEntry& e : u.flat->entries())
    nn::set_data(e.parameter, u.whole.narrow(0, e.begin, e.numel).view(e.sizes));
  u.placed = true;
}

void FullyShardedDataParallel::Impl::drop(Unit& u) {
  u.in_use = false;
  if (!u.whole.defined()) return;
  const no_grad guard;
  gathered -= bytes_of(u.whole);
  u.whole = Tensor();
  u.work = Work();
  if (!std::exchange(u.placed, false)) return;
  for (const UnitEntry& e : u.flat->entries()) nn::set_data(e.parameter, stand_in(e));
}

// Begins the next unit's gather before it waits for this one's, so that it overlaps with this unit's computation.
void FullyShardedDataParallel::Impl::need(std::size_t u, bool in_backward) {
  if (prefetches()) {
    order = in_backward || grad_enabled() ? &training : &evaluation;
    if (!units[u].in_use) order->needed(u, in_backward);
    units[u].in_use = true;
    current = u;
    drop_unneeded();
    begin_gather(units[u]);
    gather_ahead();
  }
  gather(units[u]);
}

// Drops units that are neither in use nor next, such as one that was prefetched in vain.
void FullyShardedDataParallel::Impl::drop_unneeded() {
  if (!options.reshard_after_forward) return;
  const auto next = order->next([this](std::size_t v) { return v != current && units[v].in_use; });
  for (std::size_t v = 0; v < units.size(); ++v)
    if (!units[v].in_use && next != v) drop(units[v]);
}

// Prefetches at most one unit, and only if no more than one other is gathered beside those that enclose it.
void FullyShardedDataParallel::Impl::gather_ahead() {
  if (!prefetches()) return;
  const auto next = order->next([this](std::size_t v) { return v != current && units[v].in_use; });
  if (!next || units[*next].whole.defined()) return;
  const auto beside =
      std::ranges::count_if(units, [&](const Unit& u) { return u.whole.defined() && !encloses(u, units[*next]); });
  if (beside <= 1 || !options.reshard_after_forward) begin_gather(units[*next]);
}

/// Called when a forward of the unit has ended. Returns true if backward begins with it, so that it stays gathered.
bool FullyShardedDataParallel::Impl::keep_for_next(std::size_t u, bool backward_comes) {
  units[u].in_use = false;
  if (!prefetches() || !backward_comes) return false;
  return order->next([this](std::size_t v) { return units[v].in_use; }) == u;
}

// A unit is gathered by its module, or by a submodule that holds some of its parameters and is called by itself.
void FullyShardedDataParallel::Impl::add_hooks() {
  std::map<nn::Module*, std::vector<std::size_t>> needs, ends;
  for (const auto& [path, m] : module->named_modules())
    for (const auto& [name, p] : m->named_parameters(/*recurse=*/false))
      for (std::size_t u = 0; u < units.size(); ++u)
        for (const UnitEntry& e : units[u].flat->entries())
          if (e.parameter.is_same(p)) needs[m].push_back(u);
  for (std::size_t u = 0; u < units.size(); ++u) {
    needs[units[u].module].push_back(u);
    ends[units[u].module].push_back(u);
  }
  for (const auto& [m, list] : needs) {
    const std::set<std::size_t> own(list.begin(), list.end());
    hooks.push_back(m->register_forward_pre_hook([this, own](nn::Module&, const std::vector<Tensor>&) {
      for (const std::size_t u : own) need(u, /*in_backward=*/false);
    }));
  }
  if (!options.reshard_after_forward) return;
  for (const auto& [m, list] : ends) {
    hooks.push_back(m->register_forward_hook(
        [this, list](nn::Module& called, const std::vector<Tensor>&, std::vector<Tensor> outputs) {
          if (grad_enabled() && outputs.empty())
            throw UsageError(fmt::format(
                "[fsdp] no tensor is found in the result of a {}, whose backward needs its parameters gathered. "
                "Return tensors, or give the result a fields(): see nn::for_each_tensor.",
                called.type_name()));
          const bool backward_comes = std::ranges::any_of(outputs, &Tensor::requires_grad);
          for (const std::size_t u : list)
            if (!keep_for_next(u, backward_comes)) drop(units[u]);
          for (Tensor& output : outputs) {
            if (!output.requires_grad()) continue;
            output = output.view(output.sizes());  // a separate tensor, in case the output is an input
            output.register_hook([weak = weak_from_this(), list](const Tensor&) {
              if (const auto self = weak.lock())
                for (const std::size_t u : list) self->need(u, /*in_backward=*/true);
              return Tensor();
            });
          }
          return outputs;
        }));
  }
}

std::map<std::string, const UnitEntry*> FullyShardedDataParallel::Impl::by_name() const {
  std::map<std::string, const UnitEntry*> names;
  for (const auto& [path, m] : std::as_const(*module).named_modules())
    for (const auto& [name, p] : m->named_parameters(/*recurse=*/false))
      names[path.empty() ? name : path + "." + name] = of_parameter.at(p.impl());
  return names;
}

FullyShardedDataParallel::FullyShardedDataParallel(nn::Module& module, std::shared_ptr<ProcessGroup> group,
                                                   const FullyShardedOptions& options)
    : impl_(std::make_shared<Impl>()) {
  share_module(module, *group);
  impl_->module = &module;
  impl_->group = group;
  impl_->options = options;
  Impl* const impl = impl_.get();
  impl_->reducer = std::make_unique<ShardReducer>(
      group, ShardReducer::Options{.find_unused_parameters = options.find_unused_parameters,
                                   .unit_ready =
                                       [impl](std::size_t u) {
                                         impl->drop(impl->units[u]);
                                         impl->gather_ahead();
                                       },
                                   .backward_done = [impl] { impl->backward_done(); }});
  impl_->make_units();
  impl_->add_hooks();
}

FullyShardedDataParallel::~FullyShardedDataParallel() {
  for (HookHandle& h : impl_->hooks) h.remove();
}

nn::Module& FullyShardedDataParallel::module() const { return *impl_->module; }

std::vector<Parameter> FullyShardedDataParallel::parameters() const {
  std::vector<Parameter> pieces;
  for (const auto& [name, p] : impl_->module->named_parameters())
    pieces.emplace_back(name, impl_->of_parameter.at(p.impl())->piece);
  return pieces;
}

void FullyShardedDataParallel::take(optim::Optimizer& optimizer) const {
  require_elementwise(optimizer);
  for (optim::ParamGroup& g : optimizer.param_groups())
    for (Parameter& p : g.params)
      if (const auto e = impl_->of_parameter.find(p.impl()); e != impl_->of_parameter.end())
        p = Parameter(p.name, e->second->piece);
}

std::vector<Parameter> FullyShardedDataParallel::full_parameters(std::vector<Parameter> pieces) const {
  for (Parameter& p : pieces)
    if (const auto e = impl_->of_piece.find(p.impl()); e != impl_->of_piece.end()) p = e->second->parameter;
  return pieces;
}

bool FullyShardedDataParallel::has(const Parameter& piece) const { return impl_->of_piece.contains(piece.impl()); }

void FullyShardedDataParallel::set_sync(bool on) { impl_->reducer->set_sync(on); }

void FullyShardedDataParallel::reduce(const std::vector<Parameter>& pieces) {
  std::vector<const FlatUnit*> list;
  for (const Unit& u : impl_->units) {
    const auto asked = [&](const UnitEntry& e) {
      return std::any_of(pieces.begin(), pieces.end(), [&](const Parameter& p) { return p.is_same(e.piece); });
    };
    if (std::any_of(u.flat->entries().begin(), u.flat->entries().end(), asked)) list.push_back(u.flat.get());
  }
  impl_->reducer->reduce(list);
}

void FullyShardedDataParallel::zero_grad() {
  for (const auto& [p, e] : impl_->of_parameter) {
    e->parameter.set_grad({});
    e->piece.set_grad({});
  }
}

Tensor FullyShardedDataParallel::clip_grad_norm_(double max_norm, double norm_type) {
  return clip_grad_norm_of_pieces_(parameters(), max_norm, *impl_->group, norm_type);
}

StateDict FullyShardedDataParallel::state_dict() const {
  const no_grad guard;
  const bool first = impl_->group->rank() == 0;
  std::map<const UnitEntry*, Tensor> values;
  for (const Unit& u : impl_->units) {
    const Tensor whole = first ? u.flat->empty_whole() : Tensor();
    impl_->group->gather(whole, u.flat->shard(), 0).wait();
    if (!first) continue;
    for (const UnitEntry& e : u.flat->entries()) values[&e] = whole.narrow(0, e.begin, e.numel).view(e.sizes).clone();
  }
  StateDict result;
  if (!first) return result;
  const auto names = impl_->by_name();
  for (const auto& [name, t] : impl_->module->state_dict()) {
    const auto found = names.find(name);
    result.set(name, found == names.end() ? t : values.at(found->second));
  }
  return result;
}

void FullyShardedDataParallel::load_state_dict(const StateDict& given) {
  const no_grad guard;
  const StateDict whole = nn::with_shared_parameters(*impl_->module, given);
  std::vector<std::string> problems;
  const StateDict own = impl_->module->state_dict();
  for (const auto& [name, mine] : own) {
    const Tensor* theirs = whole.find(name);
    if (!theirs)
      problems.push_back(fmt::format("missing: \"{}\"", name));
    else if (!theirs->defined())
      continue;
    else if (theirs->sizes() != mine.sizes() ||
             (theirs->dtype() != mine.dtype() && !(theirs->is_floating() && mine.is_floating())))
      problems.push_back(fmt::format("\"{}\" is {} {} here and {} {} there", name, to_string(mine.sizes()),
                                     name_of(mine.dtype()), to_string(theirs->sizes()), name_of(theirs->dtype())));
  }
  for (const auto& [name, theirs] : whole)
    if (!own.contains(name)) problems.push_back(fmt::format("unexpected: \"{}\"", name));
  if (!problems.empty())
    throw StateError(fmt::format("[load_state_dict] this state is not one of a {}: {}. Nothing was loaded.",
                                 impl_->module->type_name(), fmt::join(problems, "; ")));
  const auto names = impl_->by_name();
  for (const auto& [name, mine] : own) {
    const Tensor& theirs = whole.at(name);
    const auto found = names.find(name);
    if (!theirs.defined()) continue;
    if (found == names.end())
      mine.copy_(theirs);
    else
      found->second->piece.detach().copy_(own_elements(*found->second, theirs.contiguous()));
  }
}

StateDict FullyShardedDataParallel::optimizer_state(const optim::Optimizer& optimizer) const {
  return gather_state(optimizer, impl_->flats(), *impl_->group);
}

void FullyShardedDataParallel::load_optimizer_state(optim::Optimizer& optimizer, const StateDict& whole) const {
  load_state(optimizer, impl_->flats(), whole);
}

std::vector<Shard> FullyShardedDataParallel::shards() const {
  const no_grad guard;
  const int rank = impl_->group->rank();
  std::vector<Shard> own;
  const auto names = impl_->by_name();
  const StateDict all = impl_->module->state_dict();
  for (const auto& [name, t] : all) {
    const auto found = names.find(name);
    if (found != names.end())
      add_shard(own, *found->second, name, found->second->piece.detach(), rank);
    else if (rank == 0)
      own.push_back({name, t, 0, t.sizes()});
  }
  return own;
}

std::vector<Shard> FullyShardedDataParallel::optimizer_shards(const optim::Optimizer& optimizer) const {
  return state_shards(optimizer, impl_->flats(), impl_->group->rank());
}

void FullyShardedDataParallel::unshard() {
  const no_grad guard;
  for (HookHandle& h : impl_->hooks) h.remove();
  impl_->reducer.reset();
  for (Unit& u : impl_->units) {
    impl_->gather(u);
    for (const UnitEntry& e : u.flat->entries()) nn::set_data(e.parameter, e.parameter.detach().clone());
    u.whole = Tensor();
  }
}

std::vector<std::string> FullyShardedDataParallel::units() const {
  std::vector<std::string> names;
  for (const Unit& u : impl_->units) names.push_back(u.name);
  return names;
}

HeldBytes FullyShardedDataParallel::held_bytes(const optim::Optimizer& optimizer) const {
  HeldBytes held;
  for (const Unit& u : impl_->units) {
    held.parameters += bytes_of(u.flat->shard()) + bytes_of(u.whole);
    for (const UnitEntry& e : u.flat->entries())
      held.gradients += bytes_of(e.parameter.grad()) + bytes_of(e.piece.grad());
  }
  for (const auto& [name, t] : optimizer.state_dict())
    if (name.starts_with("state.") && !name.ends_with(".step")) held.state += bytes_of(t);
  return held;
}

int64_t FullyShardedDataParallel::peak_gathered_bytes() const { return impl_->peak; }

}  // namespace levin::distributed
