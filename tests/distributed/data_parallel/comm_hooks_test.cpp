// Communication hooks: bounds on their errors, and invariants they must keep.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

// Reduces one bucket; afterwards the gradients hold the averages.
void exchange(ProcessGroup& group, const CommHook& hook, const std::vector<Tensor>& gradients) {
  const no_grad guard;
  std::vector<Tensor> flat;
  for (const Tensor& g : gradients) flat.push_back(g.flatten());
  GradBucket bucket{.buffer = cat(flat)};
  int64_t at = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    bucket.gradients.push_back(bucket.buffer.narrow(0, at, gradients[i].numel()).view(gradients[i].sizes()));
    bucket.parameters.push_back(i);
    at += gradients[i].numel();
  }
  for (const auto& stage : hook(group, bucket)) stage();
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i].copy_(bucket.gradients[i]);
}

Tensor exchanged(ProcessGroup& group, const CommHook& hook, const Tensor& gradient) {
  const Tensor result = gradient.clone();
  exchange(group, hook, {result});
  return result;
}

Tensor random(const Shape& sizes, int rank, int step = 0, DType dtype = kFloat32) {
  Generator rng(static_cast<std::uint64_t>(100 * step + rank + 1));
  return randn(sizes, {.dtype = dtype, .generator = &rng});
}

// Returns the average over the ranks, in double.
Tensor average(ProcessGroup& group, const Tensor& t) {
  const Tensor sum = t.to(kFloat64).clone();
  group.all_reduce(sum).wait();
  return div(sum, static_cast<double>(group.size()));
}

double frobenius(const Tensor& t) { return norm(t.to(kFloat64)).item<double>(); }

// Returns the k-th vector of an orthonormal cosine basis (DCT-II).
Tensor cosine(int64_t n, int k) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) {
    v.push_back(std::sqrt(2.0 / static_cast<double>(n)) *
                std::cos(3.14159265358979 * (2 * static_cast<double>(i) + 1) * k / (2 * static_cast<double>(n))));
  }
  return from_data(v, {n});
}

// Returns a matrix (n, m) with known singular values.
Tensor matrix_of(int64_t n, int64_t m, const std::vector<double>& singular_values) {
  Tensor sum = zeros({n, m}, {.dtype = kFloat64});
  for (std::size_t i = 0; i < singular_values.size(); ++i) {
    const int k = static_cast<int>(i) + 1;
    sum = add(sum, mul(matmul(cosine(n, k).unsqueeze(1), cosine(m, k).unsqueeze(0)), singular_values[i]));
  }
  return sum.to(kFloat32);
}

PowerSgd at_once(int64_t rank, bool error_feedback = true) {
  return PowerSgd({.rank = rank, .start_step = 0, .min_compression = 0.01, .error_feedback = error_feedback});
}

}  // namespace

TEST_CASE("comm hooks: 16-bit compression has an error of at most n u times the mean absolute gradient") {
  for (const int n : {2, 3}) {
    in_group(n, [&](ProcessGroup& group) {
      for (const DType dtype : {kFloat32, kFloat64}) {
        for (const double scale : {1e-6, 1.0, 1e3}) {
          const Tensor own = mul(random({501}, group.rank(), 0, dtype), scale);
          const auto exact = average(group, own).to_vector<double>();
          const auto sizes = average(group, own.abs()).to_vector<double>();
          for (const bool half : {true, false}) {
            const Tensor result = exchanged(group, half ? fp16_compress_hook : bf16_compress_hook, own);
            CHECK(result.to(half ? kFloat16 : kBFloat16).to_vector<double>() == result.to_vector<double>());
            const auto got = result.to_vector<double>();
            const double u = half ? 0x1p-11 : 0x1p-8, smallest = half ? 0x1p-25 : 0;
            const double worst =
                largest_share(got, exact, [&](std::size_t i) { return n * (u * sizes[i] + smallest); });
            CHECK(worst <= 1);
            CHECK(worst > 0);
          }
        }
      }
    });
  }
}

TEST_CASE("comm hooks: fp16 does not overflow if the average fits, and gives infinity if it does not") {
  in_group(3, [](ProcessGroup& group) {
    CHECK(exchanged(group, fp16_compress_hook, full({4}, 60000.0)).to_vector<double>() ==
          std::vector<double>(4, 60000.0));
    CHECK(std::isinf(exchanged(group, fp16_compress_hook, full({1}, 3e5)).item<double>()));
    CHECK(std::isfinite(exchanged(group, bf16_compress_hook, full({1}, 3e5)).item<double>()));
    const Tensor half = random({33}, group.rank(), 0, kFloat16);
    const auto plain = exchanged(group, allreduce_hook, half).to_vector<double>();
    CHECK(exchanged(group, bf16_compress_hook, half).to_vector<double>() == plain);
  });
}

TEST_CASE("comm hooks: DDP with fp16 stays close to DDP without, with bit-equal replicas") {
  in_group(2, [](ProcessGroup& group) {
    std::vector<std::vector<double>> results;
    for (const bool compressed : {false, true}) {
      Net net(1);
      DistributedDataParallel ddp(net, shared(group), small());
      if (compressed) ddp.register_comm_hook(fp16_compress_hook);
      results.push_back(train(net, 10, [&](int s) { loss_of(ddp(part(input(s), group.rank(), 2))).backward(); }));
      ddp.check_parameters();
      CHECK(ddp.reducer().overlapped() >= 10);
    }
    CHECK(distance(results[0], results[1]) < 2e-3);
    CHECK(differs(results[0], results[1]));
  });
}

TEST_CASE("comm hooks: a reducer has only one") {
  Net net(1);
  DistributedDataParallel ddp(net, make_process_group("single"));
  ddp.register_comm_hook(bf16_compress_hook);
  CHECK_THROWS_AS(ddp.register_comm_hook(fp16_compress_hook), ValueError);
}

TEST_CASE("PowerSGD: a matrix of its rank is exact") {
  in_group(3, [](ProcessGroup& group) {
    const Tensor whole = matrix_of(20, 30, {5, 3}), noise = random({20, 30}, 7);
    // The ranks' own matrices have full rank; in the average their noise cancels.
    const double own = group.rank() == 0 ? 2 : -1;
    const PowerSgd hook = at_once(2);
    const Tensor result = exchanged(group, hook, add(whole, mul(noise, own)));
    CHECK(frobenius(sub(result, whole)) < 1e-4 * frobenius(whole));
    CHECK(hook.traffic().elements == 600);
    CHECK(hook.traffic().sent == 100);
  });
}

TEST_CASE("PowerSGD: warm starts find the best approximation of its rank") {
  in_group(2, [](ProcessGroup& group) {
    const Tensor whole = matrix_of(24, 36, {8, 4, 2, 1, 0.5});
    const Tensor own = add(whole, mul(random({24, 36}, 7), group.rank() == 0 ? 1.0 : -1.0));
    const PowerSgd hook = at_once(2, false);
    double error = 0;
    for (int step = 0; step < 20; ++step) {
      error = frobenius(sub(exchanged(group, hook, own), whole));
      CHECK(error <= frobenius(whole) * (1 + 1e-5));  // a projection
    }
    const double best = std::sqrt(2 * 2 + 1 + 0.25);  // Eckart and Young
    CHECK(error < 1.001 * best);
    CHECK(error > 0.999 * best);
  });
}

TEST_CASE("PowerSGD: error feedback eventually sends everything") {
  in_group(2, [](ProcessGroup& group) {
    const PowerSgd hook = at_once(2);
    Tensor sent = zeros({6, 9}, {.dtype = kFloat64}), wanted = sent.clone();
    for (int step = 0; step < 12; ++step) {
      const Tensor own = step < 5 ? random({6, 9}, group.rank(), step) : zeros({6, 9});
      wanted = add(wanted, average(group, own));
      sent = add(sent, exchanged(group, hook, own).to(kFloat64));
      if (step == 4) CHECK(frobenius(sub(sent, wanted)) > 0.1);
    }
    CHECK(frobenius(sub(sent, wanted)) < 1e-4);
  });
}

TEST_CASE("PowerSGD: a gradient recovers after steps of zeros and after one that was not finite") {
  in_group(2, [](ProcessGroup& group) {
    const Tensor whole = matrix_of(10, 12, {3});
    const PowerSgd hook = at_once(1);
    CHECK(frobenius(exchanged(group, hook, zeros({10, 12}))) == 0);
    CHECK(frobenius(sub(exchanged(group, hook, whole), whole)) < 1e-4);
    const Tensor bad = whole.clone();
    if (group.rank() == 1) bad[3][4].fill_(std::nan(""));
    CHECK_FALSE(std::isfinite(frobenius(exchanged(group, hook, bad))));
    CHECK(frobenius(sub(exchanged(group, hook, whole), whole)) < 1e-3);
  });
}

TEST_CASE("PowerSGD: a hook that loads another one's state continues bit for bit") {
  in_group(2, [](ProcessGroup& group) {
    const PowerSgd first = at_once(2);
    PowerSgd second({.rank = 2, .start_step = 0, .min_compression = 0.01, .seed = 9});
    const auto step = [&](const PowerSgd& hook, int s) {
      // Gradients of zeros make it draw random numbers.
      const Tensor own = s % 3 == 2 ? zeros({6, 9}) : random({6, 9}, group.rank(), s);
      return exchanged(group, hook, own).to_vector<double>();
    };
    for (int s = 0; s < 4; ++s) step(first, s);
    StateDict saved;
    for (const auto& [name, t] : first.state_dict()) saved.set(name, t.clone());
    second.load_state_dict(saved);
    for (int s = 4; s < 9; ++s) CHECK(step(second, s) == step(first, s));
    CHECK_THROWS_AS(exchanged(group, second, zeros({7, 8})), Error);  // the state of another module
  });
  PowerSgd hook;
  CHECK_THROWS_AS(hook.load_state_dict({{"steps", tensor(1)}}), StateError);
  CHECK_THROWS_AS(hook.load_state_dict({{"weight", ones({2, 2})}}), StateError);
}

TEST_CASE("PowerSGD: plain averages for the first steps and for tensors that would not shrink") {
  in_group(2, [](ProcessGroup& group) {
    const PowerSgd hook({.rank = 1, .start_step = 2});
    for (int step = 0; step < 4; ++step) {
      // (20, 20) shrinks to (20 + 20) x 2, (4, 4) would not; vectors never.
      const std::vector<Tensor> own = {random({20, 20}, group.rank(), step), random({4, 4}, group.rank(), step),
                                       random({50}, group.rank(), step)};
      std::vector<Tensor> got, exact;
      for (const Tensor& t : own) {
        got.push_back(t.clone());
        exact.push_back(average(group, t));
      }
      exchange(group, hook, got);
      CHECK((frobenius(sub(got[0].to(kFloat64), exact[0])) < 1e-5) == (step < 2));
      for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
        CHECK(frobenius(sub(got[i].to(kFloat64), exact[i])) < 1e-5);
    }
    CHECK(hook.traffic().elements == 2 * 466);
    CHECK(hook.traffic().sent == 2 * (40 + 16 + 50));
  });
  CHECK_THROWS_AS(PowerSgd({.rank = 0}), ValueError);
  CHECK_THROWS_AS(PowerSgd({.start_step = -1}), ValueError);
  CHECK_THROWS_AS(PowerSgd({.min_compression = 0}), ValueError);
}

TEST_CASE("PowerSGD: DDP with it learns, with bit-equal replicas") {
  in_group(2, [](ProcessGroup& group) {
    Net net(1);
    DistributedDataParallel ddp(net, shared(group), small());
    ddp.register_comm_hook(at_once(1));
    const double first = loss_of(net(input(0))).item<double>();
    train(net, 60, [&](int) { loss_of(ddp(part(input(0), group.rank(), 2))).backward(); });
    ddp.check_parameters();
    CHECK(loss_of(net(input(0))).item<double>() < 0.02 * first);
  });
}

TEST_CASE("PowerSGD: the state matches its options, and the traffic counters the bytes sent") {
  in_group(2, [](ProcessGroup& group) {
    for (const bool feedback : {false, true}) {
      for (const bool warm : {false, true}) {
        const PowerSgd hook({.rank = 2,
                             .start_step = 0,
                             .min_compression = 0.01,
                             .error_feedback = feedback,
                             .warm_start = warm});
        exchange(group, hook, {random({20, 30}, group.rank()), random({7}, group.rank(), 1)});
        const StateDict state = hook.state_dict();
        CHECK(state.contains("error.0") == feedback);
        CHECK(state.contains("factor.0") == warm);
        CHECK(state.size() == 3 + (feedback ? 1 : 0) + (warm ? 1 : 0));
        CHECK(hook.traffic().elements == 20 * 30 + 7);
        CHECK(hook.traffic().sent == 2 * (20 + 30) + 7);
      }
    }
  });
}

TEST_CASE("PowerSGD: a loaded state continues the saved random numbers") {
  in_group(2, [](ProcessGroup& group) {
    const PowerSgdOptions options{
        .rank = 1, .start_step = 0, .min_compression = 0.01, .error_feedback = false, .warm_start = false};
    const PowerSgd first(options);
    PowerSgd second(options);
    const Tensor gradient = random({20, 30}, group.rank());
    const auto before = exchanged(group, first, gradient).to_vector<float>();
    second.load_state_dict(first.state_dict());
    const auto next = exchanged(group, first, gradient).to_vector<float>();
    CHECK(next != before);  // other first factors each time
    CHECK(exchanged(group, second, gradient).to_vector<float>() == next);
  });
}
