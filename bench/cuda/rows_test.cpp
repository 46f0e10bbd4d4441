// Every row of the CUDA benchmarks at small sizes; part of levin_cuda_tests.

#include "bench/cuda/check.h"
#include "bench/cuda/report.h"
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

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace levin;
using namespace levin::bench;

namespace {

constexpr MeterOptions kQuick{.warm_up_seconds = 0, .quads = 2, .flush_bytes = 4096};

/// The names of a ladder's rungs.
std::set<std::string> names_of(const auto& ladder) {
  std::set<std::string> names;
  for (const auto& rung : ladder) names.insert(rung.name);
  return names;
}

/// A copy of eight numbers with one rung; `run` copies too few of them where it is wrong.
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

}  // namespace

TEST_CASE("bench: every rung of every ladder has rows, all of which are right") {
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
  for (const char* single : {"add", "gelu", "adamw", "scan", "sort"}) CHECK(rungs[single].size() == 1);
}

TEST_CASE("bench: the full sizes have the families of the small ones") {
  std::set<std::string> small, full;
  for (const Entry& entry : problems(Scale::check)) small.insert(entry.family);
  for (const Entry& entry : problems(Scale::full)) full.insert(entry.family);
  CHECK(small == full);
}

TEST_CASE("bench: an element that was not written is an error, at either end") {
  const Problem right = copy_of_eight(8), wrong = copy_of_eight(7);
  CHECK(error_of(right, right.rungs[0].run, 2) == 0);
  CHECK(std::isinf(error_of(wrong, wrong.rungs[0].run, 8)));
  CHECK(std::isinf(error_of(wrong, wrong.rungs[0].run, 2)));
  Meter meter(kQuick);
  CHECK(check_problem(wrong, meter)[0]["ok"] == false);
}

TEST_CASE("bench: exact rows are computed once") {
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

TEST_CASE("bench: a rung that throws is a wrong row, a peer that throws a missing one") {
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

TEST_CASE("bench: a measured row and the machine have what the report reads") {
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
  p.rungs[0].unit = "f32";  // no rate is known
  CHECK(measure_problem(p, meter, ceilings)[0]["share"].is_null());
  const Json machine = describe_machine(ceilings);
  CHECK(!machine["device"].get<std::string>().empty());
  CHECK(machine["copy_bytes_a_second"] == 64.0);
  CHECK(machine["library_flops_a_second"]["f16"] == 1.0);
}

TEST_CASE("bench: pairs are own, peer, peer, own, each behind a flush") {
  Meter meter({.warm_up_seconds = 0, .quads = 3, .flush_bytes = 4096});
  std::string order;
  const Duel duel = meter.measure([&](Stream&) { order += 'a'; }, [&](Stream&) { order += 'b'; });
  CHECK(order == "ababbaabbaabba");  // one warm-up of both first
  CHECK(duel.own.calls == 6);
  CHECK(duel.peer.calls == 6);
  CHECK(duel.lower_ratio <= duel.ratio);
  CHECK(duel.ratio <= duel.upper_ratio);
}

TEST_CASE("bench: medians, and floors by the larger of two terms") {
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

TEST_CASE("bench: ceilings without cuBLAS say why there are none") {
  Meter meter(kQuick);
  const Ceilings ceilings = measure_ceilings(meter, Scale::check);
  CHECK(ceilings.copy > 0);
  CHECK(ceilings.missing.empty() == !ceilings.flops.empty());
}

TEST_CASE("bench: training steps in mixed precision have the losses of float32, and no figures where none are asked") {
  const Json rows = training_rows(Scale::check, false);
  REQUIRE(rows.size() == 6);
  for (const Json& row : rows) {
    CHECK_MESSAGE(row["ok"].get<bool>(), row.dump());
    CHECK(!row.contains("seconds"));
    CHECK(row["activation_bytes"] > 0);
  }
}
