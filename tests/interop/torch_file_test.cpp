// Files that PyTorch and Lightning wrote (make_files.py): values, memory that is shared, and refusals.
#include <levin/core/io.h>
#include <levin/core/io/zip.h>
#include <levin/interop/torch_file.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <complex>
#include <cstring>
#include <numeric>

#include "support/files.h"
#include "support/paths.h"
#include "support/sentences.h"

using namespace levin;
using namespace levin::test;
using interop::load_torch;
using interop::LoadTorchOptions;
using interop::TorchValue;
using Kind = TorchValue::Kind;

namespace {

std::filesystem::path torch_file(const std::string& name) { return source_dir() / "tests/interop/files" / name; }

/// Returns 0, 1, 2, ...
std::vector<float> count_up(int n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0.f);
  return out;
}

/// Returns (i - 3 k) / 8, the values of parameter k in the files.
std::vector<float> parameter_values(int k, int n) {
  std::vector<float> out = count_up(n);
  for (float& v : out) v = (v - 3.f * static_cast<float>(k)) / 8.f;
  return out;
}

struct Net : nn::Module {
  nn::Linear& fc = add<nn::Linear>("fc", 4, 3);
  nn::BatchNorm1d& norm = add<nn::BatchNorm1d>("norm", 3);
  nn::Linear& out = add<nn::Linear>("out", 3, 2);
  Tensor forward(const Tensor& x) override { return out(norm(fc(x))); }
};

void check_net(const StateDict& state) {
  REQUIRE(state.size() == 9);
  CHECK(state.at("fc.weight").sizes() == Shape{3, 4});
  CHECK(state.at("fc.weight").to_vector<float>() == parameter_values(0, 12));
  CHECK(state.at("fc.bias").to_vector<float>() == parameter_values(1, 3));
  CHECK(state.at("out.bias").to_vector<float>() == parameter_values(5, 2));
  CHECK(state.at("norm.running_var").to_vector<float>() == std::vector<float>(3, 1.f));
  CHECK(state.at("norm.num_batches_tracked").dtype() == kInt64);
  CHECK(state.at("norm.num_batches_tracked").item<int>() == 0);
}

/// The values of the dictionary that make_files.py calls checkpoint().
void check_checkpoint(const TorchValue& file) {
  check_net(file["model"].state_dict());
  CHECK(file["epoch"].get<int>() == 3);
  CHECK(file["epoch"].get<double>() == 3.0);
  CHECK(file["best"].get<float>() == 0.75f);
  CHECK_FALSE(file["done"].get<bool>());
  CHECK(file["name"].get<std::string>() == "run \xce\xb1");
  CHECK(file["note"].is_none());
  CHECK(file["history"].get<std::vector<double>>() == std::vector<double>{1.5, 0.5, -2});
  CHECK(file["steps"].get<std::vector<std::int64_t>>() == std::vector<std::int64_t>{1, 300, 70000, -5});
  CHECK(file["large"].get<std::int64_t>() == std::int64_t{1} << 40);
  CHECK(file["huge"].get<std::string>() == "0x400000000000000000");
  CHECK(file["minus_huge"].get<std::string>() == "-0x400000000000000000");
  CHECK(file["size"].get<std::vector<int>>() == std::vector<int>{2, 3});
  CHECK(file["dtype"].get<std::string>() == "torch.bfloat16");
  CHECK(file["device"].get<std::string>() == "cuda:1");
  CHECK(file["layout"].get<std::string>() == "torch.strided");
  CHECK(file["bytes"].get<std::string>() == std::string("\0\xff\n", 3));
  CHECK(file["set"].get<std::vector<int>>() == std::vector<int>{5});
  CHECK(file["complex"].get<std::vector<double>>() == std::vector<double>{1, -2});
  CHECK(file["nested"][0]["a"][0].tensor().to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 2});
  CHECK(file["nested"][1].size() == 0);
  CHECK(file["counts"]["a"].get<int>() == 2);
  CHECK(file["7"].get<std::string>() == "seven");
  CHECK(file.size() == file.keys().size());
  CHECK(file.keys().front() == "model");
  const StateDict moments = file["optimizer"].state_dict();
  CHECK(moments.size() == 18);
  CHECK(moments.at("state.0.step").item<float>() == 1.f);
  for (const float v : moments.at("state.5.exp_avg").to_vector<float>()) CHECK(std::abs(v - 0.05f) < 1e-7f);
  CHECK(file["optimizer"]["param_groups"][0]["lr"].get<double>() == 0.25);
}

std::string message_of(const std::filesystem::path& path, const LoadTorchOptions& options = {}) {
  try {
    load_torch(path, options);
  } catch (const IoError& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a state dict of PyTorch loads into a network of the same names") {
  for (const bool mmap : {false, true}) {
    Net net;
    const StateDict state = load_torch(torch_file("net.pt"), {.mmap = mmap}).state_dict();
    check_net(state);
    const auto report = net.load_state_dict(state);
    CHECK(report.converted.empty());
    check_net(net.state_dict());
  }
}

TEST_CASE("every type of PyTorch that Levin has is read bit by bit") {
  for (const bool mmap : {false, true}) {
    const StateDict state = load_torch(torch_file("types.pt"), {.mmap = mmap}).state_dict();
    REQUIRE(state.size() == kDTypeCount);
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      INFO(name_of(dtype));
      const Tensor& t = state.at(name_of(dtype));
      CHECK(t.dtype() == dtype);
      if (is_complex(dtype)) {
        CHECK(t.to_vector<std::complex<double>>() ==
              std::vector<std::complex<double>>{{-1, 0}, {0, 0.5}, {1, 1}, {2, 1.5}});
      } else if (dtype == kBool) {
        CHECK(t.to_vector<bool>() == std::vector<bool>{true, false, true, true});
      } else {
        CHECK(t.to_vector<double>() == std::vector<double>{dtype == kUInt8 ? 255.0 : -1.0, 0, 1, 2});
      }
    }
  }
}

TEST_CASE("views keep their strides and share their memory, as in PyTorch") {
  for (const bool mmap : {false, true}) {
    const StateDict v = load_torch(torch_file("views.pt"), {.mmap = mmap}).state_dict();
    CHECK(v.at("base").to_vector<float>() == count_up(24));
    CHECK(v.at("transposed").strides() == Shape{1, 6});
    CHECK(v.at("transposed").sizes() == Shape{6, 4});
    CHECK(v.at("corner").to_vector<float>() == std::vector<float>{8, 9, 10, 14, 15, 16});
    CHECK(v.at("row").to_vector<float>() == std::vector<float>{12, 13, 14, 15, 16, 17});
    CHECK(v.at("step").to_vector<float>() == std::vector<float>{0, 3, 6, 9, 12, 15, 18, 21});
    CHECK(v.at("expanded").strides() == Shape{0, 0});
    CHECK(v.at("expanded").to_vector<float>() == std::vector<float>(6, 7.f));
    CHECK(v.at("scalar").sizes() == Shape{});
    CHECK(v.at("scalar").item<float>() == 2.5f);
    CHECK(v.at("empty").sizes() == Shape{0});
    CHECK(v.at("no_rows").sizes() == Shape{0, 3});
    v.at("row").fill_(-1);
    CHECK(v.at("base")[2].to_vector<float>() == std::vector<float>(6, -1.f));
    CHECK(v.at("corner").to_vector<float>() == std::vector<float>{8, 9, 10, -1, -1, -1});
    CHECK(v.at("base").shares_storage(v.at("transposed")));
    CHECK_FALSE(v.at("base").shares_storage(v.at("alone")));
  }
  // The values written above are private to the process.
  CHECK(load_torch(torch_file("views.pt"), {.mmap = true})["row"].tensor().to_vector<float>()[0] == 12.f);
}

TEST_CASE("a checkpoint's tensors, numbers, texts and lists are read, in protocols 2 and 4") {
  check_checkpoint(load_torch(torch_file("checkpoint.pt")));
  check_checkpoint(load_torch(torch_file("checkpoint.pt"), {.mmap = true}));
  check_checkpoint(load_torch(torch_file("protocol4.pt")));
}

TEST_CASE("a checkpoint of Lightning: weights, optimizer, loops and hyperparameters") {
  const TorchValue file = load_torch(torch_file("lightning.ckpt"));
  const StateDict weights = file["state_dict"].state_dict().sub("net.");
  CHECK(weights.size() == 9);
  CHECK(weights.at("fc.weight").to_vector<float>() == parameter_values(0, 12));
  CHECK(weights.at("norm.num_batches_tracked").item<int>() == 4);
  CHECK(file["epoch"].get<int>() == 2);
  CHECK(file["global_step"].get<int>() == 4);
  CHECK(file["hyper_parameters"]["width"].get<int>() == 8);
  CHECK(file["optimizer_states"][0].state_dict().at("state.0.momentum_buffer").sizes() == Shape{3, 4});
  CHECK(file["lr_schedulers"][0]["last_epoch"].get<int>() == 2);
}

TEST_CASE("a changed value is found by its checksum, which a mapped file's tensors do without") {
  const TempDir dir;
  const auto path = dir.path / "x.pt";
  io::Bytes bytes = io::read_file(torch_file("tensor.pt"));
  for (const auto& m : io::zip_members(bytes, "tensor.pt"))
    if (m.name == "tensor/data/0") bytes[static_cast<std::size_t>(m.begin) + 8] = std::byte{7};
  io::write_file(path, bytes);
  CHECK_THROWS_WITH_AS(load_torch(path), doctest::Contains("does not match its checksum. It is damaged."), IoError);
  CHECK(load_torch(path, {.mmap = true}).tensor().to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 7, 2});
}

TEST_CASE("parameters require grad as saved, and a tied one is one memory") {
  const StateDict state = load_torch(torch_file("parameters.pt")).state_dict();
  CHECK(state.at("a").requires_grad());
  CHECK_FALSE(state.at("frozen").requires_grad());
  CHECK(state.at("a").shares_storage(state.at("b")));
  CHECK(state.at("a").is_leaf());
}

TEST_CASE("a file may hold one tensor, and no checksums") {
  CHECK(load_torch(torch_file("no_checksums.pt")).tensor().to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{0, 1, 2});
  const TorchValue file = load_torch(torch_file("tensor.pt"));
  CHECK(file.kind() == Kind::tensor);
  CHECK(file.tensor().to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2});
  CHECK_THROWS_WITH_AS(file.state_dict(), doctest::Contains("tensor.pt is a tensor, not a dictionary of tensors."),
                       StateError);
}

TEST_CASE("a tensor keeps its memory when the file's other values are gone") {
  const auto before = Storage::live_count();
  {
    Tensor bias;
    for (const bool mmap : {false, true}) {
      bias = load_torch(torch_file("net.pt"), {.mmap = mmap})["fc.bias"].tensor();
      CHECK(Storage::live_count() == before + 1);
      CHECK(bias.to_vector<float>() == parameter_values(1, 3));
    }
  }
  CHECK(Storage::live_count() == before);
}

TEST_CASE("code in a file is named and never run") {
  const std::filesystem::path executed = "executed";
  for (const bool any_class : {false, true}) {
    std::filesystem::remove(executed);
    const std::string said = message_of(torch_file("attack.pt"), {.any_class = any_class});
    CHECK_FALSE(std::filesystem::exists(executed));
    CHECK((said == "accepted") == any_class);
    if (!any_class) CHECK(said.find("names posix.system, which is none of the classes") != std::string::npos);
  }
}

TEST_CASE("files that cannot be read say why, and what to do") {
  const std::vector<std::pair<const char*, const char*>> refused = {
      {"legacy.pt", "has the format of torch.save before PyTorch 1.6. Convert it in Python: "},
      {"module.pt", "names torch.nn.modules.container.Sequential, which is none of the classes"},
      {"namespace.pt", "names argparse.Namespace, which is none of the classes of tensors and plain values, and "
                       "nothing is executed. Save state_dict() and plain values, or read it with any_class."},
      {"numpy_scalar.pt", "names numpy._core.multiarray.scalar, "},
      {"sparse.pt", "names torch._utils._rebuild_sparse_tensor, "},
      {"float8.pt", "holds a tensor of torch.float8_e4m3fn, which is not read. Convert it in Python first."},
      {"conj.pt", "holds a view that conjugates or negates. Save x.resolve_conj().resolve_neg()."},
      {"script.pt", "is a TorchScript archive, which holds code. Save its state_dict() in Python."},
      {"types.safetensors", "is no file of torch.save. Read it with load_safetensors."},
      {"../make_files.py", "is no file of torch.save: its "},
      {"../../data/files/stored.npz", "is an archive without a data.pkl, so torch.save did not write it."},
      {"absent.pt", "No such file or directory. Check the"},
  };
  for (const auto& [name, part] : refused) {
    for (const bool mmap : {false, true}) {
      const std::string said = message_of(torch_file(name), {.mmap = mmap});
      INFO(said);
      CHECK(said.find(part) != std::string::npos);
      CHECK(said.find(name) != std::string::npos);
    }
  }
}

TEST_CASE("any_class reads objects as dictionaries of their attributes") {
  const TorchValue file = load_torch(torch_file("namespace.pt"), {.any_class = true});
  CHECK(file["weight"].tensor().numel() == 2);
  CHECK(file["args"]["lr"].get<double>() == 0.5);
  CHECK(file["args"]["layers"].get<std::vector<int>>() == std::vector<int>{1, 2});
  const TorchValue module = load_torch(torch_file("module.pt"), {.any_class = true});
  const TorchValue weight = module["_modules"]["fc"]["_parameters"]["weight"];
  CHECK(weight.tensor().to_vector<float>() == parameter_values(0, 12));
}

TEST_CASE("access to a value says which one is not as expected") {
  const TorchValue file = load_torch(torch_file("checkpoint.pt"));
  check_sentences({
      {"checkpoint.pt has no key \"modle\". Its keys: \"model\", \"optimizer\", \"epoch\", \"best\", \"done\", "
       "\"name\", \"note\", \"history\", \"steps\", \"large\" and 12 more.",
       [&] { file["modle"]; }},
      {"checkpoint.pt: \"name\" is a text, not an integer.", [&] { file["name"].get<int>(); }},
      {"\"name\" is a text, not a number.", [&] { file["name"].get<double>(); }},
      {"\"epoch\" is an integer, not a text.", [&] { file["epoch"].get<std::string>(); }},
      {"\"epoch\" is an integer, not a bool.", [&] { file["epoch"].get<bool>(); }},
      {"\"best\" is a float, not an integer.", [&] { file["best"].get<int>(); }},
      {"\"note\" is None, not a tensor.", [&] { file["note"].tensor(); }},
      {"\"note\" is None, not a dictionary.", [&] { file["note"]["x"]; }},
      {"\"note\" is None, not a list.", [&] { file["note"].size(); }},
      {"\"model.fc.weight\" is a tensor, not a dictionary.", [&] { file["model"]["fc.weight"].keys(); }},
      {"\"history\" has 3 items, so there is no item 3.", [&] { file["history"][3]; }},
      {"\"steps.2\" is 70000, beyond the type that was asked for.",
       [&] { file["steps"].get<std::vector<std::int16_t>>(); }},
      {"\"steps.3\" is -5, beyond the type that was asked for.", [&] { file["steps"][3].get<unsigned>(); }},
  });
  CHECK_FALSE(file.contains("modle"));
  CHECK_FALSE(file["epoch"].contains("x"));
  CHECK(file.contains("model"));
}

TEST_CASE("printing a file lists what it holds") {
  const std::string text = to_string(load_torch(torch_file("checkpoint.pt")));
  for (const char* line : {"model.fc.weight: float32 (3, 4)\n", "optimizer.param_groups.0.params: [0, 1, 2, 3, 4, 5]\n",
                           "epoch: 3\n", "done: False\n", "name: \"run \xce\xb1\"\n", "note: None\n",
                           "steps: [1, 300, 70000, -5]\n", "nested.0.a.0: int64 (2,)\n", "nested.1: []\n"})
    CHECK_MESSAGE(text.find(line) != std::string::npos, line);
  CHECK(to_string(load_torch(torch_file("tensor.pt"))) == "int64 (3,)\n");
}

TEST_CASE("save_torch writes what load_torch reads: types, layouts, shared memory") {
  const TempDir dir;
  const std::filesystem::path path = dir.path / "x.pt";
  const StateDict types = load_torch(torch_file("types.pt")).state_dict();
  StateDict state = types;
  const Tensor tied = from_data<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  state.set("tied", tied);
  state.set("again", tied);
  state.set("flat", tied.view({6}));
  state.set("start", tied.view({6})(Slice(0, 2)));
  state.set("transposed", tied.t());
  state.set("scalar", tensor(2.5));
  state.set("empty", empty({0, 3}));
  state.set("parameter", from_data<float>({1}, {1}).requires_grad_());
  interop::save_torch(path, state);
  const StateDict back = load_torch(path).state_dict();
  REQUIRE(back.size() == state.size());
  for (const auto& [name, t] : types) {
    const auto bytes = static_cast<std::size_t>(t.numel() * size_of(t.dtype()));
    CHECK(back.at(name).dtype() == t.dtype());
    CHECK(std::memcmp(back.at(name).raw_data(), t.raw_data(), bytes) == 0);
  }
  CHECK(back.at("tied").shares_storage(back.at("again")));
  CHECK(back.at("tied").shares_storage(back.at("flat")));
  CHECK_FALSE(back.at("tied").shares_storage(back.at("transposed")));
  CHECK(back.at("start").to_vector<float>() == std::vector<float>{1, 2});
  CHECK(back.at("flat").sizes() == Shape{6});
  CHECK(back.at("transposed").to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(back.at("scalar").sizes() == Shape{});
  CHECK(back.at("empty").sizes() == Shape{0, 3});
  CHECK_FALSE(back.at("parameter").requires_grad());
  check_sentences({
      {"[save_torch] tensor \"x\" is undefined. Leave it out.",
       [&] { interop::save_torch(path, StateDict{{"x", Tensor()}}); }},
      {"[save_torch] the name \"x\" occurs twice. Give every tensor a name of its own.",
       [&] { interop::save_torch(path, StateDict{{"x", tied}, {"x", tied}}); }},
  });
  CHECK(load_torch(path).size() == state.size());  // the file stays as it was
}
