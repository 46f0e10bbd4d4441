#include "line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace levin::optim::detail {

namespace {

constexpr double kDecrease = 1e-4, kCurvature = 0.9;
constexpr int kMostProbes = 25;

/// Returns the minimum of the cubic through two probes and their slopes, within [low, high].
double cubic_minimum(Probe a, Probe b, double low, double high) {
  if (a.rate > b.rate) std::swap(a, b);
  const double mean_slope = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.rate - b.rate);
  const double square = mean_slope * mean_slope - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double root = std::sqrt(square);
  const double at = b.rate - (b.rate - a.rate) * ((b.slope + root - mean_slope) / (b.slope - a.slope + 2 * root));
  return std::min(std::max(at, low), high);
}

class Search {
 public:
  Search(const std::function<Probe(double)>& evaluate, const Probe& start) : evaluate_(evaluate), start_(start) {}

  /// Lengthens the step until a suitable one lies between two probes.
  void bracket(double rate) {
    Probe previous = start_, now = evaluate_(rate);
    for (; probes_ < kMostProbes; ++probes_) {
      const bool rises = now.slope >= 0;
      if (too_high(now) || (probes_ > 1 && now.loss >= previous.loss)) return set(previous, now);
      if (is_flat(now)) return finish(now);
      if (rises) return set(previous, now);
      const double next = cubic_minimum(previous, now, now.rate + 0.01 * (now.rate - previous.rate), now.rate * 10);
      previous = now;
      now = evaluate_(next);
    }
    set(start_, now);
  }

  /// Narrows the bracket around a suitable step.
  Probe zoom(double largest, double tolerance) {
    bool was_slow = false;
    for (; !done_ && probes_ < kMostProbes; ++probes_) {
      const double least = std::min(low_.rate, high_.rate), most = std::max(low_.rate, high_.rate);
      if ((most - least) * largest < tolerance) break;
      double rate = cubic_minimum(low_, high_, least, most);
      // A probe near an end of the bracket narrows it little: after two of them, go a tenth inwards.
      const double margin = 0.1 * (most - least);
      const bool slow = std::min(most - rate, rate - least) < margin;
      const bool inwards = slow && (was_slow || rate >= most || rate <= least);
      if (inwards) rate = std::abs(rate - most) < std::abs(rate - least) ? most - margin : least + margin;
      was_slow = slow && !inwards;
      narrow(evaluate_(rate));
    }
    return low_;
  }

 private:
  bool too_high(const Probe& p) const { return p.loss > start_.loss + kDecrease * p.rate * start_.slope; }
  bool is_flat(const Probe& p) const { return std::abs(p.slope) <= -kCurvature * start_.slope; }

  void set(const Probe& a, const Probe& b) {
    low_ = a.loss <= b.loss ? a : b;
    high_ = a.loss <= b.loss ? b : a;
  }
  void finish(const Probe& p) {
    low_ = high_ = p;
    done_ = true;
  }
  void narrow(const Probe& now) {
    if (too_high(now) || now.loss >= low_.loss) return set(low_, now);
    if (is_flat(now))
      done_ = true;
    else if (now.slope * (high_.rate - low_.rate) >= 0)
      high_ = low_;
    low_ = now;
  }

  const std::function<Probe(double)>& evaluate_;
  const Probe start_;
  Probe low_{}, high_{};  // ends of the bracket: the lower and the higher loss
  int probes_ = 0;
  bool done_ = false;
};

}  // namespace

Probe strong_wolfe(const std::function<Probe(double)>& evaluate, const Probe& start, double rate, double largest,
                   double tolerance) {
  Search search(evaluate, start);
  search.bracket(rate);
  return search.zoom(largest, tolerance);
}

}  // namespace levin::optim::detail
