// levin_fuzz: random tests of operations. ./run fuzz builds and runs it.

#include "cases/cases.h"
#include "fuzz/cases.h"
#include "fuzz/processes.h"
#include "fuzz/pytorch.h"
#include "fuzz/reduce.h"

#include <levin/core/parallel.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <sstream>

using namespace levin;
using namespace levin::fuzz;

namespace {

constexpr std::size_t kReduced = 12;  // failures that are reduced; only the numbers of the others are printed

struct Options {
  std::uint64_t seed = 1;
  std::int64_t count = 10'000, number = -1;
  std::string op, family, against = "reference", python;
  int workers = 2;
};

[[noreturn]] void refuse(const std::string& why) {
  fmt::print(stderr, "error: {}\n", why);
  std::exit(2);
}

std::int64_t number_of(const std::string& name, const std::string& text, std::int64_t least) {
  std::int64_t n = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || n < least)
    refuse(fmt::format("{} is \"{}\"; give a whole number of {} or more", name, text, least));
  return n;
}

Options parse(int argc, char** argv) {
  Options o;
  o.workers = std::max(1, num_threads());
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 >= argc) refuse(fmt::format("{} needs a value", name));
    const std::string value = argv[++i];
    if (name == "--seed")
      o.seed = static_cast<std::uint64_t>(number_of(name, value, 0));
    else if (name == "--count")
      o.count = number_of(name, value, 1);
    else if (name == "--case")
      o.number = number_of(name, value, 0);
    else if (name == "--workers")
      o.workers = static_cast<int>(number_of(name, value, 1));
    else if (name == "--op")
      o.op = value;
    else if (name == "--family")
      o.family = value;
    else if (name == "--python")
      o.python = value;
    else if (name == "--against")
      o.against = value;
    else
      refuse(fmt::format("{} is not an option of fuzz ops; see ./run fuzz --help", name));
  }
  if (!o.family.empty() && o.family != "single" && o.family != "graphs" && o.family != "edits")
    refuse(fmt::format("--family is \"{}\"; choose single, graphs or edits", o.family));
  if (o.against != "reference" && o.against != "pytorch")
    refuse(fmt::format("--against is \"{}\"; choose reference or pytorch", o.against));
  return o;
}

Suite suite_of(const Options& o) {
  Suite suite{.cases = test::all_cases(), .family = o.family};
  if (o.op.empty()) return suite;
  std::erase_if(suite.cases, [&](const OpCase& c) { return c.name != o.op; });
  if (suite.cases.empty()) refuse(fmt::format("--op is \"{}\", which no operation case is called", o.op));
  suite.family = "single";
  return suite;
}

/// Returns the choices of a test, also of one that crashes.
Draw::Choices choices_of(std::int64_t number, const Suite& suite, std::uint64_t seed) {
  const std::string text = run_apart([&](const Write& write) {
                             Draw d(seed, static_cast<std::uint64_t>(number));
                             d.observe = [&](std::uint32_t c) { write(fmt::format("{} ", c)); };
                             run_case(d, suite);
                           }).text;
  Draw::Choices choices;
  std::istringstream words(text);
  for (std::uint32_t c; words >> c;) choices.push_back(c);
  return choices;
}

std::string tried(const Draw::Choices& choices, const Suite& suite) {
  const Apart a = run_apart([&](const Write& write) {
    Draw d(choices);
    write(run_case(d, suite));
  });
  return a.text + a.death;
}

/// Reduces a failure and prints it.
void report(const Failure& failure, const Suite& suite, const Options& o) {
  const Draw::Choices small = reduced(choices_of(failure.number, suite, o.seed),
                                      [&](const Draw::Choices& c) { return !tried(c, suite).empty(); });
  const std::string code = run_apart([&](const Write& write) {
                             Draw d(small);
                             run_case(d, suite, write);
                           }).text;
  fmt::print("case {}: {}\nreduced: {}\n{}", failure.number, failure.wrong, tried(small, suite), code);
  fmt::print("replay: ./run fuzz ops --seed {} --case {}{}{}\n\n", o.seed, failure.number,
             (o.op.empty() ? "" : " --op " + o.op) + (o.family.empty() ? "" : " --family " + o.family),
             o.against == "reference" ? "" : " --against " + o.against);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  set_num_threads(1);  // parallelism comes from the processes
  Suite suite = suite_of(o);
  Pytorch pytorch(o.python);
  if (o.against == "pytorch") suite.peer = [&](const Program& p) { return pytorch.run(p); };
  const auto test = [&](std::int64_t number) {
    Draw d(o.seed, static_cast<std::uint64_t>(number));
    return run_case(d, suite);
  };
  const bool single = o.number >= 0, shows = isatty(STDERR_FILENO) != 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const auto failures =
      run_many(single ? o.number : 0, single ? 1 : o.count, single ? 1 : o.workers, test,
               [&](std::int64_t done, std::size_t failed) {
                 if (shows) fmt::print(stderr, "\r{} of {}, {} failed, {:.0f} s", done, o.count, failed, seconds());
               });
  if (shows) fmt::print(stderr, "\r\033[K");
  if (suite.peer && !failures.empty()) pytorch.start();  // one for all tests of the reduction
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (i < kReduced)
      report(failures[i], suite, o);
    else
      fmt::print("case {}: {}\n", failures[i].number, failures[i].wrong);
  }
  fmt::print("seed {}: {} cases, {} failed, {:.0f} s\n", o.seed, single ? 1 : o.count, failures.size(), seconds());
  return failures.empty() ? 0 : 1;
}
