// Models and training of the C interface.
#include "handles.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/loss.h>
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>
#include <levin/optim/adam.h>
#include <levin/optim/sgd.h>

#include <fmt/format.h>

#include <cmath>

using namespace levin;
using namespace levin::c_api;

namespace {

using Loss = std::function<Tensor(const Tensor&, const Tensor&)>;

Loss loss_of(const std::string& name) {
  if (name == "cross_entropy") return [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t); };
  if (name == "mse") return [](const Tensor& y, const Tensor& t) { return mse_loss(y, t); };
  if (name == "l1") return [](const Tensor& y, const Tensor& t) { return l1_loss(y, t); };
  if (name == "bce_with_logits")
    return [](const Tensor& y, const Tensor& t) { return binary_cross_entropy_with_logits(y, t); };
  throw ValueError(fmt::format("[levin_trainer_create] \"{}\" is no loss. Use cross_entropy, mse, l1 or "
                               "bce_with_logits.",
                               name));
}

std::unique_ptr<optim::Optimizer> optimizer_of(const std::string& name, std::vector<Parameter> parameters, double lr) {
  if (name == "sgd") return std::make_unique<optim::SGD>(std::move(parameters), optim::SGDOptions{.lr = lr});
  if (name == "adam") return std::make_unique<optim::Adam>(std::move(parameters), optim::AdamOptions{.lr = lr});
  if (name == "adamw") return std::make_unique<optim::AdamW>(std::move(parameters), optim::AdamWOptions{.lr = lr});
  throw ValueError(fmt::format("[levin_trainer_create] \"{}\" is no optimizer. Use sgd, adam or adamw.", name));
}

/// The parameters that a step may change.
std::vector<Parameter> trainable(const nn::Module& module) {
  std::vector<Parameter> parameters = module.parameters();
  std::erase_if(parameters, [](const Parameter& p) { return !p.requires_grad(); });
  return parameters;
}

void check_rate(const char* function, double lr) {
  if (!(lr >= 0) || !std::isfinite(lr))
    throw ValueError(fmt::format("[{}] learning_rate is {}. Give a number of 0 or more.", function, lr));
}

}  // namespace

levin_status levin_model_load(const char* path, levin_model** model) {
  return guarded([&] {
    require("levin_model_load", "model", model);
    *model = nullptr;
    require("levin_model_load", "path", path);
    *model = new levin_model{std::make_shared<interop::OnnxModel>(interop::load_onnx(path))};
  });
}

void levin_model_free(levin_model* model) { delete model; }

levin_status levin_model_save_weights(const levin_model* model, const char* path) {
  return guarded([&] {
    require("levin_model_save_weights", "model", model);
    require("levin_model_save_weights", "path", path);
    interop::save_safetensors(path, model->module->state_dict());
  });
}

levin_status levin_model_load_weights(levin_model* model, const char* path) {
  return guarded([&] {
    require("levin_model_load_weights", "model", model);
    require("levin_model_load_weights", "path", path);
    model->module->load_state_dict(interop::load_safetensors(path).tensors);
  });
}

int64_t levin_model_parameter_count(const levin_model* model) {
  int64_t count = 0;
  guarded([&] { count = model ? model->module->parameter_count() : 0; });
  return count;
}

levin_status levin_model_forward(levin_model* model, const levin_array* inputs, size_t input_count,
                                 levin_outputs** outputs) {
  return guarded([&] {
    require("levin_model_forward", "outputs", outputs);
    *outputs = nullptr;
    require("levin_model_forward", "model", model);
    const std::vector<Tensor> tensors = tensors_of("levin_model_forward", inputs, input_count);
    const no_grad guard;
    model->module->eval();
    auto result = std::make_unique<levin_outputs>();
    for (const Tensor& y : model->module->call(tensors)) result->entries.push_back(output_of(y));
    *outputs = result.release();
  });
}

levin_status levin_trainer_create(levin_model* model, const char* loss, const char* optimizer, double learning_rate,
                                  levin_trainer** trainer) {
  return guarded([&] {
    require("levin_trainer_create", "trainer", trainer);
    *trainer = nullptr;
    require("levin_trainer_create", "model", model);
    require("levin_trainer_create", "loss", loss);
    require("levin_trainer_create", "optimizer", optimizer);
    check_rate("levin_trainer_create", learning_rate);
    *trainer = new levin_trainer{model->module, loss_of(loss),
                                 optimizer_of(optimizer, trainable(*model->module), learning_rate)};
  });
}

levin_status levin_trainer_step(levin_trainer* trainer, const levin_array* inputs, size_t input_count,
                                const levin_array* target, double* loss) {
  return guarded([&] {
    require("levin_trainer_step", "trainer", trainer);
    const std::vector<Tensor> tensors = tensors_of("levin_trainer_step", inputs, input_count);
    const Tensor wanted = tensor_of("levin_trainer_step", "the target", target);
    const enable_grad guard;
    trainer->module->train();
    const std::vector<Tensor> outputs = trainer->module->call(tensors);
    if (outputs.size() != 1)
      throw ValueError(fmt::format("[levin_trainer_step] the model has {} outputs, and a loss is of one.",
                                   outputs.size()));
    const Tensor value = trainer->loss(outputs[0], wanted);
    trainer->optimizer->zero_grad();
    value.backward();
    trainer->optimizer->step();
    if (loss) *loss = value.item<double>();
  });
}

levin_status levin_trainer_set_learning_rate(levin_trainer* trainer, double learning_rate) {
  return guarded([&] {
    require("levin_trainer_set_learning_rate", "trainer", trainer);
    check_rate("levin_trainer_set_learning_rate", learning_rate);
    for (optim::ParamGroup& group : trainer->optimizer->param_groups()) group["lr"] = learning_rate;
  });
}

void levin_trainer_free(levin_trainer* trainer) { delete trainer; }
