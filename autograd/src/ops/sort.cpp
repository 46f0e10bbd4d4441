// Sorting. The gradient of a value goes back to the position that the value came from.

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/kernels/scan.h>

#include <fmt/format.h>

namespace levin {

namespace {

struct Line {
  int axis;
  int64_t k;
  bool descending;
};

ValuesIndices first_of(const char* op, const kernels::Kernel<void(const kernels::SortArgs&, Stream&)>& kernel,
                       const Tensor& x, const Line& line) {
  Shape sizes = x.sizes();
  if (!sizes.empty()) sizes[line.axis] = line.k;
  Tensor values = empty(sizes, like(x)), indices = empty(sizes, {.dtype = kInt64, .device = x.device()});
  const auto from = [&] {
    no_grad guard;
    return contiguous(detach(x));
  }();
  kernels::SortArgs args{values.tensor_view(), indices.tensor_view(), from.tensor_view()};
  for (int d = 0; d < line.axis; ++d) args.outer *= sizes[d];
  for (int d = line.axis + 1; d < sizes.size(); ++d) args.inner *= sizes[d];
  args.n = x.dim() == 0 ? 1 : x.sizes()[line.axis];
  args.k = line.k;
  args.descending = line.descending;
  Stream stream = current_stream(x.device());
  kernel(args, stream);
  if (Context* c = record(op, values, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {scatter(zeros(k.input(0).sizes, like(g)), k.get<int>(), k.saved(0), g)};
      })) {
    c->save(indices);
    c->set(line.axis);
  }
  return {values, indices};
}

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t axis, bool descending) {
  const int a = wrap_axis(axis, x.dim(), "sort");
  return first_of("sort", kernels::sort, x, {a, x.dim() == 0 ? 1 : x.sizes()[a], descending});
}

Tensor argsort(const Tensor& x, int64_t axis, bool descending) {
  no_grad guard;
  return sort(x, axis, descending).indices;
}

ValuesIndices topk(const Tensor& x, int64_t k, int64_t axis, bool largest) {
  const int a = wrap_axis(axis, x.dim(), "topk");
  const int64_t n = x.dim() == 0 ? 1 : x.sizes()[a];
  if (k < 0 || k > n)
    throw ValueError(fmt::format("[topk] k = {} is out of range: axis {} of {} has {} elements.", k, a,
                                 to_string(x.sizes()), n));
  return first_of("topk", kernels::topk, x, {a, k, largest});
}

}  // namespace levin
