#pragma once
// Compares a program's results with a reference: values, first and second gradients.

#include "fuzz/program.h"

#include <functional>
#include <optional>

namespace levin::fuzz {

/// The results of a program. Gradients are those of the differentiable leaves, in order; second ones those of these
/// leaves and the cotangents, undefined if there is no dependence. First gradients are of the outputs weighted by the
/// cotangents, second ones of the first gradients weighted by weights_of().
struct Results {
  Tensors outputs{}, first{}, second{};
};

/// Returns the weights of a first gradient in second ones: numbers that every floating type represents exactly.
std::vector<double> weights_of(int64_t elements, std::size_t gradient);

/// Returns whether first and second gradients of a program are compared, as its cases specify.
bool compares_gradients(const Program& p);
bool compares_second_gradients(const Program& p);

/// Draws the incoming gradients of a program's outputs. There are none if it cannot run.
void draw_cotangents(Draw& d, Program& p);

/// Runs Levin. `exact`: in f64 on contiguous values, else in the type under test on the strided leaves.
Results run_levin(const Program& p, bool exact, Noise* noise = nullptr);

/// Another source of f64 results; returns nothing if it does not support the program.
using Peer = std::function<std::optional<Results>(const Program&)>;

/// Returns the error, or an empty string. Without a peer, values are compared with the cases' references, gradients in
/// narrower types with those in f64, those in f64 with finite differences of the reference, and second ones with finite
/// differences of the first.
std::string check(const Program& p, const Peer& peer = {});

}  // namespace levin::fuzz
