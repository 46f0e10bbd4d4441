#pragma once
// A GAN with two networks, two optimizers and manual optimization.

#include <algorithm>

#include "nets.h"

struct GanOptions {
  bool tiny = false;
  double lr = 6e-4;             ///< the generator's learning rate
  double d_lr = 2.5e-3;         ///< the discriminator's, which is higher as in Heusel et al. (2017)
  std::int64_t accumulate = 2;  ///< batches per optimizer step
};

struct LitGan : levin::LevinModule {
  explicit LitGan(const GanOptions& options)
      : g(add<levin::nn::Sequential>("g", make_generator(options.tiny))),
        d(add<levin::nn::Sequential>("d", make_discriminator(options.tiny))), o(options) {
    automatic_optimization = false;
    if (!o.tiny) init_weights(*this);
  }

  levin::nn::Sequential &g, &d;
  GanOptions o;

  /// Maps noise (B, 100, 1, 1) to images (B, 1, 28, 28) in [-1, 1].
  levin::Tensor forward(const levin::Tensor& noise) override { return g(noise).reshape({-1, 1, 28, 28}); }

  levin::StepOutput training_step(const levin::Batch& batch, int index) override {
    const auto [g_opt, d_opt] = optimizers<2>();
    const bool first = index % o.accumulate == 0;
    const std::int64_t window = is_last_batch() ? index % o.accumulate + 1 : o.accumulate;
    const bool steps = (index + 1) % o.accumulate == 0 || is_last_batch();
    const levin::Tensor real = to_tanh_range(batch[0]);
    const levin::Tensor fake = forward(randn({batch.size(), kNoise, 1, 1}, like(real)));
    {
      const auto only = d_opt.toggle_model(/*sync_grad=*/steps);
      const auto loss = bce_with_logits(d(real), 1.0f) + bce_with_logits(d(fake.detach()), 0.0f);
      update(d_opt, loss, first, steps, window);
      log("d_loss", loss, {.prog_bar = true});
    }
    {
      const auto only = g_opt.toggle_model(/*sync_grad=*/steps);
      const auto loss = bce_with_logits(d(fake), 1.0f);
      update(g_opt, loss, first, steps, window);
      log("g_loss", loss, {.prog_bar = true});
    }
    if (steps)
      for (const auto& scheduler : lr_schedulers<2>()) scheduler.step();
    return {};
  }

  levin::Optimizers configure_optimizers() override {
    const auto adam = [](levin::nn::Module& net, double lr) {
      return levin::optim::Adam(net.parameters(), {.lr = lr, .betas = {0.5, 0.999}});
    };
    // The rate is constant for the first quarter of the steps and then falls linearly to zero, so that the two networks
    // stop oscillating around each other.
    const double steps = static_cast<double>(estimated_stepping_batches()) / static_cast<double>(o.accumulate);
    const auto rate = [steps](levin::optim::Optimizer& optimizer) {
      return levin::optim::LambdaLR(optimizer, [steps](std::int64_t step) {
        return steps > 0 ? std::clamp((1 - static_cast<double>(step) / steps) / 0.75, 0.0, 1.0) : 1.0;
      });
    };
    return levin::Optimizers(adam(g, o.lr)).schedule(rate).add(adam(d, o.d_lr)).schedule(rate);
  }

 private:
  /// Accumulates the gradients of the window's mean loss, and steps after its last batch.
  void update(const levin::OptimizerHandle& optimizer, const levin::Tensor& loss, bool first, bool steps,
              std::int64_t window) {
    if (first) optimizer.zero_grad();
    manual_backward(loss / static_cast<double>(o.accumulate));
    if (!steps) return;
    if (window < o.accumulate) {  // the epoch ended in the middle of the window
      const levin::no_grad guard;
      for (const auto& p : optimizer.optimizer().parameters())
        if (p.grad().defined()) p.grad().mul_(static_cast<double>(o.accumulate) / static_cast<double>(window));
    }
    optimizer.step();
  }
};
