// Complex tensors in the graph, in place, and in the operations that move elements; values are in tests/cases.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/autocast.h>
#include <levin/core/warning.h>

#include <complex>

using namespace levin;

namespace {

using Complex = std::complex<double>;
using List = std::vector<Complex>;

Tensor z_of(const List& values) { return from_data(values, {static_cast<int64_t>(values.size())}); }
List values(const Tensor& z) { return z.to_vector<Complex>(); }

}  // namespace

TEST_CASE("views as real and as complex share memory") {
  const Tensor z = z_of({{1, 2}, {3, 4}});
  const Tensor x = view_as_real(z);
  CHECK(x.sizes() == Shape{2, 2});
  CHECK(x.dtype() == kFloat64);
  CHECK(x.shares_storage(z));
  x(0, 1) = 7.0;
  CHECK(values(z) == List{{1, 7}, {3, 4}});
  CHECK(real(z).shares_storage(z));
  imag(z).fill_(5);
  CHECK(values(z) == List{{1, 5}, {3, 5}});
  const Tensor parts = arange(8).to(kFloat64).reshape({2, 2, 2})(1);  // an offset of four numbers
  const Tensor back = view_as_complex(parts);
  CHECK(back.shares_storage(parts));
  CHECK(values(back) == List{{4, 5}, {6, 7}});
  CHECK(values(view_as_complex(view_as_real(z(Slice(1, 2))))) == List{{3, 5}});
  CHECK_THROWS_WITH_AS(view_as_complex(arange(5).to(kFloat32)(Slice(1, 3))), doctest::Contains("offset 1"), ShapeError);
}

TEST_CASE("the gradient of a real loss is dL/dRe + i dL/dIm") {
  const Tensor z = z_of({{1, 2}, {-3, 0.5}}).requires_grad_();
  const Tensor w = z_of({{2, -1}, {1, 3}});
  square(abs(z)).sum().backward();
  CHECK(z.grad().dtype() == kComplex128);
  CHECK(std::abs(values(z.grad())[1] - Complex(-6, 1)) < 1e-12);
  z.set_grad({});
  real(z * w).sum().backward();  // the gradient is conj(w); it is added twice
  real(z * w).sum().backward();
  CHECK(values(z.grad()) == List{{4, 2}, {2, -6}});
}

TEST_CASE("the modulus and the argument have gradient 0 at 0") {
  const Tensor z = z_of({0, 0}).requires_grad_();
  abs(z).sum().backward();
  angle(z).sum().backward();
  CHECK(values(z.grad()) == List{0, 0});
}

TEST_CASE("backward from a complex output needs its gradient") {
  const Tensor z = z_of({{1, 2}}).requires_grad_();
  CHECK_THROWS_WITH_AS(sum(z).backward(), doctest::Contains("[backward] the output is complex128; give its gradient"),
                       GradError);
  sum(z).backward(from_data<Complex>({{0, 1}}, {}));
  CHECK(values(z.grad()) == List{{0, 1}});
}

TEST_CASE("edits through views of another type reach the base's history") {
  const Tensor a = z_of({{1, 2}, {3, 4}}).requires_grad_();
  SUBCASE("a real view of a complex base") {
    const Tensor base = a * 1.0;
    const Tensor view = view_as_real(base);
    view(0, 1).mul_(10);
    CHECK(values(base) == List{{1, 20}, {3, 4}});
    view.sum().backward();  // the view takes the new history
    CHECK(values(a.grad()) == List{{1, 10}, {1, 1}});
  }
  SUBCASE("a complex view of a real base") {
    const Tensor x = arange(5).to(kFloat64).requires_grad_(), base = x * 1.0;
    const Tensor view = view_as_complex(base(Slice(2, 4)).reshape({1, 2}));
    view.mul_(from_data<Complex>({{0, 1}}, {1}));  // (2 + 3i) i = -3 + 2i
    CHECK(base.to_vector<double>() == std::vector<double>{0, 1, -3, 2, 4});
    (base * tensor<double>({1, 2, 3, 4, 5})).sum().backward();
    CHECK(x.grad().to_vector<double>() == std::vector<double>{1, 2, 4, -3, 5});
  }
  SUBCASE("a part of a complex base") {
    const Tensor base = a * 1.0;
    base(Slice(1, 2)).mul_(from_data<Complex>({{0, 2}}, {1}));
    CHECK(values(base) == List{{1, 2}, {-8, 6}});
    real(base).sum().backward();
    CHECK(values(a.grad()) == List{1, {0, -2}});
  }
}

TEST_CASE("complex tensors are edited in place") {
  const Tensor z = z_of({{1, 2}, {3, 4}});
  z.add_(z_of({{1, 1}, {0, 0}}));
  z.mul_(2);
  z.sub_(1);
  CHECK(values(z) == List{{3, 6}, {5, 8}});
  z.div_(z_of({{0, 1}}));
  CHECK(values(z) == List{{6, -3}, {8, -5}});
  z += 1.0;
  z.copy_(tensor<double>({4, 5}));
  CHECK(values(z) == List{4, 5});
  z.neg_();
  z(0) = 2.5;
  CHECK(values(z) == List{2.5, -5});
  CHECK(values(z.zero_()) == List{0, 0});
  const Tensor overlapping = z_of({1, 2, 3});
  overlapping(Slice(1, 3)).copy_(overlapping(Slice(0, 2)));
  CHECK(values(overlapping) == List{1, 1, 2});
  CHECK_THROWS_WITH_AS(ones({2}).mul_(z), doctest::Contains("does not fit into a tensor of type float32"), DTypeError);
}

TEST_CASE("complex tensors are created and converted") {
  CHECK(values(ones({2}, kComplex64)) == List{1, 1});
  CHECK(values(full({1}, 2.5, {.dtype = kComplex128})) == List{2.5});
  CHECK(values(zeros_like(z_of({{1, 2}}))) == List{0});
  CHECK(values(tensor<int>({3, 4}).to(kComplex64)) == List{3, 4});
  CHECK(z_of({{1, 2}}).to(kComplex64).dtype() == kComplex64);
  CHECK(values(z_of({{1, 2}, {3, 4}}).reshape({2, 1}).t().contiguous()) == List{{1, 2}, {3, 4}});
  std::string warning;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { warning = text; });
  const Tensor x = z_of({{1, 2}}).to(kFloat32);
  set_warning_handler(former);
  CHECK(x.item<float>() == 1);
  CHECK(warning == "[to] converting complex numbers to real ones drops their imaginary parts; use real(x) to say so.");
}

TEST_CASE("results have PyTorch's types") {
  const Tensor c64 = ones({2}, kComplex64), c128 = ones({}, kComplex128);
  CHECK((c64 + ones({2}, kFloat64)).dtype() == kComplex128);
  CHECK((c64 * ones({}, kFloat64)).dtype() == kComplex64);
  CHECK((ones({2}) * c128).dtype() == kComplex64);
  CHECK((ones({2}, kInt32) * c128).dtype() == kComplex128);
  CHECK((c64 * 2.5).dtype() == kComplex64);
  CHECK(abs(c64).dtype() == kFloat32);
  CHECK(fft::fft(ones({4})).dtype() == kComplex64);
  CHECK(fft::rfft(ones({4}, kInt64)).dtype() == kComplex64);
  CHECK(fft::irfft(ones({3}, kComplex128)).dtype() == kFloat64);
}

TEST_CASE("quotients do not overflow where the result is finite") {
  const List quotient = values(z_of({{1e300, 1e300}}) / z_of({{1e300, -1e300}}));
  CHECK(std::abs(quotient[0] - Complex(0, 1)) < 1e-15);
}

TEST_CASE("complex numbers are equal if both parts are") {
  const Tensor a = z_of({{1, 2}, {3, 4}}), b = z_of({{1, 2}, {3, 5}});
  CHECK(eq(a, b).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(ne(a, b).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(equal(a, a.clone()));
  CHECK_FALSE(equal(a, b));
}

TEST_CASE("autocast leaves complex products in their type") {
  const autocast guard(kBFloat16);
  CHECK(matmul(ones({2, 2}, kComplex64), ones({2, 2}, kComplex64)).dtype() == kComplex64);
}

TEST_CASE("long transforms return what they were given") {
  default_generator().manual_seed(3);
  for (const int64_t n : {4096, 1009, 3000}) {
    const Tensor x = randn({2, n}, kFloat64);
    const Tensor back = fft::irfft(fft::rfft(x), n);
    CHECK(amax(abs(sub(back, x))).item<double>() < 1e-11);
    const Tensor again = fft::ifft(fft::fft(complex(x, flip(x, 1))));
    CHECK(amax(abs(sub(imag(again), flip(x, 1)))).item<double>() < 1e-11);
  }
}

TEST_CASE("the power of a mel spectrogram is of the magnitudes") {
  const Tensor x = sin(mul(arange(400).to(kFloat64), 0.3));
  const Tensor magnitudes = mel_spectrogram(x, {.sample_rate = 2000, .n_fft = 64, .n_mels = 4, .power = 1});
  const Tensor spectrum = abs(stft(x, 64, {.hop_length = 32, .window = hann_window(64, true, {.dtype = kFloat64})}));
  const Tensor filters = melscale_fbanks(33, 0, 1000, 4, 2000, MelNorm::none, MelScale::htk, {.dtype = kFloat64});
  CHECK(amax(abs(sub(magnitudes, matmul(filters.t(), spectrum)))).item<double>() < 1e-12);
}

TEST_CASE("a band without a frequency is named in a warning") {
  std::string warning;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { warning = text; });
  melscale_fbanks(5, 0, 8000, 40, 16000);
  set_warning_handler(former);
  CHECK(warning.starts_with("[melscale_fbanks] a band of 40 holds none of the 5 frequencies"));
}

TEST_CASE("vdot takes the conjugates of its first argument, dot does not") {
  const Tensor z = complex(tensor({1.0, 2.0}), tensor({3.0, -1.0}));  // 1 + 3i, 2 - i
  CHECK(vdot(z, z).item<std::complex<double>>() == std::complex<double>(15, 0));
  CHECK(dot(z, z).item<std::complex<double>>() == std::complex<double>(-5, 2));
}
