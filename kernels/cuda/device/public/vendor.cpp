// levin::cuda: the choice between vendor libraries and Levin's kernels for products and convolutions, and their
// precision.

#include "kernels/cuda/matmul/options.h"
#include "kernels/cuda/vendor/choice.h"
#include "kernels/cuda/vendor/cublas.h"
#include "kernels/cuda/vendor/cudnn.h"

#include <levin/core/error.h>
#include <levin/kernels/cuda.h>

#include <fmt/format.h>

namespace levin {

namespace backend = kernels::cuda;

namespace {

/// True if `name` is the vendor's; throws for a name that is neither.
bool is_vendor(const std::string& name, const char* vendor, const char* what) {
  if (name != "levin" && name != vendor) {
    throw ValueError(fmt::format("[cuda] \"{}\" is no {} library that can be chosen; take \"levin\" or \"{}\".", name,
                                 what, vendor));
  }
  return name == vendor;
}

}  // namespace

void cuda::set_allow_tf32(bool allow) { backend::allow_tf32 = allow; }

bool cuda::allow_tf32() { return backend::allow_tf32; }

void cuda::set_preferred_blas_library(const std::string& name) {
  const bool vendor = is_vendor(name, "cublas", "BLAS");
  if (vendor) static_cast<void>(backend::cublas());
  backend::prefer_cublas = vendor;
}

std::string cuda::preferred_blas_library() { return backend::prefer_cublas ? "cublas" : "levin"; }

void cuda::set_preferred_conv_library(const std::string& name) {
  const bool vendor = is_vendor(name, "cudnn", "convolution");
  if (vendor) static_cast<void>(backend::cudnn());
  backend::prefer_cudnn = vendor;
}

std::string cuda::preferred_conv_library() { return backend::prefer_cudnn ? "cudnn" : "levin"; }

}  // namespace levin
