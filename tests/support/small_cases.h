#pragma once

namespace levin::test {

/// Whether LEVIN_SMALL_CASES=1 is in the environment: tests that repeat something for many types and sizes then take
/// some of these, so that every kernel still runs. Meant for sanitizers, under which kernels are slow.
bool small_cases();

}  // namespace levin::test
