#pragma once
// Numbers in JSON, which has no NaN.

#include <levin/trainer/loggers/logger.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace levin {

inline nlohmann::json json_number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity";
}

/// Inverse conversion; NaN for values that are not numbers.
inline double number_of(const nlohmann::json& v) {
  if (v.is_number()) return v.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  return v == "Infinity" ? infinity : v == "-Infinity" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

inline nlohmann::json json_of(const Hyperparameter& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>)
          return json_number(v);
        else
          return v;
      },
      value);
}

/// Returns a (C, C) matrix as a list of rows.
nlohmann::json json_rows(const Tensor& matrix);

/// Serializes to text and replaces invalid UTF-8.
inline std::string dumped(const nlohmann::json& j) {
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace levin
