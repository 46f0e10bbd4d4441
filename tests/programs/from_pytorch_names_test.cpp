// The tables of docs/from_pytorch.md: all code of their right columns is compiled here. The differences: they are run.
#include "support/paths.h"

#include <levin/levin.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace levin;

namespace {

struct Block : nn::Module {
  Tensor forward(const Tensor& x) override { return x; }
};

struct Net : nn::Layer<Net> {
  nn::Linear& fc = add<nn::Linear>("fc", 784, 10);
  Parameter& scale = register_parameter("scale", ones({8}));
  Tensor mean = register_buffer("mean", zeros({8}));
  nn::ModuleList<Block>& blocks = add<nn::ModuleList<Block>>("blocks");
  nn::ModuleDict<Block>& heads = add<nn::ModuleDict<Block>>("heads");
  Tensor forward(const Tensor& x, const Tensor& t) { return x * t; }
};

struct Lit : LevinModule {
  Lit() {
    automatic_optimization = false;
    save_hyperparameters({{"width", 64}});
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [g_opt, d_opt] = optimizers<2>();
    const Tensor& opt_input = batch[0];
    const Tensor loss = opt_input.sum(), l = loss, y = loss;
    const double tokens = 64;
    {
      const auto& opt = g_opt;
      auto only = opt.toggle_optimizer();
      manual_backward(loss);
    }
    d_opt.step();
    log("loss", loss, {.prog_bar = true});
    if (y.dim() == 1) return loss;
    if (y.dim() == 2) return {};
    if (y.dim() == 3) return StepOutput(loss).weight(tokens);
    return StepOutput(l, {{"y", y}});
  }
};

struct AtEnd : Callback {
  void on_train_end(RunContext& run) override { run.stop.request("reason"); }
};

template <class...>
struct Named {};
[[maybe_unused]] constexpr Named<optim::SequentialLR, optim::ChainedScheduler, data::IterableDataset, data::Compose,
                                 data::TransformedDataset, data::TokenFileDataset, LevinDataModule, Fabric>
    kNamed{};

// The next functions are compiled and never called.

[[maybe_unused]] void tensors(Tensor x, const Tensor& a, const Tensor& b, const Tensor& q, const Tensor& k,
                              const Tensor& v, const std::vector<float>& vector, float* pointer, const Shape& sizes) {
  const Device d = kCpu;
  const TensorOptions options;
  zeros({2, 3}, {.dtype = kInt64, .device = d});
  tensor({{1.0, 2.0}, {3.0, 4.0}});
  from_data(vector, {2, 3});
  from_blob(pointer, sizes, options);
  x[0], x(Slice(), Slice(1, 3)), x(Ellipsis, Slice(nil, nil, 2)), x(Slice(), nil);
  const Tensor mask = x > 0, index = tensor({0}), y = x;
  x(mask) = 0;
  x(index) += y;
  x.sizes(), x.shape(), x.size(0), x.dim(), x.numel();
  x.to(kFloat32), x.to(kHalf), x.to(kInt64), x.to(kFloat64), x.to(cuda(1)), x.cpu();
  parse_device("gpu");
  x.item<float>(), x.to_vector<float>();
  x.sum({0, 2}, true);
  x.std({1}, {.correction = 0});
  auto [values, indices] = x.max(1);
  matmul(a, b), pow(a, 2), floor_divide(a, b), x.t(), x.mT();
  einsum("bij,bjk->bik", {a, b});
  cat({a, b}, 1), stack({a, b});
  pad(x, {1, 1}, PadMode::reflect);
  scaled_dot_product_attention(q, k, v, {.is_causal = true});
  x.is_same(y);
  manual_seed(1), set_num_threads(4), set_default_dtype(kFloat64);
  if (cuda::is_available()) cuda::synchronize();
}

[[maybe_unused]] void gradients(const Tensor& x, const Tensor& y, const Tensor& g, Net& net) {
  x.requires_grad_(), x.requires_grad_(false);
  { no_grad guard; }
  { inference_mode guard; }
  { detect_anomaly guard; }
  x.grad(), x.grad().defined();
  grad({y}, {x}, {.create_graph = true});
  y.backward(g, {.retain_graph = true});
  x.register_post_accumulate_grad_hook([](const Tensor&) {});
  const auto f = [](const Tensor& t) { return t * 2; };
  checkpoint(f, x);
  jvp(f, x, x), vjp(f, x, x), hessian(f, x), vmap(f)(x);
  nn::functional_call(net.fc, {}, x);
  graph_dot(y), graph_text(y), graph_memory(y);
}

[[maybe_unused]] void networks(const Tensor& x, const Tensor& y, const Tensor& w, Net& net) {
  nn::Sequential(nn::Linear(4, 8), nn::ReLU());
  nn::Lambda([](const Tensor& t) { return t.mean(1); });
  cross_entropy(x, y, {.label_smoothing = 0.1});
  cross_entropy(x, y, {.reduction = Reduction::none});
  const Tensor index = x, weight = w, offsets = x;
  embedding(weight, index);
  embedding_bag(weight, index, offsets);
  nn::LSTM lstm(3, 4);
  const std::vector<std::int64_t> lengths{3};
  lstm(x, {}, lengths);
  auto [out, state] = lstm(x);
  const Tensor h = state.h, c = state.c;
  nn::init::kaiming_normal_(w);
  nn::clone(net);
  optim::clip_grad_norm_(net.parameters(), 1.0);
  nn::weight_norm(net.fc);
  nn::spectral_norm(net.fc);
  net.is_training(), net.parameter_count();
  std::cout << net;
}

[[maybe_unused]] void optimizers(Net& net, const std::vector<Parameter>& a, const std::vector<Parameter>& b) {
  optim::Adam(net.parameters(), {.lr = 1e-3, .betas = {0.9, 0.98}});
  optim::Adam opt(std::vector<optim::ParamGroup>{{a, {{"lr", 1e-4}}}, {b}});
  opt.param_groups()[0]["lr"] = 1e-4;
  optim::StepLR(opt, 30, 0.1);
  const auto f = [](std::int64_t step) { return std::pow(0.9, step); };
  optim::LambdaLR(opt, f);
  optim::LambdaLR(opt, [](std::int64_t step) { return std::pow(0.9, step); });
  { autocast on(kBFloat16); }
  GradScaler({.min_scale = 0, .max_skips = 0});
  std::vector<CallbackPtr>{EMAWeightAveraging(), WeightAveraging(), StochasticWeightAveraging({.swa_lrs = {0.1}})};
}

[[maybe_unused]] void batches(const data::TensorDataset& d, data::DataLoader& loader, const Tensor& x,
                              const Tensor& y) {
  data::DataLoader(d, {.batch_size = 32, .shuffle = true, .num_workers = 2});
  const data::Collate f = data::default_collate;
  data::DataLoader(d, {.collate = f});
  loader.size(), *loader.begin();
  const Batch batch = Sample::dict({{"image", x}, {"label", y}});
  batch["image"];
  batch.as<3>();
  data::TensorDataset({x, y}), data::random_split(d, {80, 20});
  data::load_npy("x.npy");
}

[[maybe_unused]] void workers(const data::TensorDataset& d, data::DataLoader& loader) {
  const auto f = [](int) {};
  data::DataLoader(d, {.worker_init = f});
  for (const auto& [x, y] : loader) x.add_(y);
}

[[maybe_unused]] void training(Trainer& trainer, Lit& model, data::DataLoader& loader, data::DataLoader& train,
                               data::DataLoader& val, Net& net, int argc, char** argv) {
  Trainer(TrainerConfig{.max_epochs = 5, .precision = "bf16-mixed"});
  trainer.fit(model, train, val, "last");
  trainer.callback_metrics().at("val_acc");
  trainer.stop_token();
  TrainerConfig config;
  parse_flags(argc, argv, config);
  Tuner(trainer).lr_find(model, loader);
  const std::string f = "net.safetensors";
  const StateDict s;
  interop::save_safetensors(f, net.state_dict());
  interop::save_torch(f, net.state_dict());
  net.load_state_dict(interop::load_safetensors(f).tensors);
  net.load_state_dict(interop::load_torch(f).state_dict());
  interop::load_torch(f)["model"].state_dict();
  interop::load_torch(f)["epoch"].get<int>();
  interop::load_torch(f, {.mmap = true});
  interop::load_safetensors(f, {.mmap = true});
  const Tensor x = ones({2});
  DLManagedTensor* handle = interop::to_dlpack(x);
  interop::from_dlpack(handle);
  interop::export_onnx(net, {x}, f);
  nn::quantize_(net, {.mode = nn::QuantizeMode::weight_only_int8});
  nn::quantize_(net);
  net.load_state_dict(s, {.strict = false});
  load_from_checkpoint<Lit>(f);
}

std::string without_spaces(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\n') out += c;
  return out;
}

/// Returns the pieces of code, between backquotes, of a table's second column, without spaces and a final semicolon.
std::vector<std::string> code_of_second_column(const std::string& row) {
  const std::size_t begin = row.find(" | "), end = row.find(" |", begin + 3);
  std::vector<std::string> pieces;
  for (std::size_t at = begin; (at = row.find('`', at)) < end;) {
    const std::size_t close = row.find('`', at + 1);
    pieces.push_back(without_spaces(row.substr(at + 1, close - at - 1)));
    if (pieces.back().ends_with(";")) pieces.back().pop_back();
    at = close + 1;
  }
  return pieces;
}

/// Returns the last names of the pieces of code in a text: "eig" of `linalg.eig`.
std::set<std::string> names_in(const std::string& text) {
  std::set<std::string> names;
  for (std::size_t at = 0; (at = text.find('`', at)) != std::string::npos;) {
    const std::size_t close = text.find('`', at + 1);
    const std::string piece = text.substr(at + 1, close - at - 1);
    names.insert(piece.substr(piece.rfind('.') + 1));
    at = close + 1;
  }
  return names;
}

/// Returns the text of all public headers.
std::string public_headers() {
  std::string text;
  for (const char* module : {"core", "autograd", "nn", "optim", "data", "interop", "distributed", "trainer"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_dir() / module / "include"))
      if (entry.is_regular_file()) text += io::read_text(entry.path());
  return text;
}

}  // namespace

TEST_CASE("the code in the tables of from_pytorch.md is compiled") {
  std::string compiled;
  for (const char* file : {"from_pytorch_names_test.cpp", "from_pytorch.h", "from_pytorch_test.cpp"})
    compiled += without_spaces(io::read_text(test::source_dir() / "tests/programs" / file));
  const std::string page = io::read_text(test::source_dir() / "docs/from_pytorch.md");
  std::istringstream lines(page.substr(0, page.find("## What differs")));
  int pieces = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| PyTorch") || line.starts_with("| Lightning")) continue;
    for (const std::string& piece : code_of_second_column(line)) {
      CHECK_MESSAGE(compiled.find(piece) != std::string::npos, piece, " in: ", line);
      ++pieces;
    }
  }
  CHECK(pieces > 120);
}

TEST_CASE("nothing that from_pytorch.md calls missing is an operation or a class of the headers") {
  const std::string page = io::read_text(test::source_dir() / "docs/from_pytorch.md"), headers = public_headers();
  const auto has = [&](const std::string& declaration) { return headers.find(declaration) != std::string::npos; };
  CHECK(has("Tensor fmod("));
  CHECK(has("class Normal "));
  std::istringstream lines(page.substr(page.find("## What is missing"), page.find("## Recipes")));
  int names = 0;
  for (std::string line; std::getline(lines, line) && line != "## Recipes";) {
    if (!line.starts_with("| ")) continue;
    for (const std::string& name : names_in(line.substr(0, line.find(" | ")))) {
      CHECK_MESSAGE(!(has("Tensor " + name + "(") || has("class " + name + " ") || has("struct " + name + " ")), name);
      ++names;
    }
  }
  CHECK(names > 30);
}

TEST_CASE("from_pytorch.md: tensors are handles, and assignments to parts write") {
  Tensor x = zeros({2, 2}), y = x;
  CHECK(y.is_same(x));
  y.fill_(1);
  CHECK(x.sum().item<float>() == 4);
  y = zeros({2, 2});  // names another tensor
  CHECK(x.sum().item<float>() == 4);
  x(0) = y(0);
  CHECK(x.sum().item<float>() == 2);
  CHECK(tensor(1.5).dtype() == kFloat32);
  CHECK(tensor(1).dtype() == kInt64);
  CHECK((tensor({1, 2}) * 1.5).dtype() == kFloat32);
}

TEST_CASE("from_pytorch.md: gradients are undefined before backward and after zero_grad") {
  nn::Linear fc(2, 1);
  optim::SGD opt(fc.parameters(), {.lr = 0.1});
  CHECK_FALSE(fc.weight.grad().defined());
  fc(ones({1, 2})).sum().backward();
  CHECK(fc.weight.grad().defined());
  opt.zero_grad();
  CHECK_FALSE(fc.weight.grad().defined());
}

TEST_CASE("from_pytorch.md: moving a module in place keeps its optimizer") {
  nn::Linear fc(2, 1);
  optim::SGD opt(fc.parameters(), {.lr = 0.1});
  fc.to(kFloat64);
  fc(ones({1, 2}, {.dtype = kFloat64})).sum().backward();
  const auto before = fc.weight.to_vector<double>();
  opt.step();
  CHECK(fc.weight.to_vector<double>() != before);
}
