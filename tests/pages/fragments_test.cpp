// The code of docs/distributed.md and docs/adding_a_device.md, whose pieces need ranks or devices around them: each
// piece of the pages stands here as it is, and what one process can run is run.
#include "support/paths.h"

#include <levin/levin.h>
#include <levin/core/io.h>
#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace levin;
using namespace levin::distributed;

namespace {

struct Data {
  Tensor x = randn({8, 4}), y = randint(0, 3, {8});  // (8, 4), (8)
  std::vector<std::pair<Tensor, Tensor>> batches{{x, y}, {x * 2, y}};
};

// clang-format off
std::shared_ptr<ProcessGroup> joined(nn::Module& net, const Tensor& x, const Tensor& y) {
  const RankInfo me = rank_info(environment());
  const auto store = open_store(me);
  join(*store, me);
  const auto group = make_process_group("gloo", {.store = store, .rank = me.rank, .world_size = me.world_size});
  DistributedDataParallel ddp(net, group);
  cross_entropy(ddp(x), y).backward();  // gradients are averages over the ranks when this returns
  return group;
}

void hooked(DistributedDataParallel& ddp) {
  ddp.register_comm_hook([](ProcessGroup& group, const GradBucket& bucket) -> CommStages {
    const Work work = group.all_reduce(bucket.buffer, ReduceOp::avg);
    return {[work] { work.wait(); }};
  });
}

template <class Batches>
void local_sgd(DistributedDataParallel& ddp, nn::Module& net, const std::shared_ptr<ProcessGroup>& group,
               optim::Optimizer& optimizer, const Batches& batches) {
  PeriodicModelAverager averager(group, {.period = 4, .warmup_steps = 100});
  ddp.register_comm_hook(PostLocalSgd({.start_local_sgd_iter = 100, .post_local_gradient_allreduce = false}));
  for (const auto& [x, y] : batches) {
    optimizer.zero_grad();
    cross_entropy(ddp(x), y).backward();
    optimizer.step();
    averager.average_parameters(net.parameters());
  }
}

template <class Batches>
void uneven(DistributedDataParallel& ddp, optim::Optimizer& optimizer, const Batches& batches) {
  ddp.join([&] {
    for (const auto& [x, y] : batches) {
      optimizer.zero_grad();
      cross_entropy(ddp(x), y).backward();
      optimizer.step();
    }
  }, {.shadow_step = [&] { optimizer.step(); }});
}

void staged(nn::Module& my_stage, const std::shared_ptr<ProcessGroup>& group, optim::Optimizer& optimizer,
            const Tensor& x, const Tensor& y) {
  distributed::Pipeline pipeline(my_stage, group, {.micro_batches = 8});
  optimizer.zero_grad();
  Tensor loss = pipeline.step(x, y, [](const Tensor& out, const Tensor& target) { return cross_entropy(out, target); });
  optimizer.step();  // of this rank's parameters
  CHECK(loss.item<double>() > 0);
}

void on_two_devices(nn::Module& net, const Tensor& x, const Tensor& y) {
  net.to(cuda(0));
  distributed::DataParallel parallel(net, {cuda(0), cuda(1)});  // {kCpu, kCpu}: two replicas on threads
  cross_entropy(parallel(x), y).backward();
}

void on_a_custom_device(nn::Module& net, const Tensor& x, const Tensor& y) {
  const Device there{DeviceType::custom0, 0};
  net.to(there);
  cross_entropy(net(x.to(there)), y.to(there)).backward();
}
// clang-format on

std::string without_spaces(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\n') out += c;
  return out;
}

}  // namespace

TEST_CASE("the pages on distributed training and on devices show code that this file compiles") {
  const std::string compiled = without_spaces(io::read_text(test::source_dir() / "tests/pages/fragments_test.cpp"));
  int pieces = 0;
  for (const char* page : {"docs/distributed.md", "docs/adding_a_device.md"}) {
    const std::string text = io::read_text(test::source_dir() / page), open = "\n```cpp\n";
    for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos; ++pieces) {
      at += open.size();
      const std::string piece = text.substr(at, text.find("\n```", at) - at);
      CHECK_MESSAGE(compiled.find(without_spaces(piece)) != std::string::npos, page << " shows\n" << piece);
    }
  }
  CHECK(pieces == 7);
}

TEST_CASE("the code of the page on distributed training runs on one rank") {
  manual_seed(1);
  const Data data;
  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 3));
  const auto group = joined(net, data.x, data.y);
  CHECK(net.parameters()[0].grad().defined());
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  for (const bool periodic : {false, true}) {
    DistributedDataParallel ddp(net, group);
    const Tensor before = net.parameters()[0].detach().clone();
    if (periodic) {
      local_sgd(ddp, net, group, sgd, data.batches);
    } else {
      hooked(ddp);
      uneven(ddp, sgd, data.batches);
    }
    CHECK(!equal(before, net.parameters()[0].detach()));
  }
  staged(net, group, sgd, data.x, data.y);
  if (cuda::device_count() >= 2) on_two_devices(net, data.x, data.y);
  CHECK_THROWS_AS(on_a_custom_device(net, data.x, data.y), DeviceError);
}
