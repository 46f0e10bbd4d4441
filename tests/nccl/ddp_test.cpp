// Data parallelism over NCCL compared with one rank on the whole batch.
#include <levin/distributed/comm_hooks.h>
#include <levin/distributed/sync_batch_norm.h>

#include <mutex>

#include "distributed/ddp_models.h"
#include "nccl/groups.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

[[maybe_unused]] const int four_devices = setenv("LEVIN_EMULATED_DEVICES", "4", 0);

Tensor own_part(int step, ProcessGroup& group) {
  return part(input(step), group.rank(), group.size()).to(own_device());
}

}  // namespace

TEST_CASE("nccl ddp: 2, 3 and 4 ranks train as one rank on the whole batch, with bit-equal replicas") {
  Net alone(1);
  const auto expected = train(alone, 4, [&](int s) { loss_of(alone(input(s))).backward(); });
  for (const int n : {2, 3, 4}) {
    std::mutex mutex;
    std::vector<std::vector<double>> results;
    in_nccl_group(
        n,
        [&](ProcessGroup& group) {
          Net net(static_cast<std::uint64_t>(1 + group.rank()));  // rank 0's values are broadcast
          net.to(own_device());
          DistributedDataParallel ddp(net, shared(group), small());
          CHECK(ddp.reducer().buckets().size() > 2);
          const auto got = train(net, 4, [&](int s) { loss_of(ddp(own_part(s, group))).backward(); });
          CHECK(ddp.reducer().overlapped() >= 4);
          ddp.check_parameters();
          const std::lock_guard lock(mutex);
          results.push_back(got);
        },
        kBoth);
    for (const auto& r : results) {
      CHECK(r == results[0]);
      CHECK(distance(r, expected) < 1e-6);
    }
  }
}

TEST_CASE("nccl ddp: unused parameters, micro-batches, hooks and joins") {
  in_nccl_group(
      2,
      [](ProcessGroup& group) {
        Net alone(1), net(1);
        net.to(own_device());
        DistributedDataParallel ddp(net, shared(group), small(true));
        ddp.register_comm_hook(fp16_compress_hook);
        const auto expected = train(alone, 2, [&](int s) {
          for (int micro = 0; micro < 2; ++micro) loss_of(alone(input(2 * s + micro))).backward();
        });
        const auto got = train(net, 2, [&](int s) {
          {
            const auto quiet = ddp.no_sync();
            loss_of(ddp(own_part(2 * s, group))).backward();
          }
          loss_of(ddp(own_part(2 * s + 1, group))).backward();
        });
        CHECK(distance(got, expected) < 1e-3);
        optim::SGD sgd(net.parameters(), {.lr = 0.1});
        ddp.join([&] {
          for (int s = 0; s < 1 + group.rank(); ++s) {
            net.zero_grad();
            loss_of(ddp(own_part(s, group))).backward();
            sgd.step();
          }
        });
        ddp.check_parameters();
      },
      kBoth);
}

TEST_CASE("nccl ddp: batch norm over all ranks") {
  const auto batch = [](int device) {
    Generator rng(5);
    return randn({8, 3, 2, 2}, {.generator = &rng}).to(cuda(device));
  };
  nn::BatchNorm2d alone(3);
  alone.to(cuda(0));
  const auto expected = square(alone(batch(0))).to_vector<double>();
  in_nccl_group(
      2,
      [&](ProcessGroup& group) {
        SyncBatchNorm norm(3, shared(group));
        norm.to(own_device());
        const Tensor y = square(norm(batch(group.rank()).narrow(0, 4 * group.rank(), 4)));
        const auto got = y.to_vector<double>();
        const std::size_t from = got.size() * static_cast<std::size_t>(group.rank());
        const auto own = expected.begin() + static_cast<std::ptrdiff_t>(from);
        CHECK(largest_difference(got, std::vector<double>(own, own + static_cast<std::ptrdiff_t>(got.size()))) < 1e-5);
      },
      kBoth);
}
