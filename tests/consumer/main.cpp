// A user's program. It uses every library of the package, so that a missing symbol or dependency is detected.
#include <levin/core/config.h>
#include <levin/levin.h>

#include <iostream>
#include <string>

using namespace levin;

namespace {

struct Line : LevinModule {
  nn::Linear& fc = add<nn::Linear>("fc", 2, 1);
  StepOutput training_step(const Batch& batch, int) override { return mse_loss(fc(batch[0]), batch[1]); }
  Optimizers configure_optimizers() override { return optim::SGD(fc.parameters(), {.lr = 0.1}); }
};

/// An exception that is thrown in the library is caught here by its type, and has its text.
bool catches_errors() {
  try {
    matmul(ones({2, 3}), ones({4, 5}));
  } catch (const ShapeError& e) {
    return std::string(e.what()).find("[matmul] inner sizes differ") == 0;
  } catch (...) {
  }
  return false;
}

}  // namespace

int main() {
  if (!catches_errors()) {
    std::cout << "the error of matmul was not caught\n";
    return 1;
  }
  manual_seed(7);
  const auto x = randn({64, 2});                //  (64, 2)
  const auto y = matmul(x, full({2, 1}, 3.0));  // (64, 1)
  data::DataLoader loader(data::TensorDataset({x, y}), {.batch_size = 16});

  Line model;
  TrainerConfig config{.max_epochs = 50};
  config.enable_checkpointing = config.enable_progress_bar = config.enable_model_summary = config.logger = false;
  Trainer trainer(config);
  trainer.fit(model, loader);

  const double error = (model.fc.weight.detach() - 3.0).abs().max().item<double>();
  std::cout << "levin " << LEVIN_VERSION << ", " << trainer.global_step() << " steps\n";
  if (error > 1e-3) {
    std::cout << "the weights are off by " << error << '\n';
    return 1;
  }
  std::cout << "consumer: ok\n";
}
