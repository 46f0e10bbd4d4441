// cuBLAS and cuDNN as backends. A stand-in (fake/) computes with simple loops and refuses what the libraries refuse.
#include "cuda/run_again.h"
#include "cuda/vendor/problems.h"
#include "kernels/cuda/vendor/library.h"

#if __has_include(<levin/emulator/devices.h>)
#include <thread>

#include "cuda/vendor/fake_record.h"
#endif

using namespace levin;
using namespace levin::test;

TEST_CASE("vendor: the default is our own kernels, and unknown names are refused") {
  CHECK(cuda::preferred_blas_library() == "levin");
  CHECK(cuda::preferred_conv_library() == "levin");
  CHECK(!cuda::allow_tf32());
  CHECK_THROWS_AS(cuda::set_preferred_blas_library("cudnn"), ValueError);
  CHECK(message_of([] { cuda::set_preferred_conv_library("mkl"); }) ==
        "[cuda] \"mkl\" is no convolution library that can be chosen; take \"levin\" or \"cudnn\".");
}

TEST_CASE("vendor: a library that cannot be opened, or is a different one") {
  const kernels::cuda::LibraryNames none{"cuNONE", "LEVIN_TEST_NONE", {"libnone.so.2", "libnone.so"}};
  unsetenv("LEVIN_TEST_NONE");
  const std::string missing = message_of([&] { const kernels::cuda::SharedLibrary library(none); });
  CHECK(
      missing.starts_with("[cuda] cuNONE cannot be opened: of libnone.so.2, libnone.so the loader says: libnone.so.2: "
                          "cannot open shared object file: No such file or directory; libnone.so: "));
  CHECK(missing.ends_with(". Set LEVIN_TEST_NONE to its path, or add its folder to LD_LIBRARY_PATH."));
  setenv("LEVIN_TEST_NONE", "libm.so.6", 1);
  const kernels::cuda::SharedLibrary library(none);
  double (*cosine)(double) = nullptr;
  library.find(cosine, "cos");
  CHECK(cosine(0) == 1);
  CHECK(message_of([&] { library.find(cosine, "cublasCreate_v2"); }) ==
        "[cuda] cuNONE was opened from libm.so.6, but has no function cublasCreate_v2. Set LEVIN_TEST_NONE to the path "
        "of another version.");
  unsetenv("LEVIN_TEST_NONE");
}

TEST_CASE("vendor: a library that cannot be opened is not chosen") {
  const char* const nowhere = "/nowhere/libcublas.so";
  const char* const name = "vendor: a library that cannot be opened is not chosen";
  if (!is_set("LEVIN_CUBLAS_LIBRARY", nowhere)) {
    CHECK(run_again_with("LEVIN_CUBLAS_LIBRARY", nowhere, name) == 0);
    return;
  }
  const auto choose = [] { cuda::set_preferred_blas_library("cublas"); };
  CHECK_THROWS_AS(choose(), DeviceError);
  CHECK(message_of(choose) ==
        "[cuda] cuBLAS cannot be opened: LEVIN_CUBLAS_LIBRARY is \"/nowhere/libcublas.so\", and the loader says: "
        "/nowhere/libcublas.so: cannot open shared object file: No such file or directory. Set it to the library's "
        "path, or unset it to search LD_LIBRARY_PATH.");
  CHECK(cuda::preferred_blas_library() == "levin");
  setenv("LEVIN_CUDNN_LIBRARY", "libm.so.6", 1);
  CHECK(message_of([] { cuda::set_preferred_conv_library("cudnn"); }).find("has no function cudnnGetVersion") !=
        std::string::npos);
  CHECK(cuda::preferred_conv_library() == "levin");
}

#if __has_include(<levin/emulator/devices.h>)
namespace {

[[maybe_unused]] const int fakes =
    setenv("LEVIN_CUBLAS_LIBRARY", LEVIN_VENDOR_FAKE, 0) + setenv("LEVIN_CUDNN_LIBRARY", LEVIN_VENDOR_FAKE, 0);

/// Selects both libraries for its lifetime, at the end of which all calls must have been valid.
class Chosen {
 public:
  Chosen() {
    cuda::set_preferred_blas_library("cublas");
    cuda::set_preferred_conv_library("cudnn");
  }
  ~Chosen() {
    CHECK(std::string(record().complaint) == "");
    record().complaint[0] = 0;
    cuda::set_preferred_blas_library("levin");
    cuda::set_preferred_conv_library("levin");
    cuda::set_allow_tf32(false);
  }
  static FakeVendor& record() { return fake_record(); }
};

/// Compares with sums in double.
void check_product(const Problem& p, DType dtype, double operand_unit = 0) {
  Product product(p, dtype);
  Stream stream = current_stream(levin::cuda(0));
  kernels::matmul(product.args(), stream);
  const double worst = product.worst(operand_unit);
  CHECK_MESSAGE(worst <= 1.0, name_of(dtype) << " " << describe(p) << " error over allowance " << worst);
}

int products() { return Chosen::record().products + Chosen::record().batched_products; }

/// Returns the number of cuBLAS calls of a correct product.
int multiply(const Problem& p, DType dtype, double operand_unit = 0) {
  const int before = products();
  check_product(p, dtype, operand_unit);
  return products() - before;
}

}  // namespace

TEST_CASE("vendor: products of every transpose, type and tail go to cuBLAS") {
  const Chosen chosen;
  const int batched = Chosen::record().batched_products;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        CHECK(multiply({.m = 33, .n = 18, .k = 21, .transpose_a = ta, .transpose_b = tb}, dtype) == 1);
        CHECK(multiply({.m = 18, .n = 35, .k = 7, .transpose_a = ta, .transpose_b = tb, .multiple = 8, .bias = true},
                       dtype) == 1);
        CHECK(multiply({.m = 5,
                        .n = 12,
                        .k = 9,
                        .batch = 3,
                        .transpose_a = ta,
                        .transpose_b = tb,
                        .alpha = -0.5,
                        .beta = 2,
                        .shared_b = true},
                       dtype) == 1);
        for (const auto& [m, n, k] : {std::array{1, 1, 1}, {1, 9, 4}, {9, 1, 4}, {4, 9, 1}})
          for (const int64_t multiple : {1, 4})
            CHECK(multiply({.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb, .multiple = multiple},
                           dtype) == 1);
      }
    }
  }
  CHECK(Chosen::record().batched_products == batched + 16);
}

TEST_CASE("vendor: our own kernels compute what cuBLAS does not support") {
  const Chosen chosen;
  CHECK(multiply({.m = 9, .n = 8, .k = 5, .spread = 2}, DType::f32) == 0);
  CHECK(multiply({.m = 9, .n = 8, .k = 0, .multiple = 4, .bias = true}, DType::f32) == 0);
  CHECK(multiply({.m = 9, .n = 8, .k = 5, .beta = 2, .bias = true}, DType::f32) == 0);
  const int before = products();
  const Tensor a = integers({3, 4}, DType::i64, 1);
  CHECK(matmul(a, a.t()).to_vector<int64_t>() == matmul(a.cpu(), a.cpu().t()).to_vector<int64_t>());
  CHECK(matmul(integers({0, 4}, DType::f32, 1), integers({4, 2}, DType::f32, 1)).numel() == 0);
  CHECK(products() == before);
  Chosen::record().next_status = 15;  // not supported
  CHECK(multiply({.m = 9, .n = 8, .k = 5, .bias = true}, DType::f16) == 0);
}

TEST_CASE("vendor: the heads of a batch take one call per sample, also broadcast ones") {
  const Chosen chosen;
  const Tensor q = integers({2, 5, 3, 8}, DType::f32, 3).transpose(1, 2), k = integers({2, 7, 3, 8}, DType::f32, 2);
  const int before = products();
  const Tensor scores = matmul(q, k.permute({0, 2, 3, 1}));
  CHECK(products() == before + 2);
  CHECK(scores.to_vector<float>() == matmul(q.cpu(), k.cpu().permute({0, 2, 3, 1})).to_vector<float>());
  const Tensor shared = integers({3, 8, 4}, DType::f32, 1);
  CHECK(matmul(q, shared).to_vector<float>() == matmul(q.cpu(), shared.cpu()).to_vector<float>());
  CHECK(products() == before + 4);
  const Tensor many = integers({65, 2, 3, 4}, DType::f32, 3).transpose(1, 2);
  CHECK(matmul(many, many.transpose(-2, -1)).to_vector<float>() ==
        matmul(many.cpu(), many.cpu().transpose(-2, -1)).to_vector<float>());
  CHECK(products() == before + 4);  // it would take too many calls
}

TEST_CASE("vendor: float32 is float32 unless TF32 is allowed") {
  const Chosen chosen;
  const Problem p{.m = 20, .n = 24, .k = 40, .multiple = 4};
  multiply(p, DType::f32);
  CHECK(Chosen::record().compute == 69);
  cuda::set_allow_tf32(true);
  CHECK(cuda::allow_tf32());
  multiply(p, DType::f32, 0x1p-11);
  CHECK(Chosen::record().compute == 77);
  multiply(p, DType::f64);
  CHECK(Chosen::record().compute == 70);
  const Layer layer{{1, 2, 6, 6}, {2, 2, 3, 3}, {1, 2, 4, 4}};
  run_layer(layer, DType::f32);
  CHECK(Chosen::record().math == 0);
  cuda::set_allow_tf32(false);
  run_layer(layer, DType::f32);
  CHECK(Chosen::record().math == 3);
  run_layer(layer, DType::bf16);
  CHECK(Chosen::record().math == 1);
}

TEST_CASE("vendor: failures are errors of one sentence, and the next call works") {
  const Chosen chosen;
  const Problem p{.m = 9, .n = 8, .k = 5};
  Chosen::record().next_status = 13;
  CHECK(message_of([&] { multiply(p, DType::f32); }) ==
        "[matmul] cublasGemmEx failed: CUBLAS_STATUS_EXECUTION_FAILED. Use "
        "levin::cuda::set_preferred_blas_library(\"levin\") to go on without cuBLAS.");
  Chosen::record().next_status = 3;
  CHECK_THROWS_AS(multiply(p, DType::f32), OutOfMemory);
  CHECK(multiply(p, DType::f32) == 1);
  const Tensor x = integers({1, 1, 4, 4}, DType::f32, 1);
  Chosen::record().next_status = 5000;
  CHECK(message_of([&] { conv2d(x, x); }) ==
        "[conv2d] a convolution of cuDNN failed: CUDNN_STATUS_EXECUTION_FAILED. Use "
        "levin::cuda::set_preferred_conv_library(\"levin\") to go on without cuDNN.");
  CHECK_NOTHROW(conv2d(x, x));
}

TEST_CASE("vendor: products run on their stream, in several threads, and in a graph") {
  const Chosen chosen;
  multiply({.m = 9, .n = 8, .k = 5}, DType::f32);
  const auto work = [] {
    const cuda::StreamGuard guard(cuda::Stream(0));
    for (int i = 1; i < 6; ++i) {
      const Tensor a = integers({9, 6}, DType::f32, i), b = integers({6, 4}, DType::f32, i + 1);
      CHECK(matmul(matmul(a, b), b.t()).to_vector<float>() ==
            matmul(matmul(a.cpu(), b.cpu()), b.cpu().t()).to_vector<float>());
    }
  };
  std::thread one(work), two(work);
  one.join(), two.join();
  CHECK(Chosen::record().handles <= 4);

  const Tensor a = integers({9, 6}, DType::f32, 1), b = integers({6, 4}, DType::f32, 2);
  const Tensor bias = integers({4}, DType::f32, 1), weight = b.t().contiguous();
  Tensor y;
  const cuda::Stream stream(0);
  cuda::synchronize(0);
  cuda::Graph graph;
  {
    const cuda::StreamGuard guard(stream);
    graph.capture_begin();
    y = linear(a, weight, bias);
    graph.capture_end();
  }
  for (const int step : {3, 4}) {
    a.copy_(integers({9, 6}, DType::f32, step));
    cuda::synchronize(0);
    graph.replay();
    cuda::synchronize(0);
    CHECK(y.to_vector<float>() == linear(a.cpu(), weight.cpu(), bias.cpu()).to_vector<float>());
  }
}

TEST_CASE("vendor: each device has its own handles") {
  if (cuda::device_count() < 2) return;
  const Chosen chosen;
  const Tensor a = integers({3, 4}, DType::f32, 1);
  const std::vector<float> wanted = matmul(a, a.t()).to_vector<float>();
  const Tensor there = a.cuda(1);
  CHECK(matmul(there, there.t()).to_vector<float>() == wanted);
  CHECK(conv2d(reshape(there, {1, 1, 3, 4}), reshape(there, {1, 1, 3, 4})).to_vector<float>() ==
        conv2d(reshape(a, {1, 1, 3, 4}), reshape(a, {1, 1, 3, 4})).to_vector<float>());
}

TEST_CASE("vendor: convolutions and their gradients go to cuDNN") {
  for (const Layer& layer : kLayers) {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const auto wanted = run_layer(layer, dtype);
      const Chosen chosen;
      const FakeVendor before = Chosen::record();
      CHECK(run_layer(layer, dtype) == wanted);
      for (int pass = 0; pass < 3; ++pass) CHECK(Chosen::record().convolutions[pass] == before.convolutions[pass] + 1);
      CHECK(Chosen::record().choices == before.choices + 3);
      CHECK(run_layer(layer, dtype) == wanted);
      CHECK(Chosen::record().choices == before.choices + 3);  // cached
    }
  }
  CHECK(Chosen::record().descriptors == 4 * Chosen::record().choices);
}

TEST_CASE("vendor: a bias is added before the only rounding") {
  const Chosen chosen;
  const auto half = [](float x) {
    return from_data(std::vector<float>{x}, {1, 1, 1, 1}, {.dtype = DType::f16}).cuda();
  };
  const Tensor x = half(1 + 0x1p-10f), bias = reshape(half(0x1p-11f), {1}), y = half(0);
  Stream stream = current_stream(levin::cuda(0));
  kernels::conv2d({x.tensor_view(), x.tensor_view(), bias.tensor_view(), y.tensor_view()}, stream);
  // x x = 1 + 2^-9 + 2^-20. If it were rounded first, adding the bias would give a tie that rounds down to even.
  CHECK(y.to_vector<float>() == std::vector<float>{1 + 0x1p-9f + 0x1p-10f});
  CHECK(Chosen::record().beta == 1);
}

TEST_CASE("vendor: nondeterministic algorithms are not used") {
  const Layer layer{{2, 3, 5, 5}, {2, 3, 2, 2}, {2, 2, 4, 4}};
  const auto wanted = run_layer(layer, DType::f32);
  const Chosen chosen;
  Chosen::record().only_undetermined = true;
  const FakeVendor before = Chosen::record();
  CHECK(run_layer(layer, DType::f32) == wanted);
  Chosen::record().only_undetermined = false;
  CHECK(Chosen::record().choices == before.choices + 3);
  for (int pass = 0; pass < 3; ++pass) CHECK(Chosen::record().convolutions[pass] == before.convolutions[pass]);
}

TEST_CASE("vendor: our own kernels compute convolutions that cuDNN does not support") {
  const Layer empty{{0, 3, 5, 5}, {2, 3, 2, 2}, {0, 2, 4, 4}};
  const Layer more_rows{{1, 2, 9, 5}, {2, 2, 2, 2}, {1, 2, 4, 4}};  // beyond the last window, as in a transposed one
  for (const Layer& layer : {empty, more_rows}) {
    const auto wanted = run_layer(layer, DType::f32);
    const Chosen chosen;
    const int before = Chosen::record().choices;
    CHECK(run_layer(layer, DType::f32) == wanted);
    CHECK(Chosen::record().choices == before);
  }
  const Chosen chosen;
  const Tensor x = integers({1, 1, 4, 4}, DType::f32, 1);
  const std::vector<float> wanted = conv2d(x, x).to_vector<float>();
  Chosen::record().next_status = 3002;  // not supported: shape
  CHECK(conv2d(x, x).to_vector<float>() == wanted);
}
#endif
