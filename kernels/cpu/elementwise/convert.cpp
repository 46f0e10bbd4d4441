// Conversion of every type to every type, one row at a time.

#include "rows.h"

#include <array>
#include <cstring>
#include <tuple>
#include <utility>

namespace levin::kernels::cpu {

namespace {

using Types = std::tuple<double, float, Half, BFloat16, std::int64_t, std::int32_t, std::int16_t, std::int8_t,
                         std::uint8_t, bool>;

template <class To, class From>
inline To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};  // in x's own type: a narrower one may turn it into zero
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<std::int64_t>(x));  // wraps as in PyTorch on x86
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void convert_row(void* out, int64_t out_stride, const void* in, int64_t in_stride, int64_t n) {
  if (out_stride == sizeof(To) && in_stride == sizeof(From)) {
    To* to = static_cast<To*>(out);
    const From* from = static_cast<const From*>(in);
    if constexpr (std::is_same_v<To, From>) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(To));
    } else if constexpr (sizeof(To) + sizeof(From) == 6 && is_floating(dtype_of<To>) && is_floating(dtype_of<From>)) {
      simd_convert_fn(dtype_of<To>, dtype_of<From>)(to, from, n);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
    }
    return;
  }
  std::byte* to = static_cast<std::byte*>(out);
  const std::byte* from = static_cast<const std::byte*>(in);
  for (int64_t i = 0; i < n; ++i, to += out_stride, from += in_stride)
    *reinterpret_cast<To*>(to) = convert<To>(*reinterpret_cast<const From*>(from));
}

template <class To, std::size_t... I>
constexpr std::array<ConvertFn, kRealDTypeCount> row_to(std::index_sequence<I...>) {
  return {convert_row<To, std::tuple_element_t<I, Types>>...};
}

template <std::size_t... I>
constexpr std::array<std::array<ConvertFn, kRealDTypeCount>, kRealDTypeCount> table(std::index_sequence<I...> all) {
  return {row_to<std::tuple_element_t<I, Types>>(all)...};
}

constexpr auto kConvert = table(std::make_index_sequence<kRealDTypeCount>{});

}  // namespace

ConvertFn convert_fn(DType to, DType from) {
  return kConvert[static_cast<std::size_t>(to)][static_cast<std::size_t>(from)];
}

}  // namespace levin::kernels::cpu
