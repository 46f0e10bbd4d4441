#include "rows.h"

#include <levin/core/parallel.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::kernels::cpu {

namespace {

constexpr int kOperands = 4;       // out and three inputs
constexpr int64_t kBlock = 256;    // elements that pass through a buffer at a time
constexpr int64_t kSplatBytes = 64;

/// Geometry of all operands; strides are in bytes, operand 0 is out, and the last axis is the row.
struct Plan {
  int dims = 0, operands = 0;
  int64_t sizes[kMaxDims];
  int64_t strides[kOperands][kMaxDims];
  std::byte* base[kOperands];
  DType dtype[kOperands], compute[kOperands];
  RowFn row;
  double p0, p1;
};

/// Repeats one value over the 64 bytes of a step-0 input.
void splat(std::byte* to, DType compute, const void* value, DType dtype) {
  convert_fn(compute, dtype)(to, size_of(compute), value, 0, kSplatBytes / size_of(compute));
}

/// Returns how far ahead the memory of a row is prefetched. Rows of less than 64 KiB are mostly in the cache.
int64_t bytes_ahead(int64_t n, DType dtype) { return n * size_of(dtype) < 65536 ? 0 : 4096; }

/// Runs a row through buffers for those operands that are not contiguous values of the computing type.
void run_row(const Plan& plan, std::byte* const* pointer, int64_t n) {
  alignas(64) std::byte buffer[kOperands][kBlock * 8];
  Row row{pointer[0], {}, {}, n, plan.p0, plan.p1, 0};
  const int last = plan.dims - 1;
  bool buffered[kOperands] = {};
  bool any = false;
  for (int i = 0; i < plan.operands; ++i) {
    const int64_t stride = plan.strides[i][last];
    const int64_t size = size_of(plan.compute[i]);
    if (i > 0) {
      row.in[i - 1] = pointer[i];
      row.step[i - 1] = 1;
      if (stride == 0) {
        splat(buffer[i], plan.compute[i], pointer[i], plan.dtype[i]);
        row.in[i - 1] = buffer[i];
        row.step[i - 1] = 0;
        continue;
      }
    }
    buffered[i] = plan.dtype[i] != plan.compute[i] || (stride != size && n > 1);
    any = any || buffered[i];
  }
  if (!any) {
    row.ahead = bytes_ahead(n, plan.compute[0]);
    return plan.row(row);
  }
  for (int64_t done = 0; done < n; done += kBlock) {
    row.n = std::min(kBlock, n - done);
    for (int i = 1; i < plan.operands; ++i) {
      if (row.step[i - 1] == 0) continue;
      const int64_t stride = plan.strides[i][last];
      const std::byte* from = pointer[i] + done * stride;
      row.in[i - 1] = from;
      if (!buffered[i]) continue;
      convert_fn(plan.compute[i], plan.dtype[i])(buffer[i], size_of(plan.compute[i]), from, stride, row.n);
      row.in[i - 1] = buffer[i];
    }
    std::byte* to = pointer[0] + done * plan.strides[0][last];
    row.out = buffered[0] ? buffer[0] : to;
    plan.row(row);
    if (buffered[0]) {
      convert_fn(plan.dtype[0], plan.compute[0])(to, plan.strides[0][last], buffer[0], size_of(plan.compute[0]), row.n);
    }
  }
}

/// Computes elements [begin, end) in row-major order of the plan's axes.
void run_range(const Plan& plan, int64_t begin, int64_t end) {
  const int last = plan.dims - 1;
  int64_t index[kMaxDims];
  int64_t rest = begin;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % plan.sizes[d];
    rest /= plan.sizes[d];
  }
  while (begin < end) {
    const int64_t n = std::min(plan.sizes[last] - index[last], end - begin);
    std::byte* pointer[kOperands];
    for (int i = 0; i < plan.operands; ++i) {
      pointer[i] = plan.base[i];
      for (int d = 0; d <= last; ++d) pointer[i] += index[d] * plan.strides[i][d];
    }
    run_row(plan, pointer, n);
    begin += n;
    index[last] = 0;
    for (int d = last - 1; d >= 0 && ++index[d] == plan.sizes[d]; --d) index[d] = 0;
  }
}

void add_operand(Plan& plan, const Shape& sizes, const TensorView& v, DType compute) {
  const int i = plan.operands++;
  plan.base[i] = v.data<std::byte>();
  plan.dtype[i] = v.dtype;
  plan.compute[i] = compute;
  const int lead = sizes.size() - v.dim();
  for (int d = 0; d < sizes.size(); ++d) {
    const bool broadcast = d < lead || (v.sizes[d - lead] == 1 && sizes[d] != 1);
    plan.strides[i][d] = broadcast ? 0 : v.strides[d - lead] * size_of(v.dtype);
  }
}

void swap_axes(Plan& plan, int a, int b) {
  std::swap(plan.sizes[a], plan.sizes[b]);
  for (int i = 0; i < plan.operands; ++i) std::swap(plan.strides[i][a], plan.strides[i][b]);
}

/// Orders axes by out's strides, so that out is written in memory order, then merges axes that are evenly spaced in
/// every operand.
void simplify(Plan& plan, const Shape& sizes) {
  for (int d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    plan.sizes[plan.dims] = sizes[d];
    for (int i = 0; i < plan.operands; ++i) plan.strides[i][plan.dims] = plan.strides[i][d];
    ++plan.dims;
  }
  if (plan.dims == 0) {  // a single element
    plan.dims = 1;
    plan.sizes[0] = 1;
    for (int i = 0; i < plan.operands; ++i) plan.strides[i][0] = 0;
    return;
  }
  for (int d = 1; d < plan.dims; ++d)
    for (int k = d; k > 0 && plan.strides[0][k - 1] < plan.strides[0][k]; --k) swap_axes(plan, k - 1, k);
  int kept = 0;
  for (int d = 1; d < plan.dims; ++d) {
    bool even = true;
    for (int i = 0; i < plan.operands; ++i)
      even = even && plan.strides[i][kept] == plan.strides[i][d] * plan.sizes[d];
    if (even) {
      plan.sizes[kept] *= plan.sizes[d];
    } else {
      plan.sizes[++kept] = plan.sizes[d];
    }
    for (int i = 0; i < plan.operands; ++i) plan.strides[i][kept] = plan.strides[i][d];
  }
  plan.dims = kept + 1;
}

/// True if the operands are values of the computing type over the same contiguous memory, or single values.
bool is_flat(const TensorView& out, DType out_compute, std::initializer_list<RowInput> inputs) {
  if (out.dtype != out_compute || !out.is_contiguous()) return false;
  for (const RowInput& in : inputs) {
    const TensorView& v = *in.view;
    if (v.dim() == 0) continue;
    if (v.dtype != in.compute || v.sizes != out.sizes || !v.is_contiguous()) return false;
  }
  return true;
}

void run_flat(const TensorView& out, std::initializer_list<RowInput> inputs, RowFn fn, double p0, double p1) {
  alignas(64) std::byte values[kOperands - 1][kSplatBytes];
  const int64_t n = out.numel();
  Row whole{out.pointer, {}, {}, n, p0, p1, bytes_ahead(std::min(n, kGrain), out.dtype)};
  int64_t bytes[kOperands - 1] = {};
  int i = 0;
  for (const RowInput& in : inputs) {
    const TensorView& v = *in.view;
    if (v.dim() == 0) {
      splat(values[i], in.compute, v.data<void>(), v.dtype);
      whole.in[i] = values[i];
    } else {
      whole.in[i] = v.pointer;
      whole.step[i] = 1;
      bytes[i] = size_of(v.dtype);
    }
    ++i;
  }
  const int64_t out_bytes = size_of(out.dtype);
  if (whole.n <= kGrain) return fn(whole);
  parallel_for(0, whole.n, kGrain, [&](int64_t begin, int64_t end) {
    Row row = whole;
    row.n = end - begin;
    row.out = static_cast<std::byte*>(whole.out) + begin * out_bytes;
    for (int k = 0; k < i; ++k) row.in[k] = static_cast<const std::byte*>(whole.in[k]) + begin * bytes[k];
    fn(row);
  });
}

}  // namespace

RowFn row_for(const char* op, const Rows& floating, const Rows& other, DType compute) {
  RowFn fn = nullptr;
  switch (compute) {
    case DType::f64: fn = floating.f64; break;
    case DType::f32:
    case DType::f16:
    case DType::bf16: fn = floating.f32; break;
    case DType::i64: fn = other.i64; break;
    case DType::i32: fn = other.i32; break;
    case DType::i16: fn = other.i16; break;
    case DType::i8: fn = other.i8; break;
    case DType::u8: fn = other.u8; break;
    case DType::boolean: fn = other.boolean; break;
    default: break;
  }
  if (!fn) {
    throw DTypeError(fmt::format("[{}] {} values are not accepted; convert them with x.to(kFloat32).", op,
                                 name_of(compute)));
  }
  return fn;
}

void run_rows(const TensorView& out, DType out_compute, std::initializer_list<RowInput> inputs, RowFn row, double p0,
              double p1) {
  if (is_flat(out, out_compute, inputs)) {
    if (out.numel() > 0) run_flat(out, inputs, row, p0, p1);
    return;
  }
  const int64_t numel = out.numel();
  if (numel == 0) return;
  Plan plan;
  plan.row = row;
  plan.p0 = p0;
  plan.p1 = p1;
  add_operand(plan, out.sizes, out, out_compute);
  for (const RowInput& in : inputs) add_operand(plan, out.sizes, *in.view, in.compute);
  simplify(plan, out.sizes);
  parallel_for(0, numel, kGrain, [&](int64_t begin, int64_t end) { run_range(plan, begin, end); });
}

}  // namespace levin::kernels::cpu
