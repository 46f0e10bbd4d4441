#pragma once
// How the gradients of a bucket travel: other ways than the plain average, for Reducer::register_comm_hook.

#include <levin/core/state_dict.h>
#include <levin/distributed/process_group.h>

#include <functional>

namespace levin::distributed {

/// Gradients that travel together.
struct GradBucket {
  std::size_t index = 0;                  ///< in the order of the exchange
  Tensor buffer{};                        ///< (elements of all its gradients); the average of the ranks is left here
  std::vector<Tensor> gradients{};        ///< parts of the buffer in the shapes of their parameters
  std::vector<std::size_t> parameters{};  ///< whose gradients: places in the reducer's list, which never change
};

/// What is to be done when backward is through: stage s of all buckets, in their order, before stage s + 1 of any.
using CommStages = std::vector<std::function<void()>>;

/// Begins the exchange of a bucket while backward may still run. All ranks call the same operations in the same order.
using CommHook = std::function<CommStages(ProcessGroup& group, const GradBucket& bucket)>;

/// The average of the ranks: what a reducer does by itself.
CommStages allreduce_hook(ProcessGroup& group, const GradBucket& bucket);
/// Gradients are divided by the number of ranks n and rounded to 16 bits, which add up: half the bytes of float32. With
/// the unit roundoff u of the type (2^-11, 2^-8), the error of a sum over n ranks is at most n u times the mean of the
/// gradients' absolute values, and n 2^-25 where fp16 is near its smallest numbers. Beyond 65504 fp16 is infinite.
/// Gradients of 16 bits travel as they are.
CommStages fp16_compress_hook(ProcessGroup& group, const GradBucket& bucket);
CommStages bf16_compress_hook(ProcessGroup& group, const GradBucket& bucket);

struct PowerSgdOptions {
  int64_t rank = 1;            ///< columns of the factors
  int64_t start_step = 1000;   ///< exchanges before this many are plain averages, as gradients change fast at first
  double min_compression = 2;  ///< a matrix (n, m) is factored where (n + m) * rank * min_compression < n * m
  bool error_feedback = true;  ///< what was left out is added to the next gradient of this rank
  bool warm_start = true;      ///< each step begins with the right factor of the one before
  std::uint64_t seed = 0;      ///< of the first factors; the same on all ranks
};

/// PowerSGD: the averaged gradient as a product of two thin matrices, by one step of the power iteration (T. Vogels,
/// S. P. Karimireddy, M. Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
/// NeurIPS 2019). A gradient of two or more dimensions is the matrix (size(0), all others); vectors, and matrices that
/// would not shrink, are averaged. What all ranks send adds up to the sum of their gradients: nothing is lost, only
/// late. A gradient that is not finite stays so in the result and leaves the error of its matrix alone. The errors have
/// the scale of the gradients: with a GradScaler, those kept across a change of its scale count by the ratio of both.
///
///   PowerSgd hook({.rank = 2});
///   ddp.register_comm_hook(hook);  // copies share one state
///
/// Keeps a matrix of the gradient's size for each factored parameter. The factors are made orthonormal on the host.
class PowerSgd {
 public:
  /// Throws ValueError for a rank below 1, a negative step or a min_compression that is not above 0.
  explicit PowerSgd(const PowerSgdOptions& options = {});
  CommStages operator()(ProcessGroup& group, const GradBucket& bucket) const;

  struct Traffic {
    int64_t elements = 0;  ///< of the gradients of factored exchanges
    int64_t sent = 0;      ///< in their place, vectors included
  };
  Traffic traffic() const;

  /// What a checkpoint keeps of this rank: factors, errors, the number of exchanges and the place in the random
  /// numbers. A hook into which it is loaded goes on to the bit; throws StateError for what is no such state.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace levin::distributed
