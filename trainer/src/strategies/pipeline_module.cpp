#include "src/strategies/pipeline_module.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/ddp.h>
#include <levin/distributed/pipeline.h>
#include <levin/nn/set_data.h>

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <numeric>
#include <string_view>

namespace levin {
namespace {

Tensor stand_in(const Tensor& parameter) {
  return full({}, std::numeric_limits<double>::quiet_NaN(), like(parameter)).expand(parameter.sizes());
}

[[noreturn]] void shared_parameter(const std::string& name) {
  throw UsageError(fmt::format(
      "[pipeline] \"{}\" is used in several stages, or in a stage and outside of them, but each stage has its "
      "own rank. Divide the network elsewhere (--pipeline-balance), or use --strategy ddp.",
      name));
}

}  // namespace

PipelineModule::PipelineModule(nn::Module& module, nn::Sequential& cut, const std::vector<std::int64_t>& layers,
                               std::shared_ptr<distributed::ProcessGroup> group)
    : module_(&module), cut_(&cut), group_(std::move(group)) {
  for (const auto& [path, m] : module.named_modules())
    if (m == &cut) name_ = path;
  std::size_t layer = 0;
  for (int stage = 0; stage < count(); ++stage) {
    if (stage == own()) begin_ = layer;
    for (std::int64_t i = 0; i < layers[static_cast<std::size_t>(stage)]; ++i, ++layer)
      add_layer(fmt::format("{}.{}", name_, layer), cut[layer], count() - 1 - stage);
    if (stage == own()) end_ = layer;
  }
  add_others();
}

void PipelineModule::add_layer(const std::string& path, nn::Module& layer, int rank) {
  owner_of_layer_[path] = rank;
  for (const auto& [name, p] : layer.named_parameters()) {
    const auto [known, is_new] = owners_.emplace(p.impl(), rank);
    if (is_new) parameters_.emplace_back(path + "." + name, p);
    if (known->second != rank) shared_parameter(path + "." + name);
  }
  for (const auto& [name, b] : layer.named_buffers())
    if (owners_.emplace(b.impl(), rank).second) buffers_.push_back(b);
}

void PipelineModule::add_others() {
  for (const auto& [path, m] : module_->named_modules()) {
    if (path == name_ || path.starts_with(name_ + ".")) continue;
    for (const auto& [name, p] : m->named_parameters(/*recurse=*/false)) {
      if (owners_.contains(p.impl())) shared_parameter(path.empty() ? name : path + "." + name);
      other_parameters_.push_back(p);
    }
    for (const auto& [name, b] : m->named_buffers(/*recurse=*/false)) other_buffers_.push_back(b);
  }
}

std::vector<Tensor> PipelineModule::forward(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> outputs;
  try {
    outputs = cut_->call_range(begin_, end_, inputs);
  } catch (Error& e) {
    if (e.origin()) nn::add_origin(e, *module_);
    throw;
  }
  if (!is_last() || outputs.size() == 1) return outputs;
  throw UsageError(
      fmt::format("[pipeline] the last layer, \"{}.{}\" ({}), returns {} tensors, and a Sequential returns one. Append "
                  "a module that selects or combines them.",
                  name_, end_ - 1, (*cut_)[end_ - 1].type_name(), outputs.size()));
}

int PipelineModule::owner(const Tensor& parameter) const {
  const auto found = owners_.find(parameter.impl());
  return found == owners_.end() ? 0 : found->second;
}

int PipelineModule::owner(const std::string& name) const {
  if (!name.starts_with(name_ + ".")) return 0;
  const auto end = name.find('.', name_.size() + 1);
  const auto found = owner_of_layer_.find(name.substr(0, end));
  return found == owner_of_layer_.end() ? 0 : found->second;
}

void PipelineModule::drop_others() {
  const no_grad guard;
  for (const Parameter& p : parameters_) {
    if (owner(p) == group_->rank()) continue;
    p.set_grad({});
    nn::set_data(p, stand_in(p));
  }
}

void PipelineModule::allocate() {
  const no_grad guard;
  for (const Parameter& p : parameters_)
    if (owner(p) != group_->rank()) nn::set_data(p, empty(p.sizes(), like(p)));
}

void PipelineModule::collect_all() {
  allocate();
  for (int rank = 0; rank < count(); ++rank) {
    std::vector<Tensor> tensors;
    for (const Parameter& p : parameters_)
      if (owner(p) == rank) tensors.push_back(p);
    for (const Tensor& b : buffers_)
      if (owner(b) == rank) tensors.push_back(b);
    distributed::broadcast_all(*group_, tensors, rank);
  }
}

StateDict PipelineModule::own_weights() const {
  StateDict own;
  for (const auto& [name, t] : module_->state_dict())
    if (owner(name) == group_->rank()) own.set(name, t);
  return own;
}

std::vector<std::int64_t> layers_of_stages(const std::string& balance) {
  std::vector<std::int64_t> layers;
  for (std::string_view rest = balance; !balance.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size() || count < 1)
      throw UsageError(
          fmt::format("--pipeline-balance {}: give the number of layers of each stage, such as 2,2.", balance));
    layers.push_back(count);
    if (word.size() == rest.size()) break;
    rest.remove_prefix(word.size() + 1);
  }
  return layers;
}

std::vector<std::int64_t> cut_into_stages(const nn::Sequential& cut, int stages, const std::string& balance) {
  const auto known = static_cast<std::int64_t>(cut.size());
  if (known < stages)
    throw UsageError(fmt::format("--strategy pipeline: {} processes need a layer each, and the network has {}. Use "
                                 "--devices {}, or fewer.",
                                 stages, known, known));
  auto layers = layers_of_stages(balance);
  if (layers.empty()) {
    std::vector<std::int64_t> parameters;
    for (std::size_t i = 0; i < cut.size(); ++i) parameters.push_back(cut[i].parameter_count());
    return distributed::balanced_stages(parameters, stages);
  }
  if (std::ssize(layers) != stages || std::accumulate(layers.begin(), layers.end(), std::int64_t{0}) != known)
    throw UsageError(
        fmt::format("--pipeline-balance {}: there are {} stages, one per process, and {} layers in all. Give {} "
                    "numbers whose sum is {}.",
                    balance, stages, known, stages, known));
  return layers;
}

}  // namespace levin
