#include "src/checkpoint/state_json.h"

#include <cmath>
#include <limits>

namespace levin {
namespace {

using nlohmann::json;

// JSON has no infinities: they are encoded as {"f64": "inf"}, and lists of floating-point numbers as {"f64": [...]}.
constexpr const char* kTag = "f64";

json number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

double number_from(const json& j) {
  if (j.is_number()) return j.get<double>();
  const auto text = j.get<std::string>();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return text == "inf" ? kInf : text == "-inf" ? -kInf : std::numeric_limits<double>::quiet_NaN();
}

struct ToJson {
  json operator()(std::int64_t v) const { return v; }
  json operator()(double v) const { return std::isfinite(v) ? json(v) : json{{kTag, number(v)}}; }
  json operator()(const std::string& v) const { return v; }
  json operator()(const std::vector<std::int64_t>& v) const { return v; }
  json operator()(const std::vector<std::string>& v) const { return v; }
  json operator()(const std::vector<double>& v) const {
    json list = json::array();
    for (const double x : v) list.push_back(number(x));
    return {{kTag, list}};
  }
};

StateValue value_from(const json& j) {
  if (j.is_number_integer()) return j.get<std::int64_t>();
  if (j.is_number_float()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (j.is_object()) {
    const json& tagged = j.at(kTag);
    if (!tagged.is_array()) return number_from(tagged);
    std::vector<double> list;
    for (const auto& x : tagged) list.push_back(number_from(x));
    return list;
  }
  if (!j.empty() && j.front().is_string()) return j.get<std::vector<std::string>>();
  return j.get<std::vector<std::int64_t>>();
}

}  // namespace

json to_json(const StateMap& values) {
  json out = json::object();
  for (const auto& [key, value] : values.values()) out[key] = std::visit(ToJson{}, value);
  return out;
}

StateMap state_from_json(const json& j) {
  StateMap out;
  try {
    for (const auto& [key, value] : j.items()) out.set(key, value_from(value));
  } catch (const json::exception& e) {
    throw StateError(std::string("[state] saved values cannot be read: ") + e.what() + ".");
  }
  return out;
}

}  // namespace levin
