#include "judge.h"

#include <levin/trainer/checkpoint/checkpoint.h>

#include "nets.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace levin;

namespace {

constexpr std::int64_t kAtOnce = 500;  // images in one forward pass

/// Builds the one of the four networks that these weights belong to.
nn::Sequential net_of(const StateDict& weights) {
  if (weights.find("net.2.running_mean") != nullptr) return make_net("fast");
  const Tensor* first = weights.find("net.0.weight");
  const bool mlp = weights.find("net.1.weight") != nullptr && first == nullptr;
  return make_net(mlp ? "mlp" : first != nullptr && first->size(0) == 32 ? "cnn" : "lenet");
}

StateDict weights_in(const std::string& checkpoint) {
  if (!std::filesystem::exists(checkpoint))
    throw IoError("there is no classifier in " + checkpoint +
                  ". Train one with ./run mnist, or name its checkpoint with --classifier.");
  return read_checkpoint(checkpoint).model;
}

}  // namespace

Judge::Judge(const std::string& checkpoint) : Judge(weights_in(checkpoint)) {}

Judge::Judge(const StateDict& weights) : net_(net_of(weights)) {
  net_.load_state_dict(weights.sub("net."));
  net_.eval();
}

Score Judge::score(const Tensor& images, const Tensor& y) {
  const inference_mode guard;
  Tensor sum = zeros({kClasses}, {.dtype = DType::f64});
  double confident = 0, right = 0;
  const std::int64_t count = images.size(0);
  for (std::int64_t i = 0; i < count; i += kAtOnce) {
    const std::int64_t n = std::min(kAtOnce, count - i);
    const Tensor p = softmax(net_(to_normalised(images.narrow(0, i, n))), 1).to(DType::f64);  // (n, 10)
    sum = sum + p.sum({0});
    confident += gt(amax(p, {1}), 0.9).to(DType::f64).sum().item<double>();
    right += eq(p.argmax(1), y.narrow(0, i, n)).to(DType::f64).sum().item<double>();
  }
  double entropy = 0;
  for (const double p : (sum / static_cast<double>(count)).to_vector<double>())
    if (p > 0) entropy -= p * std::log(p);
  const auto total = static_cast<double>(count);
  return {.confident = confident / total, .entropy = entropy, .as_asked = right / total};
}

double Judge::accuracy(const data::FashionMnist& data) {
  const inference_mode guard;
  double right = 0;
  data::DataLoader loader(data, {.batch_size = kAtOnce});
  for (const Batch& b : loader) right += eq(net_(b[0]).argmax(1), b[1]).to(DType::f64).sum().item<double>();
  return right / static_cast<double>(data.size());
}
