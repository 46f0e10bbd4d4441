// Communication between ranks, which are two threads here.
#include <array>
#include <atomic>

#include "distributed/groups.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
using Scope = MetricStore::Scope;
using Values = MetricStore::Values;

namespace {

class ThreadRank final : public Strategy {
 public:
  ThreadRank(distributed::ProcessGroup& group, int local_rank)
      : Strategy(kCpu,
                 {.rank = group.rank(),
                  .world_size = group.size(),
                  .local_rank = local_rank,
                  .node_rank = group.rank() - local_rank},
                 std::shared_ptr<distributed::ProcessGroup>(std::shared_ptr<void>(), &group)) {}
  std::string name() const override { return "threads"; }
  void setup(nn::Module&) override {}
  void reduce_in_backward(const std::vector<Parameter>&) override {}
  void finish_reduction(const std::vector<Parameter>&) override {}

  std::int64_t reductions() const { return process_group()->begun(distributed::Collective::Kind::all_reduce); }
};

/// f(rank) in two threads.
template <class F>
void on_two_ranks(const F& f, bool same_node = true) {
  in_group(2, [&](distributed::ProcessGroup& group) {
    ThreadRank rank(group, same_node ? group.rank() : 0);
    f(rank);
  });
}

using Numbers = std::array<double, 2>;

}  // namespace

TEST_CASE("log with sync_dist has one value on all ranks") {
  struct Got {
    Values step{}, epoch{};
    std::int64_t reductions = 0;
  };
  std::array<Got, 2> got;
  on_two_ranks([&](ThreadRank& rank) {
    const bool zero = rank.is_global_zero();
    MetricStore m;
    m.set_ranks(rank);
    m.set_scope(Scope::step, Split::train, zero ? 3 : 1);
    const double value = zero ? 2.0 : 10.0;
    m.log("own", value, {.on_epoch = true});
    m.log("mean", full({}, value), {.on_epoch = true, .sync_dist = true});
    m.log("sum", value, {.on_epoch = true, .reduce = Reduce::sum, .sync_dist = true});
    m.log("min", value, {.on_epoch = true, .reduce = Reduce::min, .sync_dist = true});
    m.log("max", value, {.on_step = false, .on_epoch = true, .reduce = Reduce::max, .sync_dist = true});
    Got& mine = got[static_cast<std::size_t>(rank.rank())];
    mine.reductions = rank.reductions();
    mine.step = m.step_values();
    m.finish_epoch(Split::train);
    mine.epoch = m.epoch_values(Split::train);
  });
  const auto own = [](double v) { return std::pair<std::string, double>("own_step", v); };
  CHECK(got[0].step == Values{own(2), {"mean_step", 6}, {"sum_step", 12}, {"min_step", 2}});
  CHECK(got[1].step == Values{own(10), {"mean_step", 6}, {"sum_step", 12}, {"min_step", 2}});
  CHECK(got[0].reductions == 3);  // of steps, as they are logged
  CHECK(got[1].reductions == 3);
  // Each sample counts once, whichever rank had it.
  CHECK(got[0].epoch == Values{{"own_epoch", 2}, {"mean_epoch", 4}, {"sum_epoch", 12}, {"min_epoch", 2}, {"max", 10}});
  CHECK(got[1].epoch == Values{{"own_epoch", 10}, {"mean_epoch", 4}, {"sum_epoch", 12}, {"min_epoch", 2}, {"max", 10}});
}

TEST_CASE("a rank without a value in an epoch gets the others' and blocks none") {
  std::array<Values, 2> got;
  std::array<Values, 2> after_none;
  on_two_ranks([&](ThreadRank& rank) {
    MetricStore m;
    m.set_ranks(rank);
    const auto epoch = [&](bool logs, double value) {
      m.set_scope(Scope::eval_step, Split::validation, 2);
      m.start_epoch(Split::validation);
      if (logs) {
        m.log("mean", value, {.sync_dist = true});
        m.log("min", value, {.reduce = Reduce::min, .sync_dist = true});
      }
      m.finish_epoch(Split::validation);
      return m.epoch_values(Split::validation);
    };
    epoch(true, 1.0);
    got[static_cast<std::size_t>(rank.rank())] = epoch(rank.is_global_zero(), 7.0);
    after_none[static_cast<std::size_t>(rank.rank())] = epoch(false, 0.0);
  });
  for (const auto& values : got) CHECK(values == Values{{"mean", 7}, {"min", 7}});
  for (const auto& values : after_none) CHECK(values == Values{{"mean", 7}, {"min", 7}});  // the last known
}

TEST_CASE("log with rank_zero_only is rank zero's, and no monitor's") {
  std::array<bool, 2> has{}, monitored{};
  on_two_ranks([&](ThreadRank& rank) {
    MetricStore m;
    m.set_ranks(rank);
    m.set_scope(Scope::step, Split::train, 1);
    m.log("files", 3.0, {.rank_zero_only = true});
    has[static_cast<std::size_t>(rank.rank())] = m.step_values() == Values{{"files", 3.0}};
    monitored[static_cast<std::size_t>(rank.rank())] = m.find("files").has_value() || !m.names().empty();
  });
  CHECK(has == std::array{true, false});
  CHECK(monitored == std::array{false, false});

  MetricStore m;
  m.set_scope(Scope::step, Split::train, 1);
  CHECK(contains(message_of<ValueError>([&] { m.log("x", 1.0, {.sync_dist = true, .rank_zero_only = true}); }),
                 "Set one of them"));
  m.log("x", 1.0, {.rank_zero_only = true});
  CHECK(contains(message_of<ValueError>([&] { m.log("x", 1.0); }), "logged before with other options"));
  // Both stand in a checkpoint of the middle of an epoch.
  m.log("y", 1.0, {.sync_dist = true});
  MetricStore again;
  again.load_state(m.state());
  again.set_scope(Scope::step, Split::train, 1);
  again.log("x", 1.0, {.rank_zero_only = true});
  again.log("y", 1.0, {.sync_dist = true});
  CHECK(again.step_values() == Values{{"x", 1.0}, {"y", 1.0}});
}

TEST_CASE("a monitor of rank zero alone is refused by name") {
  struct Alone : ToyModule {
    void validation_step(const Batch&, int) override { log("val_files", 1.0, {.rank_zero_only = true}); }
  } model;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {EarlyStopping({.monitor = "val_files"})};
  CHECK(contains(message_of<UsageError>([&] { Trainer(config).fit(model, loader, loader); }),
                 "[EarlyStopping] the value \"val_files\" is logged with rank_zero_only"));
}

TEST_CASE("rank_zero_first: the others find what the first has made") {
  for (const bool local : {false, true}) {
    for (const bool same_node : {true, false}) {
      CAPTURE(local);
      CAPTURE(same_node);
      std::atomic<int> made = 0;
      Numbers found{};
      on_two_ranks(
          [&](ThreadRank& rank) {
            const bool waits = local ? rank.local_rank() != 0 : !rank.is_global_zero();
            found[static_cast<std::size_t>(rank.rank())] = rank.rank_zero_first(
                [&] {
                  const int there = made.load();
                  if (!waits) ++made;
                  return static_cast<double>(there);
                },
                local);
            if (local && !same_node) return;  // both are first on their machines: no order
          },
          same_node);
      if (!local || same_node) CHECK(found == Numbers{0, 1});
    }
  }
}

TEST_CASE("rank_zero_first lets the others go on where the first one fails") {
  std::array<std::string, 2> ended;
  on_two_ranks([&](ThreadRank& rank) {
    ended[static_cast<std::size_t>(rank.rank())] = message_of<ValueError>([&] {
      rank.rank_zero_first([&] {
        if (rank.is_global_zero()) throw ValueError("no network");
      });
    });
  });
  CHECK(ended == std::array<std::string, 2>{"no network", "nothing was thrown"});
}

TEST_CASE("Fabric with one rank: broadcast and gather return the rank's own values") {
  Fabric fabric({.accelerator = "cpu"});
  const Tensor t = full({2}, 3.0).requires_grad_();
  CHECK(fabric.broadcast(t).to_vector<float>() == std::vector<float>{3, 3});
  CHECK(fabric.broadcast(StateMap{{"lr", 0.1}}) == StateMap{{"lr", 0.1}});
  CHECK(message_of<ValueError>([&] { fabric.broadcast(t, 1); }) ==
        "[broadcast] rank 1 does not exist: the ranks are 0 to 0. Set src to one of these.");
  CHECK_THROWS_AS(fabric.broadcast(StateMap(), -1), ValueError);

  CHECK(fabric.all_gather(t).sizes() == t.sizes());  // no dimension of ranks, as Lightning's
  CHECK_FALSE(fabric.all_gather(t).requires_grad());
  (fabric.all_gather(t, /*sync_grads=*/true) * 2.0).sum().backward();
  CHECK(t.grad().to_vector<float>() == std::vector<float>{2, 2});

  CHECK(fabric.rank_zero_first([] { return 7; }) == 7);
  CHECK(fabric.local_rank() == 0);
  CHECK(fabric.node_rank() == 0);
}

TEST_CASE("Fabric calls the callbacks that have a hook, in their order") {
  struct Mine : Callback {
    explicit Mine(std::vector<std::string>& to, std::string as) : tape(&to), name(std::move(as)) {}
    std::vector<std::string>* tape;
    std::string name;
    void on_best(int epoch, const std::string& why) {
      tape->push_back(name + ": " + std::to_string(epoch) + " " + why);
    }
  };
  struct Other : Callback {};
  std::vector<std::string> tape;
  Fabric fabric({.callbacks = {Mine(tape, "a"), Other(), Mine(tape, "b")}});
  fabric.call(&Mine::on_best, 3, "loss");
  CHECK(tape == std::vector<std::string>{"a: 3 loss", "b: 3 loss"});
  Fabric none;
  none.call(&Mine::on_best, 3, "loss");
  CHECK(tape.size() == 2);
}
