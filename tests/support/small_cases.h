#pragma once

namespace levin::test {

/// Returns whether LEVIN_SMALL_CASES=1 is set: tests that repeat something for many types and sizes then run a part
/// that still covers every kernel. Meant for sanitizers, under which kernels are slow.
bool small_cases();

}  // namespace levin::test
