// Reads tensors in one format and writes them in another, for the clients beside this file:
//   levin_client_exchange convert [--mmap] IN OUT    .pt, .safetensors, .npy, .npz
//   levin_client_exchange show FILE.pt               prints what the file holds
#include <levin/data/npy.h>
#include <levin/interop/safetensors.h>
#include <levin/interop/torch_file.h>

#include <filesystem>
#include <iostream>

using namespace levin;

namespace {

StateDict read(const std::filesystem::path& path, bool mmap) {
  const auto extension = path.extension();
  if (extension == ".pt") {
    const auto file = interop::load_torch(path, {.mmap = mmap});
    return file.kind() == interop::TorchValue::Kind::tensor ? StateDict{{"x", file.tensor()}} : file.state_dict();
  }
  if (extension == ".safetensors") return interop::load_safetensors(path, {.mmap = mmap}).tensors;
  if (extension == ".npz") return data::load_npz(path, {.mmap = mmap});
  return {{"x", data::load_npy(path, {.mmap = mmap})}};
}

void write(const std::filesystem::path& path, const StateDict& state) {
  const auto extension = path.extension();
  if (extension == ".pt") return interop::save_torch(path, state);
  if (extension == ".safetensors") return interop::save_safetensors(path, state, {{"format", "pt"}});
  if (extension == ".npz") return data::save_npz(path, state);
  data::save_npy(path, state.at("x"));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool mmap = std::erase(arguments, "--mmap") > 0;
  try {
    if (arguments.size() == 3 && arguments[0] == "convert") {
      write(arguments[2], read(arguments[1], mmap));
    } else if (arguments.size() == 2 && arguments[0] == "show") {
      std::cout << interop::load_torch(arguments[1], {.mmap = mmap});
    } else {
      throw UsageError("usage: levin_client_exchange convert [--mmap] IN OUT, or show FILE.pt");
    }
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
