// Horovod's rules: fusion, cycles, compression, broadcasts from rank 0.
#include <doctest/doctest.h>

#include <levin/distributed/horovod.h>

#include "distributed/ddp_models.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

std::vector<double> with_ddp(ProcessGroup& group, int steps) {
  Net net(1);
  DistributedDataParallel ddp(net, shared(group), small());
  return train(net, steps, [&](int s) { loss_of(ddp(part(input(s), group.rank(), group.size()))).backward(); });
}

std::vector<double> with_horovod(ProcessGroup& group, int steps, const HorovodOptions& options) {
  Net net(1);
  FusedExchange exchange(net.parameters(), shared(group), options);
  return train(net, steps, [&](int s) {
    loss_of(net(part(input(s), group.rank(), group.size()))).backward();
    exchange.synchronize();
  });
}

// Sums in double of the ranks' own random numbers.
struct Drawn {
  std::vector<double> average, size;
};
Drawn of_all(const std::function<Tensor(int)>& draw, int n) {
  Drawn d;
  for (int r = 0; r < n; ++r) {
    const auto v = draw(r).to_vector<double>();
    d.average.resize(v.size());
    d.size.resize(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) {
      d.average[i] += v[i] / n;
      d.size[i] += std::abs(v[i]) / n;
    }
  }
  return d;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("horovod equals ddp: to the bit with two ranks, within rounding with three and four") {
  for (const int n : {1, 2, 3, 4}) {
    in_group(n, [&](ProcessGroup& group) {
      const auto ddp = with_ddp(group, 12);
      for (const HorovodOptions& options :
           {HorovodOptions{}, HorovodOptions{.fusion_threshold = 0, .cycle_time = 0},
            HorovodOptions{.fusion_threshold = 100, .cycle_time = 0.01}, HorovodOptions{.cycle_time = 1e6}}) {
        const auto horovod = with_horovod(group, 12, options);
        if (n <= 2)
          CHECK(horovod == ddp);
        else
          CHECK(distance(horovod, ddp) < 1e-6);
      }
    });
  }
}

TEST_CASE("horovod: results do not depend on timing or fusion") {
  in_group(3, [](ProcessGroup& group) {
    const auto first = with_horovod(group, 8, {});
    for (const HorovodOptions& options :
         {HorovodOptions{.fusion_threshold = 0, .cycle_time = 0},
          HorovodOptions{.fusion_threshold = 130, .cycle_time = 0}, HorovodOptions{.cycle_time = 1000}})
      CHECK(with_horovod(group, 8, options) == first);
  });
}

TEST_CASE("horovod/fusion_groups: by threshold, by type, in one order on all ranks") {
  in_group(2, [](ProcessGroup& group) {
    // 10 float64 between float32 of 10, 20, 30 and 5 elements.
    const auto make = [](const char* name, int64_t numel, DType dtype) {
      return Parameter(name, zeros({numel}, {.dtype = dtype}).requires_grad_());
    };
    const std::vector<Parameter> parameters = {make("a", 10, kFloat32), make("b", 20, kFloat32),
                                               make("c", 10, kFloat64), make("d", 30, kFloat32),
                                               make("e", 5, kFloat32)};
    using Groups = std::vector<std::vector<std::string>>;
    const auto groups = [&](const HorovodOptions& options, bool backwards) {
      FusedExchange exchange(parameters, shared(group), options);
      for (const Parameter& p : parameters) p.set_grad({});
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& p = parameters[backwards ? parameters.size() - 1 - i : i];
        mul(p, static_cast<double>(group.rank() + 1)).sum().backward();
      }
      exchange.synchronize();
      for (const Parameter& p : parameters)
        CHECK(p.grad().to_vector<double>() == std::vector<double>(static_cast<std::size_t>(p.numel()), 1.5));
      return exchange.groups();
    };
    // One cycle sees all: the first ready gradient is requested alone, the others once no more can come.
    const bool other_order = group.rank() == 1;
    CHECK(groups({.cycle_time = 1e6}, other_order) == Groups{{"e", "d", "b", "a"}, {"c"}});
    CHECK(groups({.fusion_threshold = 160, .cycle_time = 1e6}, other_order) == Groups{{"e", "d"}, {"c"}, {"b", "a"}});
    CHECK(groups({.fusion_threshold = 139, .cycle_time = 1e6}, other_order) ==
          Groups{{"e", "b"}, {"d"}, {"c"}, {"a"}});
    CHECK(groups({.fusion_threshold = 0, .cycle_time = 1e6}, other_order) == Groups{{"e"}, {"d"}, {"c"}, {"b"}, {"a"}});
  });
}

TEST_CASE("horovod: with a cycle time of 0 ready gradients are sent while backward runs") {
  in_group(2, [](ProcessGroup& group) {
    Net net(1);
    auto exchange = std::make_unique<FusedExchange>(net.parameters(), shared(group), HorovodOptions{.cycle_time = 0});
    for (const Parameter& p : net.parameters()) {
      // Gradients become ready one by one, with time for a response in between.
      mul(p, 2.0).sum().backward();
      group.barrier().wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    exchange->synchronize();
    CHECK(exchange->groups().size() >= 3);  // on a busy machine responses may be late
    CHECK(exchange->cycles() >= 3);
    exchange = nullptr;  // also removes its hooks
    FusedExchange slow(net.parameters(), shared(group), {.cycle_time = 1e6});
    net.zero_grad();
    for (const Parameter& p : net.parameters()) mul(p, 2.0).sum().backward();
    slow.synchronize();
    CHECK(slow.cycles() <= 2);
    CHECK(slow.groups().size() <= 2);
  });
}

TEST_CASE("horovod: fp16 has an error of at most 2^-10 of the mean absolute gradient") {
  for (const int n : {2, 3}) {
    in_group(n, [&](ProcessGroup& group) {
      for (const double scale : {1e-6, 1.0, 1e3}) {
        const auto draw = [&](int rank) {
          Generator rng(static_cast<std::uint64_t>(rank + 1));
          return mul(randn({501}, {.generator = &rng}), scale);
        };
        const Parameter p("p", zeros({501}).requires_grad_());
        FusedExchange exchange({p}, shared(group), {.compression = Compression::fp16});
        mul(p, draw(group.rank())).sum().backward();
        exchange.synchronize();
        const Drawn exact = of_all(draw, n);
        const auto got = p.grad().to_vector<double>();
        const double worst = largest_share(
            got, exact.average, [&](std::size_t i) { return 0x1p-10 * exact.size[i] + 0x1p-24; });
        CHECK(worst <= 1);
        CHECK(worst > 0.01);
      }
      const Parameter big("big", zeros({3}).requires_grad_());
      FusedExchange exchange({big}, shared(group), {.compression = Compression::fp16});
      mul(big, 60000.0).sum().backward();  // their sum overflows
      exchange.synchronize();
      CHECK(big.grad().to_vector<double>() == std::vector<double>(3, 60000.0));
    });
  }
}

TEST_CASE("horovod: a missing gradient counts as zero; several backwards accumulate") {
  in_group(2, [](ProcessGroup& group) {
    const Parameter a("a", ones({2}).requires_grad_()), b("b", ones({2}).requires_grad_());
    FusedExchange exchange({a, b}, shared(group), {.backward_passes_per_step = 2});
    for (int pass = 0; pass < 2; ++pass) {
      CHECK_FALSE(exchange.in_flight());
      (group.rank() == 0 ? a * 3.0 : a + b * 4.0).sum().backward();
    }
    CHECK(exchange.in_flight());
    exchange.synchronize();
    CHECK_FALSE(exchange.in_flight());
    CHECK(a.grad().to_vector<double>() == std::vector<double>{4, 4});
    CHECK(b.grad().to_vector<double>() == std::vector<double>{4, 4});
  });
  const Parameter p("p", ones({2}).requires_grad_());
  FusedExchange exchange({p}, make_process_group("single"));
  p.sum().backward();
  CHECK(has(error_of([&] { p.sum().backward(); }),
            "the gradient of p is being exchanged, and another backward adds to it"));
}

TEST_CASE("horovod: DistributedOptimizer waits, steps on averages and refuses zero_grad in between") {
  in_group(2, [](ProcessGroup& group) {
    const Parameter p("p", zeros({3}).requires_grad_());
    optim::SGD sgd(std::vector<Parameter>{p}, {.lr = 1.0});
    DistributedOptimizer opt(sgd, shared(group), {});
    mul(p, group.rank() == 0 ? 1.0 : 3.0).sum().backward();
    CHECK(has(error_of([&] { opt.zero_grad(); }), "zero_grad() between backward() and step()"));
    opt.step();
    CHECK(p.to_vector<double>() == std::vector<double>(3, -2.0));
    opt.zero_grad();
    mul(p, group.rank() == 0 ? 1.0 : 3.0).sum().backward();
    opt.synchronize();
    p.grad().mul_(0.5);  // edits between them take effect
    opt.step();
    CHECK(p.to_vector<double>() == std::vector<double>(3, -3.0));
  });
}

TEST_CASE("horovod: the optimizer's state and hyperparameters are broadcast from rank 0") {
  in_group(3, [](ProcessGroup& group) {
    for (const bool rank_0_has_state : {true, false}) {
      Net net(1);
      optim::Adam adam(net.parameters(), {.lr = 0.1 * (group.rank() + 1)});
      const auto own_step = [&](double g) {
        for (const Parameter& p : net.parameters()) p.set_grad(full(p.sizes(), g));
        adam.step();
      };
      if (rank_0_has_state == (group.rank() == 0)) own_step(1.0 + group.rank());
      broadcast_optimizer_state(adam, group);
      CHECK(adam.param_groups()[0]["lr"] == 0.1);
      const auto parameters = net.parameters();
      broadcast_all(group, {parameters.begin(), parameters.end()});
      own_step(2.0);
      const Tensor own = cat({net.fc1.weight.flatten(), adam.state_dict().at("state.fc2.bias.exp_avg")});
      const Tensor first = own.detach().clone();
      group.broadcast(first, 0).wait();
      CHECK(own.to_vector<float>() == first.to_vector<float>());
    }
  });
  const auto errors = errors_in_group(2, [](ProcessGroup& group) {
    Net net(1);
    std::unique_ptr<optim::Optimizer> opt;
    if (group.rank() == 0)
      opt = std::make_unique<optim::Adam>(net.parameters());
    else
      opt = std::make_unique<optim::SGD>(net.parameters());
    broadcast_optimizer_state(*opt, group);
  });
  CHECK(has(errors[1], "this state is not one of this SGD"));
}

TEST_CASE("horovod: environment variables are read as by Horovod") {
  const HorovodOptions none = horovod_options({});
  CHECK(none.fusion_threshold == 64 * 1024 * 1024);
  CHECK(none.cycle_time == 5);
  const HorovodOptions set = horovod_options({{"HOROVOD_FUSION_THRESHOLD", "1024"}, {"HOROVOD_CYCLE_TIME", "3.5"}});
  CHECK(set.fusion_threshold == 1024);
  CHECK(set.cycle_time == 3.5);
  CHECK(error_of([] { horovod_options({{"HOROVOD_FUSION_THRESHOLD", "64MB"}}); }) ==
        "[horovod] HOROVOD_FUSION_THRESHOLD is \"64MB\". Give a number that is not negative.");
  CHECK(has(error_of([] { horovod_options({{"HOROVOD_CYCLE_TIME", "-1"}}); }), "not negative"));
}

TEST_CASE("horovod: a sub-group and options out of range are refused") {
  const Parameter p("p", ones({2}).requires_grad_());
  in_group(3, [&](ProcessGroup& group) {
    const auto pair = group.new_group({0, 1});
    if (pair)
      CHECK(has(error_of([&] { FusedExchange exchange({p}, pair); }), "this group has 2 of the ranks only"));
    const auto all = group.new_group({0, 1, 2});
    CHECK_FALSE(all->is_part_of_world());
  });
  const auto single = make_process_group("single");
  const auto refusal = [&](const HorovodOptions& o) { return error_of([&] { FusedExchange e({p}, single, o); }); };
  CHECK(has(refusal({.fusion_threshold = -1}), "fusion_threshold is -1"));
  CHECK(has(refusal({.backward_passes_per_step = 0}), "1 or more"));
}
