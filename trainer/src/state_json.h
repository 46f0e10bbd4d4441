#pragma once
// StateMap as JSON, exact to the bit: numbers in their shortest form that reads back the same, others as text.

#include <levin/trainer/state_map.h>

#include <nlohmann/json.hpp>

namespace levin {

nlohmann::json to_json(const StateMap& values);
/// Throws StateError where the JSON is not such a map.
StateMap state_from_json(const nlohmann::json& json);

}  // namespace levin
