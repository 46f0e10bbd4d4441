#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/ddp.h>
#include <levin/interop/safetensors.h>
#include <levin/trainer/sharded_checkpoint.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace levin {
namespace {

namespace fs = std::filesystem;
using distributed::FullyShardedDataParallel;
using distributed::ProcessGroup;

bool anywhere(ProcessGroup& group, bool flag) {
  const Tensor t = from_data({static_cast<std::uint8_t>(flag)}, {1});
  group.all_reduce(t, distributed::ReduceOp::max).wait();
  return t.item<std::int64_t>() != 0;
}

/// Where this rank's elements of each parameter begin: behind those of the ranks before.
std::vector<std::int64_t> beginnings(const std::vector<Parameter>& pieces, ProcessGroup& group) {
  std::vector<std::int64_t> own;
  for (const Parameter& p : pieces) own.push_back(p.numel());
  const auto count = static_cast<std::int64_t>(own.size());
  const Tensor all = empty({group.size(), count}, {.dtype = kInt64});
  group.all_gather(all, from_data(own, {count})).wait();
  std::vector<std::int64_t> begin(own.size(), 0);
  for (int r = 0; r < group.rank(); ++r)
    for (std::size_t i = 0; i < own.size(); ++i) begin[i] += all.data<std::int64_t>()[r * count + static_cast<int>(i)];
  return begin;
}

Tensor number(std::int64_t value) { return from_data({value}, {1}); }

/// The optimizer's name for a piece; empty where it does not step it.
std::string name_in(const optim::Optimizer& optimizer, const Parameter& piece) {
  for (const Parameter& p : optimizer.parameters())
    if (p.is_same(piece)) return p.name;
  return {};
}

StateDict buffers_of(const nn::Module& module) {
  StateDict buffers;
  const auto parameters = module.named_parameters();
  const auto is_parameter = [&](const std::string& name) {
    return std::ranges::any_of(parameters, [&](const auto& p) { return p.first == name; });
  };
  const auto all = module.named_buffers();
  const StateDict saved = module.state_dict();
  for (const auto& [name, t] : all)
    if (saved.contains(name) && !is_parameter(name)) buffers.set(name, t.detach());
  return buffers;
}

StateDict own_part(const FullyShardedDataParallel& fsdp, const optim::Optimizer& optimizer, ProcessGroup& group) {
  const auto pieces = fsdp.parameters();
  const auto begin = beginnings(pieces, group);
  const StateDict state = optimizer.state_dict();
  StateDict out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Parameter& p = pieces[i];
    if (p.numel() == 0) continue;
    out.merge("model.", {{p.name, p.detach()}});
    out.merge("model.begin.", {{p.name, number(begin[i])}});
    const std::string name = name_in(optimizer, p);
    if (name.empty()) continue;
    const StateDict slots = state.sub("state." + name + ".");
    for (const auto& [slot, t] : slots)
      if (slot != "step") out.merge("optimizer.state." + p.name + ".", {{slot, t}});
  }
  if (group.rank() != 0) return out;
  out.merge("buffer.", buffers_of(fsdp.module()));
  for (const auto& [name, t] : state)
    if (name.ends_with(".step") || name.starts_with("param_groups.")) out.merge("optimizer.scalar.", {{name, t}});
  return out;
}

fs::path file_of(const fs::path& folder, int rank, int size) {
  return folder / fmt::format("rank-{}-of-{}.safetensors", rank, size);
}

/// As many as there were ranks.
int count_files(const fs::path& folder) {
  for (int n = 1; fs::is_directory(folder) && n < 1 << 20; ++n)
    if (fs::exists(file_of(folder, 0, n))) return n;
  throw IoError(
      fmt::format("[checkpoint] {} has no rank-0-of-<n>.safetensors. Give the folder of a sharded checkpoint.",
                  folder.string()));
}

/// What is to be filled, and how much of it was found.
struct Wanted {
  Tensor into;
  std::int64_t begin = 0, filled = 0;

  void take(const Tensor& from, std::int64_t at) {
    const std::int64_t low = std::max(at, begin), high = std::min(at + from.numel(), begin + into.numel());
    if (low >= high) return;
    into.narrow(0, low - begin, high - low).copy_(from.narrow(0, low - at, high - low));
    filled += high - low;
  }
};

}  // namespace

void save_sharded_checkpoint(const fs::path& folder, const FullyShardedDataParallel& fsdp,
                             const optim::Optimizer& optimizer, ProcessGroup& group) {
  const StateDict own = own_part(fsdp, optimizer, group);
  std::string error;
  const auto write = [&](const fs::path& to) {
    try {
      interop::save_safetensors(file_of(to, group.rank(), group.size()), own);
    } catch (const IoError& e) {
      error = e.what();
    }
    if (anywhere(group, !error.empty()))
      throw IoError(fmt::format("[checkpoint] {} was not saved: {}", folder.string(),
                                error.empty() ? "another rank could not write its part." : error));
  };
  if (group.rank() != 0) {
    const fs::path to = distributed::broadcast_text(group, {});
    if (!to.empty()) write(to);
  } else {
    bool told = false;
    try {
      fs::create_directories(fs::absolute(folder).parent_path());
      io::write_folder(folder, [&](const fs::path& to) {
        told = true;
        distributed::broadcast_text(group, fs::absolute(to).string());
        write(to);
      });
    } catch (const std::exception& e) {
      if (!told) distributed::broadcast_text(group, {});
      error = e.what();
    }
  }
  if (anywhere(group, !error.empty()))
    throw IoError(error.empty() ? fmt::format("[checkpoint] {} was not saved by rank 0.", folder.string()) : error);
}

void load_sharded_checkpoint(const fs::path& folder, FullyShardedDataParallel& fsdp, optim::Optimizer& optimizer,
                             ProcessGroup& group) {
  const no_grad guard;
  const auto pieces = fsdp.parameters();
  const auto begin = beginnings(pieces, group);
  const int files = count_files(folder);
  std::map<std::string, Wanted> model, state;
  StateDict loaded, buffers;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    model[pieces[i].name] = {zeros(pieces[i].sizes(), like(pieces[i])), begin[i]};
  const auto wrong = [&](const std::string& text) {
    return StateError(fmt::format("[checkpoint] {} is not one of this network: {}.", folder.string(), text));
  };
  for (int r = 0; r < files; ++r) {
    const StateDict part = interop::load_safetensors(file_of(folder, r, files)).tensors;
    const StateDict places = part.sub("model.begin.");
    for (const auto& [name, at] : places) {
      const auto wanted = model.find(name);
      if (wanted == model.end()) throw wrong("it has \"" + name + "\"");
      const Tensor& into = wanted->second.into;
      const auto place = at.item<std::int64_t>();
      wanted->second.take(part.at("model." + name), place);
      for (const auto& [slot, t] : part.sub("optimizer.state." + name + "."))
        state.try_emplace(name + "." + slot, Wanted{zeros(into.sizes(), like(into)), wanted->second.begin})
            .first->second.take(t, place);
    }
    if (r == 0) {
      buffers = part.sub("buffer.");
      loaded = part.sub("optimizer.scalar.");
    }
  }
  for (const Parameter& p : pieces) {
    const Wanted& found = model.at(p.name);
    if (found.filled != p.numel()) throw wrong(fmt::format("of \"{}\" parts are missing", p.name));
    for (const auto& [key, slot] : state)
      if (key.starts_with(p.name + ".") && key.find('.', p.name.size() + 1) == std::string::npos)
        loaded.set("state." + name_in(optimizer, p) + key.substr(p.name.size()), slot.into);
  }
  optimizer.load_state_dict(loaded);
  for (const Parameter& p : pieces) p.detach().copy_(model.at(p.name).into);
  for (const auto& [name, t] : buffers_of(fsdp.module())) t.copy_(buffers.at(name));
}

}  // namespace levin
