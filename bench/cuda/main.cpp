// levin_bench_cuda: measures every rung of every CUDA ladder, and the operations without one, next to NVIDIA's
// libraries. Each family runs in its own process; shipping kernels and training steps come first, naive rungs last.

#include "bench/cuda/supervisor.h"

#include <levin/kernels/cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace levin::bench {
namespace {

constexpr const char* kUsage =
    "usage: levin_bench_cuda [--check] [--json FILE] [--seconds N] [--row-seconds N] [--one-process] [FILTER...]\n"
    "  --check        checks the results of every rung and peer at small sizes; no timings\n"
    "  --json         writes each row to this file as one line, as soon as it is measured\n"
    "  --seconds      problems that have not started after this long are skipped and listed\n"
    "  --row-seconds  a process that reports no row for this long is killed (90)\n"
    "  --one-process  runs all families in one process, for debuggers; a crash loses all further rows\n"
    "  FILTER         sgemm, hgemm/persistent, training/cnn, ...: runs only this family, or this rung or net of it\n";

struct Filter {
  std::string family, rung;
};

struct Options {
  bool check = false, one_process = false;
  std::string json, worker;
  double seconds = 1e9, row_seconds = 90;
  std::vector<Filter> filters;

  bool wants(const std::string& family) const {
    return filters.empty() || std::ranges::find(filters, family, &Filter::family) != filters.end();
  }
  /// Returns the rungs that the filters name; empty means all.
  std::vector<std::string> rungs(const std::string& family) const {
    std::vector<std::string> names;
    for (const Filter& f : filters) {
      if (f.family != family) continue;
      if (f.rung.empty()) return {};
      names.push_back(f.rung);
    }
    return names;
  }
};

Options parse(int argc, char** argv) {
  Options o;
  const auto value = [&](int& i) -> std::string {
    if (i + 1 == argc) throw UsageError(std::string("[levin_bench_cuda] ") + argv[i] + " needs a value.");
    return argv[++i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--check") {
      o.check = true;
    } else if (argument == "--one-process") {
      o.one_process = true;
    } else if (argument == "--json") {
      o.json = value(i);
    } else if (argument == "--seconds") {
      o.seconds = std::strtod(value(i).c_str(), nullptr);
    } else if (argument == "--row-seconds") {
      o.row_seconds = std::strtod(value(i).c_str(), nullptr);
    } else if (argument == "--worker") {  // given by this program when it starts itself
      o.worker = value(i);
    } else if (argument.starts_with("-")) {
      throw UsageError("[levin_bench_cuda] " + argument + " is no option.\n" + kUsage);
    } else {
      const std::size_t slash = argument.find('/');
      o.filters.push_back({argument.substr(0, slash), slash == argument.npos ? "" : argument.substr(slash + 1)});
    }
  }
  return o;
}

void print_row(const Json& row) {
  std::printf("%-34s %-9s %-34s ", row["name"].get<std::string>().c_str(), row["dtype"].get<std::string>().c_str(),
              row["shape"].get<std::string>().c_str());
  if (row.contains("seconds")) {
    std::printf("%10.1f us", row["seconds"].get<double>() * 1e6);
    if (!row["share"].is_null()) std::printf("  %5.1f %% of its floor", row["share"].get<double>() * 100);
  }
  std::printf("%s", row["ok"] ? " right" : " WRONG");
  if (!row["ok"]) std::printf(" (%s)", row["error"].dump().c_str());
  for (const auto& [name, peer] : row["peers"].items()) {
    if (peer.contains("ratio")) std::printf("  %s %.3f", name.c_str(), peer["ratio"].get<double>());
    if (peer.contains("ok") && !peer["ok"]) std::printf("  %s WRONG", name.c_str());
  }
  std::printf("\n");
}

/// Prints rows, writes each to the file at once, and counts them.
class Report {
 public:
  explicit Report(const std::string& path)
      : file_(path.empty() ? nullptr : std::fopen(path.c_str(), "w"), &std::fclose) {
    if (!path.empty() && !file_) throw UsageError("[levin_bench_cuda] " + path + " cannot be written.");
  }

  void add(const Json& message) {
    const std::string kind = message["kind"];
    const Json& row = message["row"];
    if (file_) {
      Json line = {{"kind", kind}};
      line.update(row);
      std::fputs((line.dump() + "\n").c_str(), file_.get());
      std::fflush(file_.get());
    }
    if (kind == "row") {
      print_row(row);
      ++rows_;
      wrong_ += row["ok"] ? 0 : 1;
      for (const auto& [name, peer] : row["peers"].items()) wrong_ += peer.contains("ok") && !peer["ok"] ? 1 : 0;
    } else if (kind == "training") {
      std::printf("%-34s %s\n", row["name"].get<std::string>().c_str(), row["ok"] ? "right" : "WRONG");
      wrong_ += row["ok"] ? 0 : 1;
    } else if (kind == "left_out") {
      ++left_out_;
    }
    std::fflush(stdout);
  }
  int finish() const {
    std::printf("%d rows, %d wrong, %d problems left out\n", rows_, wrong_, left_out_);
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  int rows_ = 0, wrong_ = 0, left_out_ = 0;
};

/// Returns one task per process, the most important first.
std::vector<Task> tasks_of(const Options& o, const std::vector<Entry>& entries) {
  std::vector<Task> tasks;
  const auto add = [&](const std::string& family, std::optional<Level> level) {
    tasks.push_back({.family = family, .level = level, .rungs = o.rungs(family), .check = o.check});
  };
  std::vector<Entry> families;  // the first entry of each family
  for (const Entry& e : entries)
    if (o.wants(e.family) && std::ranges::find(families, e.family, &Entry::family) == families.end())
      families.push_back(e);
  if (!o.check) add("machine", {});
  if (o.wants("training")) add("training", {});
  for (const Level level : {Level::ships, Level::others, Level::naive}) {
    for (const Entry& e : families) {
      if (o.check && level == Level::ships) add(e.family, {});  // all levels: a process takes seconds to start
      if (!o.check && (e.ladder || level == Level::ships)) add(e.family, level);
    }
  }
  return tasks;
}

int run_all(const Options& o, const std::string& program) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Entry> entries = problems(o.check ? Scale::check : Scale::full);
  Report report(o.json);
  Ceilings ceilings;
  const Supervision supervision{.command =
                                    [&](const Task& t) {
                                      return std::vector<std::string>{program, "--worker", to_json(t).dump()};
                                    },
                                .row_seconds = o.row_seconds};
  const Say keep = [&](const Json& message) {
    if (message["kind"] == "begin" || message["kind"] == "end") return;
    if (message["kind"] == "machine") ceilings = ceilings_of(message["ceilings"]);
    report.add(message);
  };
  for (Task task : tasks_of(o, entries)) {
    task.seconds = o.seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    task.ceilings = ceilings;
    if (task.seconds <= 0) {
      keep({{"kind", "left_out"}, {"row", {{"name", task.family}}}});
    } else if (o.one_process) {
      if (!run_task(task, entries, keep)) break;
    } else {
      supervise(task, supervision, keep);
    }
  }
  return report.finish();
}

int main_of(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (!o.worker.empty()) {
    const Task task = task_of(Json::parse(o.worker));
    const bool done = run_task(task, problems(task.check ? Scale::check : Scale::full), [](const Json& message) {
      std::puts(message.dump().c_str());
      std::fflush(stdout);
    });
    return done ? 0 : kDeviceLost;
  }
  if (!cuda::is_available()) throw DeviceError(cuda::why_unavailable());
  if (!o.check && std::string(cuda::flavour()) == "EMULATE")
    throw UsageError("[levin_bench_cuda] the emulator's times say nothing about a GPU: give --check.");
  return run_all(o, std::filesystem::read_symlink("/proc/self/exe"));
}

}  // namespace
}  // namespace levin::bench

int main(int argc, char** argv) {
  try {
    return levin::bench::main_of(argc, argv);
  } catch (const levin::UsageError& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 2;
  } catch (const levin::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
