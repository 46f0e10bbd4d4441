#pragma once
// A program's results against a reference: values, first and second gradients.

#include "fuzz/program.h"

#include <functional>
#include <optional>

namespace levin::fuzz {

/// What a program gives. Gradients stand for the differentiable leaves, in order; second ones for these leaves and the
/// cotangents, undefined where there is no dependence. First gradients are those of the outputs weighted by the
/// cotangents, second ones those of the first gradients weighted by weights_of().
struct Results {
  Tensors outputs{}, first{}, second{};
};

/// The weights of a first gradient in second ones: numbers that every floating type holds exactly.
std::vector<double> weights_of(int64_t elements, std::size_t gradient);

/// Whether first and second gradients of a program are compared: its cases say so.
bool compares_gradients(const Program& p);
bool compares_second_gradients(const Program& p);

/// Draws the incoming gradients of a program's outputs. Where it cannot run there are none.
void draw_cotangents(Draw& d, Program& p);

/// Runs Levin. `exact`: in f64 on contiguous values, else in the type under test on the strided leaves.
Results run_levin(const Program& p, bool exact, Noise* noise = nullptr);

/// Results in f64 from elsewhere; nothing where it cannot tell.
using Peer = std::function<std::optional<Results>(const Program&)>;

/// Empty, or what is wrong. Without a peer, values are compared with the cases' references, gradients in narrower types
/// with those in f64, and those in f64 with slopes of the reference, second ones with slopes of the first.
std::string check(const Program& p, const Peer& peer = {});

}  // namespace levin::fuzz
