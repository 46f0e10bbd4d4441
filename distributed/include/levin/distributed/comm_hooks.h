#pragma once
// Communication hooks: how the gradients of a bucket are averaged, for Reducer::register_comm_hook.

#include <levin/core/state_dict.h>
#include <levin/distributed/process_group.h>

#include <functional>

namespace levin::distributed {

/// Gradients that are communicated together.
struct GradBucket {
  std::size_t index = 0;                  ///< position in the order of the exchange
  Tensor buffer{};                        ///< (elements of all its gradients); receives the average over the ranks
  std::vector<Tensor> gradients{};        ///< views of the buffer in the shapes of their parameters
  std::vector<std::size_t> parameters{};  ///< indices of their parameters in the reducer's list, which never change
};

/// Functions to call at the end of backward: stage s of all buckets, in their order, before stage s + 1 of any bucket.
using CommStages = std::vector<std::function<void()>>;

/// Begins the exchange of a bucket, possibly while backward runs. All ranks call the same operations in the same order.
using CommHook = std::function<CommStages(ProcessGroup& group, const GradBucket& bucket)>;

/// Averages over the ranks; the reducer's default.
CommStages allreduce_hook(ProcessGroup& group, const GradBucket& bucket);
/// Divides the gradients by the number of ranks n, rounds them to 16 bits and sums them in that type, with half the
/// bytes of float32. With the unit roundoff u of the type (2^-11, 2^-8), the error of a sum over n ranks is at most n u
/// times the mean of the gradients' absolute values, plus n 2^-25 where fp16 is subnormal. Beyond 65504 fp16 is
/// infinite. 16-bit gradients are communicated unchanged.
CommStages fp16_compress_hook(ProcessGroup& group, const GradBucket& bucket);
CommStages bf16_compress_hook(ProcessGroup& group, const GradBucket& bucket);

/// Options of PowerSgd, with the defaults of PyTorch's PowerSGDState; the same on all ranks.
struct PowerSgdOptions {
  int64_t rank = 1;            ///< number of columns of the factors
  int64_t start_step = 1000;   ///< number of initial exchanges that are plain averages, as gradients change fast then
  double min_compression = 2;  ///< a matrix (n, m) is factored where (n + m) * rank * min_compression < n * m
  bool error_feedback = true;  ///< adds the approximation error to this rank's next gradient
  bool warm_start = true;      ///< each step begins with the right factor of the step before
  std::uint64_t seed = 0;      ///< seed of the first factors; the same on all ranks
};

/// PowerSGD: approximates the averaged gradient by a product of two thin matrices, with one step of power iteration (T.
/// Vogels, S. P. Karimireddy, M. Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
/// Optimization", NeurIPS 2019). A gradient of two or more dimensions is the matrix (size(0), all others); vectors, and
/// matrices that would not shrink, are averaged. With error feedback no part of a gradient is lost: what one exchange
/// leaves out is added to the next. A gradient that is not finite stays so in the result and does not change the error
/// of its matrix. Errors have the scale of the gradients: when a GradScaler changes its scale, the errors are
/// multiplied by the ratio of both scales.
///
///   PowerSgd hook({.rank = 2});
///   ddp.register_comm_hook(hook);  // copies share one state
///
/// Keeps a matrix of the gradient's size for each factored parameter. The factors are orthogonalised on the host.
class PowerSgd {
 public:
  /// Throws ValueError for a rank below 1, a negative step or a min_compression that is not above 0.
  explicit PowerSgd(const PowerSgdOptions& options = {});
  /// The communication hook: see CommHook.
  CommStages operator()(ProcessGroup& group, const GradBucket& bucket) const;

  /// Numbers of elements that this rank has communicated since the exchanges began to factor matrices.
  struct Traffic {
    int64_t elements = 0;  ///< number of gradient elements in factored exchanges
    int64_t sent = 0;      ///< number of elements that were sent in their place, vectors included
  };
  /// Returns the counts of all exchanges so far.
  Traffic traffic() const;

  /// This rank's state for a checkpoint: factors, errors, the number of exchanges and the position of the random number
  /// generator. A hook that loads it continues with the same bits. Throws StateError for any other dictionary.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace levin::distributed
