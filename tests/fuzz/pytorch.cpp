#include "fuzz/pytorch.h"

#include "support/paths.h"

#include <levin/core/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <sstream>

namespace levin::fuzz {

namespace {

using nlohmann::json;

constexpr unsigned kStarting = 300, kAnswering = 20;  // seconds

json numbers(const std::vector<double>& values) {
  std::string text;
  for (const double v : values) text += fmt::format("{:a} ", v);
  return text;
}

json leaf_json(const Leaf& leaf) {
  const bool wide = leaf.tested && is_floating(leaf.dtype);
  return {{"dtype", std::string(name_of(wide ? DType::f64 : leaf.dtype))},
          {"sizes", std::vector<int64_t>(leaf.sizes.begin(), leaf.sizes.end())},
          {"values", numbers(leaf.tensor().to_vector<double>())},
          {"differentiable", leaf.differentiable}};
}

/// Returns PyTorch's expression of a step; empty if there is none.
std::string expression_of(const Step& step) {
  const std::string& text = step.sample.torch.empty() ? step.op_case->torch : step.sample.torch;
  return text == "-" ? std::string() : text;
}

Tensors tensors_of(const json& list) {
  Tensors result;
  for (const json& t : list) {
    if (t.is_null()) {
      result.emplace_back();
      continue;
    }
    std::vector<double> values;
    std::istringstream words(t.at("values").get<std::string>());
    for (std::string word; words >> word;) values.push_back(std::strtod(word.c_str(), nullptr));
    const auto sizes = t.at("sizes").get<std::vector<int64_t>>();
    result.push_back(from_data(values, Shape(std::span<const int64_t>(sizes))));
  }
  return result;
}

json request_of(const Program& p) {
  json request{{"twice", compares_second_gradients(p)},
               {"leaves", json::array()},
               {"steps", json::array()},
               {"cotangents", json::array()}};
  for (const Leaf& leaf : p.leaves) request["leaves"].push_back(leaf_json(leaf));
  for (const Leaf& g : p.cotangents) request["cotangents"].push_back(leaf_json(g));
  for (const Step& step : p.steps) {
    json sizes = json::array();
    for (const test::InputSpec& i : step.sample.inputs)
      sizes.push_back(std::vector<int64_t>(i.sizes.begin(), i.sizes.end()));
    request["steps"].push_back({{"expression", expression_of(step)}, {"sources", step.sources}, {"sizes", sizes}});
  }
  return request;
}

}  // namespace

void Pytorch::start() {
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0) throw Error("no pipe for PyTorch");
  const pid_t pid = fork();
  if (pid < 0) throw Error("no process for PyTorch");
  if (pid == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
    const std::string script = (test::source_dir() / "tests/fuzz/pytorch_worker.py").string();
    execl(python_.c_str(), python_.c_str(), script.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
  std::signal(SIGPIPE, SIG_IGN);  // if the process has died, reading its answer says so
  const bool limited = alarm(kStarting) != 0;  // importing it takes longer than the limit of a test
  char ready[16];
  if (!std::fgets(ready, sizeof(ready), from_)) throw Error("PyTorch does not start: " + python_);
  alarm(limited ? kAnswering : 0);
}

std::optional<std::string> Pytorch::ask(const std::string& line) {
  std::fputs(line.c_str(), to_);
  std::fflush(to_);
  std::string answer;
  for (int c; (c = std::fgetc(from_)) != '\n';) {
    if (c == EOF) {
      std::fclose(to_);
      std::fclose(from_);
      to_ = from_ = nullptr;
      return std::nullopt;
    }
    answer += static_cast<char>(c);
  }
  return answer;
}

std::optional<Results> Pytorch::run(const Program& p) {
  if (!std::ranges::all_of(p.steps, [](const Step& s) { return !expression_of(s).empty(); })) return std::nullopt;
  bool shared = to_ != nullptr;  // by processes whose programs may have ended it
  if (!to_) start();
  json request = request_of(p);
  // A process that died may have left an answer, so each process uses its own numbers.
  const int64_t number = static_cast<int64_t>(getpid()) * 1'000'000 + ++asked_;
  request["number"] = number;
  for (std::string line = request.dump() + "\n";;) {
    const std::optional<std::string> text = ask(line);
    if (!text) {
      if (!shared) {  // which says nothing about this library
        fmt::print(stderr, "PyTorch ended while it computed {}\n", expression_of(p.steps.back()));
        return std::nullopt;
      }
      shared = false;
      start();
      continue;
    }
    const json answer = json::parse(*text);
    if (answer.at("number") != number) {
      line.clear();  // it was asked already
      continue;
    }
    if (answer.contains("refused")) return std::nullopt;
    if (answer.contains("error")) throw Error("PyTorch says: " + answer.at("error").get<std::string>());
    return Results{tensors_of(answer.at("outputs")), tensors_of(answer.at("first")), tensors_of(answer.at("second"))};
  }
}

}  // namespace levin::fuzz
