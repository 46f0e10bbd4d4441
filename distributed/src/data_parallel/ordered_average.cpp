#include "src/data_parallel/ordered_average.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

namespace levin::distributed {

namespace {

struct AverageParts {
  Tensor own;       // (n * part): this rank's buffer, padded with zeros
  Tensor received;  // (n, part): this rank's part of all ranks' buffers
  Work work;
};

// Averages rows (n, part) to (part).
Tensor average_of(const Tensor& rows) {
  const bool narrow = size_of(rows.dtype()) < 4;
  const Tensor first = rows.select(0, 0);
  const Tensor sum = narrow ? first.to(kFloat32) : first.clone();
  for (int64_t r = 1; r < rows.size(0); ++r) sum.add_(narrow ? rows.select(0, r).to(kFloat32) : rows.select(0, r));
  return div(sum, static_cast<double>(rows.size(0))).to(rows.dtype());
}

}  // namespace

CommStages ordered_average(ProcessGroup& group, const Tensor& buffer) {
  const bool one_order = group.size() == 1 || (group.size() == 2 && size_of(buffer.dtype()) >= 4);
  if (one_order) return {[work = group.all_reduce(buffer, ReduceOp::avg)] { work.wait(); }};
  const int64_t n = group.size(), numel = buffer.numel(), part = (numel + n - 1) / n;
  const auto parts = std::make_shared<AverageParts>();
  parts->own = zeros({n * part}, like(buffer));
  parts->own.narrow(0, 0, numel).copy_(buffer.flatten());
  parts->received = empty({n, part}, like(buffer));
  parts->work = group.all_to_all(parts->received, parts->own);
  return {[parts, &group] {
            const no_grad guard;
            parts->work.wait();
            parts->work = group.all_gather(parts->own, average_of(parts->received));
          },
          [parts, buffer, numel] {
            const no_grad guard;
            parts->work.wait();
            buffer.copy_(parts->own.narrow(0, 0, numel).view(buffer.sizes()));
          }};
}

}  // namespace levin::distributed
