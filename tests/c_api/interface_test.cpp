// The C interface called from C++, over modules that the tests build; tests/scripts/programs/c_api_test.sh has clients
// in C and Python, for which "the files of the clients" writes a network.
#include "c_api/src/handles.h"
#include "support/comparison.h"
#include "support/paths.h"

#include <levin/autograd/ops.h>
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>

using namespace levin;
using namespace levin::test;

namespace {

struct Adder : nn::Layer<Adder> {
  nn::Linear& fc = add<nn::Linear>("fc", 3, 2);
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) { return {fc(x + y), x - y}; }
};

struct Halves : nn::Layer<Halves> {
  Tensor forward(const Tensor& x) override { return x.to(kBFloat16); }
};

struct Complex : nn::Layer<Complex> {
  Tensor forward(const Tensor& x) override { return view_as_complex(x); }
};

struct Types : nn::Layer<Types> {
  std::vector<Tensor> forward(const std::vector<Tensor>& x) { return x; }
};

template <class M, class... Args>
levin_model model_of(const Args&... args) {
  return {std::make_shared<M>(args...)};
}

levin_array array_of(const Tensor& t, levin_dtype dtype, const int64_t* shape) {
  return {t.raw_data(), dtype, t.dim(), shape};
}

std::vector<float> values_of(const levin_outputs* outputs, std::size_t i) {
  levin_array a;
  REQUIRE(levin_outputs_get(outputs, i, &a) == LEVIN_OK);
  REQUIRE(a.dtype == LEVIN_FLOAT32);
  int64_t n = 1;
  for (int d = 0; d < a.ndim; ++d) n *= a.shape[d];
  const auto* p = static_cast<const float*>(a.data);
  return {p, p + n};
}

bool says(const char* part) { return std::strstr(levin_last_error(), part) != nullptr; }

}  // namespace

TEST_CASE("a model of several inputs and outputs computes through the C interface as in C++") {
  manual_seed(1);
  levin_model model = model_of<Adder>();
  const Tensor x = randn({4, 3}), y = randn({4, 3});
  const int64_t shape[] = {4, 3};
  const levin_array inputs[] = {array_of(x, LEVIN_FLOAT32, shape), array_of(y, LEVIN_FLOAT32, shape)};
  levin_outputs* outputs = nullptr;
  REQUIRE(levin_model_forward(&model, inputs, 2, &outputs) == LEVIN_OK);
  const std::vector<Tensor> expected = model.module->call({x, y});
  CHECK(levin_outputs_count(outputs) == 2);
  CHECK(values_of(outputs, 0) == expected[0].detach().to_vector<float>());
  CHECK(values_of(outputs, 1) == expected[1].to_vector<float>());
  levin_outputs_free(outputs);
  CHECK(levin_model_forward(&model, inputs, 1, &outputs) == LEVIN_INVALID_ARGUMENT);
  CHECK(outputs == nullptr);

  levin_trainer* trainer = nullptr;
  REQUIRE(levin_trainer_create(&model, "mse", "sgd", 0.1, &trainer) == LEVIN_OK);
  CHECK(levin_trainer_step(trainer, inputs, 2, inputs, nullptr) == LEVIN_INVALID_ARGUMENT);
  CHECK(says("[levin_trainer_step] the model has 2 outputs, and a loss is of one"));
  levin_trainer_free(trainer);
}

TEST_CASE("every element type goes in and comes out with its values and shape") {
  levin_model model = model_of<Types>();
  const Tensor tensors[] = {from_data<float>({1.5f, -2}, {2, 1}), from_data<double>({2.5}, {1}),
                            from_data<std::int64_t>({std::int64_t{1} << 40}, {1}),
                            from_data<std::int32_t>({-7, 8}, {2}),
                            from_data<std::int8_t>({-128, 127}, {2}), from_data<std::uint8_t>({255}, {1}),
                            zeros({0, 3}), from_data<float>({4}, {})};
  const levin_dtype types[] = {LEVIN_FLOAT32, LEVIN_FLOAT64, LEVIN_INT64, LEVIN_INT32,
                               LEVIN_INT8,    LEVIN_UINT8,   LEVIN_FLOAT32, LEVIN_FLOAT32};
  std::vector<levin_array> inputs;
  std::vector<Shape> shapes;
  for (const Tensor& t : tensors) shapes.push_back(t.sizes());
  for (std::size_t i = 0; i < std::size(tensors); ++i)
    inputs.push_back(array_of(tensors[i], types[i], shapes[i].begin()));
  inputs.back().shape = nullptr;  // a number has none
  levin_outputs* outputs = nullptr;
  REQUIRE(levin_model_forward(&model, inputs.data(), inputs.size(), &outputs) == LEVIN_OK);
  REQUIRE(levin_outputs_count(outputs) == inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    levin_array y;
    REQUIRE(levin_outputs_get(outputs, i, &y) == LEVIN_OK);
    CHECK(y.dtype == types[i]);
    CHECK(Shape(y.shape, y.shape + y.ndim) == shapes[i]);
    const auto bytes = static_cast<std::size_t>(tensors[i].numel() * size_of(tensors[i].dtype()));
    CHECK(std::memcmp(y.data, tensors[i].raw_data(), bytes) == 0);
    CHECK((bytes == 0 || y.data != tensors[i].raw_data()));  // a copy, which outlives the input
  }
  levin_outputs_free(outputs);
  const std::uint8_t flags[] = {0, 1, 2};
  const int64_t two = 2, three = 3;
  levin_array bools{const_cast<std::uint8_t*>(flags), LEVIN_BOOL, 1, &two};
  CHECK(levin_model_forward(&model, &bools, 1, &outputs) == LEVIN_OK);
  levin_outputs_free(outputs);
  bools.shape = &three;
  CHECK(levin_model_forward(&model, &bools, 1, &outputs) == LEVIN_INVALID_ARGUMENT);
  CHECK(says("[levin_model_forward] element 2 of input 0 is 2; a LEVIN_BOOL is 0 or 1"));
}

TEST_CASE("sizes that no array has are refused before its memory is read") {
  levin_model model = model_of<Types>();
  levin_outputs* outputs = nullptr;
  float value = 1;
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{most, 2}, {most / 2, 4}, {0, most, 3}, {-1}}) {
    const levin_array x{&value, LEVIN_FLOAT32, static_cast<std::int32_t>(sizes.size()), sizes.data()};
    CHECK(levin_model_forward(&model, &x, 1, &outputs) == LEVIN_INVALID_ARGUMENT);
    CHECK(says("which no array has"));
  }
}

TEST_CASE("outputs in 16 bits come out as float32, and complex ones are refused") {
  const Tensor x = from_data<float>({1.0f, 0.333333f}, {1, 2});
  const int64_t shape[] = {1, 2};
  const levin_array input = array_of(x, LEVIN_FLOAT32, shape);
  levin_outputs* outputs = nullptr;
  levin_model halves = model_of<Halves>();
  REQUIRE(levin_model_forward(&halves, &input, 1, &outputs) == LEVIN_OK);
  CHECK(values_of(outputs, 0) == x.to(kBFloat16).to(kFloat32).to_vector<float>());
  levin_outputs_free(outputs);
  levin_model complex = model_of<Complex>();
  CHECK(levin_model_forward(&complex, &input, 1, &outputs) == LEVIN_DTYPE_ERROR);
  CHECK(says("[levin_model_forward] an output is complex64, which the C interface does not have"));
}

TEST_CASE("a step is that of the optimizer with PyTorch's defaults") {
  const Tensor x = randn({8, 3}), target = randn({8, 2});
  const int64_t shape[] = {8, 3}, target_shape[] = {8, 2};
  const levin_array input = array_of(x, LEVIN_FLOAT32, shape), wanted = array_of(target, LEVIN_FLOAT32, target_shape);
  for (const std::string name : {"sgd", "adam", "adamw"}) {
    nn::Linear own(3, 2);
    levin_model model = model_of<nn::Linear>(3, 2);
    model.module->load_state_dict(own.state_dict());
    levin_trainer* trainer = nullptr;
    REQUIRE(levin_trainer_create(&model, "mse", name.c_str(), 0.03, &trainer) == LEVIN_OK);
    std::unique_ptr<optim::Optimizer> optimizer;
    if (name == "sgd") optimizer = std::make_unique<optim::SGD>(own.parameters(), optim::SGDOptions{.lr = 0.03});
    if (name == "adam") optimizer = std::make_unique<optim::Adam>(own.parameters(), optim::AdamOptions{.lr = 0.03});
    if (name == "adamw") optimizer = std::make_unique<optim::AdamW>(own.parameters(), optim::AdamWOptions{.lr = 0.03});
    for (int step = 0; step < 3; ++step) {
      double loss = 0;
      REQUIRE(levin_trainer_step(trainer, &input, 1, &wanted, &loss) == LEVIN_OK);
      optimizer->zero_grad();
      const Tensor expected = mse_loss(own(x), target);
      expected.backward();
      optimizer->step();
      CHECK(loss == expected.item<double>());
      for (const auto& [key, value] : own.state_dict()) CHECK(equal(*model.module->state_dict().find(key), value));
    }
    levin_trainer_free(trainer);
  }
}

TEST_CASE("training mode is that of a step, and evaluation that of forward") {
  levin_model model = model_of<nn::BatchNorm1d>(2);
  const Tensor x = from_data<float>({1, 2, 3, 4}, {2, 2});
  const int64_t shape[] = {2, 2};
  const levin_array input = array_of(x, LEVIN_FLOAT32, shape);
  levin_outputs* outputs = nullptr;
  REQUIRE(levin_model_forward(&model, &input, 1, &outputs) == LEVIN_OK);
  CHECK(values_of(outputs, 0)[0] > 0.99f);  // the running mean is still 0
  levin_outputs_free(outputs);
  levin_trainer* trainer = nullptr;
  REQUIRE(levin_trainer_create(&model, "l1", "sgd", 0, &trainer) == LEVIN_OK);
  REQUIRE(levin_trainer_step(trainer, &input, 1, &input, nullptr) == LEVIN_OK);
  CHECK(model.module->state_dict().find("running_mean")->to_vector<float>()[0] > 0.1f);
  levin_trainer_free(trainer);
}

TEST_CASE("statuses tell the kinds of errors apart, and each thread has its own last error") {
  const Tensor x = zeros({2, 3});
  const int64_t shape[] = {2, 3};
  const levin_array input = array_of(x, LEVIN_FLOAT32, shape);
  levin_model model = model_of<nn::Linear>(3, 2);
  nn::quantize_(*model.module);
  levin_trainer* trainer = nullptr;
  REQUIRE(levin_trainer_create(&model, "mse", "sgd", 0.1, &trainer) == LEVIN_OK);
  const Tensor target = zeros({2, 2});
  const int64_t target_shape[] = {2, 2};
  const levin_array wanted = array_of(target, LEVIN_FLOAT32, target_shape);
  CHECK(levin_trainer_step(trainer, &input, 1, &wanted, nullptr) == LEVIN_GRADIENT_ERROR);
  CHECK(says("has no derivative"));
  CHECK(levin_trainer_set_learning_rate(trainer, std::numeric_limits<double>::quiet_NaN()) == LEVIN_INVALID_ARGUMENT);
  CHECK(says("[levin_trainer_set_learning_rate] learning_rate is nan. Give a number of 0 or more"));
  levin_trainer_free(trainer);
  CHECK(levin_model_load_weights(&model, "absent.safetensors") == LEVIN_IO_ERROR);
  CHECK(levin_model_save_weights(&model, "/absent/folder/x.safetensors") == LEVIN_IO_ERROR);
  CHECK(says("absent/folder"));
  std::string other = "unset";
  std::thread([&] { other = levin_last_error(); }).join();
  CHECK(other.empty());
  CHECK(c_api::guarded([] { throw std::bad_alloc(); }) == LEVIN_OUT_OF_MEMORY);
  CHECK(says("[levin] there is not enough memory. Use a smaller batch"));
  CHECK(c_api::guarded([] { throw 7; }) == LEVIN_INTERNAL_ERROR);
  CHECK(says("[levin] an exception of an unknown type was thrown"));
  CHECK(c_api::guarded([] { throw IndexError("[x] index"); }) == LEVIN_INVALID_ARGUMENT);
  CHECK(c_api::guarded([] { throw OutOfMemory("[x] memory"); }) == LEVIN_OUT_OF_MEMORY);
  CHECK(c_api::guarded([] { throw std::runtime_error("other"); }) == LEVIN_INTERNAL_ERROR);
  CHECK(says("other"));
  CHECK(std::string(levin_version()).find('.') != std::string::npos);
}

TEST_CASE("the files of the clients") {
  manual_seed(7);
  nn::Sequential net(nn::Linear(6, 16), nn::Tanh(), nn::Linear(16, 3));
  const Tensor x = randn({96, 6});  // which the clients know
  const no_grad guard;
  const Tensor y = net(x);
  const auto folder = binary_dir() / "c_api_clients";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const Tensor& t) {
    const auto* p = static_cast<const std::byte*>(t.raw_data());
    io::write_file(folder / name, std::span(p, static_cast<std::size_t>(t.numel()) * sizeof(float)));
  };
  write("x.bin", x);
  write("y.bin", y);
  interop::export_onnx(net, {x}, folder / "net.onnx");
  interop::save_safetensors(folder / "other.safetensors", nn::Linear(2, 2).state_dict());
  levin_model* model = nullptr;
  REQUIRE(levin_model_load((folder / "net.onnx").string().c_str(), &model) == LEVIN_OK);
  const int64_t shape[] = {96, 6};
  const levin_array input = array_of(x, LEVIN_FLOAT32, shape);
  levin_outputs* outputs = nullptr;
  REQUIRE(levin_model_forward(model, &input, 1, &outputs) == LEVIN_OK);
  CHECK(largest_difference(values_of(outputs, 0), y.to_vector<float>()) <= 1e-6);
  levin_outputs_free(outputs);
  levin_model_free(model);
}
