// log(): defaults by place, names, reductions, refusals.
#include <cmath>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
using Scope = MetricStore::Scope;
using Values = MetricStore::Values;

TEST_CASE("in a training step values are logged per step") {
  MetricStore m;
  m.set_scope(Scope::step, Split::train, 4);
  m.log("loss", 2.0);
  m.log("both", 1.0, {.on_epoch = true});
  m.log("epoch", 1.0, {.on_step = false, .on_epoch = true});
  CHECK(m.find("loss") == 2.0);
  CHECK(m.find("both_step") == 1.0);
  CHECK(m.find("both") == 1.0);
  CHECK_FALSE(m.find("epoch"));
  CHECK(m.step_values() == Values{{"loss", 2.0}, {"both_step", 1.0}});
  m.set_scope(Scope::step, Split::train, 2);
  m.log("loss", 5.0);
  m.log("both", 4.0, {.on_epoch = true});
  m.log("epoch", 4.0, {.on_step = false, .on_epoch = true});
  m.finish_epoch(Split::train);
  CHECK(m.find("loss") == 5.0);
  CHECK(m.find("both") == 2.0);  // (1 * 4 + 4 * 2) / 6
  CHECK(m.find("both_epoch") == 2.0);
  CHECK(m.find("both_step") == 4.0);
  CHECK(m.epoch_values(Split::train) == Values{{"both_epoch", 2.0}, {"epoch", 2.0}});
  CHECK(m.results(Split::train) == std::map<std::string, double>{{"both", 2.0}, {"epoch", 2.0}});
}

TEST_CASE("in evaluation values are logged per epoch, weighted by batch size") {
  MetricStore m;
  m.set_scope(Scope::eval_step, Split::validation, 3);
  m.log("acc", 1.0);
  m.set_scope(Scope::eval_step, Split::validation, 1);
  m.log("acc", 0.0);
  CHECK_FALSE(m.find("acc"));
  m.finish_epoch(Split::validation);
  CHECK(m.find("acc") == 0.75);
  m.start_epoch(Split::validation);
  m.log("acc", 0.5, {.batch_size = 10});
  m.finish_epoch(Split::validation);
  CHECK(m.find("acc") == 0.5);
}

TEST_CASE("reductions") {
  MetricStore m;
  m.set_scope(Scope::eval_step, Split::test, 2);
  for (const double v : {3.0, -1.0, 2.0}) {
    m.log("sum", v, {.reduce = Reduce::sum});
    m.log("min", v, {.reduce = Reduce::min});
    m.log("max", v, {.reduce = Reduce::max});
    m.log("mean", v);
  }
  m.finish_epoch(Split::test);
  CHECK(m.results(Split::test) ==
        std::map<std::string, double>{{"sum", 4}, {"min", -1}, {"max", 3}, {"mean", 4.0 / 3}});
}

TEST_CASE("step values of evaluation are not for callbacks") {
  MetricStore m;
  m.set_scope(Scope::eval_step, Split::validation, 1);
  m.log("x", 1.0, {.prog_bar = true, .on_step = true});
  CHECK_FALSE(m.find("x_step"));
  CHECK(m.progress_bar_values() == Values{{"x_step", 1.0}});
  m.finish_epoch(Split::validation);
  CHECK(m.find("x") == 1.0);
  CHECK(m.find("x_epoch") == 1.0);
}

TEST_CASE("the newest value wins if two splits use one name") {
  MetricStore m;
  m.set_scope(Scope::step, Split::train, 1);
  m.log("loss", 1.0);
  m.set_scope(Scope::eval_step, Split::validation, 1);
  m.log("loss", 7.0);
  m.finish_epoch(Split::validation);
  CHECK(m.find("loss") == 7.0);
  m.set_scope(Scope::step, Split::train, 1);
  m.log("loss", 2.0);
  CHECK(m.find("loss") == 2.0);
}

TEST_CASE("logging in the wrong place is refused") {
  MetricStore m;
  CHECK_THROWS_AS(m.log("x", 1), ValueError);
  m.set_scope(Scope::epoch, Split::train);
  CHECK_THROWS_AS(m.log("x", 1, {.on_step = true}), ValueError);
  CHECK_THROWS_AS(m.log("x", 1, {.on_step = false, .on_epoch = false}), ValueError);
  m.set_scope(Scope::step, Split::train);
  m.log("x", 1);
  CHECK_THROWS_AS(m.log("x", 1, {.prog_bar = true}), ValueError);
  CHECK_THROWS_AS(m.log("x", 1, {.reduce = Reduce::sum}), ValueError);
}

TEST_CASE("the state is restored in the middle of an epoch") {
  MetricStore a;
  a.set_scope(Scope::step, Split::train, 3);
  a.log("x", 0.1, {.on_epoch = true});
  a.log("nan", NAN);
  MetricStore b;
  b.load_state(a.state());
  for (MetricStore* m : {&a, &b}) {
    m->set_scope(Scope::step, Split::train, 4);
    m->log("x", 0.7, {.on_epoch = true});
    m->finish_epoch(Split::train);
  }
  CHECK(a.find("x") == b.find("x"));
  CHECK(a.stamp() == b.stamp());
  CHECK(a.names() == b.names());
}

namespace {

/// Values that each have an option by which they differ from the first.
void log_all_ways(const std::function<void(const char*, double, const LogOptions&)>& log) {
  log("plain", 1, {});
  log("bar", 2, {.prog_bar = true});
  log("quiet", 3, {.logger = false});
  log("epoch", 4, {.on_step = false, .on_epoch = true, .reduce = Reduce::max});
  log("both", 5, {.on_step = true, .on_epoch = true, .batch_size = 3});
  log("shared", 6, {.on_epoch = true, .reduce = Reduce::min, .sync_dist = true});
  log("zero", 7, {.rank_zero_only = true});
  log("one_name", 8, {.on_epoch = true, .add_dataloader_idx = false});
}

}  // namespace

TEST_CASE("options are stored in checkpoints as stable numbers") {
  MetricStore m, again;
  m.set_scope(Scope::step, Split::train, 2);
  log_all_ways([&](const char* name, double value, const LogOptions& o) { m.log(name, value, o); });
  // split, reduce, stamp, prog_bar, logger, on_step, on_epoch, has_step, has_sum, has_epoch
  const std::vector<std::int64_t> flags = {
      0, 0, 1, 0, 1, 1, 0, 1, 0, 0, /**/ 0, 0, 2, 1, 1, 1, 0, 1, 0, 0, /**/ 0, 0, 3, 0, 0, 1, 0, 1, 0, 0, /**/
      0, 3, 4, 0, 1, 0, 1, 0, 1, 0, /**/ 0, 0, 5, 0, 1, 1, 1, 1, 1, 0, /**/ 0, 2, 6, 0, 1, 1, 1, 1, 1, 0, /**/
      0, 0, 7, 0, 1, 1, 0, 1, 0, 0, /**/ 0, 0, 8, 0, 1, 1, 1, 1, 1, 0};
  const StateMap state = m.state();
  CHECK(state.get<std::vector<std::int64_t>>("flags") == flags);
  CHECK(state.get<std::vector<std::int64_t>>("ranks") == std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 2, 0});
  again.load_state(state);
  CHECK(again.state() == state);
  again.set_scope(Scope::step, Split::train, 2);
  CHECK_NOTHROW(log_all_ways([&](const char* name, double value, const LogOptions& o) { again.log(name, value, o); }));
}

TEST_CASE("values logged by parts of a batch are the same in another process, with all options") {
  LogPart part(2);
  log_all_ways([&](const char* name, double value, const LogOptions& o) { part.add(name, value, o); });
  for (const Scope scope : {Scope::step, Scope::eval_step}) {
    MetricStore here, there;
    const Split split = scope == Scope::step ? Split::train : Split::validation;
    for (MetricStore* m : {&here, &there}) m->set_scope(scope, split, 4, scope == Scope::step ? -1 : 1);
    here.log(std::vector{part});
    there.log(here.joined({part}));
    CHECK(there.state() == here.state());
    CHECK(here.only_on_rank_zero(split == Split::train ? "zero" : "zero/dataloader_idx_1"));
  }
}

TEST_CASE("in a run, where which hook may log") {
  struct Logs : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      log("step", static_cast<double>(i));
      return ToyModule::training_step(b, i);
    }
    void on_train_epoch_end() override { log("epoch_end", 3.0); }
    void on_validation_epoch_end() override { log("val_end", 4.0); }
    void on_train_end() override { CHECK_THROWS_AS(log("late", 1.0), ValueError); }
    void on_fit_start() override { CHECK_THROWS_AS(log("early", 1.0), ValueError); }
  } model;
  data::DataLoader train(toy_points(12), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  Trainer trainer(quiet({.max_epochs = 1}));
  trainer.fit(model, train, val);
  CHECK(trainer.metrics().find("step") == 2.0);
  CHECK(trainer.metrics().find("epoch_end") == 3.0);
  CHECK(trainer.metrics().find("val_end") == 4.0);
  model.log("outside of a run", 1.0);
  CHECK_FALSE(trainer.metrics().find("outside of a run"));
}
