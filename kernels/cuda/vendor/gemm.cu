// matmul by cuBLAS. Its matrices are column-major, so it computes C^T = B^T A^T.

#include "kernels/cuda/vendor/gemm.h"

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/matmul/choice.h"
#include "kernels/cuda/matmul/options.h"
#include "kernels/cuda/matmul/problem.cuh"
#include "kernels/cuda/vendor/cublas.h"
#include "kernels/cuda/vendor/session.h"

#include <algorithm>
#include <limits>

namespace levin::kernels::cuda {

namespace {

using namespace cublas_api;

constexpr std::int64_t kMostPieces = 64;  // maximum of launches per product; beyond it, Levin's kernel needs only one

void* create_handle() {
  Handle handle = nullptr;
  check(cublas().create(&handle), "cublasCreate");
  check(cublas().set_math_mode(handle, kNoReducedPrecisionSums), "cublasSetMathMode");
  return handle;
}

HandlePool& handles() {
  static HandlePool& pool = *new HandlePool;
  return pool;
}

/// A matrix (lines, k) as described to cuBLAS.
struct Matrix {
  const void* data = nullptr;
  Operation operation = kPlain;
  std::int64_t pitch = 0;
};

/// Returns false for a matrix without a unit stride, or whose lines overlap.
template <class T>
bool describe(const Operand<T>& x, std::int64_t lines, std::int64_t k, Matrix& to) {
  to.data = x.data;
  if ((x.line == 1 || lines == 1) && (x.step >= lines || k == 1)) {
    to.operation = kPlain;
    to.pitch = k == 1 ? lines : x.step;
    return true;
  }
  if ((x.step == 1 || k == 1) && (x.line >= k || lines == 1)) {
    to.operation = kTransposed;
    to.pitch = lines == 1 ? k : x.line;
    return true;
  }
  return false;
}

/// Returns the offset of item `index` of all batch axes but the innermost.
std::int64_t outer_offset(const BatchOffsets& batch, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = 1; i < batch.axes; ++i) {
    offset += index % batch.size[i] * batch.stride[i];
    index /= batch.size[i];
  }
  return offset;
}

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, double>) return kFloat64;
  if constexpr (std::is_same_v<T, __half>) return kFloat16;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return kBFloat16;
  return kFloat32;
}

template <class T>
Compute compute_of() {
  if constexpr (std::is_same_v<T, double>) return kCompute64;
  if constexpr (sizeof(T) == 2) return kCompute32;
  return allow_tf32 ? kCompute32Tf32 : kCompute32Pedantic;
}

/// Computes the products along the innermost axis of the batch, beginning at those elements.
template <class T>
Status run_piece(Handle handle, const Problem<T>& p, const Matrix& a, const Matrix& b, T* c, Sum<T> beta) {
  const auto narrow = [](std::int64_t x) { return static_cast<int>(x); };
  const int m = narrow(p.m), n = narrow(p.n), k = narrow(p.k);
  const int a_pitch = narrow(a.pitch), b_pitch = narrow(b.pitch);
  // cuBLAS's B is A transposed: not transposed again, it has k rows.
  const Operation a_operation = a.operation == kPlain ? kTransposed : kPlain;
  constexpr Type type = type_of<T>();
  if (p.a.batch.axes == 0) {
    return cublas().gemm(handle, b.operation, a_operation, n, m, k, &p.alpha, b.data, type, b_pitch, a.data, type,
                         a_pitch, &beta, c, type, n, compute_of<T>(), kDefaultAlgorithm);
  }
  return cublas().gemm_batched(handle, b.operation, a_operation, n, m, k, &p.alpha, b.data, type, b_pitch,
                               p.b.batch.stride[0], a.data, type, a_pitch, p.a.batch.stride[0], &beta, c, type, n,
                               p.m * p.n, narrow(p.a.batch.size[0]), compute_of<T>(), kDefaultAlgorithm);
}

/// Returns the workspace size per stream that cuBLAS itself uses.
std::int64_t workspace_bytes(int device) { return std::int64_t{device_properties(device).major >= 9 ? 32 : 4} << 20; }

template <class Levin>
bool run(const MatmulArgs& args, Stream& stream) {
  using T = DeviceType<Levin>;
  const Problem<T> p = problem_of<Levin>(args);
  Matrix a, b;
  if (!describe(p.a, p.m, p.k, a) || !describe(p.b, p.n, p.k, b)) return false;
  const bool batched = p.a.batch.axes > 0;
  const std::int64_t pieces = batched ? p.batch / p.a.batch.size[0] : 1;
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (pieces > kMostPieces || std::max({p.m, p.n, p.k, p.batch, a.pitch, b.pitch}) > most) return false;

  if (p.bias) fill_with_bias(args.out, args.bias, args.out.dim() - 1, stream);
  const Sum<T> beta = p.bias ? Sum<T>(1) : p.beta;
  const int device = stream.device().index;
  const Scratch<std::byte> workspace(stream, workspace_bytes(device));
  const Session session(handles(), device, create_handle);
  check(cublas().set_stream(session.handle(), stream_of(stream)), "cublasSetStream");
  check(cublas().set_workspace(session.handle(), workspace.get(), workspace.bytes()), "cublasSetWorkspace");
  for (std::int64_t i = 0; i < pieces; ++i) {
    Matrix a_piece = a, b_piece = b;
    a_piece.data = p.a.data + outer_offset(p.a.batch, i);
    b_piece.data = p.b.data + outer_offset(p.b.batch, i);
    const std::int64_t inner = batched ? p.a.batch.size[0] : 1;
    const Status status = run_piece(session.handle(), p, a_piece, b_piece, p.c + i * inner * p.m * p.n, beta);
    if (status == kNotSupported && i == 0) return false;
    check(status, batched ? "cublasGemmStridedBatchedEx" : "cublasGemmEx");
  }
  return true;
}

}  // namespace

bool cublas_matmul(const MatmulArgs& args, Stream& stream) {
  if (args.a.size(args.a.dim() - 1) == 0 || (args.bias.pointer && args.beta != 0)) return false;
  switch (args.out.dtype) {
    case DType::f32:
      return run<float>(args, stream);
    case DType::f64:
      return run<double>(args, stream);
    case DType::f16:
      return run<Half>(args, stream);
    case DType::bf16:
      return run<BFloat16>(args, stream);
    default:
      return false;
  }
}

}  // namespace levin::kernels::cuda
