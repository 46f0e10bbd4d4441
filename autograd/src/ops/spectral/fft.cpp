// Fourier transforms along axes. Three recorded operations transform the last axis; their gradients are transforms.

#include "../../errors.h"
#include "../elementwise/common.h"
#include "../values.h"
#include "complex.h"

#include <levin/autograd/ops/complex.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/spectral.h>
#include <levin/autograd/ops/view.h>
#include <levin/kernels/fft.h>

#include <cmath>
#include <limits>

namespace levin::fft {

using namespace ops;

namespace {

using FftKernel = kernels::Kernel<void(const kernels::FftArgs&, Stream&)>;

/// Length, direction and scale of a transform of the last axis.
struct Plan {
  int64_t n;
  bool inverse;
  double scale;
};

/// Runs a kernel on x, whose last axis becomes one of `length` elements of type t; not recorded.
Tensor run(const FftKernel& kernel, const Tensor& x, const Plan& p, int64_t length, DType t) {
  Shape sizes = x.sizes();
  sizes[x.dim() - 1] = length;
  const Tensor y = fresh(sizes, t, x.device()), from = dense(x);
  launch(kernel, x.device(), {parts_of(y), parts_of(from), p.n, p.inverse, p.scale});
  return y;
}

/// The transposed matrix of a transform, conjugated, is that of the other direction with the same scale.
Tensor complex_lines(const Tensor& z, const Plan& p) {
  Tensor y = run(kernels::fft, z, p, p.n, z.dtype());
  if (Context* c = record("fft", y, {z}, [](Context& k, const Tensor& g) -> Grads {
        const Plan& forward = k.get<Plan>();
        return {complex_lines(g, {forward.n, !forward.inverse, forward.scale})};
      }))
    c->set(p);
  return y;
}

/// Scales the elements that stand for themselves and their conjugates: not the first, nor the last of an even n.
Tensor weighted(const Tensor& z, int64_t n, double weight) {
  Tensor w;
  {
    const no_grad guard;
    w = full({n / 2 + 1}, weight, {.dtype = real_type_of(z.dtype()), .device = z.device()});
    narrow(w, 0, 0, 1).fill_(1);
    if (n % 2 == 0) narrow(w, 0, n / 2, 1).fill_(1);
  }
  return mul(z, w);
}

Tensor half_to_real(const Tensor& z, const Plan& p);

Tensor real_to_half(const Tensor& x, const Plan& p) {
  Tensor y = run(kernels::rfft, x, p, p.n / 2 + 1, complex_type_of(x.dtype()));
  if (Context* c = record("rfft", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        const Plan& forward = k.get<Plan>();
        return {half_to_real(weighted(g, forward.n, 0.5), forward)};
      }))
    c->set(p);
  return y;
}

Tensor half_to_real(const Tensor& z, const Plan& p) {
  Tensor y = run(kernels::irfft, z, p, p.n, real_type_of(z.dtype()));
  if (Context* c = record("irfft", y, {z}, [](Context& k, const Tensor& g) -> Grads {
        const Plan& forward = k.get<Plan>();
        return {weighted(real_to_half(g, forward), forward.n, 2.0)};
      }))
    c->set(p);
  return y;
}

/// Returns x with parts of float32 or float64.
Tensor accepted(const char* op, const Tensor& x) {
  if (x.dim() == 0) fail<ShapeError>("[{}] a 0-dim tensor has no axis to transform; reshape it.", op);
  const DType t = real_type_of(floating_type(x.dtype()));
  if (t != kFloat32 && t != kFloat64)
    fail<DTypeError>(
        "[{}] {} is not accepted, only float32 and float64, complex or not. Convert it with x.to(kFloat32).", op, t);
  return x.is_complex() ? x : to(x, t);
}

Tensor real_accepted(const char* op, const Tensor& x) {
  if (x.is_complex())
    fail<DTypeError>("[{}] x is {}, and real values are needed. Use fft, or take real(x).", op, x.dtype());
  return accepted(op, x);
}
Tensor complex_accepted(const char* op, const Tensor& x) {
  const Tensor y = accepted(op, x);
  return to(y, complex_type_of(y.dtype()));
}

Plan plan_of(const char* op, int64_t n, bool inverse, Norm norm) {
  if (n < 1 || n > std::numeric_limits<int>::max())
    fail<ValueError>("[{}] a transform of {} elements is impossible; use 1 or more, below 2^31.", op, n);
  const double length = static_cast<double>(n);
  const bool divides = norm == (inverse ? Norm::backward : Norm::forward);
  return {n, inverse, norm == Norm::ortho ? 1 / std::sqrt(length) : divides ? 1 / length : 1.0};
}

/// Cuts the last axis, or fills it with zeros.
Tensor resized(const Tensor& x, int64_t n) {
  const int64_t size = x.sizes().back();
  return size == n ? x : size > n ? narrow(x, -1, 0, n) : pad(x, {0, n - size});
}

/// Calls f with the axis moved to the end and resized, and moves it back.
template <class F>
Tensor along(const Tensor& x, int axis, int64_t length, F f) {
  if (axis == x.dim() - 1) return f(resized(x, length));
  return transpose(f(resized(transpose(x, axis, -1), length)), axis, -1);
}

Tensor complex_transform(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm,
                         bool inverse) {
  const Tensor z = complex_accepted(op, x);
  const int axis = wrap_axis(dim, z.dim(), op);
  const Plan p = plan_of(op, n.value_or(z.sizes()[axis]), inverse, norm);
  return along(z, axis, p.n, [&](const Tensor& lines) { return complex_lines(lines, p); });
}

Tensor real_transform(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm, bool inverse) {
  const Tensor r = real_accepted(op, x);
  const int axis = wrap_axis(dim, r.dim(), op);
  const Plan p = plan_of(op, n.value_or(r.sizes()[axis]), inverse, norm);
  return along(r, axis, p.n, [&](const Tensor& lines) { return real_to_half(lines, p); });
}

Tensor inverse_real_transform(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm,
                              bool inverse) {
  const Tensor z = complex_accepted(op, x);
  const int axis = wrap_axis(dim, z.dim(), op);
  const Plan p = plan_of(op, n.value_or(2 * (z.sizes()[axis] - 1)), inverse, norm);
  return along(z, axis, p.n / 2 + 1, [&](const Tensor& lines) { return half_to_real(lines, p); });
}

/// The axes of a transform and the lengths that were given for them.
struct AxisLengths {
  Shape axes, lengths;
  std::optional<int64_t> length(int i) const {
    return lengths.empty() || lengths[i] == -1 ? std::nullopt : std::optional(lengths[i]);
  }
};

AxisLengths axes_of(const char* op, const Tensor& x, const Shape& s, const Axes& dim) {
  AxisLengths r{{}, s};
  if (!dim.empty()) {
    r.axes = wrap_axes(dim, x.dim(), op);
  } else {
    for (int i = s.empty() ? 0 : std::max(0, x.dim() - s.size()); i < x.dim(); ++i) r.axes.push_back(i);
  }
  if (!s.empty() && s.size() != r.axes.size())
    fail<ShapeError>("[{}] {} lengths for {} axes of x, which is {}. Give one length for each axis.", op, s.size(),
                     r.axes.size(), x.sizes());
  return r;
}

Tensor complex_transforms(const char* op, Tensor x, const AxisLengths& r, int count, Norm norm, bool inverse) {
  for (int i = 0; i < count; ++i) x = complex_transform(op, x, r.length(i), r.axes[i], norm, inverse);
  return x;
}

/// A real transform needs an axis of its own.
int last_of(const char* op, const AxisLengths& r) {
  if (r.axes.empty()) fail<ShapeError>("[{}] a 0-dim tensor has no axis to transform; reshape it.", op);
  return r.axes.size() - 1;
}

}  // namespace

Tensor fft(const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return complex_transform("fft", x, n, dim, norm, false);
}
Tensor ifft(const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return complex_transform("ifft", x, n, dim, norm, true);
}
Tensor rfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return real_transform("rfft", x, n, dim, norm, false);
}
Tensor irfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return inverse_real_transform("irfft", x, n, dim, norm, true);
}
Tensor hfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return inverse_real_transform("hfft", conj(x), n, dim, norm, false);
}
Tensor ihfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return conj(real_transform("ihfft", x, n, dim, norm, true));
}

Tensor fftn(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) {
  const AxisLengths r = axes_of("fftn", x, s, dim);
  return complex_transforms("fftn", complex_accepted("fftn", x), r, r.axes.size(), norm, false);
}
Tensor ifftn(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) {
  const AxisLengths r = axes_of("ifftn", x, s, dim);
  return complex_transforms("ifftn", complex_accepted("ifftn", x), r, r.axes.size(), norm, true);
}
Tensor rfftn(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) {
  const AxisLengths r = axes_of("rfftn", x, s, dim);
  const int last = last_of("rfftn", r);
  const Tensor half = real_transform("rfftn", x, r.length(last), r.axes[last], norm, false);
  return complex_transforms("rfftn", half, r, last, norm, false);
}
Tensor irfftn(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) {
  const AxisLengths r = axes_of("irfftn", x, s, dim);
  const int last = last_of("irfftn", r);
  const Tensor half = complex_transforms("irfftn", complex_accepted("irfftn", x), r, last, norm, true);
  return inverse_real_transform("irfftn", half, r.length(last), r.axes[last], norm, true);
}

Tensor fft2(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) { return fftn(x, s, dim, norm); }
Tensor ifft2(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) { return ifftn(x, s, dim, norm); }
Tensor rfft2(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) { return rfftn(x, s, dim, norm); }
Tensor irfft2(const Tensor& x, const Shape& s, const Axes& dim, Norm norm) { return irfftn(x, s, dim, norm); }

namespace {

/// Returns `count` of the frequencies of n samples at distance d; those from `negative` on are negative.
Tensor frequencies(const char* op, int64_t n, int64_t count, int64_t negative, double d, const TensorOptions& options) {
  if (n < 0) fail<ValueError>("[{}] {} samples are fewer than none; use 0 or more.", op, n);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(i < negative ? i : i - n) / (static_cast<double>(n) * d));
  TensorOptions chosen = options;
  chosen.dtype = options.dtype.value_or(default_dtype());
  return from_data(values, {count}, chosen);
}

/// Rolls each axis by half of its size, rounded down or, to undo that, up.
Tensor shifted(const char* op, const Tensor& x, const Axes& dim, bool up) {
  Shape axes = dim.empty() ? Shape{} : wrap_axes(dim, x.dim(), op), shifts;
  for (int i = 0; dim.empty() && i < x.dim(); ++i) axes.push_back(i);
  for (const int64_t a : axes) shifts.push_back((x.size(a) + (up ? 1 : 0)) / 2);
  return axes.empty() ? x : roll(x, shifts, axes);
}

}  // namespace

Tensor fftfreq(int64_t n, double d, const TensorOptions& options) {
  return frequencies("fftfreq", n, n, (n + 1) / 2, d, options);
}
Tensor rfftfreq(int64_t n, double d, const TensorOptions& options) {
  return frequencies("rfftfreq", n, n / 2 + 1, n / 2 + 1, d, options);
}
Tensor fftshift(const Tensor& x, const Axes& dim) { return shifted("fftshift", x, dim, false); }
Tensor ifftshift(const Tensor& x, const Axes& dim) { return shifted("ifftshift", x, dim, true); }

}  // namespace levin::fft
