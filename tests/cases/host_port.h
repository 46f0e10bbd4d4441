#pragma once
// The kernels of the device in host_device.h. Its memory is the host's, so the host's kernels are right ones for it.

#include "cases/host_device.h"

#include <levin/core/error.h>
#include <levin/kernels/amp.h>
#include <levin/kernels/attention.h>
#include <levin/kernels/conv.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/creation.h>
#include <levin/kernels/dropout.h>
#include <levin/kernels/elementwise.h>
#include <levin/kernels/indexing.h>
#include <levin/kernels/loss.h>
#include <levin/kernels/matmul.h>
#include <levin/kernels/norm.h>
#include <levin/kernels/optim.h>
#include <levin/kernels/pool.h>
#include <levin/kernels/random.h>
#include <levin/kernels/reduce.h>
#include <levin/kernels/scan.h>
#include <levin/kernels/softmax.h>
#include <levin/kernels/sort.h>

#include <string>
#include <type_traits>

namespace levin::test {

namespace port {

namespace k = levin::kernels;

template <class K>
struct ArgumentsOf;
template <class A>
struct ArgumentsOf<k::Kernel<void(const A&, Stream&)>> {
  using type = A;
};

/// Fills the device's column of one table.
template <auto& kernel>
void port(DeviceType type) {
  using Arguments = typename ArgumentsOf<std::remove_cvref_t<decltype(kernel)>>::type;
  kernel.set(type, [](const Arguments& arguments, Stream& stream) {
    if (stream.device().type != DeviceType::custom0)
      throw DeviceError("[port] this kernel is custom0's, the stream is of " + to_string(stream.device()) + ".");
    Stream host(kCpu);
    kernel(arguments, host);
  });
}

template <auto&... kernels>
void port_all(DeviceType type) {
  (port<kernels>(type), ...);
}

}  // namespace port

/// Gives the device a kernel for every operation, as somebody would who adds an accelerator from outside.
inline void port_kernels() {
  using namespace port;
  host_backend();
  port_all<k::amp_unscale, k::amp_update_scale, k::attention, k::attention_backward, k::conv2d,
           k::conv2d_backward_input, k::conv2d_backward_weight, k::copy, k::fill, k::arange, k::linspace, k::dropout,
           k::neg, k::abs, k::sign, k::square, k::floor, k::ceil, k::round, k::trunc, k::reciprocal, k::sqrt, k::rsqrt,
           k::exp, k::expm1, k::log, k::log2, k::log10, k::log1p, k::sin, k::cos, k::tan, k::tanh, k::sigmoid, k::erf,
           k::clamp, k::relu, k::leaky_relu, k::elu, k::gelu, k::gelu_tanh, k::silu, k::softplus, k::logsigmoid,
           k::isnan, k::isinf, k::isfinite, k::logical_not, k::add, k::mul, k::div, k::floor_divide, k::remainder,
           k::pow, k::maximum, k::minimum, k::atan2, k::eq, k::ne, k::lt, k::le, k::gt, k::ge, k::logical_and,
           k::logical_or, k::logical_xor, k::relu_backward, k::leaky_relu_backward, k::clamp_backward,
           k::sigmoid_backward, k::tanh_backward, k::gelu_backward, k::gelu_tanh_backward, k::silu_backward,
           k::elu_backward, k::softplus_backward, k::logsigmoid_backward, k::where, k::lerp, k::addcmul, k::addcdiv,
           k::cat, k::index_select, k::index_add, k::gather, k::scatter, k::scatter_add, k::count_nonzero, k::nonzero,
           k::triangle, k::one_hot, k::check_labels, k::cross_entropy, k::cross_entropy_backward, k::bce_with_logits,
           k::bce_with_logits_backward, k::matmul, k::batch_norm, k::batch_norm_backward, k::layer_norm,
           k::layer_norm_backward, k::sgd_step, k::adam_step, k::max_pool2d, k::max_pool2d_backward, k::max_pool2d_pick,
           k::avg_pool2d, k::avg_pool2d_backward, k::uniform, k::normal, k::randint, k::bernoulli, k::sum, k::prod,
           k::amax, k::amin, k::any, k::all, k::norm, k::argmax, k::argmin, k::cumsum, k::softmax, k::log_softmax,
           k::softmax_backward, k::log_softmax_backward, k::sort, k::topk>(DeviceType::custom0);
}

}  // namespace levin::test
