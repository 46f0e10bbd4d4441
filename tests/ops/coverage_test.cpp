// Every kernel table has a case, and every recorded operation a gradient check.

#include "cases/cases.h"
#include "support/paths.h"
#include "support/text/pattern.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/node.h>
#include <levin/autograd/ops.h>
#include <levin/core/io.h>
#include <levin/kernels/kernel.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

using namespace levin;
using namespace levin::test;

namespace {

/// Returns the names of the rows of elementwise_rows.h: of unary operations, or of all kernels.
std::set<std::string> row_names(const std::string& text, bool unary_only) {
  static const Pattern row(R"((?:^|\n)LEVIN_(\w+)_ROW\((\w+),)");
  std::set<std::string> names;
  for (const auto& m : row.find_all(text)) {
    const std::string &family = m[1], &name = m[2];
    if (unary_only && family != "UNARY") continue;
    names.insert(name);
    if (family == "ACTIVATION") names.insert(name + "_backward");
  }
  return names;
}

/// Returns the names declared as `extern constinit ...Kernel... a, b, c;` or as a row.
std::set<std::string> declared_kernels(const std::string& contract) {
  static const Pattern macro("#define[^\n]*");
  static const Pattern declaration(R"(extern constinit\s+(?:Kernel<[^;]*?\)>|\w+Kernel)\s+([^;]+);)");
  static const Pattern word(R"(\w+)");
  const std::string text = macro.replace_all(contract, "");
  std::set<std::string> names = row_names(text, false);
  for (const auto& list : declaration.find_all(text))
    for (const auto& name : word.find_all(list[1])) names.insert(name[0]);
  return names;
}

struct Collector : kernels::KernelObserver {
  void called(const char* kernel, Device) override {
    const std::lock_guard lock(mutex);
    names.insert(kernel);
  }
  void returned(const char* kernel, const std::type_info&, const void*, const kernels::Work& work,
                const Stream&) override {
    const std::lock_guard lock(mutex);
    if (work.bytes > 0) worked.insert(kernel);
  }
  std::mutex mutex;
  std::set<std::string> names, worked;
};

/// Collects the names of all operations in the graph of `outputs`.
void collect_nodes(const Tensors& outputs, std::set<std::string>& names) {
  std::vector<NodePtr> unseen;
  std::set<const Node*> seen;
  for (const Tensor& y : outputs)
    if (NodePtr n = grad_fn(y)) unseen.push_back(n);
  while (!unseen.empty()) {
    const NodePtr n = unseen.back();
    unseen.pop_back();
    if (!seen.insert(n.get()).second) continue;
    names.insert(n->name());
    for (const Edge& e : n->edges)
      if (e) unseen.push_back(e.node);
  }
}

/// Runs backward, again with create_graph, and that graph's backward.
void run_backward(const OpCase& c, const Tensors& all_outputs, const Tensors& leaves,
                  std::set<std::string>& operations) {
  Tensors outputs, seeds, seconds, weights;
  for (const Tensor& y : all_outputs)
    if (y.requires_grad()) outputs.push_back(y);
  if (outputs.empty()) return;
  collect_nodes(outputs, operations);
  for (const Tensor& y : outputs) seeds.push_back(ones_like(y).requires_grad_());
  {
    no_grad guard;
    grad(outputs, leaves, {.retain_graph = true, .allow_unused = true}, seeds);
  }
  if (!c.twice) return;
  for (const Tensor& g : grad(outputs, leaves, {.create_graph = true, .allow_unused = true}, seeds))
    if (g.defined() && g.requires_grad()) seconds.push_back(g);
  if (seconds.empty()) return;
  collect_nodes(seconds, operations);
  for (const Tensor& y : seconds) weights.push_back(ones_like(y));
  Tensors wanted = leaves;
  wanted.insert(wanted.end(), seeds.begin(), seeds.end());
  grad(seconds, wanted, {.allow_unused = true}, weights);
}

struct Coverage {
  std::set<std::string> kernels, worked, operations;
};

/// Runs every sample forward, backward, and with second gradients, in f32 and the case's first type.
const Coverage& coverage() {
  static const Coverage result = [] {
    Collector collector;
    kernels::KernelObserver* const former = kernels::set_observer(&collector);
    Coverage found;
    for (const OpCase& c : all_cases())
      for (const Sample& s : c.samples)
        for (const DType dtype : c.dtypes) {
          if (dtype != c.dtypes[0] && dtype != DType::f32) continue;
          Tensors inputs = make_inputs(c, s, dtype), leaves;
          for (std::size_t i = 0; i < inputs.size(); ++i)
            if (c.differentiable && s.inputs[i].differentiable && inputs[i].is_floating())
              leaves.push_back(inputs[i].detach().requires_grad_()), inputs[i] = leaves.back();
          run_backward(c, op_of(c, s)(inputs), leaves, found.operations);
        }
    kernels::set_observer(former);
    found.kernels = collector.names;
    found.worked = collector.worked;
    return found;
  }();
  return result;
}

}  // namespace

TEST_CASE("kernel declarations are found in contract headers") {
  const auto names = declared_kernels(
      "extern constinit Kernel<void(const A&, Stream&)> one;\nextern constinit UnaryKernel two, three,\n    "
      "four;\nKernel x;\n#define LEVIN_UNARY_ROW(name, ...) extern constinit UnaryKernel name;\n"
      "LEVIN_UNARY_ROW(five, floating)\nLEVIN_ACTIVATION_ROW(six, numeric)\n");
  CHECK(names == std::set<std::string>{"one", "two", "three", "four", "five", "six", "six_backward"});
}

TEST_CASE("every kernel table is exercised by some case") {
  std::size_t declared = 0;
  const auto contracts = source_dir() / "kernels/include/levin/kernels";
  for (const auto& file : std::filesystem::recursive_directory_iterator(contracts)) {
    if (file.is_directory()) continue;
    for (const std::string& name : declared_kernels(io::read_text(file.path()))) {
      ++declared;
      CHECK_MESSAGE(coverage().kernels.count(name) == 1, file.path().filename().string(), ": ", name, " has no case");
    }
  }
  CHECK(declared > 50);
}

TEST_CASE("the profiler knows the work of every kernel") {
  for (const std::string& name : coverage().kernels) CHECK_MESSAGE(coverage().worked.count(name) == 1, name);
}

TEST_CASE("every recorded operation is in the graph of some case") {
  static const Pattern recorded(R"rx(record\(\s*"(\w+)")rx");
  std::size_t found = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(source_dir() / "autograd/src/ops")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string text = io::read_text(file.path());
    for (const auto& m : recorded.find_all(text)) {
      ++found;
      const std::string& name = m[1];
      CHECK_MESSAGE(coverage().operations.count(name) == 1, file.path().filename().string(), ": ", name,
                    " has no gradient check");
    }
  }
  CHECK(found > 20);
  const std::string rows = io::read_text(source_dir() / "kernels/include/levin/kernels/elementwise_rows.h");
  const auto unary = row_names(rows, true);
  CHECK(unary.size() > 20);
  for (const std::string& name : unary)
    CHECK_MESSAGE(coverage().operations.count(name) == 1, name, " has no gradient check");
}

namespace {

/// Returns whether 40 draws have at least two different lists of sizes.
bool draws_several_sizes(const OpCase& c) {
  std::set<std::string> sizes;
  for (std::uint64_t number = 0; number < 40; ++number) {
    Draw d(7, number);
    std::string text;
    for (const InputSpec& i : c.draw(d).inputs) text += to_string(i.sizes);
    sizes.insert(text);
  }
  return sizes.size() > 1;
}

}  // namespace

TEST_CASE("random tests draw every case, but for those with a reason") {
  std::map<std::string, std::string> reasons = {
      {"softmax_of_one", "its only size is 1; softmax is drawn"},
      {"log_softmax_of_one", "its only size is 1; log_softmax is drawn"},
      {"max_pool2d_backward", "its indices come from a forward; the gradients of max_pool2d are drawn"},
      {"addmm_cancelling", "its values cancel at one size; addmm is drawn"},
      {"amp_update_scale", "its inputs are numbers"},
      {"melscale_fbanks", "its inputs are numbers"}};
  for (const OpCase& c : creation_cases()) reasons[c.name] = "creation has no inputs to draw";
  for (auto family : {edge_cases, edge_slope_cases, edge_infinity_cases})
    for (const OpCase& c : family())
      if (!c.draw) reasons[c.name] = "an edge is one point of an operation that is drawn in its own case";
  for (const OpCase& c : all_cases()) {
    if (!c.draw) {
      CHECK_MESSAGE(reasons.contains(c.name), c.name, " has no draw; give one, or a reason here");
      continue;
    }
    CHECK_MESSAGE(!reasons.contains(c.name), c.name, " has a draw; remove its reason");
    CHECK_MESSAGE(draws_several_sizes(c), c.name, " draws the same sizes each time");
  }
}

namespace {

/// The functions that the headers of operations declare.
std::set<std::string> declared_operations() {
  static const Pattern declaration(R"rx(^(?:inline )?(?:const Tensor&|[A-Za-z:<>]+) (\w+)\()rx");
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(source_dir() / "autograd/include/levin/autograd/ops")) {
    std::istringstream lines(io::read_text(file.path()));
    for (std::string line; std::getline(lines, line);)
      if (const auto m = declaration.find(line); m && m->at(1) != "operator") names.insert(m->at(1));
  }
  return names;
}

/// The words of a case: its name and the calls of its samples, in C++ and in PyTorch.
std::set<std::string> words_of(const OpCase& c) {
  static const Pattern word("[a-z]\\w*");
  std::string text = c.name + " " + c.torch;
  for (const Sample& s : c.samples) text += " " + s.code + " " + s.torch + " " + s.label;
  std::set<std::string> words;
  for (const auto& m : word.find_all(text)) words.insert(m[0]);
  return words;
}

/// Returns docs/support.md.
std::string support_page() {
  std::string page =
      "# Operations\n\nMade by `LEVIN_SUPPORT_TABLE=1 levin_ops_tests -tc=\"*docs/support.md*\"` from the cases of\n"
      "[tests/cases](../tests/cases), which run on the CPU and, in the emulator, on CUDA. The types are those in "
      "which\nthe results are compared with a reference in double precision or with PyTorch's; a composition (marked "
      "by c)\nalso takes those of its parts. Gradients are compared with finite differences, once or twice.\n\n"
      "| operation | f64 | f32 | f16 | bf16 | i64 | i32 | i16 | i8 | u8 | bool | CPU | CUDA | backward | double |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  struct Row {
    std::set<DType> types;
    bool once = false, twice = false, composed = true;
  };
  std::map<std::string, Row> rows;
  const std::set<std::string> operations = declared_operations();
  const std::vector<OpCase> cases = all_cases();
  std::set<std::string> own;  // operations with a case of their name, which others do not speak for
  for (const OpCase& c : cases) own.insert(c.name);
  for (const OpCase& c : cases)
    for (const std::string& word : words_of(c)) {
      if (!operations.contains(word) || (own.contains(word) && word != c.name)) continue;
      Row& row = rows[word];
      row.types.insert(c.dtypes.begin(), c.dtypes.end());
      row.once = row.once || (c.differentiable && !c.zero_gradient);
      row.twice = row.twice || (c.differentiable && c.twice && !c.zero_gradient);
      row.composed = row.composed && !c.reference;
    }
  for (const auto& [name, row] : rows) {
    page += fmt::format("| {}{} |", name, row.composed ? " c" : "");
    for (int t = 0; t < kRealDTypeCount; ++t) page += row.types.contains(static_cast<DType>(t)) ? " x |" : "   |";
    page += fmt::format(" x | x | {} | {} |\n", row.once ? "x" : " ", row.twice ? "x" : " ");
  }
  return page + fmt::format("\n{} operations.\n", rows.size());
}

}  // namespace

TEST_CASE("docs/support.md is the table of the cases") {
  const std::string page = support_page();
  const auto path = source_dir() / "docs/support.md";
  if (std::getenv("LEVIN_SUPPORT_TABLE")) io::write_file(path, page);
  CHECK_MESSAGE(io::read_text(path) == page,
                "make it anew: LEVIN_SUPPORT_TABLE=1 levin_ops_tests -tc=\"*docs/support.md*\"");
  CHECK(std::ranges::count(page, '\n') > 230);
}
