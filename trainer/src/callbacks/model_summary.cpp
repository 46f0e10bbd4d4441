#include <levin/trainer/callbacks/model_summary.h>

#include <levin/trainer/module.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin {
namespace {

std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

struct Shown {
  std::string operator()(const std::string& text) const { return text; }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    return fmt::format("[{}]", fmt::join(list, ", "));
  }
  template <class T>
  std::string operator()(const T& number) const {
    return fmt::format("{}", number);
  }
};

}  // namespace

std::string summary(const nn::Module& module, int max_depth) {
  std::string out;
  for (const auto& [name, m] : module.named_modules()) {
    const auto depth = name.empty() ? 0 : 1 + std::count(name.begin(), name.end(), '.');
    if (depth == 0 || (max_depth >= 0 && depth > max_depth)) continue;
    out += fmt::format("  {:<14} {:<16} {:>12}\n", name, m->type_name(), grouped(m->parameter_count()));
  }
  std::int64_t trainable = 0, all = 0, bytes = 0;
  for (const auto& [name, p] : module.named_parameters()) {
    all += p.numel();
    bytes += p.numel() * size_of(p.dtype());
    if (p.requires_grad()) trainable += p.numel();
  }
  return out + fmt::format("{} parameters, {} of them trainable, {:.1f} MB\n", grouped(all), grouped(trainable),
                           static_cast<double>(bytes) / 1e6);
}

void ModelSummary::on_fit_start(RunContext& run) {
  fmt::print(options_.out, "{}\n{}", run.module.type_name(), summary(run.module, options_.max_depth));
  if (const auto& values = run.module.hparams().values(); !values.empty()) {
    std::string line;
    for (const auto& [name, value] : values)
      line += fmt::format("{}{}={}", line.empty() ? "" : ", ", name, std::visit(Shown{}, value));
    fmt::print(options_.out, "hyper-parameters: {}\n", line);
  }
  std::fflush(options_.out);
}

}  // namespace levin
