// levin_bench_cuda: every rung of every CUDA ladder, and the operations without one, beside NVIDIA's libraries, in one
// process on one device.

#include "bench/cuda/report.h"
#include "bench/cuda/training.h"

#include <levin/autograd/modes.h>
#include <levin/core/config.h>
#include <levin/core/io.h>
#include <levin/kernels/cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace levin::bench {
namespace {

constexpr const char* kUsage =
    "usage: levin_bench_cuda [--check] [--json FILE] [--seconds N] [FAMILY...]\n"
    "  --check    small sizes: every rung and peer computes the right thing; no figures\n"
    "  --json     writes the rows to this file\n"
    "  --seconds  problems that are not begun after this long are left out, and named\n"
    "  FAMILY     sgemm, softmax, training, ...: only these\n";

struct Options {
  bool check = false;
  std::string json;
  double seconds = 1e9;
  std::vector<std::string> families;

  bool wants(const std::string& family) const {
    return families.empty() || std::ranges::find(families, family) != families.end();
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
    } else if (argument == "--json") {
      o.json = value(i);
    } else if (argument == "--seconds") {
      o.seconds = std::strtod(value(i).c_str(), nullptr);
    } else if (argument.starts_with("-")) {
      throw UsageError("[levin_bench_cuda] " + argument + " is no option.\n" + kUsage);
    } else {
      o.families.push_back(argument);
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
  for (const auto& [name, peer] : row["peers"].items()) {
    if (peer.contains("ratio")) std::printf("  %s %.3f", name.c_str(), peer["ratio"].get<double>());
    if (peer.contains("ok") && !peer["ok"]) std::printf("  %s WRONG", name.c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

/// The rows of one problem, or one row that says why it could not be made.
Json rows_of(const Entry& entry, const Options& o, Meter& meter, const Ceilings& ceilings) {
  no_grad guard;
  if (!o.check) cuda::empty_cache();
  try {
    const Problem p = entry.make();
    return o.check ? check_problem(p, meter) : measure_problem(p, meter, ceilings);
  } catch (const Error& e) {
    return Json::array({{{"name", entry.family + "/none"},
                         {"family", entry.family},
                         {"rung", "none"},
                         {"shape", ""},
                         {"dtype", ""},
                         {"error", e.what()},
                         {"ok", false},
                         {"peers", Json::object()}}});
  }
}

/// Runs what was asked for; returns the report.
Json run(const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < o.seconds;
  };
  const Scale scale = o.check ? Scale::check : Scale::full;
  Meter meter(o.check ? MeterOptions{.warm_up_seconds = 0, .quads = 2, .flush_bytes = 4096} : MeterOptions{});
  Json report = Json::object(), left_out = Json::array();
  Ceilings ceilings;
  if (!o.check) {
    ceilings = measure_ceilings(meter, scale);
    report["machine"] = describe_machine(ceilings);
  }
  report["rows"] = Json::array();
  for (const Entry& entry : problems(scale)) {
    if (!o.wants(entry.family)) continue;
    if (!in_time()) {
      left_out.push_back(entry.family);
      continue;
    }
    for (const Json& row : rows_of(entry, o, meter, ceilings)) {
      print_row(row);
      report["rows"].push_back(row);
    }
  }
  if (o.wants("training")) {
    if (in_time()) {
      report["training"] = training_rows(scale, !o.check);
    } else {
      left_out.push_back("training");
    }
  }
  report["left_out"] = left_out;
  return report;
}

int wrong_rows(const Json& report) {
  int wrong = 0;
  for (const Json& row : report["rows"]) {
    wrong += row["ok"] ? 0 : 1;
    for (const auto& [name, peer] : row["peers"].items()) wrong += peer.contains("ok") && !peer["ok"] ? 1 : 0;
  }
  if (report.contains("training"))
    for (const Json& row : report["training"]) wrong += row["ok"] ? 0 : 1;
  return wrong;
}

int main_of(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (!cuda::is_available()) throw DeviceError(cuda::why_unavailable());
  if (!o.check && std::string(LEVIN_CUDA_FLAVOUR) == "EMULATE")
    throw UsageError("[levin_bench_cuda] the emulator's times say nothing about a GPU: give --check.");
  const Json report = run(o);
  if (!o.json.empty()) io::write_file(o.json, report.dump(1) + "\n");
  const int wrong = wrong_rows(report);
  std::printf("%zu rows, %d wrong, %zu problems left out\n", report["rows"].size(), wrong, report["left_out"].size());
  return wrong == 0 ? 0 : 1;
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
