// Broadcasts an optimizer's state dict, whose entries the other ranks may not have yet.

#include <levin/autograd/ops.h>
#include <levin/distributed/ddp.h>
#include <levin/distributed/horovod.h>

#include <sstream>

namespace levin::distributed {

namespace {

// Describes a state, one line per entry: name, dtype, whether it lies on the parameters' device, sizes.
std::string plan_of(const StateDict& state) {
  std::ostringstream plan;
  for (const auto& [name, t] : state) {
    plan << name << '\t' << static_cast<int>(t.dtype()) << '\t' << (t.device() == kCpu ? 0 : 1);
    for (const int64_t n : t.sizes()) plan << '\t' << n;
    plan << '\n';
  }
  return plan.str();
}

StateDict zeros_of(const std::string& plan, Device device) {
  StateDict state;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    std::getline(fields, name, '\t');
    int dtype = 0, on_device = 0;
    fields >> dtype >> on_device;
    std::vector<int64_t> sizes;
    for (int64_t n = 0; fields >> n;) sizes.push_back(n);
    state.set(name, zeros(Shape{std::span<const int64_t>(sizes)},
                          {.dtype = static_cast<DType>(dtype), .device = on_device != 0 ? device : kCpu}));
  }
  return state;
}

}  // namespace

void broadcast_optimizer_state(optim::Optimizer& optimizer, ProcessGroup& group) {
  StateDict state = optimizer.state_dict();
  const std::string plan = broadcast_text(group, plan_of(state));
  const auto parameters = optimizer.parameters();
  if (group.rank() != 0) state = zeros_of(plan, parameters.empty() ? kCpu : parameters.front().device());
  std::vector<Tensor> tensors;
  for (const auto& [name, t] : state) tensors.push_back(t);
  broadcast_all(group, tensors);
  if (group.rank() != 0) optimizer.load_state_dict(state);
}

}  // namespace levin::distributed
