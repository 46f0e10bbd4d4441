#pragma once

#include <cstddef>
#include <functional>

namespace levin::optim::detail {

/// The loss and its slope at one length of the step.
struct Probe {
  double rate, loss, slope;
  std::size_t number = 0;  ///< which evaluation it is, for the caller
};

/// Searches a step that meets the strong Wolfe conditions (Nocedal and Wright, "Numerical Optimization", algorithms 3.5
/// and 3.6), with the interpolation, safeguards and limits of torch.optim.LBFGS. `start` is the place before the step,
/// `rate` the first length to try, `largest` the largest component of the direction; a bracket that moves no parameter
/// by more than `tolerance` ends the search.
Probe strong_wolfe(const std::function<Probe(double rate)>& evaluate, const Probe& start, double rate, double largest,
                   double tolerance);

}  // namespace levin::optim::detail
