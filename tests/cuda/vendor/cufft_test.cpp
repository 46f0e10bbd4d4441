// cuFFT by its stand-in (fake/), in a process of its own: a process asks only once whether there is a cuFFT.
#include <levin/autograd/ops.h>
#include <levin/kernels/fft.h>

#include <doctest/doctest.h>

#include "cuda/run_again.h"

#if __has_include(<levin/emulator/devices.h>)
#include "cuda/vendor/fake_record.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Returns elements on the device, `start` elements after an address that is aligned to 256 bytes.
Tensor begins_at(int64_t start, const std::vector<double>& values, DType dtype) {
  const Tensor whole = zeros({static_cast<int64_t>(values.size()) + start + 1}, {.dtype = dtype, .device = cuda(0)});
  const Tensor x = whole.narrow(0, start, static_cast<int64_t>(values.size()));
  x.copy_(from_data(values, {static_cast<int64_t>(values.size())}, {.dtype = dtype}));
  return x;
}

std::vector<double> some_values(int64_t count) {
  std::vector<double> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>((7 * i + i * i) % 11) - 5;
  return v;
}

struct Kind {
  const kernels::Kernel<void(const kernels::FftArgs&, Stream&)>& kernel;
  bool real_in, real_out, inverse;
};

/// Compares with the CPU: lines whose input and output begin that many elements after an aligned address.
void check_lines(const Kind& kind, DType dtype, int64_t lines, int64_t n, int64_t in_start, int64_t out_start) {
  const int64_t half = n / 2 + 1;
  const int64_t in = lines * (kind.real_in ? n : 2 * (kind.real_out ? half : n));
  const int64_t out = lines * (kind.real_out ? n : 2 * (kind.real_in ? half : n));
  const std::vector<double> values = some_values(in);
  const auto run = [&](const Tensor& x, const Tensor& y) {
    Stream stream = current_stream(x.device());
    kind.kernel({y.tensor_view(), x.tensor_view(), n, kind.inverse, 0.25}, stream);
    return y.to_vector<double>();
  };
  const Tensor x = begins_at(in_start, values, dtype);
  const Tensor y = begins_at(out_start, std::vector<double>(static_cast<std::size_t>(out), 9.0), dtype);
  const std::vector<double> wanted = run(from_data(values, {in}, {.dtype = dtype}), zeros({out}, {.dtype = dtype}));
  CHECK_MESSAGE(largest_difference(run(x, y), wanted) <= (dtype == DType::f64 ? 1e-12 : 1e-4),
                lines << " lines of " << n << ", input " << in_start << " and output " << out_start
                      << " elements after an aligned address");
  CHECK(x.to_vector<double>() == values);
}

}  // namespace

TEST_CASE("vendor: transforms go to cuFFT, also from and to addresses that it refuses") {
  const char* const name = "vendor: transforms go to cuFFT\\, also from and to addresses that it refuses";
  if (!is_set("LEVIN_CUFFT_LIBRARY", LEVIN_VENDOR_FAKE)) {
    CHECK(run_again_with("LEVIN_CUFFT_LIBRARY", LEVIN_VENDOR_FAKE, name) == 0);
    return;
  }
  const Kind kinds[] = {{kernels::fft, false, false, false},
                        {kernels::fft, false, false, true},
                        {kernels::rfft, true, false, false},
                        {kernels::irfft, false, true, false}};
  int calls = 0;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Kind& kind : kinds)
      for (const auto& [lines, n] : {std::array<int64_t, 2>{1, 1}, {3, 5}, {2, 8}})
        for (const auto& [in_start, out_start] : {std::array<int64_t, 2>{0, 0}, {1, 0}, {0, 1}, {3, 2}}) {
          check_lines(kind, dtype, lines, n, in_start, out_start);
          ++calls;
        }
  CHECK(fake_record().transforms == calls);
  CHECK(fake_record().plans == calls / 4);  // one serves every address
  CHECK(std::string(fake_record().complaint) == "");

  fake_record().next_status = 5;
  const Tensor x = ones({4}, {.device = cuda(0)});
  CHECK(message_of([&] { fft::rfft(x); }) ==
        "[fft] the transform failed with number 5 of cuFFT's list of results. Set LEVIN_CUFFT_LIBRARY to the path of "
        "another version, or use the CPU.");
  // A single element is contiguous, whatever its stride, and is passed on from where it is.
  const Tensor second = slice(ones({3}, {.dtype = DType::f64, .device = cuda(0)}), 0, Slice(1, nil, 2));
  CHECK(view_as_real(fft::rfft(second)).to_vector<double>() == std::vector<double>{1, 0});
}
#endif
