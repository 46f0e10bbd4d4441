// A stand-in for cuBLAS on emulated devices: simple loops over column-major matrices. It refuses what cuBLAS refuses.

#include <algorithm>
#include <utility>

#include "cuda/vendor/fake/numbers.h"

extern "C" levin::test::FakeVendor* levin_fake_vendor() {
  static levin::test::FakeVendor record;
  return &record;
}

namespace levin::test::fake {

namespace {

constexpr int kSuccess = 0, kInvalidValue = 7;

struct Handle {
  int device = 0;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::size_t bytes = 0;
  int math = 0;
};

struct Product {
  int m, n, k;
  bool transpose_a, transpose_b, tf32, rounds;
  Type type;
  const void *a, *b;
  void* c;
  int lda, ldb, ldc;
  long long stride_a, stride_b, stride_c;
  double alpha, beta;
  int batch;
  void* workspace;
  std::size_t bytes;
};

__global__ void multiply(Product p) {
  const long long size = static_cast<long long>(p.m) * p.n, e = thread_index();
  if (e == 0) {  // as in cuBLAS, the previous contents are lost
    static_cast<char*>(p.workspace)[0] = 1;
    static_cast<char*>(p.workspace)[p.bytes - 1] = 1;
  }
  if (e >= size * p.batch) return;
  const long long item = e / size, j = e % size / p.m, i = e % p.m;
  double sum = 0;
  for (int k = 0; k < p.k; ++k) {
    double x =
        load(p.a, p.type, item * p.stride_a + (p.transpose_a ? k + i * p.lda : i + static_cast<long long>(k) * p.lda));
    double y =
        load(p.b, p.type, item * p.stride_b + (p.transpose_b ? j + static_cast<long long>(k) * p.ldb : k + j * p.ldb));
    if (p.tf32) x = to_tf32(x), y = to_tf32(y);
    sum += x * y;
  }
  const long long place = item * p.stride_c + i + j * p.ldc;
  double result = p.rounds ? rounded(p.alpha * sum, p.type) : p.alpha * sum;
  if (p.beta != 0) result += p.beta * load(p.c, p.type, place);
  store(p.c, p.type, place, result);
}

bool read_type(int number, int compute, Type& type) {
  const bool single = compute == 68 || compute == 69;
  type = number == 0 ? Type::f32 : number == 1 ? Type::f64 : number == 2 ? Type::f16 : Type::bf16;
  if (number == 0 && (single || compute == 77)) return true;
  if (number == 1 && compute == 70) return true;
  if ((number == 2 || number == 14) && single) return true;
  return complain("type %d cannot be added up in compute type %d", number, compute);
}

bool is_valid(const Handle& h, const Product& p) {
  int device = -1;
  cudaGetDevice(&device);
  if (device != h.device) return complain("the handle is of device %d, the current one is %d", h.device, device);
  if (!h.workspace) return complain("no workspace since the stream was set");
  if (p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1) return complain("sizes %d %d %d %d", p.m, p.n, p.k, p.batch);
  if (!p.a || !p.b || !p.c) return complain("a null pointer");
  if (p.lda < std::max(1, p.transpose_a ? p.k : p.m)) return complain("lda is %d", p.lda);
  if (p.ldb < std::max(1, p.transpose_b ? p.n : p.k)) return complain("ldb is %d", p.ldb);
  if (p.ldc < p.m) return complain("ldc is %d", p.ldc);
  if (p.batch > 1 && p.stride_c < static_cast<long long>(p.ldc) * p.n) return complain("results overlap");
  if (p.stride_a < 0 || p.stride_b < 0) return complain("a negative stride");
  return true;
}

int run(Handle& h, int a_operation, int b_operation, Product p, const void* alpha, const void* beta, int types[3],
        int compute, int& counter) {
  FakeVendor& record = *levin_fake_vendor();
  if (const int status = std::exchange(record.next_status, 0)) return status;
  if (types[0] != types[1] || types[0] != types[2] || !read_type(types[0], compute, p.type)) return kInvalidValue;
  if ((p.type == Type::f16 || p.type == Type::bf16) && h.math != 16) {
    complain("sums of 16 bits are allowed");
    return kInvalidValue;
  }
  p.transpose_a = a_operation == 1, p.transpose_b = b_operation == 1, p.tf32 = compute == 77;
  p.rounds = record.rounds_products;
  p.alpha = scalar(alpha, p.type == Type::f64), p.beta = scalar(beta, p.type == Type::f64);
  p.workspace = h.workspace, p.bytes = h.bytes;
  if (!is_valid(h, p)) return kInvalidValue;
  if (!queue(multiply, h.stream, static_cast<long long>(p.m) * p.n * p.batch, p)) return kInvalidValue;
  record.compute = compute;
  ++counter;
  return kSuccess;
}

}  // namespace

extern "C" {

int cublasCreate_v2(Handle** handle) {
  *handle = new Handle;  // never freed, because Levin keeps handles forever
  cudaGetDevice(&(*handle)->device);
  ++levin_fake_vendor()->handles;
  return kSuccess;
}

int cublasSetStream_v2(Handle* handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = nullptr;  // cuBLAS falls back to its own workspace
  return kSuccess;
}

int cublasSetWorkspace_v2(Handle* handle, void* workspace, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0 || bytes < 1024) return kInvalidValue;
  handle->workspace = workspace;
  handle->bytes = bytes;
  return kSuccess;
}

int cublasSetMathMode(Handle* handle, int math) {
  handle->math = math;
  return kSuccess;
}

const char* cublasGetStatusString(int status) {
  return status == 3    ? "CUBLAS_STATUS_ALLOC_FAILED"
         : status == 13 ? "CUBLAS_STATUS_EXECUTION_FAILED"
                        : "another status";
}

int cublasGemmEx(Handle* handle, int a_operation, int b_operation, int m, int n, int k, const void* alpha,
                 const void* a, int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, void* c,
                 int c_type, int ldc, int compute, int) {
  Product p{};
  p.m = m, p.n = n, p.k = k, p.a = a, p.b = b, p.c = c, p.lda = lda, p.ldb = ldb, p.ldc = ldc, p.batch = 1;
  int types[] = {a_type, b_type, c_type};
  return run(*handle, a_operation, b_operation, p, alpha, beta, types, compute, levin_fake_vendor()->products);
}

int cublasGemmStridedBatchedEx(Handle* handle, int a_operation, int b_operation, int m, int n, int k, const void* alpha,
                               const void* a, int a_type, int lda, long long stride_a, const void* b, int b_type,
                               int ldb, long long stride_b, const void* beta, void* c, int c_type, int ldc,
                               long long stride_c, int batch, int compute, int) {
  Product p{};
  p.m = m, p.n = n, p.k = k, p.a = a, p.b = b, p.c = c, p.lda = lda, p.ldb = ldb, p.ldc = ldc, p.batch = batch;
  p.stride_a = stride_a, p.stride_b = stride_b, p.stride_c = stride_c;
  int types[] = {a_type, b_type, c_type};
  return run(*handle, a_operation, b_operation, p, alpha, beta, types, compute, levin_fake_vendor()->batched_products);
}

}  // extern "C"

}  // namespace levin::test::fake
