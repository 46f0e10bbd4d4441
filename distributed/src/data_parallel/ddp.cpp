#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/io.h>
#include <levin/distributed/ddp.h>

#include <sstream>

namespace levin::distributed {

namespace {

constexpr int64_t kBroadcastBytes = int64_t{250} << 20;

// Describes a module, one line per tensor: everything that must agree between ranks before values can be broadcast.
std::string plan_of(const nn::Module& module) {
  std::string plan;
  for (const auto& [name, t] : module.named_parameters()) {
    plan += fmt::format("{} {} {}{}\n", name, levin::to_string(t.sizes()), name_of(t.dtype()),
                        t.requires_grad() ? "" : " without grad");
  }
  for (const auto& [name, t] : module.named_buffers()) {
    plan += fmt::format("buffer {} {} {}\n", name, levin::to_string(t.sizes()), name_of(t.dtype()));
  }
  return plan;
}

std::string first_difference(const std::string& own, const std::string& other) {
  std::istringstream a(own), b(other);
  for (std::string x, y;;) {
    const bool more_a = static_cast<bool>(std::getline(a, x)), more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a) x = "nothing more";
    if (!more_b) y = "nothing more";
    if (x != y || (!more_a && !more_b)) return fmt::format("rank 0 has \"{}\" where this rank has \"{}\"", y, x);
  }
}

// Returns the ranks on which `differs` is true; the same list on all ranks.
std::vector<int> ranks_that_differ(ProcessGroup& group, bool differs) {
  const Tensor own = from_data({static_cast<std::uint8_t>(differs)}, {1});
  const Tensor all = empty({group.size()}, {.dtype = kUInt8});
  group.all_gather(all, own).wait();
  std::vector<int> ranks;
  for (int r = 0; r < group.size(); ++r) {
    if (all.data<std::uint8_t>()[r] != 0) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace

std::string broadcast_text(ProcessGroup& group, const std::string& own) {
  const Tensor length = from_data({static_cast<int64_t>(own.size())}, {1});
  group.broadcast(length, 0).wait();
  std::vector<std::uint8_t> bytes(own.begin(), own.end());
  bytes.resize(static_cast<std::size_t>(length.item<int64_t>()));
  const Tensor text = from_data(bytes, {length.item<int64_t>()});
  group.broadcast(text, 0).wait();
  const auto* p = text.data<std::uint8_t>();
  return {p, p + text.numel()};
}

void share_module(nn::Module& module, ProcessGroup& group) {
  const std::string own = plan_of(module), first = broadcast_text(group, own);
  const auto others = ranks_that_differ(group, own != first);
  if (!others.empty()) {
    throw CollectiveMismatch(
        fmt::format("[ddp] the modules of rank {} differ from that of rank 0{}. Build the same module on every rank.",
                    fmt::join(others, ", "), own != first ? ": " + first_difference(own, first) : ""));
  }
  std::vector<Tensor> tensors;
  for (const auto& [name, t] : module.named_parameters()) tensors.push_back(t);
  for (const auto& [name, t] : module.named_buffers()) tensors.push_back(t);
  broadcast_all(group, tensors);
}

void broadcast_all(ProcessGroup& group, const std::vector<Tensor>& tensors, int root) {
  const no_grad guard;
  const auto exchange = [&](const std::vector<Tensor>& parts) {
    int64_t numel = 0;
    for (const Tensor& t : parts) numel += t.numel();
    const Tensor flat = empty({numel}, like(parts[0]));
    const auto each = [&](const auto& f) {
      int64_t at = 0;
      for (const Tensor& t : parts) {
        f(t, flat.narrow(0, at, t.numel()).view(t.sizes()));
        at += t.numel();
      }
    };
    if (group.rank() == root) each([](const Tensor& t, const Tensor& part) { part.copy_(t); });
    group.broadcast(flat, root).wait();
    if (group.rank() != root) each([](const Tensor& t, const Tensor& part) { t.copy_(part); });
  };
  std::vector<Tensor> parts;
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    const Tensor t = tensor.detach();
    const bool fits = parts.empty() || (parts[0].dtype() == t.dtype() && parts[0].device() == t.device());
    if (!fits || bytes > kBroadcastBytes) {
      exchange(std::exchange(parts, {}));
      bytes = 0;
    }
    parts.push_back(t);
    bytes += t.numel() * size_of(t.dtype());
  }
  if (!parts.empty()) exchange(parts);
}

DistributedDataParallel::DistributedDataParallel(nn::Module& module, std::shared_ptr<ProcessGroup> group,
                                                 const DistributedDataParallelOptions& options)
    : module_((share_module(module, *group), module)),  // before the reducer is made
      group_(group),
      broadcast_buffers_(options.broadcast_buffers),
      reducer_(module.parameters(), group, options) {}

Tensor DistributedDataParallel::operator()(const Tensor& x) {
  before_forward();
  return module_(x);
}

void DistributedDataParallel::check_parameters() {
  std::uint32_t sum = 0;
  for (const Parameter& p : module_.parameters()) {
    const Tensor host = p.detach().cpu().contiguous();
    sum = io::crc32({static_cast<const std::byte*>(host.raw_data()),
                     static_cast<std::size_t>(host.numel() * size_of(host.dtype()))},
                    sum);
  }
  const Tensor own = from_data({static_cast<int64_t>(sum)}, {1}), first = own.clone();
  group_->broadcast(first, 0).wait();
  const auto others = ranks_that_differ(*group_, own.item<int64_t>() != first.item<int64_t>());
  if (others.empty()) return;
  throw CollectiveMismatch(
      fmt::format("[ddp] the parameters of rank {} are not those of rank 0 any more. Was something "
                  "changed on some ranks only?",
                  fmt::join(others, ", ")));
}

}  // namespace levin::distributed
