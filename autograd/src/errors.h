#pragma once
// Throws the library's exceptions with formatted messages.

#include <levin/core/error.h>
#include <levin/core/tensor.h>

#include <fmt/format.h>

#include <string>
#include <utility>

namespace levin {

namespace detail {

/// Returns an argument of a message in the form in which it is printed.
inline std::string printed(const Shape& sizes) { return to_string(sizes); }
inline std::string printed(Device device) { return to_string(device); }
inline auto printed(DType dtype) { return name_of(dtype); }
template <class T>
const T& printed(const T& value) {
  return value;
}

}  // namespace detail

/// Throws E with a message in the format of {fmt}. Sizes, types and devices may be among the arguments.
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<decltype(detail::printed(std::declval<const Args&>()))...> message,
                       const Args&... args) {
  throw E(fmt::format(message, detail::printed(args)...));
}

}  // namespace levin
