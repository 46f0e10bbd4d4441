#pragma once
// Converts StateMap to JSON and back with the same bits: numbers in their shortest form that reads back exactly, others
// as text.

#include <levin/core/state_map.h>

#include <nlohmann/json.hpp>

namespace levin {

nlohmann::json to_json(const StateMap& values);
/// Throws StateError if the JSON does not represent a StateMap.
StateMap state_from_json(const nlohmann::json& json);

}  // namespace levin
