#include "bench/cuda/check.h"

#include <levin/kernels/cuda.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace levin::bench {

double error_of_rows(const Problem& problem, int64_t first, int64_t count) {
  const std::vector<Tensor> exact = problem.exact(first, count);
  double worst = 0;
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
    const auto got = rows_of(problem.outputs[i], first, count).to_vector<double>();
    const auto expected = exact.at(i).to_vector<double>();
    if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
    double error = 0, size = 0;
    for (std::size_t e = 0; e < got.size(); ++e) {
      error += (got[e] - expected[e]) * (got[e] - expected[e]);
      size += expected[e] * expected[e];
    }
    const double relative = error == 0 ? 0 : std::sqrt(error / size);
    worst = std::isfinite(relative) ? std::max(worst, relative) : std::numeric_limits<double>::infinity();
  }
  return worst;
}

Problem with_kept_rows(Problem problem) {
  using Rows = std::map<std::pair<int64_t, int64_t>, std::vector<Tensor>>;
  problem.exact = [exact = problem.exact, kept = std::make_shared<Rows>()](int64_t first, int64_t count) {
    const auto found = kept->find({first, count});
    return found != kept->end() ? found->second : (*kept)[{first, count}] = exact(first, count);
  };
  return problem;
}

double error_of(const Problem& problem, const Run& run, int64_t count) {
  Stream stream = cuda::current_stream();
  if (problem.reset) {
    problem.reset();
  } else {
    for (const Tensor& out : problem.outputs)  // a byte of 0xff is NaN in every floating type
      device_backend(stream.device())
          .fill_bytes(out.raw_data(), 0xFF, static_cast<std::size_t>(out.numel() * size_of(out.dtype())), stream);
  }
  run(stream);
  cuda::synchronize();
  const int64_t rows = problem.rows();
  if (2 * count >= rows) return error_of_rows(problem, 0, rows);
  return std::max(error_of_rows(problem, 0, count), error_of_rows(problem, rows - count, count));
}

}  // namespace levin::bench
