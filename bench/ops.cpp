// Benchmarks every operation case that has inputs for benchmarks.

#include "bench/benchmarks.h"
#include "bench/kernel_work.h"
#include "cases/cases.h"

#include <levin/autograd/modes.h>

#include <algorithm>

namespace levin::bench {
namespace {

using test::OpCase;
using test::Sample;

std::string label_of(const OpCase& c, const Sample& s) {
  std::string label = c.name;
  for (const auto& input : s.inputs) label += "/" + to_string(input.sizes);
  if (!s.label.empty()) label += " " + s.label;
  std::erase(label, ' ');
  return label;
}

/// The inputs and the work of the row that was called last: Google Benchmark calls a row several times until it knows
/// how many iterations take the time that was asked for, and making inputs takes longer than measuring.
struct Prepared {
  const Sample* sample = nullptr;
  test::Tensors inputs{};
  test::Work work{};
};

/// The least work of a call: the case's own formula; else the contract of the kernel, if one kernel does all; else the
/// bytes of inputs and outputs, with the flops of all its kernels.
test::Work least_work(const OpCase& c, const TensorFunction& op, const test::Tensors& inputs) {
  KernelWork done;
  const auto outputs = op(inputs);
  test::Work work = test::work_of(c, inputs, outputs);
  if (c.work) return work;
  if (done.calls == 1 && done.bytes > 0) work.bytes = done.bytes;
  work.flops = done.flops;
  return work;
}

/// float32 where the case has it, as for most, else its first type: bitwise operations take integers.
DType type_of(const OpCase& c) {
  return std::ranges::find(c.dtypes, DType::f32) != c.dtypes.end() ? DType::f32 : c.dtypes.front();
}

void run_case(benchmark::State& state, const OpCase& c, const Sample& s) {
  static Prepared row;
  no_grad guard;
  const auto& op = test::op_of(c, s);
  if (row.sample != &s) {
    row = {};
    row.inputs = test::make_inputs(c, s, type_of(c));
    row.work = least_work(c, op, row.inputs);
    row.sample = &s;
  }
  const Speed speed = speed_now();
  for (auto _ : state) benchmark::DoNotOptimize(op(row.inputs));
  set_counters(state, row.work.bytes, row.work.flops, speed);
}

}  // namespace

void add_operations(const Filters& filters) {
  static const auto cases = test::all_cases();
  for (const auto& c : cases)
    for (const auto& s : c.bench) {
      const std::string label = label_of(c, s);
      if (!wanted(label, filters)) continue;
      benchmark::RegisterBenchmark(label.c_str(), [&c, &s](benchmark::State& state) { run_case(state, c, s); })
          ->UseRealTime();
    }
}

}  // namespace levin::bench
