// A group of one rank: what comes in goes out.

#include <fmt/format.h>
#include <levin/autograd/modes.h>

#include <cstdlib>
#include <numeric>

#include "src/backends.h"
#include "src/transport.h"

namespace levin::distributed {

namespace {

class SingleGroup final : public ProcessGroup {
 public:
  SingleGroup(std::vector<int> ranks, Milliseconds timeout) : ProcessGroup(0, std::move(ranks), timeout) {}
  std::string name() const override { return "single"; }

  std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& members) override {
    check_members(members);
    return as_part(make_single_group(ranks(), timeout()));
  }

  void abort(const std::string& reason) override { aborted_ = reason; }

 protected:
  Work begin(Collective c) override {
    if (!aborted_.empty()) {
      throw RankLost(ranks()[0], fmt::format("[{}] rank {} failed: {}", to_string(c.kind), ranks()[0], aborted_));
    }
    if (c.output.defined() && c.input.defined()) {
      const no_grad guard;
      c.output.detach().flatten().copy_(c.input.detach().flatten());
    }
    return Work();
  }

 private:
  std::string aborted_;
};

}  // namespace

std::shared_ptr<ProcessGroup> make_single_group(std::vector<int> ranks, Milliseconds timeout) {
  return std::make_shared<SingleGroup>(std::move(ranks), timeout);
}

namespace {

TransportKind transport_kind(std::string name) {
  const char* variable = std::getenv("LEVIN_TRANSPORT");
  if (name.empty() && variable != nullptr) name = variable;
  if (name.empty() || name == "auto") return TransportKind::automatic;
  if (name == "tcp") return TransportKind::tcp;
  if (name == "shared") return TransportKind::shared;
  throw ValueError(
      fmt::format("[make_process_group] there is no transport \"{}\" (option or LEVIN_TRANSPORT); choose auto, tcp or "
                  "shared.",
                  name));
}

}  // namespace

std::shared_ptr<ProcessGroup> make_process_group(const std::string& backend, const GroupOptions& options) {
  if (backend != "single" && backend != "gloo") {
    throw ValueError(fmt::format("[make_process_group] there is no backend \"{}\"; choose single or gloo.", backend));
  }
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw ValueError(fmt::format("[make_process_group] rank {} of {} does not exist; ranks count from 0.", options.rank,
                                 options.world_size));
  }
  if (backend == "single" && options.world_size > 1) {
    throw ValueError(
        fmt::format("[make_process_group] single is for one rank, not {}; choose gloo.", options.world_size));
  }
  if (options.world_size == 1) return make_single_group({0}, options.timeout);
  if (!options.store) throw ValueError("[make_process_group] more than one rank needs a store to meet at.");
  std::vector<int> ranks(static_cast<std::size_t>(options.world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const TransportKind kind = transport_kind(options.transport);
  auto watch = std::make_shared<Watch>(*options.store, options.rank);
  return make_gloo_group(options.store, std::move(watch), "world", options.rank, std::move(ranks), options.timeout,
                         kind);
}

}  // namespace levin::distributed
