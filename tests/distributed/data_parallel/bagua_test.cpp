// Bagua's algorithms: bounds on the error of 8-bit compression, and the update formulas of the weights.
#include <doctest/doctest.h>

#include <levin/distributed/bagua.h>
#include <levin/optim/qadam.h>

#include <cmath>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

Tensor drawn(int rank, int64_t numel, double scale, DType dtype = kFloat32) {
  Generator rng(static_cast<std::uint64_t>(rank + 1));
  return mul(randn({numel}, {.dtype = dtype, .generator = &rng}), scale);
}

// Each rank has its own gradients of a Net and takes SGD steps; between them `mix` runs the algorithm.
using Weights = std::vector<std::vector<double>>;  // by rank
struct Simulation {
  int n;
  double lr = 0.1;
  Weights start() const { return Weights(static_cast<std::size_t>(n), weights(Net(1))); }
  // Rank r's gradient at its own weights.
  std::vector<double> gradient(const std::vector<double>& at, int rank, int step) const {
    Net net(1);
    set(net, at);
    loss_of(net(part(input(step), rank, n))).backward();
    return gradients(net);
  }
  static void set(nn::Module& net, const std::vector<double>& values) {
    const no_grad guard;
    std::size_t i = 0;
    for (const Parameter& p : net.parameters()) {
      const std::vector<double> own(values.begin() + static_cast<std::ptrdiff_t>(i),
                                    values.begin() + static_cast<std::ptrdiff_t>(i) + p.numel());
      p.detach().copy_(from_data(own, {p.numel()}).view(p.sizes()));
      i += static_cast<std::size_t>(p.numel());
    }
  }
  void step(Weights& x, const Weights& at, int s) const {
    for (int r = 0; r < n; ++r) {
      const auto g = gradient(at[static_cast<std::size_t>(r)], r, s);
      for (std::size_t i = 0; i < g.size(); ++i) x[static_cast<std::size_t>(r)][i] -= lr * g[i];
    }
  }
};

/// Returns the largest difference between the ranks' weights.
double spread(ProcessGroup& group, const nn::Module& net) {
  Largest worst;
  for (const Parameter& p : net.parameters()) {
    const Tensor most = p.detach().clone(), least = p.detach().clone();
    group.all_reduce(most, ReduceOp::max).wait();
    group.all_reduce(least, ReduceOp::min).wait();
    worst.add(amax(sub(most, least)).item<double>());
  }
  return worst.value();
}

}  // namespace

TEST_CASE("bagua: 8-bit compression has an error of at most 1/510 of a row's range") {
  Generator rng(3);
  for (const double scale : {1e-30, 1e-6, 1.0, 1e4, 1e30}) {
    const Tensor rows = add(mul(randn({5, 333}, {.generator = &rng}), scale), 3 * scale);
    const ByteRows q = quantize_rows(rows);
    CHECK(q.levels.dtype() == kUInt8);
    const Tensor back = dequantize_rows(q);
    Largest worst;
    for (int64_t r = 0; r < 5; ++r) {
      const double least = amin(rows[r]).item<double>(), range = amax(rows[r]).item<double>() - least;
      const auto x = rows[r].to_vector<double>(), y = back[r].to_vector<double>();
      worst.add(largest_difference(y, x) / (range / 510 + 4 * 0x1p-24 * 8 * scale));
    }
    CHECK(worst.value() <= 1);
    CHECK(worst.value() > 0.9);
  }
  const Tensor same = full({2, 7}, -0.3);
  CHECK(dequantize_rows(quantize_rows(same)).to_vector<float>() == same.to_vector<float>());
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Tensor rows = ones({2, 4});
    rows.select(0, 1).select(0, 2).fill_(bad);
    const auto back = dequantize_rows(quantize_rows(rows)).to_vector<double>();
    for (std::size_t i = 0; i < 8; ++i) CHECK(std::isfinite(back[i]) == (i < 4));
  }
}

TEST_CASE("bagua/bytegrad_error_bound: at most 1/255 of the mean range of a part") {
  for (const int n : {2, 3, 4}) {
    in_group(n, [&](ProcessGroup& group) {
      for (const int64_t numel : {1, 3, 7, 1000}) {
        for (const double scale : {1e-6, 1.0, 1e4}) {
          const Tensor own = drawn(group.rank(), numel, scale);
          GradBucket bucket{.buffer = own.clone()};
          for (const auto& stage : bytegrad_hook(group, bucket)) stage();
          const auto got = bucket.buffer.to_vector<double>();
          const int64_t part = (numel + n - 1) / n;
          Largest worst;
          for (int64_t begin = 0; begin < numel; begin += part) {
            const int64_t length = std::min(part, numel - begin);
            double range = 0, largest = 0;
            std::vector<double> exact(static_cast<std::size_t>(length));
            for (int r = 0; r < n; ++r) {
              const Tensor theirs = drawn(r, numel, scale).narrow(0, begin, length);
              range += (amax(theirs).item<double>() - amin(theirs).item<double>()) / n;
              largest = std::max(largest, amax(theirs.abs()).item<double>());
              const auto v = theirs.to_vector<double>();
              for (std::size_t i = 0; i < v.size(); ++i) exact[i] += v[i] / n;
            }
            for (std::size_t i = 0; i < exact.size(); ++i)
              worst.add(std::abs(got[static_cast<std::size_t>(begin) + i] - exact[i]) /
                        (range / 255 + 16 * 0x1p-24 * largest));
          }
          CHECK(worst.value() <= 1);
          if (numel == 1000) CHECK(worst.value() > 0.3);
          // All ranks have the same bits.
          const Tensor most = bucket.buffer.clone();
          group.all_reduce(most, ReduceOp::max).wait();
          CHECK(most.to_vector<float>() == bucket.buffer.to_vector<float>());
        }
      }
    });
  }
}

TEST_CASE("bytegrad: a gradient that is not finite stays so on all ranks; a single rank is exact") {
  in_group(3, [](ProcessGroup& group) {
    const Tensor own = drawn(group.rank(), 90, 1.0);
    if (group.rank() == 1) own.select(0, 40).fill_(std::numeric_limits<double>::infinity());
    for (const auto& stage : bytegrad_hook(group, {.buffer = own})) stage();
    const auto finite = isfinite(own).to_vector<bool>();
    CHECK_FALSE(finite[40]);
    CHECK(finite[0]);
    CHECK(finite[89]);
  });
  CHECK(bytegrad_hook(*make_process_group("single"), {.buffer = ones({3})}).empty());
}

TEST_CASE("bytegrad between machines: communication within a machine is exact") {
  in_group(3, [](ProcessGroup& group) {
    // Ranks 0 and 1 are one machine, rank 2 is another.
    const auto first = group.new_group({0, 1}), second = group.new_group({2}), leaders = group.new_group({0, 2});
    const ByteGradByMachine hook{group.rank() < 2 ? first : second, leaders};
    const auto average = [&](const std::function<Tensor(int)>& draw) {
      const Tensor own = draw(group.rank()).clone();
      for (const auto& stage : hook(group, {.buffer = own})) stage();
      return own.to_vector<double>();
    };
    const auto got = average([](int rank) { return drawn(rank, 100, 1.0); });
    const Tensor a = add(drawn(0, 100, 1.0), drawn(1, 100, 1.0)), b = drawn(2, 100, 1.0);
    const auto exact = div(add(a, b), 3.0).to_vector<double>();
    const auto range = [](const Tensor& t) { return amax(t).item<double>() - amin(t).item<double>(); };
    const double worst = largest_difference(got, exact);
    CHECK(worst <= (range(a) + range(b)) / 3 / 255 + 1e-6);
    CHECK(worst > 0);
    // Ranks of one machine do not compress to 8 bits between them, so constant parts are exact.
    const auto constant =
        average([](int rank) { return rank == 2 ? ones({6}) : mul(drawn(0, 6, 1.0), rank == 0 ? 1.0 : -1.0); });
    for (const double v : constant) CHECK(v == approx(1.0 / 3, {.relative = 1e-6}));
  });
}

TEST_CASE("bagua: exchange_gradients averages the gradients, with zeros for missing ones") {
  in_group(2, [](ProcessGroup& group) {
    const Parameter a("a", ones({2, 3}).requires_grad_()), b("b", ones({4}, {.dtype = kFloat64}).requires_grad_()),
        c("c", ones({1}).requires_grad_());
    a.set_grad(full({2, 3}, 1.0 + group.rank()));
    if (group.rank() == 1) b.set_grad(full({4}, 3.0, {.dtype = kFloat64}));
    c.set_grad(full({1}, -2.0));
    exchange_gradients(group, {a, b, c}, allreduce_hook);
    CHECK(a.grad().to_vector<double>() == std::vector<double>(6, 1.5));
    CHECK(b.grad().to_vector<double>() == std::vector<double>(4, 1.5));
    CHECK(c.grad().to_vector<double>() == std::vector<double>{-2});
  });
}

TEST_CASE("bagua/consensus: all ranks get the same bits of the average; equal replicas keep their bits") {
  for (const int n : {1, 3, 4}) {
    in_group(n, [&](ProcessGroup& group) {
      for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
        const auto eps = dtype == kFloat64 ? 1e-15 : dtype == kFloat32 ? 1e-6 : 4e-3;
        const StateDict own{{"weight", drawn(group.rank(), 1000, 1, dtype).view({20, 50})},
                            {"running_var", full({}, group.rank() + 1.0, {.dtype = dtype})},
                            {"steps", full({2}, group.rank() + 5.0, {.dtype = kInt64})}};
        const StateDict average = consensus(group, own);
        CHECK(average.at("running_var").item<double>() == approx((n + 1) / 2.0, {.relative = eps}));
        CHECK(average.at("steps").to_vector<int64_t>() == std::vector<int64_t>{5, 5});
        const Tensor w = average.at("weight");
        CHECK(w.dtype() == dtype);
        Tensor exact = zeros({20, 50}, {.dtype = kFloat64});
        for (int r = 0; r < n; ++r) exact = add(exact, drawn(r, 1000, 1.0 / n, dtype).view({20, 50}).to(kFloat64));
        CHECK(amax(abs(sub(w.to(kFloat64), exact))).item<double>() < 4 * eps);
        const Tensor all = empty({n, 20, 50}, {.dtype = dtype});
        group.all_gather(all, w).wait();
        for (int r = 0; r < n; ++r) CHECK(all.select(0, r).to_vector<double>() == w.to_vector<double>());
        CHECK(consensus(group, average).at("weight").to_vector<double>() == w.to_vector<double>());
      }
    });
  }
}

TEST_CASE("decentralized: x' = the peers' average of x - lr g(x), with all and with shift_one") {
  struct Case {
    int ranks;
    Peers peers;
  };
  for (const Case& c : {Case{2, Peers::all}, {3, Peers::all}, {2, Peers::shift_one}, {4, Peers::shift_one}}) {
    const int n = c.ranks;
    const Peers peers = c.peers;
    const Simulation sim{n};
    Weights expected = sim.start();
    for (int s = 0; s < 6; ++s) {
      const Weights before = expected;
      for (int r = 0; r < n; ++r) {
        for (std::size_t i = 0; i < before[0].size(); ++i) {
          double sum = 0;
          if (peers == Peers::all)
            for (int k = 0; k < n; ++k) sum += before[static_cast<std::size_t>(k)][i] / n;
          else
            sum = (before[static_cast<std::size_t>(r)][i] +
                   before[static_cast<std::size_t>(PeerAverage::peer(r, n, s))][i]) / 2;
          expected[static_cast<std::size_t>(r)][i] = sum;
        }
      }
      sim.step(expected, before, s);
    }
    in_group(n, [&](ProcessGroup& group) {
      for (const bool ahead : {false, true}) {
        Net net(1);
        PeerAverage average(shared(group), peers);
        optim::SGD sgd(net.parameters(), {.lr = sim.lr});
        for (int s = 0; s < 6; ++s) {
          sgd.zero_grad();
          if (ahead) average.begin(net.parameters());
          loss_of(net(part(input(s), group.rank(), n))).backward();
          average.finish(net.parameters());
          sgd.step();
        }
        CHECK(distance(weights(net), expected[static_cast<std::size_t>(group.rank())]) < 1e-6);
        const double apart = spread(group, net);
        CHECK(apart > 1e-4);  // replicas differ
        CHECK(std::isfinite(apart));
        CHECK(average.steps() == 6);
      }
    });
  }
}

TEST_CASE("decentralized: shift_one pairs all ranks, with each rank of the other half in turn") {
  for (const int n : {2, 4, 6}) {
    for (int64_t step = 0; step < 7; ++step) {
      for (int r = 0; r < n; ++r) {
        const int p = PeerAverage::peer(r, n, step);
        CHECK(PeerAverage::peer(p, n, step) == r);
        CHECK((r < n / 2) != (p < n / 2));
        CHECK((n == 2 || p != PeerAverage::peer(r, n, step + 1)));
      }
    }
  }
  const auto errors = errors_in_group(3, [](ProcessGroup& g) { PeerAverage average(shared(g), Peers::shift_one); });
  CHECK(errors[0].find("shift_one makes pairs, and there are 3 ranks") != std::string::npos);
}

TEST_CASE("low_precision_decentralized: a third of each neighbour, within the quantisation of the changes") {
  for (const int n : {2, 3, 4}) {
    const Simulation sim{n};
    in_group(n, [&](ProcessGroup& group) {
      Net net(1);
      RingDifferences ring(shared(group));
      optim::SGD sgd(net.parameters(), {.lr = sim.lr});
      ring.meet(net.parameters());
      for (int s = 0; s < 5; ++s) {
        // The weights of all ranks before, and the full-precision result.
        const auto own = weights(net);
        const Tensor all = empty({n, static_cast<int64_t>(own.size())}, {.dtype = kFloat64});
        group.all_gather(all, from_data(own, {static_cast<int64_t>(own.size())})).wait();
        sgd.zero_grad();
        loss_of(net(part(input(s), group.rank(), n))).backward();
        sgd.step();
        const auto stepped = weights(net);
        const auto l = all[(group.rank() + n - 1) % n].to_vector<double>(),
                   r = all[(group.rank() + 1) % n].to_vector<double>();
        ring.exchange(net.parameters());
        const auto got = weights(net);
        std::size_t i = 0;
        for (const Parameter& p : net.parameters()) {
          double low = 1e30, high = -1e30;
          Largest worst;
          for (const std::size_t end = i + static_cast<std::size_t>(p.numel()); i < end; ++i) {
            const double ideal = stepped[i] + (l[i] + r[i] - 2 * own[i]) / 3, change = ideal - own[i];
            low = std::min(low, change);
            high = std::max(high, change);
            worst.add(std::abs(got[i] - ideal));
          }
          CHECK(worst.value() <= (high - low) / 510 + 1e-6);
        }
      }
      const double apart = spread(group, net);
      CHECK(apart > 1e-5);
      CHECK(std::isfinite(apart));
    });
  }
}

TEST_CASE("async: averages arrive while training continues, and none is left over") {
  for (const int n : {2, 3}) {
    in_group(n, [&](ProcessGroup& group) {
      const Parameter w("w", full({4}, static_cast<double>(group.rank())));
      AsyncAverage average(shared(group), std::chrono::milliseconds(0));
      // Only rank 0 has requested one; the others take part when it is completed.
      if (group.rank() == 0) average.after_step({w});
      CHECK(w.to_vector<double>() == std::vector<double>(4, group.rank()));
      w.detach().add_(10.0 * (group.rank() + 1));  // steps taken meanwhile are kept
      if (group.rank() != 0) w.detach().sub_(10.0 * (group.rank() + 1));
      average.settle({w});
      CHECK(average.averages() == 1);
      const double mean = (n - 1) / 2.0;
      CHECK(w.to_vector<double>() == std::vector<double>(4, group.rank() == 0 ? mean + 10 : mean));
      // With enough time, each step applies the previous average.
      AsyncAverage quick(shared(group), std::chrono::milliseconds(0)), slow(shared(group), std::chrono::hours(1));
      const Parameter x("x", full({2}, static_cast<double>(group.rank()))), y("y", x.detach().clone());
      for (int s = 0; s < 1000; ++s) {
        quick.after_step({x});
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        slow.after_step({y});
        const Tensor least = from_data({quick.averages()}, {1});
        group.all_reduce(least, ReduceOp::min).wait();
        if (s >= 2 && least.item<int64_t>() >= 2) break;
      }
      quick.settle({x});
      slow.settle({y});
      CHECK(quick.averages() >= 2);
      CHECK(slow.averages() == 1);
      CHECK(x.to_vector<double>()[0] == approx(mean, {.relative = 1e-6}));
      CHECK(y.to_vector<double>()[0] == approx(mean, {.relative = 1e-6}));
    });
  }
}
