// Bytes moved between devices per step: DataParallel makes three transfers in forward (parameters, inputs, outputs) and
// returns their gradients; DistributedDataParallel makes two (inputs, gradients).
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/distributed/data_parallel.h>
#include <levin/distributed/ddp.h>
#include <levin/nn/nn.h>

#include "cases/host_port.h"
#include "distributed/groups.h"

using namespace levin;
using namespace levin::distributed;
using levin::test::host_backend;
using levin::test::in_group;
using levin::test::other_host;

namespace {

constexpr int64_t kBatch = 12, kIn = 10, kOut = 4;
constexpr int64_t kParameters = (kIn * kOut + kOut) * 4, kInputs = kBatch * kIn * 4, kOutputs = kBatch * kOut * 4;

}  // namespace

TEST_CASE("distributed/bytes_per_step") {
  levin::test::port_kernels();
  // DataParallel on three devices moves two of three parts and two copies of the parameters.
  nn::Linear net(kIn, kOut);
  net.to(other_host(0));
  DataParallel parallel(net, {other_host(0), other_host(1), other_host(2)});
  const Tensor x = randn({kBatch, kIn}).to(other_host(0)).requires_grad_();
  const auto before = host_backend().moved.load();
  const Tensor y = parallel(x);
  DataParallelBytes b = parallel.bytes();
  CHECK(b.parameters == 2 * kParameters);
  CHECK(b.inputs == kInputs * 2 / 3);
  CHECK(b.outputs == kOutputs * 2 / 3);
  CHECK(host_backend().moved - before == b.parameters + b.inputs + b.outputs);
  y.sum().backward();
  b = parallel.bytes();
  CHECK(b.output_gradients == b.outputs);
  CHECK(b.parameter_gradients == b.parameters);
  CHECK(b.input_gradients == b.inputs);
  CHECK(host_backend().moved - before == 2 * (b.parameters + b.inputs + b.outputs));

  // Replicas of one device share its memory.
  nn::Linear here(kIn, kOut);
  DataParallel threads(here, {kCpu, kCpu});
  threads(randn({kBatch, kIn})).sum().backward();
  const DataParallelBytes none = threads.bytes();
  CHECK(none.parameters + none.inputs + none.outputs == 0);
  CHECK(none.parameter_gradients + none.output_gradients == 0);

  // With a process per device only its part of the batch and the gradients move.
  std::atomic<int64_t> start{0}, ddp{0};
  in_group(3, [&](ProcessGroup& group) {
    nn::Linear replica(kIn, kOut);
    replica.to(other_host(group.rank()));
    DistributedDataParallel wrapped(replica, {&group, [](ProcessGroup*) {}});
    const Tensor part = randn({kBatch / 3, kIn});
    wrapped(part.to(other_host(group.rank()))).sum().backward();  // the first step agrees on the buckets
    group.barrier().wait();
    if (group.rank() == 0) start = host_backend().moved.load();
    group.barrier().wait();
    wrapped(part.to(other_host(group.rank()))).sum().backward();
    group.barrier().wait();
    if (group.rank() == 0) ddp = host_backend().moved - start;
    group.barrier().wait();
  });
  CHECK(ddp == kInputs + 3 * 2 * kParameters);
}
