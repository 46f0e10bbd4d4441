// The order in which units of a FullyShardedDataParallel are gathered.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <levin/distributed/fsdp.h>

#include "distributed/ddp_models.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

using Names = std::vector<std::string>;

/// Records the events of a rank's group.
class Watching final : public ProcessGroup {
 public:
  Watching(ProcessGroup& inner, Names& events)
      : ProcessGroup(inner.rank(), inner.ranks(), inner.timeout()), inner_(inner), events_(events) {}
  std::string name() const override { return inner_.name(); }
  std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& ranks) override { return inner_.new_group(ranks); }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 protected:
  Work begin(Collective c) override {
    if (c.kind == Collective::Kind::all_gather && c.output.dtype() == kFloat32)
      events_.push_back(fmt::format("gather {}", c.output.numel()));
    if (c.kind == Collective::Kind::reduce_scatter) events_.push_back(fmt::format("reduce {}", c.input.numel()));
    return begin_on(inner_, std::move(c));
  }

 private:
  ProcessGroup& inner_;
  Names& events_;
};

/// Four units with distinct numbers of elements; b and c may swap places.
struct Steps : nn::Module {
  nn::Linear& a = add<nn::Linear>("a", 4, 6);
  nn::Linear& b = add<nn::Linear>("b", 6, 6);
  nn::Linear& c = add<nn::Linear>("c", 6, 6, nn::LinearOptions{.bias = false});
  nn::Linear& d = add<nn::Linear>("d", 6, 3);
  bool swapped = false;
  Tensor forward(const Tensor& x) override {
    const Tensor y = tanh(a(x));
    return d(swapped ? tanh(b(tanh(c(y)))) : tanh(c(tanh(b(y)))));
  }
};

struct Passes {
  std::vector<Names> events;  // of each pass
  std::vector<double> weights;
  int64_t peak = 0;
};

/// Runs two training passes, two with b and c swapped, and two evaluations; records those of rank 0.
Passes passes_of(const FullyShardedOptions& options) {
  manual_seed(4);
  const StateDict start = Steps().state_dict();
  Passes result;
  in_group(2, [&](ProcessGroup& inner) {
    Steps net;
    net.load_state_dict(start);
    Names events;
    FullyShardedDataParallel fsdp(net, std::make_shared<Watching>(inner, events), options);
    for (auto& [name, m] : net.named_modules())
      if (!name.empty())
        m->register_forward_pre_hook([&events, name = name](nn::Module&, const std::vector<Tensor>&) {
          events.push_back(name);
          return Tensor();
        });
    optim::SGD opt(fsdp.parameters(), {.lr = 0.1, .momentum = 0.9});
    std::vector<Names> all;
    for (int pass = 0; pass < 6; ++pass) {
      events.clear();
      net.swapped = pass >= 2;
      const Tensor x = part(input(pass).narrow(1, 0, 4), inner.rank(), 2);
      if (pass >= 4) {
        const no_grad guard;
        fsdp(x);
        CHECK(fsdp.held_bytes(opt).parameters == (30 + 42 + 36 + 22) / 2 * 4);
      } else {
        opt.zero_grad();
        square(fsdp(x)).sum().backward();
        opt.step();
      }
      all.push_back(events);
    }
    const int64_t peak = fsdp.peak_gathered_bytes();
    fsdp.unshard();
    if (inner.rank() == 0) result = {all, weights(net), peak};
  });
  return result;
}

}  // namespace

TEST_CASE("fsdp: the next unit is prefetched while one computes, in the order of the previous pass") {
  const Passes ahead = passes_of({.min_elements = 20}), plain = passes_of({.min_elements = 20, .prefetch = false});
  CHECK(ahead.weights == plain.weights);
  const Names one_by_one = {"gather 30", "a", "gather 42", "b", "gather 36", "c", "gather 22", "d"};
  const Names and_back = {"gather 22", "reduce 22", "gather 36", "reduce 36", "gather 42", "reduce 42", "gather 30",
                          "reduce 30"};
  Names both = one_by_one;
  both.insert(both.end(), and_back.begin(), and_back.end());
  CHECK(plain.events[1] == both);
  CHECK(ahead.events[0] == both);  // the order is not known yet
  CHECK(ahead.events[1] == Names{"gather 30", "gather 42", "a", "gather 36", "b", "gather 22", "c", "d", "gather 36",
                                 "reduce 22", "gather 42", "reduce 36", "gather 30", "reduce 42", "reduce 30"});
  CHECK(ahead.events[2] == Names{"gather 30", "gather 42", "a", "gather 36", "c", "gather 42", "b", "gather 22", "d",
                                 "gather 36", "reduce 22", "gather 42", "gather 36", "reduce 36", "reduce 42",
                                 "gather 30", "reduce 30"});  // b is prefetched in vain, and c in backward
  CHECK(ahead.events[3] == Names{"gather 30", "gather 36", "a", "gather 42", "c", "gather 22", "b", "d", "gather 42",
                                 "reduce 22", "gather 36", "gather 30", "reduce 36", "reduce 42", "reduce 30"});
  CHECK(ahead.events[5] == Names{"gather 30", "gather 36", "a", "gather 42", "c", "gather 22", "b", "d"});
  CHECK(plain.peak == 42 * 4);
  CHECK(ahead.peak == (42 + 36) * 4);
}

TEST_CASE("fsdp: units needed until the end of backward leave room for one more") {
  struct Again : nn::Module {
    nn::Linear& a = add<nn::Linear>("a", 8, 8);
    nn::Linear& b = add<nn::Linear>("b", 8, 8);
    nn::Linear& c = add<nn::Linear>("c", 8, 8);
    Tensor forward(const Tensor& x) override { return a(tanh(c(tanh(b(tanh(a(x))))))); }
  };
  in_group(2, [](ProcessGroup& group) {
    Again net;
    FullyShardedDataParallel fsdp(net, shared(group), {.min_elements = 72});
    for (int pass = 0; pass < 3; ++pass) sum(fsdp(ones({2, 8}))).backward();
    CHECK(fsdp.peak_gathered_bytes() == 2 * (8 * 8 + 8) * 4);
  });
}
