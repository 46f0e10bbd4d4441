// Prints the test accuracy of a small network on Fashion-MNIST under a strategy; tools/lossy_training.py compares the
// lossy strategies with ddp. Every option of the Trainer is a flag.
#include <fmt/format.h>
#include <levin/levin.h>

using namespace levin;

namespace {

struct Small : LevinModule {
  explicit Small(std::string o) : optimizer(std::move(o)) {}
  std::string optimizer;
  nn::Linear& fc1 = add<nn::Linear>("fc1", 784, 64);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 64, 10);
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(flatten(x, 1)))); }
  StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]); }
  void test_step(const Batch& b, int) override { log("acc", accuracy((*this)(b[0]), b[1]), {.sync_dist = true}); }
  Optimizers configure_optimizers() override {
    const auto schedule = [this](auto& opt) { return optim::CosineAnnealingLR(opt, estimated_stepping_batches()); };
    const SchedulerConfig each_step{.interval = Interval::step};
    if (optimizer == "qadam") return Optimizers(optim::QAdam(parameters(), {.lr = 2e-3})).schedule(schedule, each_step);
    if (optimizer == "adam") return Optimizers(optim::Adam(parameters(), {.lr = 2e-3})).schedule(schedule, each_step);
    return Optimizers(optim::SGD(parameters(), {.lr = 0.05, .momentum = 0.9})).schedule(schedule, each_step);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] {
    TrainerConfig config{.max_epochs = 5,
                         .num_sanity_val_steps = 0,
                         .accelerator = "cpu",
                         .enable_checkpointing = false,
                         .enable_progress_bar = false,
                         .enable_model_summary = false,
                         .logger = false,
                         .seed = 0};
    std::string optimizer = "sgd";
    CommandLine line("Trains a small network on Fashion-MNIST and prints its test accuracy.");
    line.add_choice("optimizer", optimizer, {"sgd", "adam", "qadam"}, "Optimizer, with a cosine schedule");
    line.add_trainer(config);
    if (!line.parse(argc, argv)) return 0;
    set_num_threads(1);
    const auto seed = static_cast<std::uint64_t>(config.seed.value_or(0));
    Trainer trainer(config);
    Small model(optimizer);
    DataModule data = data::fashion_mnist({.batch_size = 64, .seed = seed});
    data.val = nullptr;
    trainer.fit(model, data);
    const double accuracy = trainer.test(model, data)[0].at("acc");
    if (trainer.is_global_zero()) fmt::print("accuracy {:.4f}\n", accuracy);
    return 0;
  });
}
