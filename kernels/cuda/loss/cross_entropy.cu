// Cross-entropy and its gradient.
#include "kernels/cuda/loss/cross_entropy.cuh"

namespace levin::kernels::cuda {

namespace {

/// Calls f.operator()<Group>(). If classes are strided, neighbouring samples are adjacent, so a thread takes one
/// sample; otherwise a warp does, or a block if there are many classes.
template <class F>
void with_group(const CrossEntropyArgs& a, F&& f) {
  constexpr std::int64_t kManyClasses = 2048;
  if (a.spatial > 1) return f.template operator()<ThreadGroup>();
  if (a.classes <= kManyClasses) return f.template operator()<WarpGroup>();
  f.template operator()<BlockGroup>();
}

}  // namespace

void cross_entropy(const CrossEntropyArgs& a, Stream& stream) {
  dispatch_floats(a.x.dtype, "cross_entropy", [&]<class T>() {
    with_group(a, [&]<class Group>() {
      const CrossEntropy<T> loss(a, stream);
      const unsigned blocks = blocks_of<Group>(loss.samples, kLossThreads);
      Scratch<LossSums> partial(stream, blocks);
      launch(cross_entropy_forward<Group, T>, {.grid = blocks, .block = kLossThreads, .stream = stream}, loss,
             partial.get());
      launch(finish_loss<T>, {.block = kLossThreads, .stream = stream}, partial.get(), static_cast<int>(blocks),
             loss.norm, a.reduction == LossReduction::none ? nullptr : loss.out, a.reduction);
    });
  });
}

void cross_entropy_backward(const CrossEntropyArgs& a, Stream& stream) {
  dispatch_floats(a.x.dtype, "cross_entropy_backward", [&]<class T>() {
    with_group(a, [&]<class Group>() {
      const CrossEntropy<T> loss(a, stream);
      launch(cross_entropy_gradient<Group, T>,
             {.grid = blocks_of<Group>(loss.samples, kLossThreads), .block = kLossThreads, .stream = stream}, loss);
    });
  });
}

}  // namespace levin::kernels::cuda
