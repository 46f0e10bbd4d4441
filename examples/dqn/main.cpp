// Learns to balance a pole on a cart by deep Q-learning: ./run dqn --help
// Mnih et al., "Human-level control through deep reinforcement learning", 2015; van Hasselt et al., "Deep reinforcement
// learning with double Q-learning", 2016. The cart is that of Barto, Sutton & Anderson, 1983, as CartPole-v1 of
// Gymnasium.
#include <levin/levin.h>

#include <fmt/format.h>

#include <chrono>
#include <random>

#include "first_steps.h"

using namespace levin;

namespace {

struct Options {
  std::int64_t hidden = 128, batch_size = 128, play = 4, start = 1000, memory = 50000, explore = 10000, sync = 200;
  double lr = 1e-3, gamma = 0.99;
  std::string record{};
  TrainerConfig trainer{.max_epochs = 1,
                        .max_steps = 30000,
                        .val_check_interval = 500,
                        .check_val_every_n_epoch = std::nullopt,
                        .num_sanity_val_steps = 0,
                        .default_root_dir = "runs/dqn",
                        .logger = "csv,html",
                        .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Learns CartPole by deep Q-learning until the mean return of 20 episodes is 475 of 500.");
  line.add("hidden", o.hidden, "Features of the hidden layers", 1);
  line.add("batch-size", o.batch_size, "Transitions per batch", 1);
  line.add("play", o.play, "Steps to play before each batch", 1);
  line.add("start", o.start, "Steps to play at random at first", 1);
  line.add("memory", o.memory, "Transitions to keep", 1);
  line.add("explore", o.explore, "Steps over which random actions become rare");
  line.add("sync", o.sync, "Batches after which the target network is updated", 1);
  line.add("lr", o.lr, "Learning rate");
  line.add("gamma", o.gamma, "Discount of future rewards");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

using State = std::array<float, 4>;  // position, speed, angle, angular speed

struct CartPole {
  State state{};
  int steps = 0;

  void reset(std::mt19937& rng) {
    std::uniform_real_distribution<float> small(-0.05f, 0.05f);
    for (float& s : state) s = small(rng);
    steps = 0;
  }
  /// Pushes the cart to the left (0) or to the right (1); returns true if it or the pole left the limits.
  bool step(std::int64_t action) {
    auto& [x, speed, angle, turn] = state;
    const float force = action == 1 ? 10.f : -10.f, cosine = std::cos(angle), sine = std::sin(angle);
    const float push = (force + 0.05f * turn * turn * sine) / 1.1f;
    const float bend = (9.8f * sine - cosine * push) / (0.5f * (4.f / 3 - 0.1f * cosine * cosine / 1.1f));
    const float drive = push - 0.05f * bend * cosine / 1.1f;
    state = {x + 0.02f * speed, speed + 0.02f * drive, angle + 0.02f * turn, turn + 0.02f * bend};
    ++steps;
    return std::abs(state[0]) > 2.4f || std::abs(state[2]) > 0.2095f;
  }
  bool over() const { return steps >= 500; }
};

using Transition = std::tuple<State, std::int64_t, float, State, bool>;  // before, action, reward, after, failed

/// Transitions drawn at random from the last ones that were played.
struct Replay : data::IterableDataset {
  struct Stream : data::SampleStream {
    const std::vector<Transition>& memory;
    Generator rng;
    Stream(const std::vector<Transition>& m, Generator g) : memory(m), rng(std::move(g)) {}
    std::optional<data::Sample> next() override {
      const auto& [before, action, reward, after, failed] = memory[rng.next_u64() % memory.size()];
      return data::Sample{from_data(std::vector(before.begin(), before.end()), {4}), tensor(action), tensor(reward),
                          from_data(std::vector(after.begin(), after.end()), {4}), tensor(failed)};
    }
    void skip(std::int64_t) override {}
  };
  std::shared_ptr<std::vector<Transition>> memory;
  explicit Replay(std::shared_ptr<std::vector<Transition>> m) : memory(std::move(m)) {}
  std::int64_t shards() const override { return 64; }  // at least one for each process
  std::unique_ptr<data::SampleStream> open(std::int64_t, Generator rng) const override {
    return std::make_unique<Stream>(*memory, std::move(rng));
  }
};

nn::Sequential network(std::int64_t hidden) {
  return nn::Sequential(nn::Linear(4, hidden), nn::ReLU(), nn::Linear(hidden, hidden), nn::ReLU(),
                        nn::Linear(hidden, 2));
}

struct Dqn : LevinModule {
  const Options o;
  const std::shared_ptr<std::vector<Transition>> memory = std::make_shared<std::vector<Transition>>();
  nn::Sequential& q = add<nn::Sequential>("q", network(o.hidden));
  nn::Sequential& target = add<nn::Sequential>("target", network(o.hidden));
  CartPole cart{};
  std::mt19937 rng;
  std::int64_t played = 0;

  explicit Dqn(const Options& options) : o(options), rng(static_cast<unsigned>(o.trainer.seed.value_or(1))) {
    target.load_state_dict(q.state_dict());
    target.requires_grad_(false);
    cart.reset(rng);
    while (played < o.start) play(1.0);
  }

  std::int64_t best_action(const State& s) {
    const inference_mode guard;
    return q(from_data(std::vector(s.begin(), s.end()), {1, 4}).to(device(), q.parameters()[0].dtype()))
        .argmax()
        .item<std::int64_t>();
  }
  void play(double random) {
    std::uniform_real_distribution<double> chance(0, 1);
    const State before = cart.state;
    const std::int64_t action = chance(rng) < random ? static_cast<std::int64_t>(rng() % 2) : best_action(before);
    const bool failed = cart.step(action);
    const Transition t{before, action, 1.f, cart.state, failed};
    if (std::ssize(*memory) < o.memory)
      memory->push_back(t);
    else
      (*memory)[static_cast<std::size_t>(played % o.memory)] = t;
    if (failed || cart.over()) cart.reset(rng);
    ++played;
  }

  bool on_train_batch_start(const Batch&, int) override {
    if (global_step() % o.sync == 0) target.load_state_dict(q.state_dict());
    for (std::int64_t i = 0; i < o.play; ++i) play(std::max(0.05, 1 - double(played) / double(o.explore)));
    return true;
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [before, action, reward, after, failed] = batch.as<5>();
    const Tensor value = q(before).gather(1, action.unsqueeze(1)).squeeze(1);
    Tensor goal;
    {
      const no_grad guard;
      goal = reward + o.gamma * target(after).gather(1, q(after).argmax(1, true)).squeeze(1) * ~failed;
    }
    const auto loss = smooth_l1_loss(value, goal);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  /// Plays one episode for each sample, without random actions.
  void validation_step(const Batch& batch, int) override {
    std::mt19937 episodes(7);
    double sum = 0;
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      CartPole c;
      c.reset(episodes);
      while (!c.over() && !c.step(best_action(c.state))) {
      }
      sum += c.steps;
    }
    log("val_return", sum / double(batch.size()), {.prog_bar = true});
  }
  Optimizers configure_optimizers() override { return optim::Adam(q.parameters(), {.lr = o.lr}); }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  Dqn dqn(o);
  data::DataLoader train_loader(Replay(dqn.memory), {.batch_size = o.batch_size});
  data::DataLoader val_loader(data::TensorDataset({arange(20)}), {.batch_size = 20});

  o.trainer.callbacks = {EarlyStopping({.monitor = "val_return",
                                        .patience = 1000,
                                        .mode = Mode::max,
                                        .strict = false,
                                        .stopping_threshold = 474.99}),
                         FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  const auto start = std::chrono::steady_clock::now();
  trainer.fit(dqn, train_loader, val_loader);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double result = trainer.validate(dqn, val_loader)[0]["val_return"];
  if (trainer.is_global_zero())
    fmt::print("result: return={:.1f} played={} steps={} played_per_second={:.0f} train_seconds={:.1f}\n", result,
               dqn.played, trainer.global_step(), double(dqn.played - o.start) / seconds, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
