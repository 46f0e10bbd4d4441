// Files mapped into memory: nothing is read before it is used, pages are shared until they are written.
#include <levin/autograd/ops.h>
#include <levin/core/io.h>
#include <levin/interop/safetensors.h>
#include <levin/interop/torch_file.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include "support/files.h"
#include "support/paths.h"

using namespace levin;
using namespace levin::test;
using interop::load_safetensors;

namespace {

/// One mapping as the kernel describes it, in KiB.
struct Mapping {
  bool found = false;
  long resident = 0, written = 0;  // `written`: private copies of pages
};

/// Returns the mapping of this process that holds the address, if `path` is its file.
Mapping mapping_of(const void* address, const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/smaps");
  Mapping mapping;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      if (mapping.found) break;
      const auto at = reinterpret_cast<unsigned long>(address);
      mapping.found = from <= at && at < to && line.ends_with(std::filesystem::canonical(path).string());
    } else if (mapping.found && line.starts_with("Rss:")) {
      mapping.resident = std::stol(line.substr(4));
    } else if (mapping.found && line.starts_with("Anonymous:")) {
      mapping.written = std::stol(line.substr(10));
    }
  }
  return mapping;
}

std::filesystem::path stored(const char* name) { return source_dir() / "tests/interop/files" / name; }

/// Writes a file of one float32 tensor "x" of `gib` times 2^28 zeros, which takes no space on the disk.
void write_sparse(const std::filesystem::path& path, int gib) {
  const auto bytes = std::uint64_t{1} << 30;
  std::string header = "{\"x\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(gib) +
                       ",16384,16384],\"data_offsets\":[0," + std::to_string(bytes * static_cast<unsigned>(gib)) +
                       "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  std::ofstream(path, std::ios::binary) << length << header;
  std::filesystem::resize_file(path, 8 + header.size() + bytes * static_cast<unsigned>(gib));
}

}  // namespace

TEST_CASE("a file that safetensors wrote is the same read and mapped") {
  const auto read = load_safetensors(stored("types.safetensors"));
  const auto mapped = load_safetensors(stored("types.safetensors"), {.mmap = true});
  CHECK(mapped.metadata.at("format") == "pt");
  REQUIRE(read.tensors.size() == kRealDTypeCount + 1);
  REQUIRE(mapped.tensors.size() == read.tensors.size());
  for (const auto& [name, t] : read.tensors) {
    INFO(name);
    const Tensor& other = mapped.tensors.at(name);
    CHECK(other.dtype() == t.dtype());
    CHECK(other.sizes() == t.sizes());
    CHECK(std::memcmp(other.raw_data(), t.raw_data(), static_cast<std::size_t>(t.numel() * size_of(t.dtype()))) == 0);
    CHECK(mapping_of(other.raw_data(), stored("types.safetensors")).found);
    CHECK_FALSE(mapping_of(t.raw_data(), stored("types.safetensors")).found);
    if (name == "matrix") {
      CHECK(t.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
    } else if (t.dtype() == kBool) {
      CHECK(t.to_vector<bool>() == std::vector<bool>{true, false, true, true});
    } else {
      CHECK(t.to_vector<double>() == std::vector<double>{t.dtype() == kUInt8 ? 255.0 : -1.0, 0, 1, 2});
    }
  }
}

TEST_CASE("opening a mapped file of 4 GiB takes at most 5 ms and no memory") {
  const TempDir dir;
  const auto path = dir.path / "big.safetensors";
  write_sparse(path, 4);
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {  // the fastest counts, since other programs run beside this one
    const auto start = std::chrono::steady_clock::now();
    const auto file = load_safetensors(path, {.mmap = true});
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count());
    const Tensor& x = file.tensors.at("x");
    CHECK(x.numel() == std::int64_t{1} << 30);
    const Mapping mapping = mapping_of(x.raw_data(), path);
    CHECK(mapping.found);
    CHECK(mapping.resident <= 256);
    CHECK(mapping.written == 0);
  }
  CHECK(least <= 5.0);
  const Tensor x = load_safetensors(path, {.mmap = true}).tensors.at("x");
  CHECK(x(-1, -1, -1).item<float>() == 0.f);
}

TEST_CASE("pages that are read stay the file's, and written ones are private") {
  const TempDir dir;
  const auto path = dir.path / "x.safetensors";
  constexpr std::int64_t kCount = 1 << 20;  // 4 MiB
  interop::save_safetensors(path, {{"x", ones({kCount})}});
  const io::Bytes before = io::read_file(path);
  const Tensor x = load_safetensors(path, {.mmap = true}).tensors.at("x");
  const Tensor other = load_safetensors(path, {.mmap = true}).tensors.at("x");
  CHECK(x.sum().item<float>() == static_cast<float>(kCount));
  Mapping mapping = mapping_of(x.raw_data(), path);
  CHECK(mapping.resident >= 4 * 1024);
  CHECK(mapping.written == 0);  // so other processes share them
  const long page = sysconf(_SC_PAGESIZE) / 1024;
  x.data<float>()[0] = 5;
  x.data<float>()[kCount - 1] = 6;
  mapping = mapping_of(x.raw_data(), path);
  CHECK(mapping.written == 2 * page);
  CHECK(x[0].item<float>() == 5.f);
  CHECK(other[0].item<float>() == 1.f);
  CHECK(io::read_file(path) == before);
  CHECK(load_safetensors(path).tensors.at("x")[kCount - 1].item<float>() == 1.f);
}

TEST_CASE("a mapped state dict loads into a module and trains") {
  const TempDir dir;
  const auto path = dir.path / "net.safetensors";
  manual_seed(1);
  nn::Linear from(40, 30), to(40, 30);
  interop::save_safetensors(path, from.state_dict());
  const io::Bytes before = io::read_file(path);
  to.load_state_dict(load_safetensors(path, {.mmap = true}).tensors);
  CHECK(to.weight.to_vector<float>() == from.weight.to_vector<float>());
  // Mapped tensors are leaves as any others: gradients and updates in place work, and change no file.
  const Tensor w = load_safetensors(path, {.mmap = true}).tensors.at("weight").requires_grad_();
  square(w).sum().backward();
  CHECK(w.grad()[0][0].item<float>() == 2 * from.weight[0][0].item<float>());
  {
    no_grad guard;
    w.sub_(w.grad() * 0.5);
  }
  CHECK(w.abs().max().item<float>() == 0.f);
  CHECK(io::read_file(path) == before);
}

TEST_CASE("a mapping lives as long as one of its tensors, also when the file is replaced") {
  const TempDir dir;
  const auto path = dir.path / "x.safetensors";
  interop::save_safetensors(path, {{"a", full({1000}, 1.f)}, {"b", full({1000}, 2.f)}});
  Tensor b = load_safetensors(path, {.mmap = true}).tensors.at("b");
  const void* address = b.raw_data();
  CHECK(mapping_of(address, path).found);
  const Tensor view = b.view({10, 100})[3];
  b = Tensor();
  CHECK(mapping_of(address, path).found);
  interop::save_safetensors(path, {{"b", full({1000}, 3.f)}});
  CHECK(view.to_vector<float>() == std::vector<float>(100, 2.f));
}

TEST_CASE("a mapping ends with its last tensor") {
  const TempDir dir;
  const auto path = dir.path / "x.safetensors";
  interop::save_safetensors(path, {{"a", ones({1000})}});
  const void* address = nullptr;
  {
    const Tensor a = load_safetensors(path, {.mmap = true}).tensors.at("a");
    address = a.raw_data();
    CHECK(mapping_of(address, path).found);
  }
  CHECK_FALSE(mapping_of(address, path).found);
}

TEST_CASE("tensors that are not aligned are copied from a mapped file") {
  const TempDir dir;
  const auto path = dir.path / "x.safetensors";
  // The header's length is odd, as other programs may write it.
  std::string header = R"({"x":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})";
  if (header.size() % 2 == 0) header += ' ';
  const double values[] = {1.5, -2.5};
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  file += header + std::string(reinterpret_cast<const char*>(values), 16);
  io::write_file(path, file);
  const Tensor x = load_safetensors(path, {.mmap = true}).tensors.at("x");
  CHECK(reinterpret_cast<std::uintptr_t>(x.raw_data()) % 8 == 0);
  CHECK(x.to_vector<double>() == std::vector<double>{1.5, -2.5});
}

TEST_CASE("a damaged mapped file is refused as a read one, and a missing or empty one too") {
  const TempDir dir;
  const auto path = dir.path / "x.safetensors";
  const auto refusal = [&](bool mmap) {
    try {
      load_safetensors(path, {.mmap = mmap});
    } catch (const IoError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal(true).find("No such file or directory") != std::string::npos);
  io::write_file(path, std::string());
  CHECK(refusal(true) == refusal(false));
  CHECK(refusal(true).find("too few for the header's length") != std::string::npos);
  const auto whole = interop::encode_safetensors({{"a", ones({4})}, {"flag", from_data<bool>({true}, {1})}});
  for (std::size_t n = 1; n < whole.size(); n += 7) {
    io::write_file(path, std::span(whole).first(n));
    CHECK(refusal(true) == refusal(false));
    CHECK(refusal(true) != "accepted");
  }
  auto flag = whole;
  flag.back() = std::byte{2};
  io::write_file(path, flag);
  CHECK(refusal(true).find("of type BOOL has values other than 0 and 1") != std::string::npos);
}

TEST_CASE("tensors of a mapped file of torch.save lie in the mapping") {
  const auto path = stored("net.pt");
  const Tensor mapped = interop::load_torch(path, {.mmap = true})["fc.weight"].tensor();
  CHECK(mapping_of(mapped.raw_data(), path).found);
  CHECK_FALSE(mapping_of(interop::load_torch(path)["fc.weight"].tensor().raw_data(), path).found);
}
