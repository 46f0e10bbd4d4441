// A group of one rank, whose outputs are its inputs.

#include <fmt/format.h>
#include <levin/autograd/modes.h>

#include "src/groups/backends.h"

namespace levin::distributed {

namespace {

class SingleGroup final : public ProcessGroup {
 public:
  SingleGroup(std::vector<int> ranks, Duration timeout) : ProcessGroup(0, std::move(ranks), timeout) {}
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

std::shared_ptr<ProcessGroup> make_single_group(std::vector<int> ranks, Duration timeout) {
  return std::make_shared<SingleGroup>(std::move(ranks), timeout);
}

}  // namespace levin::distributed
