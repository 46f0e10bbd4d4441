// Complex tensors without autograd. The expected texts are PyTorch's.
#include <doctest/doctest.h>
#include <levin/core/tensor.h>

#include <complex>
#include <limits>
#include <vector>

using namespace levin;

namespace {

using Complex = std::complex<float>;
using Wide = std::complex<double>;

Tensor pair() { return from_data<Complex>({{1, 2}, {3.5f, -0.25f}}, {2}); }

}  // namespace

TEST_CASE("complex types have names, sizes and parts") {
  CHECK(dtype_of<Complex> == kComplex64);
  CHECK(dtype_of<Wide> == kComplex128);
  CHECK(name_of(kComplex64) == "complex64");
  CHECK(name_of(kComplex128) == "complex128");
  CHECK(size_of(kComplex64) == 8);
  CHECK(size_of(kComplex128) == 16);
  CHECK(is_complex(kComplex64));
  CHECK_FALSE(is_complex(kBool));
  CHECK_FALSE(is_floating(kComplex128));
  CHECK_FALSE(is_integral(kComplex64));
  CHECK(real_type_of(kComplex128) == kFloat64);
  CHECK(real_type_of(kComplex64) == kFloat32);
  CHECK(real_type_of(kInt8) == kInt8);
  CHECK(complex_type_of(kFloat64) == kComplex128);
  CHECK(complex_type_of(kInt64) == kComplex64);
  CHECK(Scalar(2.5).promote_with(kComplex64) == kComplex64);
}

TEST_CASE("complex elements are written and read") {
  const Tensor z = pair();
  CHECK(z.dtype() == kComplex64);
  CHECK(z.is_complex());
  CHECK_FALSE(z.is_floating());
  CHECK(z.data<Complex>()[1] == Complex(3.5f, -0.25f));
  CHECK(z.to_vector<Complex>() == std::vector<Complex>{{1, 2}, {3.5f, -0.25f}});
  CHECK(z.to_vector<Wide>() == std::vector<Wide>{{1, 2}, {3.5, -0.25}});
  CHECK(from_data<Wide>({{4, -1}}, {}).item<Wide>() == Wide(4, -1));
  CHECK(from_data<Wide>({{4, -1}}, {1}, {.dtype = kComplex64}).item<Complex>() == Complex(4, -1));
  CHECK(from_data<float>({1, 2}, {2}, {.dtype = kComplex64}).to_vector<Complex>() == std::vector<Complex>{1, 2});
  CHECK(from_data<int>({1, 2}, {2}).to_vector<Wide>() == std::vector<Wide>{1, 2});
  CHECK(tensor(2.5, kComplex128).item<Wide>() == Wide(2.5, 0));
  CHECK(tensor({1, 2}, kComplex64).to_vector<Complex>() == std::vector<Complex>{1, 2});
  CHECK(tensor(3).item<Wide>() == Wide(3, 0));
}

TEST_CASE("a part is never lost silently") {
  const char* lost = "the tensor holds complex64, whose imaginary part would be lost. Ask for std::complex<double>, or "
                     "take real(x), imag(x) or abs(x) first.";
  CHECK_THROWS_WITH_AS(pair().to_vector<float>(), doctest::Contains(lost), DTypeError);
  CHECK_THROWS_WITH_AS(from_data<Complex>({1}, {}).item<float>(), doctest::Contains(lost), DTypeError);
  CHECK_THROWS_WITH_AS(from_data<Complex>({1}, {}, {.dtype = kFloat32}), doctest::Contains(lost), DTypeError);
  CHECK_THROWS_WITH_AS(pair().data<float>(),
                       "[data] the tensor holds complex64, but float32 was asked for. Convert it with x.to(...).",
                       DTypeError);
}

TEST_CASE("kernels and dispatch refuse complex types with the way to go on") {
  CHECK_THROWS_WITH_AS(pair().tensor_view(),
                       "[kernel] complex64 is not accepted here, only real tensors. Take the parts with "
                       "view_as_real(x), real(x) or imag(x), or abs(x).",
                       DTypeError);
  CHECK_THROWS_WITH_AS(dispatch_all(kComplex128, "op", []<class T>() {}), doctest::Contains("[op] complex128"),
                       DTypeError);
  CHECK_THROWS_WITH_AS(set_default_dtype(kComplex64), doctest::Contains("must be floating"), DTypeError);
}

TEST_CASE("complex tensors print as in PyTorch") {
  CHECK(to_string(pair()) == "tensor([1.0000+2.0000j, 3.5000-0.2500j])");
  CHECK(to_string(from_data<Complex>({{1, -2}}, {})) == "tensor(1.-2.j)");
  CHECK(to_string(from_data<Wide>({{1, 2}}, {1})) == "tensor([1.+2.j], dtype=complex128)");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(to_string(from_data<Complex>({{1e5f, 2}, {nan, -1}}, {1, 2})) == "tensor([[100000.+2.j,     nan-1.j]])");
  CHECK(to_string(from_data<Complex>({{1e-6f, 2e6f}, {1, 1}}, {2})) ==
        "tensor([1.0000e-06+2.0000e+06j, 1.0000e+00+1.0000e+00j])");
  CHECK(to_string(empty({0, 2}, kComplex64)) == "tensor([], size=(0, 2), dtype=complex64)");
  const std::string four = "1.2500+2.5000j, 1.2500+2.5000j, 1.2500+2.5000j, 1.2500+2.5000j";
  CHECK(to_string(from_data(std::vector<Complex>(12, {1.25f, 2.5f}), {12})) ==
        "tensor([" + four + ",\n        " + four + ",\n        " + four + "])");
}
