#include "cases/cases.h"
#include "cases/composed/composition.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <numbers>

namespace levin::test {

namespace {

using Complex = std::complex<double>;
using ComplexLine = std::vector<Complex>;

/// Returns exp(2 pi i k / n), exact at quarter turns.
Complex root(std::size_t k, std::size_t n) {
  static const Complex quarters[] = {1, {0, 1}, -1, {0, -1}};
  if (4 * k % n == 0) return quarters[4 * k / n];
  return std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

/// Returns the sums over j of x[j] exp(2 pi i sign j k / n), for k < n.
ComplexLine dft(const ComplexLine& x, double sign) {
  const std::size_t n = x.size();
  ComplexLine y(n), roots(n);
  for (std::size_t k = 0; k < n; ++k) roots[k] = sign > 0 ? root(k, n) : std::conj(root(k, n));
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t j = 0; j < n; ++j) y[k] += x[j] * roots[j * k % n];
  return y;
}

/// Calls f for each line of x, the last axis or the last two where `pairs`, and returns the joined real numbers.
template <class F>
Tensor by_lines(const Tensor& x, bool pairs, const Shape& sizes, F f) {
  const std::vector<double> v = x.to_vector<double>();
  const auto n = static_cast<std::size_t>(x.size(pairs ? -2 : -1)), width = pairs ? 2 * n : n;
  std::vector<double> y;
  for (std::size_t first = 0; first < v.size(); first += width) {
    ComplexLine line(n);
    for (std::size_t i = 0; i < n; ++i)
      line[i] = pairs ? Complex(v[first + 2 * i], v[first + 2 * i + 1]) : Complex(v[first + i], 0);
    f(line, y);
  }
  return from_data(y, sizes);
}

void append(std::vector<double>& y, const ComplexLine& line, std::size_t count, double scale = 1) {
  for (std::size_t k = 0; k < count; ++k) {
    y.push_back(line[k].real() * scale);
    y.push_back(line[k].imag() * scale);
  }
}

Tensor as_complex(const Tensor& x) { return view_as_complex(x.clone()); }

/// The complex transform of the last axis but one of x (..., n, 2).
Sample complex_sample(const Shape& sizes, bool inverse) {
  Sample s = sample({sizes});
  s.inputs[0].own = true;  // sums of numbers of different sizes cancel
  s.terms = sizes[sizes.size() - 2];
  const char* name = inverse ? "ifft" : "fft";
  s.torch = fmt::format("torch.view_as_real(torch.fft.{}(torch.view_as_complex(x0.contiguous())))", name);
  s.code = fmt::format("view_as_real(fft::{}(view_as_complex(x0.contiguous())))", name);
  s.op = [=](const Tensors& x) -> Tensors {
    const Tensor z = as_complex(x[0]);
    return {view_as_real(inverse ? fft::ifft(z) : fft::fft(z))};
  };
  s.reference = [=](const Tensors& x) -> Tensors {
    return {by_lines(x[0], true, x[0].sizes(), [&](const ComplexLine& line, std::vector<double>& y) {
      append(y, dft(line, inverse ? 1 : -1), line.size(), inverse ? 1.0 / static_cast<double>(line.size()) : 1.0);
    })};
  };
  return s;
}

/// The half of the transform of real lines.
Sample half_sample(const Shape& sizes) {
  Sample s = sample({sizes});
  s.inputs[0].own = true;  // sums of numbers of different sizes cancel
  s.terms = sizes.back();
  s.torch = "torch.view_as_real(torch.fft.rfft(x0))";
  s.code = "view_as_real(fft::rfft(x0))";
  s.op = [](const Tensors& x) -> Tensors { return {view_as_real(fft::rfft(x[0]))}; };
  s.reference = [](const Tensors& x) -> Tensors {
    Shape half = x[0].sizes();
    half[half.size() - 1] = half.back() / 2 + 1;
    half.push_back(2);
    return {by_lines(x[0], false, half, [](const ComplexLine& line, std::vector<double>& y) {
      append(y, dft(line, -1), line.size() / 2 + 1);
    })};
  };
  return s;
}

/// The inverse of a half, continued by conjugates, with n elements.
Sample real_sample(const Shape& lead, int64_t n) {
  Shape sizes = lead;
  sizes.push_back(n / 2 + 1);
  sizes.push_back(2);
  Sample s = sample({sizes});
  s.inputs[0].own = true;  // sums of numbers of different sizes cancel
  s.terms = n;
  s.torch = fmt::format("torch.fft.irfft(torch.view_as_complex(x0.contiguous()), {})", n);
  s.code = fmt::format("fft::irfft(view_as_complex(x0.contiguous()), {})", n);
  s.op = [=](const Tensors& x) -> Tensors { return {fft::irfft(as_complex(x[0]), n)}; };
  s.reference = [=](const Tensors& x) -> Tensors {
    Shape out = lead;
    out.push_back(n);
    return {by_lines(x[0], true, out, [&](const ComplexLine& half, std::vector<double>& y) {
      ComplexLine whole(static_cast<std::size_t>(n));
      for (std::size_t k = 0; k < half.size(); ++k) {
        const bool alone = k == 0 || 2 * k == whole.size();
        whole[k] = alone ? Complex(half[k].real(), 0) : half[k];
        if (!alone) whole[whole.size() - k] = std::conj(half[k]);
      }
      for (const Complex& z : dft(whole, 1)) y.push_back(z.real() / static_cast<double>(n));
    })};
  };
  return s;
}

OpCase transform_case(const char* name, std::vector<Sample> samples) {
  OpCase c{.name = name};
  c.samples = std::move(samples);
  c.op = c.samples[0].op;
  c.torch = c.samples[0].torch;
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};
  c.outputs = {Output::any};
  c.tolerance = {.ulps = 4, .scale = 1};
  c.grad_tolerance = {.ulps = 32, .scale = 4};
  return c;
}

int64_t drawn_length(Draw& d) { return d.of(std::array<int64_t, 10>{1, 2, 3, 5, 7, 8, 12, 13, 16, 18}); }

OpCase complex_transforms() {
  const auto line = [](const Shape& sizes, bool inverse = false) { return complex_sample(sizes, inverse); };
  OpCase c = transform_case("fft", {line({1, 2}), line({2, 2}), line({31, 2}), line({3, 33, 2}), line({97, 2}),
                                    line({2, 100, 2}), line({128, 2}), line({0, 8, 2}), line({2, 2, 12, 2}),
                                    line({3, 9, 2}, true), line({2, 64, 2}, true), line({0, 5, 2}, true)});
  c.large = {line({300, 128, 2}), line({100, 97, 2}, true)};
  c.limits = {line({32, 128, 2}), line({33, 128, 2})};  // 32 lines of 128 elements are a task
  c.draw = [](Draw& d) { return complex_sample({d.below(4), drawn_length(d), 2}, d.below(2) == 1); };
  c.bench = {line({1024, 512, 2}), line({64, 1000, 2})};
  c.errors = {{"[fft] a transform of 0 elements is impossible", [] { fft::fft(ones({2, 0})); }},
              {"[ifft] a transform of -1 elements is impossible", [] { fft::ifft(ones({2}), -1); }},
              {"[fft] float16 is not accepted, only float32 and float64", [] { fft::fft(ones({2}, kHalf)); }},
              {"[fft] a 0-dim tensor has no axis to transform", [] { fft::fft(ones({})); }},
              {"[fft] axis 1 is out of range", [] { fft::fft(ones({2}), std::nullopt, 1); }}};
  return c;
}

OpCase halves() {
  OpCase c = transform_case("rfft", {half_sample({1}), half_sample({2}), half_sample({31}), half_sample({3, 33}),
                                     half_sample({97}), half_sample({2, 100}), half_sample({2, 102}),
                                     half_sample({128}), half_sample({0, 8})});
  c.large = {half_sample({300, 256}), half_sample({100, 97})};
  c.limits = {half_sample({32, 128}), half_sample({33, 128})};
  c.draw = [](Draw& d) { return half_sample({d.below(4), drawn_length(d)}); };
  c.bench = {half_sample({1024, 512}), half_sample({64, 1000})};
  c.errors = {{"[rfft] x is complex64, and real values are needed", [] { fft::rfft(ones({2}, kComplex64)); }},
              {"[rfft] a transform of 0 elements is impossible", [] { fft::rfft(ones({0})); }}};
  return c;
}

OpCase inverse_halves() {
  OpCase c = transform_case("irfft", {real_sample({}, 1), real_sample({}, 2), real_sample({}, 31), real_sample({3}, 33),
                                      real_sample({2}, 100), real_sample({2}, 102), real_sample({}, 128),
                                      real_sample({0}, 8)});
  c.large = {real_sample({300}, 256), real_sample({100}, 97)};
  c.limits = {real_sample({32}, 128), real_sample({33}, 128)};
  c.draw = [](Draw& d) {
    const int64_t lines = d.below(4);
    return real_sample({lines}, drawn_length(d));
  };
  c.errors = {{"[irfft] a transform of 0 elements is impossible", [] { fft::irfft(ones({1}, kComplex64)); }}};
  return c;
}

/// PyTorch's expression of complex operands z0, z1 from inputs (..., 2) and of a complex result.
std::string torch_of(const std::string& expression) {
  std::string text = expression;
  for (const char i : {'0', '1'}) {
    const std::string name = fmt::format("z{}", i);
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, 2, fmt::format("torch.view_as_complex(x{}.contiguous())", i));
  }
  return text;
}
std::string torch_parts(const std::string& expression) {
  return "torch.view_as_real(" + torch_of(expression) + ")";
}

#define LEVIN_Z0 as_complex(x0)
#define LEVIN_Z1 as_complex(x1)

OpCase lengths_and_axes() {
  using fft::Norm;
  static constexpr auto none = std::nullopt;
  return composition(
      "fft_arguments",
      {call(torch_parts("torch.fft.fft(z0, 7, 0, 'ortho')"), {input({5, 3, 2})},
            LEVIN_CALL(view_as_real(fft::fft(LEVIN_Z0, 7, 0, Norm::ortho))), 7),
       call(torch_parts("torch.fft.fft(z0, 4, norm='forward')"), {input({2, 6, 2})},
            LEVIN_CALL(view_as_real(fft::fft(LEVIN_Z0, 4, -1, Norm::forward))), 4),
       call(torch_parts("torch.fft.fft(x0)"), {input({2, 6})}, LEVIN_CALL(view_as_real(fft::fft(x0))), 6),
       call(torch_parts("torch.fft.ifft(z0, dim=0, norm='ortho')"), {input({6, 2, 2})},
            LEVIN_CALL(view_as_real(fft::ifft(LEVIN_Z0, none, 0, Norm::ortho))), 6),
       call(torch_parts("torch.fft.ifft(z0, norm='forward')"), {input({6, 2})},
            LEVIN_CALL(view_as_real(fft::ifft(LEVIN_Z0, none, -1, Norm::forward))), 6),
       call(torch_parts("torch.fft.rfft(x0, 9, 1, 'ortho')"), {input({2, 6, 3})},
            LEVIN_CALL(view_as_real(fft::rfft(x0, 9, 1, Norm::ortho))), 9),
       call(torch_of("torch.fft.irfft(z0, norm='ortho')"), {input({2, 5, 2})},
            LEVIN_CALL(fft::irfft(LEVIN_Z0, none, -1, Norm::ortho)), 8),
       call(torch_of("torch.fft.irfft(z0, 12, 0, 'forward')"), {input({4, 3, 2})},
            LEVIN_CALL(fft::irfft(LEVIN_Z0, 12, 0, Norm::forward)), 12),
       call(torch_of("torch.fft.hfft(z0)"), {input({2, 5, 2})}, LEVIN_CALL(fft::hfft(LEVIN_Z0)), 8),
       call(torch_of("torch.fft.hfft(z0, 7, norm='ortho')"), {input({4, 2})},
            LEVIN_CALL(fft::hfft(LEVIN_Z0, 7, -1, Norm::ortho)), 7),
       call(torch_parts("torch.fft.ihfft(x0).resolve_conj()"), {input({2, 7})},
            LEVIN_CALL(view_as_real(fft::ihfft(x0))), 7)});
}

OpCase several_axes() {
  return with_errors(
      composition(
          "fft_of_several_axes",
          {call(torch_parts("torch.fft.fft2(z0)"), {input({2, 4, 3, 2})}, LEVIN_CALL(view_as_real(fft::fft2(LEVIN_Z0))),
                12),
           call(torch_parts("torch.fft.ifft2(z0, (5, 2), (0, 1))"), {input({4, 3, 2, 2})},
                LEVIN_CALL(view_as_real(fft::ifft2(LEVIN_Z0, {5, 2}, {0, 1}))), 10),
           call(torch_parts("torch.fft.rfft2(x0, norm='ortho')"), {input({4, 6})},
                LEVIN_CALL(view_as_real(fft::rfft2(x0, {}, {-2, -1}, fft::Norm::ortho))), 24),
           call(torch_of("torch.fft.irfft2(z0)"), {input({2, 3, 4, 2})}, LEVIN_CALL(fft::irfft2(LEVIN_Z0)), 18),
           call(torch_parts("torch.fft.fftn(z0)"), {input({2, 3, 4, 2})}, LEVIN_CALL(view_as_real(fft::fftn(LEVIN_Z0))),
                24),
           call(torch_parts("torch.fft.fftn(x0, (3, -1))"), {input({2, 2, 4})},
                LEVIN_CALL(view_as_real(fft::fftn(x0, {3, -1}))), 12),
           call(torch_parts("torch.fft.ifftn(z0, dim=(0, 2))"), {input({2, 3, 4, 2})},
                LEVIN_CALL(view_as_real(fft::ifftn(LEVIN_Z0, {}, {0, 2}))), 8),
           call(torch_parts("torch.fft.rfftn(x0)"), {input({2, 3, 4})}, LEVIN_CALL(view_as_real(fft::rfftn(x0))), 24),
           call(torch_of("torch.fft.irfftn(z0, (3, 5), (2, 0))"), {input({3, 2, 3, 2})},
                LEVIN_CALL(fft::irfftn(LEVIN_Z0, {3, 5}, {2, 0})), 15),
           call("torch.fft.fftshift(x0)", {input({4, 5})}, LEVIN_CALL(fft::fftshift(x0))),
           call(torch_parts("torch.fft.ifftshift(z0, 1)"), {input({2, 5, 2})},
                LEVIN_CALL(view_as_real(fft::ifftshift(LEVIN_Z0, 1))))}),
      {{"[fftn] 1 lengths for 2 axes", [] { fft::fftn(ones({2, 3}), {2}, {0, 1}); }},
       {"[fftn] 3 lengths for 2 axes", [] { fft::fftn(ones({2, 3}), {2, 2, 2}); }},
       {"[rfftn] a 0-dim tensor has no axis to transform", [] { fft::rfftn(ones({})); }}});
}

OpCase arithmetic() {
  const std::vector<InputSpec> two = {input({3, 1, 2}), input({4, 2})}, mixed = {input({3, 4, 2}), input({4})};
  const InputSpec off_zero = input({4, 2}, away_from(uniform(), {0.0}, 0.4));
  return with_errors(
      composition(
          "complex_arithmetic",
          {call(torch_parts("z0 + z1"), two, LEVIN_CALL(view_as_real(LEVIN_Z0 + LEVIN_Z1))),
           call(torch_parts("torch.sub(z0, z1, alpha=2)"), two, LEVIN_CALL(view_as_real(sub(LEVIN_Z0, LEVIN_Z1, 2)))),
           call(torch_parts("z0 * z1"), two, LEVIN_CALL(view_as_real(LEVIN_Z0 * LEVIN_Z1)), 2),
           call(torch_parts("z0 / z1"), {input({3, 1, 2}), off_zero}, LEVIN_CALL(view_as_real(LEVIN_Z0 / LEVIN_Z1)), 4),
           call(torch_parts("z0 + x1"), mixed, LEVIN_CALL(view_as_real(LEVIN_Z0 + x1))),
           call(torch_parts("x1 - z0"), mixed, LEVIN_CALL(view_as_real(x1 - LEVIN_Z0))),
           call(torch_parts("z0 * x1"), mixed, LEVIN_CALL(view_as_real(LEVIN_Z0 * x1))),
           call(torch_parts("x1 * z0"), mixed, LEVIN_CALL(view_as_real(x1 * LEVIN_Z0))),
           call(torch_parts("z0 / x1"), {input({3, 4, 2}), input({4}, uniform(0.5, 2))},
                LEVIN_CALL(view_as_real(LEVIN_Z0 / x1))),
           call(torch_parts("x1 / z0"), {off_zero, input({4})}, LEVIN_CALL(view_as_real(x1 / LEVIN_Z0)), 4),
           call(torch_parts("(z0 * 2.5 + 1.5) / 4 - 0.5"), {input({5, 2})},
                LEVIN_CALL(view_as_real((LEVIN_Z0 * 2.5 + 1.5) / 4 - 0.5)), 3),
           call(torch_parts("2 - 3 / z0"), {off_zero}, LEVIN_CALL(view_as_real(2 - 3 / LEVIN_Z0)), 4),
           call(torch_parts("torch.exp(-z0)"), {input({5, 2})}, LEVIN_CALL(view_as_real(exp(-LEVIN_Z0))), 4),
           call(torch_parts("torch.square(z0) + torch.reciprocal(z0)"), {off_zero},
                LEVIN_CALL(view_as_real(square(LEVIN_Z0) + reciprocal(LEVIN_Z0))), 4),
           call(torch_parts("z0.sum(0) + z0.mean((0, 1), True)"), {input({3, 4, 2})},
                LEVIN_CALL(view_as_real(sum(LEVIN_Z0, 0) + mean(LEVIN_Z0, {0, 1}, true))), 12),
           call(torch_parts("torch.matmul(z0, z1)"), {input({2, 3, 4, 2}), input({4, 2, 2})},
                LEVIN_CALL(view_as_real(matmul(LEVIN_Z0, LEVIN_Z1))), 8)}),
      {{"[maximum] complex64 is not accepted here", [] { maximum(ones({2}, kComplex64), ones({2})); }},
       {"[tanh] complex64 is not accepted here", [] { tanh(ones({2}, kComplex64)); }},
       {"[softmax] needs floating-point values, x is complex64", [] { softmax(ones({2}, kComplex64), 0); }},
       {"[lt] complex64 is not accepted here", [] { lt(ones({2}, kComplex64), 0.0); }}});
}

OpCase parts() {
  const InputSpec off_zero = input({4, 2}, away_from(uniform(), {0.0}, 0.4));
  return with_errors(
      composition(
          "complex_parts",
          {call(torch_of("(z0.real * 2, z0.imag * 3)"), {input({3, 4, 2})},
                LEVIN_CALL(Tensors{real(LEVIN_Z0) * 2, imag(LEVIN_Z0) * 3})),
           call(torch_parts("torch.conj(z0).resolve_conj()"), {input({3, 4, 2})},
                LEVIN_CALL(view_as_real(conj(LEVIN_Z0)))),
           call(torch_of("torch.abs(z0)"), {off_zero}, LEVIN_CALL(abs(LEVIN_Z0)), 2),
           call(torch_of("torch.angle(z0)"), {off_zero}, LEVIN_CALL(angle(LEVIN_Z0)), 2),
           call("torch.view_as_real(torch.complex(x0, x1))", {input({3, 4}), input({3, 4})},
                LEVIN_CALL(view_as_real(complex(x0, x1)))),
           call("torch.view_as_real(torch.polar(x0, x1))", {input({3, 4}, uniform(0.5, 2)), input({3, 4})},
                LEVIN_CALL(view_as_real(polar(x0, x1)))),
           call(torch_parts("torch.cat([z0, z1.flip(0)]).roll(1, 0)"), {input({3, 2, 2}), input({2, 2, 2})},
                LEVIN_CALL(view_as_real(roll(cat({LEVIN_Z0, flip(LEVIN_Z1, 0)}), {1}, 0)))),
           call(torch_parts("torch.stack([z0.t(), z0.t()[:, 1:2].expand(2, 3)], 1)"), {input({3, 2, 2})},
                LEVIN_CALL(view_as_real(
                    stack({LEVIN_Z0.t(), LEVIN_Z0.t()(Slice(), Slice(1, 2)).expand({2, 3})}, 1)))),
           call(torch_parts("torch.index_select(F.pad(z0, (1, 2)), 1, torch.tensor([3, 0, 3]))"), {input({2, 3, 2})},
                LEVIN_CALL(view_as_real(index_select(pad(LEVIN_Z0, {1, 2}), 1,
                                                      tensor<int64_t>({3, 0, 3}).to(x0.device()))))),
           call(torch_parts("torch.index_add(z0, 0, torch.tensor([1, 1]), z1)"), {input({3, 2, 2}), input({2, 2, 2})},
                LEVIN_CALL(view_as_real(index_add(LEVIN_Z0, 0, tensor<int64_t>({1, 1}).to(x0.device()), LEVIN_Z1))), 3),
           call(torch_parts("z0.unfold(0, 3, 1)"), {input({5, 2})}, LEVIN_CALL(view_as_real(LEVIN_Z0.unfold(0, 3, 1)))),
           call(torch_parts("x0.to(torch.complex128) * z1"), {input({3}), input({3, 2})},
                LEVIN_CALL(view_as_real(to(x0, kComplex128) * LEVIN_Z1)), 2)}),
      {{"[view_as_real] x is float32, not complex", [] { view_as_real(ones({2})); }},
       {"[view_as_real] z has 8 dimensions", [] { view_as_real(ones({1, 1, 1, 1, 1, 1, 1, 1}, kComplex64)); }},
       {"[view_as_complex] the parts of complex numbers are float32 or float64, not int64",
        [] { view_as_complex(ones({2}, kInt64)); }},
       {"[view_as_complex] x is (2, 3); its last axis has to hold two parts", [] { view_as_complex(ones({2, 3})); }},
       {"[view_as_complex] x has strides (1, 2) and offset 0", [] { view_as_complex(ones({2, 2}).t()); }},
       {"[imag] x is float32, not complex", [] { imag(ones({2})); }},
       {"[complex] re is float32, im is float64", [] { complex(ones({2}), ones({2}, kFloat64)); }},
       {"[polar] the parts of complex numbers are float32 or float64", [] { polar(ones({2}, kHalf), ones({2})); }},
       {"[pad] complex64 is not accepted here", [] { pad(ones({2}, kComplex64), {1, 1}, 2.0); }}});
}

/// The argument of a real number is a step.
OpCase real_angle() {
  OpCase c = composition("angle_of_real", {call("torch.angle(x0)", {input({7}, away_from(uniform(), {0.0}))},
                                                LEVIN_CALL(angle(x0)))});
  c.zero_gradient = true;
  return c;
}

#undef LEVIN_Z0
#undef LEVIN_Z1

}  // namespace

std::vector<OpCase> spectral_cases() {
  std::vector<OpCase> cases = {lengths_and_axes(), several_axes(), arithmetic(), parts()};
  for (OpCase& c : cases) c = with_own_values(with_fixed_sizes(std::move(c)));  // the last axis holds two parts
  for (auto own : {complex_transforms, halves, inverse_halves, real_angle}) cases.push_back(own());
  return cases;
}

}  // namespace levin::test
