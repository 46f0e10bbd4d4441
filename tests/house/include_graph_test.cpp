// Module order: a module includes only from the modules above it in docs/architecture.md.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "house/source_tree.h"

using levin::test::included_path;
using levin::test::read_sources;

namespace {

using Modules = std::set<std::string>;

const Modules kTensor = {"core", "kernels", "autograd"};
const Modules kAll = {"core", "kernels", "autograd", "nn", "optim", "data", "interop", "distributed", "trainer"};

Modules with(Modules base, const Modules& more) {
  base.insert(more.begin(), more.end());
  return base;
}

// All modules that a module may include besides itself, directly or through others.
const std::map<std::string, Modules> kMayInclude = {
    {"emulator", {}},
    {"core", {}},
    {"kernels", {"core", "emulator"}},
    {"autograd", {"core", "kernels"}},
    {"nn", kTensor},
    {"optim", kTensor},
    {"data", kTensor},
    {"interop", with(kTensor, {"nn"})},
    {"distributed", with(kTensor, {"nn", "optim"})},
    {"trainer", with(kTensor, {"nn", "optim", "data", "interop", "distributed"})},
    {"c_api", with(kTensor, {"nn", "optim", "interop"})},
    {"examples", kAll},
    {"tests", with(kAll, {"emulator", "c_api"})},
    {"bench", kAll},
};

// Returns "core" for "levin/core/tensor.h", the trainer for the umbrella header, nothing for other libraries' headers.
std::string module_of_header(const std::string& path) {
  if (path == "levin/levin.h") return "trainer";
  if (!path.starts_with("levin/")) return {};
  return path.substr(6, path.find('/', 6) - 6);
}

}  // namespace

TEST_CASE("a module includes only from the modules above it") {
  const auto files = read_sources();
  REQUIRE(files.size() > 10);
  int checked = 0;
  for (const auto& file : files) {
    const auto allowed = kMayInclude.find(file.module());
    REQUIRE_MESSAGE(allowed != kMayInclude.end(), file.path.string());
    for (const auto& line : file.lines) {
      const auto module = module_of_header(included_path(line));
      if (module.empty() || module == file.module()) continue;
      ++checked;
      const bool fine = allowed->second.contains(module);
      CHECK_MESSAGE(fine, file.path.string() << " may not include from " << module << ": " << line);
    }
  }
  CHECK(checked > 0);
}

TEST_CASE("public headers name no private header and no CUDA header") {
  for (const auto& file : read_sources()) {
    const auto text = file.path.string();
    if (text.find("/include/levin/") == std::string::npos) continue;
    for (const auto& line : file.lines) {
      const auto included = included_path(line);
      const bool private_header = !included.empty() && line.find('"') != std::string::npos;
      CHECK_MESSAGE(!private_header, text << ": " << line);
      CHECK_MESSAGE(!included.starts_with("cuda"), text << ": " << line);
      CHECK_MESSAGE(!included.starts_with("Eigen"), text << ": " << line);
      CHECK_MESSAGE(!included.starts_with("hwy"), text << ": " << line);
    }
  }
}

TEST_CASE("the include line parser reads what the tree writes") {
  CHECK(included_path("#include <levin/core/tensor.h>") == "levin/core/tensor.h");
  CHECK(included_path("  #  include \"support/paths.h\"  // why") == "support/paths.h");
  CHECK(included_path("// #include <levin/core/tensor.h>").empty());
  CHECK(module_of_header("levin/nn/module.h") == "nn");
  CHECK(module_of_header("levin/levin.h") == "trainer");
  CHECK(module_of_header("vector").empty());
}
