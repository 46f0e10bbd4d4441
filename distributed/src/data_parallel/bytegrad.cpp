#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>
#include <levin/distributed/bagua.h>

#include "src/data_parallel/exchange.h"
#include "src/data_parallel/flat.h"

namespace levin::distributed {

namespace {

struct QuantizedExchange {
  ByteRows sent, received;
  Work levels, ranges;
  void wait() const {
    levels.wait();
    ranges.wait();
  }
};

// Pads `flat` to (n, part) by repeating its last number, which widens no range.
Tensor in_parts(const Tensor& flat, int64_t n) {
  const int64_t numel = flat.numel(), part = (numel + n - 1) / n;
  const Tensor rows = empty({n * part}, {.dtype = kFloat32, .device = flat.device()});
  rows.narrow(0, 0, numel).copy_(flat);
  if (n * part > numel) rows.narrow(0, numel, n * part - numel).copy_(flat.narrow(0, numel - 1, 1));
  return rows.view({n, part});
}

// Averages rows (ranks, n) to (1, n).
Tensor mean_row(const Tensor& rows) {
  const Tensor sum = rows.narrow(0, 0, 1).clone();
  for (int64_t r = 1; r < rows.size(0); ++r) sum.add_(rows.narrow(0, r, 1));
  return div(sum, static_cast<double>(rows.size(0)));
}

}  // namespace

ByteRows quantize_rows(const Tensor& given) {
  const no_grad guard;
  const Tensor rows = given.detach().to(kFloat32);
  const Tensor least = amin(rows, {1}, true);
  const Tensor range = sub(amax(rows, {1}, true), least);
  const Tensor levels = round(mul(div(sub(rows, least), range), 255.0));
  levels.masked_fill_(logical_not(isfinite(levels)), 0);  // the range is 0 or not finite
  return {levels.to(kUInt8), cat({least, range}, 1)};
}

Tensor dequantize_rows(const ByteRows& rows) {
  const no_grad guard;
  const Tensor least = rows.ranges.narrow(1, 0, 1), range = rows.ranges.narrow(1, 1, 1);
  return add(mul(div(rows.levels.to(kFloat32), 255.0), range), least);
}

CommStages bytegrad_hook(ProcessGroup& group, const GradBucket& bucket) {
  if (group.size() == 1) return {};
  const no_grad guard;
  const auto e = std::make_shared<QuantizedExchange>();
  e->sent = quantize_rows(in_parts(bucket.buffer.detach(), group.size()));
  e->received = {empty_like(e->sent.levels), empty_like(e->sent.ranges)};
  e->levels = group.all_to_all(e->received.levels, e->sent.levels);
  e->ranges = group.all_to_all(e->received.ranges, e->sent.ranges);
  return {[e, &group] {
            const no_grad quiet;
            e->wait();
            e->sent = quantize_rows(mean_row(dequantize_rows(e->received)));
            e->levels = group.all_gather(e->received.levels, e->sent.levels);
            e->ranges = group.all_gather(e->received.ranges, e->sent.ranges);
          },
          [e, buffer = bucket.buffer] {
            const no_grad quiet;
            e->wait();
            buffer.copy_(dequantize_rows(e->received).flatten().narrow(0, 0, buffer.numel()));
          }};
}

CommStages ByteGradByMachine::operator()(ProcessGroup& group, const GradBucket& bucket) const {
  struct State {
    Work work;
    CommStages between;
  };
  const auto s = std::make_shared<State>();
  s->work = machine->reduce(bucket.buffer, 0);
  const auto stage = [s](std::size_t i) {
    return [s, i] {
      if (i < s->between.size()) s->between[i]();
    };
  };
  // The reduced buffers are sums over machines, which may have different numbers of ranks.
  const auto begin_between = [s, self = *this, bucket, ranks = group.size()] {
    s->work.wait();
    if (!self.leaders) return;
    const no_grad quiet;
    bucket.buffer.mul_(static_cast<double>(self.leaders->size()) / ranks);
    s->between = bytegrad_hook(*self.leaders, bucket);
  };
  const auto share = [s, self = *this, bucket] { s->work = self.machine->broadcast(bucket.buffer, 0); };
  return {begin_between, stage(0), stage(1), share, [s] { s->work.wait(); }};
}

void exchange_gradients(ProcessGroup& group, const std::vector<Parameter>& parameters, const CommHook& hook) {
  const no_grad guard;
  std::vector<Tensor> gradients;
  for (const Parameter& p : parameters) {
    require_dense_grad("bytegrad", p);
    if (!p.grad().defined()) p.set_grad(zeros(p.sizes(), like(p)));
    gradients.push_back(p.grad());
  }
  std::vector<GradBucket> buckets;
  std::vector<CommStages> all;
  for (const Places& places : by_type(gradients)) {
    GradBucket b{.index = buckets.size(), .buffer = packed(gradients, places), .gradients = {}, .parameters = places};
    int64_t at = 0;
    for (const std::size_t i : places) {
      b.gradients.push_back(b.buffer.narrow(0, at, gradients[i].numel()).view(gradients[i].sizes()));
      at += gradients[i].numel();
    }
    all.push_back(hook(group, b));
    buckets.push_back(std::move(b));
  }
  run_stages(all);
  for (const GradBucket& b : buckets) unpack(b.buffer, gradients, b.parameters);
}

}  // namespace levin::distributed
