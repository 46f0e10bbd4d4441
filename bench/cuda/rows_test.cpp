// Runs every row of the CUDA benchmarks at small sizes; part of levin_cuda_tests.

#include "bench/cuda/check.h"
#include "bench/cuda/report.h"
#include "bench/cuda/supervisor.h"
#include "bench/cuda/training.h"
#include "kernels/cuda/attention/ladder.h"
#include "kernels/cuda/conv/ladder.h"
#include "kernels/cuda/hgemm/ladder.h"
#include "kernels/cuda/norm/ladder.h"
#include "kernels/cuda/reduce/ladder.h"
#include "kernels/cuda/sgemm/ladder.h"
#include "kernels/cuda/softmax/ladder.h"
#include "kernels/cuda/transpose/ladder.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <levin/kernels/cuda.h>
#include <levin/kernels/elementwise.h>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

using namespace levin;
using namespace levin::bench;

namespace {

constexpr MeterOptions kQuick{.warm_up_seconds = 0, .quads = 2, .flush_bytes = 4096};

const std::set<std::string> kWithoutLadder = {"add",  "gelu",          "adamw",      "scan",       "sort",
                                              "pool", "pool_backward", "column_sum", "channel_sum"};

/// Returns the names of a ladder's rungs.
std::set<std::string> names_of(const auto& ladder) {
  std::set<std::string> names;
  for (const auto& rung : ladder) names.insert(rung.name);
  return names;
}

/// Returns a problem that copies eight numbers. Its one rung copies `copied` of them, which is wrong if fewer.
Problem copy_of_eight(int64_t copied) {
  const Tensor x = normal({8}, kFloat32), out = on_device({8}, kFloat32);
  return {.family = "copy",
          .dtype = "float32",
          .sizes = {{"n", 8}},
          .bytes = 64,
          .rungs = {{.name = "only",
                     .run = [=](Stream&) { out.narrow(0, 0, copied).copy_(x.narrow(0, 0, copied)); },
                     .peers = {}}},
          .outputs = {out},
          .exact = [x](int64_t first, int64_t count) { return std::vector{rows_of(x, first, count)}; }};
}

/// Returns ladders of four rungs; those of the ladder `broken` end the process in three ways.
std::vector<Entry> planted_entries() {
  const auto ladder = [](const std::string& family, const std::map<std::string, Run>& planted) {
    return Entry{family, [=] {
                   Problem p = copy_of_eight(8);
                   p.family = family;
                   for (const char* name : {"second", "third", "fourth"})
                     p.rungs.push_back(p.rungs[0]), p.rungs.back().name = name;
                   p.rungs[0].name = "first";
                   for (Rung& rung : p.rungs)
                     if (const auto found = planted.find(rung.name); found != planted.end()) rung.run = found->second;
                   set_levels(p);
                   return p;
                 }};
  };
  const Run illegal = [](Stream& stream) {
    const Tensor x = on_device({8}, kFloat32);
    kernels::BinaryArgs args{.out = x.tensor_view(), .a = x.tensor_view(), .b = x.tensor_view(), .compute = kFloat32};
    args.out.pointer = reinterpret_cast<void*>(0x1000);
    kernels::add(args, stream);
  };
  const Run aborts = [](Stream&) { std::abort(); };
  const Run hangs = [](Stream&) { std::this_thread::sleep_for(std::chrono::seconds(60)); };
  return {ladder("broken", {{"third", illegal}}),
          ladder("right", {}),
          ladder("broken", {{"first", aborts}, {"second", hangs}}),
          {"broken", []() -> Problem { throw DeviceError("no such problem"); }}};
}

#if defined(LEVIN_TEST_WATCHED)  // a sanitizer watches the emulator and the kernels
constexpr bool kWatched = true;
#else
constexpr bool kWatched = false;
#endif

constexpr const char* kBenchWorker = "LEVIN_TEST_BENCH_WORKER";

/// Returns the names and rows of a task, in order; this program is also the task's child process.
std::vector<std::pair<std::string, Json>> supervised(const Task& task) {
  std::vector<std::pair<std::string, Json>> rows;
  const Supervision supervision{.command =
                                    [](const Task& t) {
                                      return std::vector<std::string>{
                                          "env", std::string(kBenchWorker) + "=" + to_json(t).dump(),
                                          std::filesystem::read_symlink("/proc/self/exe"),
                                          "-tc=bench: the process of a task"};
                                    },
                                .row_seconds = 5};
  supervise(task, supervision, [&](const Json& m) { rows.emplace_back(m["row"]["name"], m["row"]); });
  return rows;
}

}  // namespace

TEST_CASE("bench: every rung of every ladder has rows and all are correct") {
  no_grad guard;
  Meter meter(kQuick);
  std::map<std::string, std::set<std::string>> rungs;
  for (const Entry& entry : problems(Scale::check)) {
    for (const Json& row : check_problem(entry.make(), meter)) {
      CHECK_MESSAGE(row["ok"].get<bool>(), row.dump());
      CHECK(row["family"] == entry.family);
      CHECK(!row.contains("seconds"));
      rungs[entry.family].insert(row["rung"].get<std::string>());
      for (const auto& [name, peer] : row["peers"].items()) {
        CHECK_MESSAGE((!peer.contains("ok") || peer["ok"].get<bool>()), name << ": " << row.dump());
        CHECK_MESSAGE((!peer.contains("missing") || !peer["missing"].get<std::string>().empty()), row.dump());
      }
    }
  }
  namespace ladders = kernels::cuda;
  CHECK(rungs["sgemm"] == names_of(ladders::sgemm_rungs()));
  CHECK(rungs["hgemm"] == names_of(ladders::hgemm_rungs()));
  for (const char* pass : {"conv", "conv_backward_input", "conv_backward_weight"})
    CHECK(rungs[pass] == names_of(ladders::conv_rungs()));
  CHECK(rungs["attention"] == names_of(ladders::attention_rungs()));
  CHECK(rungs["attention_backward"] == names_of(ladders::attention_backward_rungs()));
  CHECK(rungs["reduce"] == names_of(ladders::reduce_rungs()));
  CHECK(rungs["softmax"] == names_of(ladders::softmax_rungs()));
  CHECK(rungs["layer_norm"] == names_of(ladders::layer_norm_rungs()));
  CHECK(rungs["transpose"] == names_of(ladders::transpose_rungs()));
  for (const std::string& single : kWithoutLadder) CHECK(rungs[single].size() == 1);
}

TEST_CASE("bench: the full sizes have the same families as the small ones") {
  std::set<std::string> small, full;
  for (const Entry& entry : problems(Scale::check)) small.insert(entry.family);
  for (const Entry& entry : problems(Scale::full)) full.insert(entry.family);
  CHECK(small == full);
}

TEST_CASE("bench: an unwritten element at either end is an error") {
  const Problem right = copy_of_eight(8), wrong = copy_of_eight(7);
  CHECK(error_of(right, right.rungs[0].run, 2) == 0);
  CHECK(std::isinf(error_of(wrong, wrong.rungs[0].run, 8)));
  CHECK(std::isinf(error_of(wrong, wrong.rungs[0].run, 2)));
  Meter meter(kQuick);
  CHECK(check_problem(wrong, meter)[0]["ok"] == false);
}

TEST_CASE("bench: exact rows are computed only once") {
  Problem p = copy_of_eight(8);
  int calls = 0;
  p.exact = [&calls, exact = p.exact](int64_t first, int64_t count) {
    ++calls;
    return exact(first, count);
  };
  p.rungs.push_back(p.rungs[0]);
  Meter meter(kQuick);
  for (const Json& row : check_problem(p, meter)) CHECK(row["ok"] == true);
  CHECK(calls == 1);
}

TEST_CASE("bench: a rung that throws fails its row, a peer that throws is missing") {
  Problem p = copy_of_eight(8);
  const Run throws = [](Stream&) { throw DeviceError("no such unit"); };
  p.rungs[0].peers = {{.name = "broken", .run = throws}, {.name = "absent", .missing = "not here"}};
  Meter meter(kQuick);
  const Ceilings ceilings{.copy = 1, .flops = {}, .missing = ""};
  const Json row = measure_problem(p, meter, ceilings)[0];
  CHECK(row["ok"] == true);
  CHECK(row["peers"]["broken"]["missing"] == "no such unit");
  CHECK(row["peers"]["absent"]["missing"] == "not here");
  p.rungs[0].run = throws;
  const Json failed = measure_problem(p, meter, ceilings)[0];
  CHECK(failed["ok"] == false);
  CHECK(failed["error"] == "no such unit");
}

TEST_CASE("bench: a measured row and the machine have every member that the report reads") {
  Problem p = copy_of_eight(8);
  p.rungs[0].peers = {memcpy_peer(p.bytes)};
  Meter meter(kQuick);
  const Ceilings ceilings{.copy = 64, .flops = {{"f16", 1}}, .missing = ""};
  const Json row = measure_problem(p, meter, ceilings)[0];
  for (const char* field : {"name", "family", "rung", "shape", "dtype", "sizes", "error", "ok", "unit", "seconds",
                            "least_seconds", "calls", "cache", "bytes", "flops", "floor_seconds", "share"})
    CHECK_MESSAGE(row.contains(field), field);
  CHECK(row["floor_seconds"] == 1.0);
  for (const char* field : {"seconds", "ratio", "lower_ratio", "upper_ratio"})
    CHECK_MESSAGE(row["peers"]["memcpy"].contains(field), field);
  p.rungs[0].unit = "f32";  // its peak is unknown
  CHECK(measure_problem(p, meter, ceilings)[0]["share"].is_null());
  const Json machine = describe_machine(ceilings);
  CHECK(!machine["device"].get<std::string>().empty());
  CHECK(machine["copy_bytes_a_second"] == 64.0);
  CHECK(machine["library_flops_a_second"]["f16"] == 1.0);
}

TEST_CASE("bench: calls are interleaved as own, peer, peer, own, each after a flush") {
  Meter meter({.warm_up_seconds = 0, .quads = 3, .flush_bytes = 4096});
  std::string order;
  const Duel duel = meter.measure([&](Stream&) { order += 'a'; }, [&](Stream&) { order += 'b'; });
  CHECK(order == "ababbaabbaabba");  // one warm-up call of each first
  CHECK(duel.own.calls == 6);
  CHECK(duel.peer.calls == 6);
  CHECK(duel.lower_ratio <= duel.ratio);
  CHECK(duel.ratio <= duel.upper_ratio);
}

TEST_CASE("bench: medians, and floors from the larger of two terms") {
  CHECK(summary_of({4, 1, 3, 2}).median == 2.5);
  CHECK(summary_of({4, 1, 3, 2}).least == 1);
  const Ceilings ceilings{.copy = 10, .flops = {{"f16", 100}}, .missing = ""};
  const auto floor = [&](double bytes, double flops, const char* unit) {
    return floor_of({.bytes = bytes, .flops = flops}, {.name = "x", .run = {}, .unit = unit}, ceilings);
  };
  CHECK(floor(20, 1e6, "") == 2.0);
  CHECK(floor(20, 100, "f16") == 2.0);
  CHECK(floor(20, 1000, "f16") == 10.0);
  CHECK(!floor(20, 1000, "f32"));
}

TEST_CASE("bench: ceilings without cuBLAS give the reason") {
  Meter meter(kQuick);
  const Ceilings ceilings = measure_ceilings(meter, Scale::check);
  CHECK(ceilings.copy > 0);
  CHECK(ceilings.missing.empty() == !ceilings.flops.empty());
}

TEST_CASE("bench: training steps in mixed precision have the losses of float32, and no timings unless asked for") {
  const Json rows = training_rows(Scale::check, false);
  REQUIRE(rows.size() == 6);
  for (const Json& row : rows) {
    CHECK_MESSAGE(row["ok"].get<bool>(), row.dump());
    CHECK(!row.contains("seconds"));
    CHECK(row["activation_bytes"] > 0);
  }
}

TEST_CASE("bench: the process of a task") {
  const char* const text = std::getenv(kBenchWorker);
  if (!text) return;  // the next test cases start it
  const Task task = task_of(Json::parse(text));
  const bool done = run_task(task, planted_entries(), [](const Json& message) {
    std::puts(message.dump().c_str());
    std::fflush(stdout);
  });
  std::_Exit(done ? 0 : kDeviceLost);
}

TEST_CASE("bench: an illegal access, a crash and a hang lose one row each") {
  const auto rows = supervised({.family = "broken", .level = {}, .check = true});
  std::vector<std::string> names, wrong;
  for (const auto& [name, row] : rows) {
    names.push_back(name);
    if (row["ok"] == false) wrong.push_back(row["error"]);
  }
  // The shipping rung of each problem comes first and its naive rung last.
  CHECK(names == std::vector<std::string>{"broken/fourth", "broken/third", "broken/second", "broken/first",
                                          "broken/fourth", "broken/third", "broken/second", "broken/first",
                                          "broken/none"});
  REQUIRE(wrong.size() == 4);
  // A sanitizer may see the access or the signal first, and ends the process with a status of its own.
  const auto ended_by_sanitizer = [](const std::string& text) {
    return kWatched && text.find("the process ended with status ") == 0;
  };
  const bool access = wrong[0].find("cudaErrorIllegalAddress") != std::string::npos || ended_by_sanitizer(wrong[0]);
  CHECK_MESSAGE(access, wrong[0]);
  CHECK(wrong[1] == "no row came for 5 s, so the process was killed.");
  const bool crash = wrong[2].find("the process ended with signal 6 ") == 0 || ended_by_sanitizer(wrong[2]);
  CHECK_MESSAGE(crash, wrong[2]);
  CHECK(wrong[3] == "no such problem");
  for (const int i : {1, 6, 7, 8}) CHECK(rows[static_cast<std::size_t>(i)].second["ok"] == false);
}

TEST_CASE("bench: a task of one level or of named rungs runs only these rows, from its start position") {
  const auto names = [](const Task& task) {
    std::string text;
    for (const auto& [name, row] : supervised(task)) text += name + (row["ok"] == true ? " " : "! ");
    return text;
  };
  CHECK(names({.family = "right", .level = {}, .check = true}) == "right/fourth right/third right/second right/first ");
  CHECK(names({.family = "right", .level = Level::ships, .check = true}) == "right/fourth ");
  CHECK(names({.family = "right", .level = Level::others, .check = true}) == "right/third right/second ");
  CHECK(names({.family = "right", .level = Level::naive, .check = true}) == "right/first ");
  CHECK(names({.family = "right", .level = {}, .rungs = {"third", "first"}, .check = true}) ==
        "right/third right/first ");
  CHECK(names({.family = "right", .level = {}, .from = {1, 2}, .check = true}) == "right/second right/first ");
  CHECK(names({.family = "right", .level = {}, .from = {2, -1}, .check = true}) == "");
  CHECK(names({.family = "none", .level = {}, .check = true}) == "");
}

TEST_CASE("bench: each problem has one rung that ships, and a ladder's first rung comes last") {
  const std::set<std::string> units{"", "f32", "tf32", "f16", "bf16"};  // memory and the rates of measure_ceilings()
  for (const Entry& entry : problems(Scale::check)) {
    const Problem p = entry.make();
    CAPTURE(p.family);
    for (const Rung& rung : p.rungs) CHECK_MESSAGE(units.contains(rung.unit), rung.unit);
    int ships = 0, naive = 0;
    for (const Rung& rung : p.rungs) ships += rung.level == Level::ships, naive += rung.level == Level::naive;
    CHECK(ships == 1);
    CHECK(naive == (p.rungs.size() > 1 ? 1 : 0));
    CHECK(entry.ladder == (kWithoutLadder.count(p.family) == 0));
    if (p.family == "hgemm" || p.family == "sgemm") {
      for (const Rung& rung : p.rungs)
        CHECK((rung.level == Level::ships) ==
              (rung.name == "warpgroups" || (p.family == "sgemm" && rung.name == "async_stages")));
    }
  }
}
