#pragma once
// Checks of arguments and parts of printed trees that several layers share.

#include <levin/autograd/ops/conv.h>
#include <levin/core/tensor.h>

#include <fmt/format.h>

#include <string>

namespace levin::nn {

inline const char* yes_no(bool b) { return b ? "True" : "False"; }

/// "(1, 2)", as Python prints a tuple.
template <std::size_t N>
std::string tuple_text(const Tuple<N>& t) {
  std::string text;
  for (std::size_t i = 0; i < N; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", t[i]);
  return N == 1 ? "(" + text + ",)" : "(" + text + ")";
}
/// One number if all are equal.
template <std::size_t N>
std::string short_text(const Tuple<N>& t) {
  return t == Tuple<N>(t[0]) ? std::to_string(t[0]) : tuple_text(t);
}

/// The windows of a pool, or of the way back from one.
template <class P>
std::string pool_text(const P& pool) {
  return fmt::format("kernel_size={}, stride={}, padding={}", short_text(pool.kernel_size),
                     short_text(pool.options.stride.value_or(pool.kernel_size)), short_text(pool.options.padding));
}

inline void require_positive(const char* layer, const char* argument, int64_t value) {
  if (value < 1) throw ValueError(fmt::format("[{}] {} is {}. Give 1 or more.", layer, argument, value));
}

/// Initializes linear and convolutional layers by PyTorch's defaults: both uniform in +-1 / sqrt(fan_in).
void reset_weight_and_bias(const Tensor& weight, const Tensor& bias);

}  // namespace levin::nn
