// Row-wise gradients (sparse embeddings) are refused by name, on every rank and before anything is sent.
#include <doctest/doctest.h>
#include <levin/distributed/bagua.h>
#include <levin/distributed/fsdp.h>
#include <levin/distributed/horovod.h>
#include <levin/distributed/zero.h>

#include "distributed/ddp_models.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

struct Words : nn::Module {
  nn::Embedding& emb = add<nn::Embedding>("emb", 20, 4, nn::EmbeddingOptions{.sparse = true});
  nn::Linear& fc = add<nn::Linear>("fc", 4, 3);
  Tensor forward(const Tensor& index) override { return fc(emb(index)); }
};

Tensor words() { return tensor<int64_t>({3, 7, 3}); }

std::string refusal(const std::string& who) {
  return "[" + who + "] the gradient of \"emb.weight\" is row-wise, as embedding() with sparse = true makes it, and " +
         who + " needs a dense one; use sparse = false.";
}

/// Runs `attempt(group, net)`, which has to be refused, on two ranks.
template <class F>
void check_refusal(const std::string& who, F&& attempt) {
  const std::string expected = refusal(who);
  in_group(2, [&](ProcessGroup& group) {
    Words net;
    CHECK_THROWS_WITH_AS(attempt(group, net), expected.c_str(), GradError);
  });
}

}  // namespace

TEST_CASE("data parallelism refuses a row-wise gradient by the parameter's name") {
  check_refusal("ddp", [](ProcessGroup& group, Words& net) {
    DistributedDataParallel ddp(net, shared(group), small());
    loss_of(ddp(words())).backward();
  });
  check_refusal("bytegrad", [](ProcessGroup& group, Words& net) {
    loss_of(net(words())).backward();
    exchange_gradients(group, net.parameters(), bytegrad_hook);
  });
  check_refusal("horovod", [](ProcessGroup& group, Words& net) {
    FusedExchange exchange(net.parameters(), shared(group));
    loss_of(net(words())).backward();
    exchange.synchronize();
  });
}

TEST_CASE("sharding refuses a row-wise gradient by the parameter's name") {
  check_refusal("ZeroRedundancyOptimizer", [](ProcessGroup& group, Words& net) {
    optim::SGD sgd(net.parameters(), {.lr = 0.1});
    ZeroRedundancyOptimizer zero(sgd, shared(group), {.stage = 1});
    loss_of(net(words())).backward();
    zero.step();
  });
  check_refusal("sharding", [](ProcessGroup& group, Words& net) {
    optim::SGD sgd(net.parameters(), {.lr = 0.1});
    ZeroRedundancyOptimizer zero(sgd, shared(group), {.stage = 2});
    loss_of(net(words())).backward();
  });
  check_refusal("sharding", [](ProcessGroup& group, Words& net) {
    FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = 1});
    loss_of(fsdp(words())).backward();
  });
}
