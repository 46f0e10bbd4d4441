#pragma once
// A GAN with two networks, two optimizers and manual optimization.

#include <algorithm>

#include "nets.h"

struct GanOptions {
  bool tiny = false;
  bool unconditional = false;   ///< draws images without being told their classes
  double lr = 6e-4;             ///< the generator's learning rate
  double d_lr = 2.5e-3;         ///< the discriminator's, which is higher as in Heusel et al. (2017)
  std::int64_t accumulate = 2;  ///< batches per optimizer step
};

struct LitGan : levin::LevinModule {
  explicit LitGan(const GanOptions& options)
      : o(options),
        classes(o.unconditional ? 0 : kClasses),
        g(add<levin::nn::Sequential>("g", make_generator(o.tiny, classes))),
        d(add<levin::nn::Sequential>("d", make_discriminator(o.tiny, classes))) {
    automatic_optimization = false;
    if (!o.tiny) init_weights(*this);
  }

  const GanOptions o;
  const std::int64_t classes;
  levin::nn::Sequential &g, &d;

  /// Draws noise for images of the classes y (B): (B, 100 + classes, 1, 1).
  levin::Tensor noise_for(const levin::Tensor& y, const levin::TensorOptions& options = {}) const {
    const levin::Tensor z = levin::randn({y.size(0), kNoise}, options);
    if (o.unconditional) return z.reshape({-1, kNoise, 1, 1});
    return levin::cat({z, levin::one_hot(y, classes).to(z.dtype())}, 1).reshape({-1, kNoise + classes, 1, 1});
  }
  /// Maps noise of noise_for to images (B, 1, 28, 28) in [-1, 1].
  levin::Tensor forward(const levin::Tensor& noise) override { return g(noise).reshape({-1, 1, 28, 28}); }
  /// Returns the discriminator's logits (B, 1) of images x as such of the classes y.
  levin::Tensor realness(const levin::Tensor& x, const levin::Tensor& y) {
    return o.unconditional ? d(x) : d(x).gather(1, y.unsqueeze(1));
  }

  levin::StepOutput training_step(const levin::Batch& batch, int index) override {
    const auto [g_opt, d_opt] = optimizers<2>();
    const bool first = index % o.accumulate == 0;
    const std::int64_t window = is_last_batch() ? index % o.accumulate + 1 : o.accumulate;
    const bool steps = (index + 1) % o.accumulate == 0 || is_last_batch();
    const levin::Tensor real = to_tanh_range(batch[0]), y = batch[1];
    const levin::Tensor fake = forward(noise_for(y, like(real)));
    {
      const auto only = d_opt.toggle_model(/*sync_grad=*/steps);
      const auto loss = bce_with_logits(realness(real, y), 1.0f) + bce_with_logits(realness(fake.detach(), y), 0.0f);
      update(d_opt, loss, first, steps, window);
      log("d_loss", loss, {.prog_bar = true});
    }
    {
      const auto only = g_opt.toggle_model(/*sync_grad=*/steps);
      const auto loss = bce_with_logits(realness(fake, y), 1.0f);
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
