// Kernels keep to the subset of CUDA that nvcc and the host compiler both take (kernels/cuda/base/cuda.h).
#include <doctest/doctest.h>

#include <array>

#include "house/source_tree.h"

using levin::test::read_sources;

namespace {

struct Rule {
  const char* word;
  const char* instead;
};

const std::array<Rule, 7> kRules = {{
    {"<<<", "launch(kernel, {.grid = ..., .block = ...}, ...)"},
    {"__shared__", "LEVIN_SHARED or dynamic_shared<T>()"},
    {"asm(", "a function of kernels/cuda/base/ptx.h"},
    {"asm volatile", "a function of kernels/cuda/base/ptx.h"},
    {"*reinterpret_cast<", "pack_at<N>(p) or vector_at<V>(p), which the emulator checks"},
    {"__managed__", "memory of the caching allocator"},
    {"printf(", "an exception in the launcher"},
}};

bool may_break_rules(const std::string& path) {
  return path == "kernels/cuda/base/cuda.h" || path == "kernels/cuda/base/ptx_device.h" ||
         path == "kernels/cuda/base/wgmma_device.h" || path == "kernels/cuda/base/bulk_device.h";
}

}  // namespace

TEST_CASE("kernels keep to the CUDA that both compilers take") {
  int files = 0;
  for (const auto& file : read_sources({"kernels"})) {
    const std::string path = file.path.generic_string();
    if (!path.starts_with("kernels/cuda/") || may_break_rules(path)) continue;
    ++files;
    for (const auto& line : file.lines) {
      for (const Rule& rule : kRules) {
        const bool found = line.find(rule.word) != std::string::npos;
        CHECK_MESSAGE(!found, path << ": " << line << " (write " << rule.instead << ")");
      }
    }
  }
  CHECK(files > 2);
}
