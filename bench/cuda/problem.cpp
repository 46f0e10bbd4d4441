#include "bench/cuda/problem.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/cuda.h>

#include <algorithm>
#include <map>

namespace levin::bench {

std::string Problem::shape() const {
  std::string text;
  for (const auto& [name, size] : sizes) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  return text;
}

std::vector<Entry> problems(Scale scale) {
  std::vector<Entry> list;
  add_lines(list, scale);
  add_streams(list, scale);
  add_gemm(list, scale);
  add_attention(list, scale);
  add_conv(list, scale);
  return list;
}

Tensor normal(const Shape& sizes, DType dtype) { return randn(sizes, {.dtype = dtype, .device = cuda(0)}); }

Tensor on_device(const Shape& sizes, DType dtype) { return empty(sizes, {.dtype = dtype, .device = cuda(0)}); }

Tensor rows_of(const Tensor& x, int64_t first, int64_t count) {
  return x.narrow(0, first, count).to(kCpu).to(kFloat64).contiguous();
}

double tolerance_of(DType dtype) { return dtype == DType::bf16 ? 1e-2 : dtype == DType::f16 ? 2e-3 : 1e-5; }

double bytes_of(std::span<const Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<double>(t.numel() * size_of(t.dtype()));
  return bytes;
}

namespace {

/// Why a library cannot be chosen; asked once, since opening one that is not there takes a search.
const std::string& why_missing(const std::string& library, void (*choose)(const std::string&)) {
  static std::map<std::string, std::string> known;
  if (const auto found = known.find(library); found != known.end()) return found->second;
  std::string reason;
  try {
    choose(library);
    choose("levin");
  } catch (const Error& e) {
    reason = e.what();
  }
  return known[library] = reason;
}

Peer vendor_peer(const std::string& library, void (*choose)(const std::string&), Run operation) {
  if (const std::string& reason = why_missing(library, choose); !reason.empty()) return {library, {}, reason};
  return {library, [library, choose, operation = std::move(operation)](Stream& stream) {
            choose(library);
            operation(stream);
            choose("levin");
          }};
}

}  // namespace

Peer cublas_peer(Run operation, bool tf32) {
  return vendor_peer("cublas", cuda::set_preferred_blas_library,
                     [tf32, operation = std::move(operation)](Stream& stream) {
                       cuda::set_allow_tf32(tf32);
                       operation(stream);
                       cuda::set_allow_tf32(false);
                     });
}

Peer cudnn_peer(Run operation) { return vendor_peer("cudnn", cuda::set_preferred_conv_library, std::move(operation)); }

Peer memcpy_peer(double bytes) {
  const auto half = std::max<int64_t>(static_cast<int64_t>(bytes / 2), 1);
  const Tensor from = normal({(half + 3) / 4}, kFloat32), to = empty_like(from);
  return {.name = "memcpy",
          .run =
              [from, to, half](Stream& stream) {
                device_backend(stream.device())
                    .copy(to.raw_data(), stream.device(), from.raw_data(), stream.device(),
                          static_cast<std::size_t>(half), stream);
              },
          .computes = false};
}

}  // namespace levin::bench
