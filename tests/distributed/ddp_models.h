#pragma once
// Small networks, their data and their weights, for tests of data parallelism.

#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/distributed/ddp.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include "distributed/groups.h"
#include "support/comparison.h"

namespace levin::test {

inline constexpr int64_t kBatch = 12;  // divisible by 2, 3 and 4

struct Net : nn::Module {
  explicit Net(std::uint64_t seed) {
    Generator rng(seed);
    const no_grad guard;
    for (Parameter p : parameters()) p.copy_(mul(randn(p.sizes(), {.generator = &rng}), 0.3));
  }
  nn::Linear& fc1 = add<nn::Linear>("fc1", 5, 7);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 7, 6);
  nn::Linear& fc3 = add<nn::Linear>("fc3", 6, 3);
  Tensor forward(const Tensor& x) override { return fc3(tanh(fc2(tanh(fc1(x))))); }
};

// Two layers; a step may skip the second.
struct Branches : nn::Module {
  nn::Linear& a = add<nn::Linear>("a", 4, 4);
  nn::Linear& b = add<nn::Linear>("b", 4, 4);
  bool use_b = true;
  Tensor forward(const Tensor& x) override { return use_b ? b(a(x)) : a(x); }
};

inline Tensor input(int step) {
  Generator rng(static_cast<std::uint64_t>(1000 + step));
  return randn({kBatch, 5}, {.generator = &rng});
}

inline Tensor part(const Tensor& x, int rank, int size) {
  const int64_t n = x.size(0) / size;
  return x.narrow(0, rank * n, n);
}

inline Tensor loss_of(const Tensor& y) { return mean(square(sub(y, 1.0))); }

inline std::vector<double> weights(const nn::Module& module) {
  std::vector<double> all;
  for (const Parameter& p : module.parameters()) {
    const auto values = p.detach().to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

inline std::vector<double> gradients(const nn::Module& module) {
  std::vector<double> all;
  for (const Parameter& p : module.parameters()) {
    const auto values = p.grad().to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  return largest_difference(a, b);
}

// Small buckets, so that there are several.
inline distributed::DistributedDataParallelOptions small(bool find_unused = false) {
  return {.bucket_cap_mb = 1e-4, .first_bucket_mb = 5e-5, .find_unused_parameters = find_unused};
}

inline std::vector<double> train(nn::Module& net, int steps, const std::function<void(int)>& gradients_of_step) {
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < steps; ++s) {
    net.zero_grad(s % 2 == 0);
    gradients_of_step(s);
    sgd.step();
  }
  return weights(net);
}

/// Returns a pointer to a group that outlives the test's body.
inline std::shared_ptr<distributed::ProcessGroup> shared(distributed::ProcessGroup& group) {
  return {&group, [](distributed::ProcessGroup*) {}};
}

}  // namespace levin::test
