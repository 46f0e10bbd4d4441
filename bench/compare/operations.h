#pragma once

#include <functional>
#include <string>

/// Measures the operations whose rows `wanted` names and prints a line for each.
void compare_operations(std::function<bool(const std::string&)> wanted);
