// conv2d and its gradients by cuDNN's legacy interface: descriptors, a choice of algorithm, a workspace.

#include "kernels/cuda/vendor/conv.h"

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/matmul/options.h"
#include "kernels/cuda/vendor/cudnn.h"
#include "kernels/cuda/vendor/session.h"

#include <array>
#include <limits>
#include <map>
#include <memory>

namespace levin::kernels::cuda {

namespace {

using namespace cudnn_api;

constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;
constexpr std::size_t kMostPlans = 4096;

bool is_unsupported(Status status) { return status >= kNotSupported && status < kInternalError; }

void* create_handle() {
  Handle handle = nullptr;
  check(cudnn().create(&handle), "cudnnCreate");
  return handle;
}

HandlePool& handles() {
  static HandlePool& pool = *new HandlePool;
  return pool;
}

/// Owns a cuDNN descriptor.
class Descriptor {
 public:
  Descriptor(Status (*create)(void**), Status (*destroy)(void*), const char* call) : destroy_(destroy) {
    check(create(&p_), call);
  }
  ~Descriptor() { static_cast<void>(destroy_(p_)); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void* get() const { return p_; }

 private:
  void* p_ = nullptr;
  Status (*destroy_)(void*);
};

Type type_of(DType dtype) {
  return dtype == DType::f64 ? kFloat64 : dtype == DType::f16 ? kFloat16 : dtype == DType::bf16 ? kBFloat16 : kFloat32;
}

/// Returns the math mode. For float32, without TF32 a multiply-add is done in float32.
Math math_of(DType dtype) {
  if (dtype == DType::f32) return allow_tf32 ? kDefaultMath : kFmaMath;
  return dtype == DType::f64 ? kDefaultMath : kTensorOpMath;
}

const Pass& functions_of(ConvPass pass) {
  const Functions& f = cudnn();
  return pass == ConvPass::forward          ? f.forward
         : pass == ConvPass::backward_input ? f.backward_input
                                            : f.backward_weight;
}

/// Describes a convolution to cuDNN and holds the chosen algorithm.
class Plan {
 public:
  Plan(ConvPass pass, const Conv2dArgs& args, Handle handle) : math_(math_of(args.y.dtype)) {
    const ConvShape s(args);
    const Functions& f = cudnn();
    const Type type = type_of(args.y.dtype);
    check(f.set_tensor(x_.get(), kNchw, type, s.batch, s.groups * s.inputs, s.in_h, s.in_w),
          "cudnnSetTensor4dDescriptor");
    check(f.set_tensor(y_.get(), kNchw, type, s.batch, s.groups * s.outputs, s.out_h, s.out_w),
          "cudnnSetTensor4dDescriptor");
    check(f.set_filter(weight_.get(), type, kNchw, s.groups * s.outputs, s.inputs, s.kernel_h, s.kernel_w),
          "cudnnSetFilter4dDescriptor");
    check(f.set_convolution(conv_.get(), s.padding_h, s.padding_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w,
                            kCrossCorrelation, type == kFloat64 ? kFloat64 : kFloat32),
          "cudnnSetConvolution2dDescriptor");
    check(f.set_groups(conv_.get(), s.groups), "cudnnSetConvolutionGroupCount");
    check(f.set_math(conv_.get(), math_), "cudnnSetConvolutionMathType");
    choose(pass, handle);
  }

  bool usable() const { return algorithm_ >= 0; }
  std::int64_t workspace() const { return static_cast<std::int64_t>(workspace_); }

  /// Computes result = the convolution + beta * result.
  Status run(ConvPass pass, const Conv2dArgs& args, double beta, Handle handle, void* workspace) const {
    const double one = 1.0;
    const float narrow_one = 1.0f, narrow_beta = static_cast<float>(beta);
    const bool wide = args.y.dtype == DType::f64;
    const void* alpha_at = wide ? static_cast<const void*>(&one) : &narrow_one;
    const void* beta_at = wide ? static_cast<const void*>(&beta) : &narrow_beta;
    const Side x{x_.get(), args.x.pointer}, weight{weight_.get(), args.weight.pointer}, y{y_.get(), args.y.pointer};
    const auto [first, second, result] = order(pass, x, weight, y);
    return functions_of(pass).run(handle, alpha_at, first.descriptor, first.data, second.descriptor, second.data,
                                  conv_.get(), algorithm_, workspace, workspace_, beta_at, result.descriptor,
                                  result.data);
  }

 private:
  struct Side {
    void *descriptor, *data;
  };

  /// Returns the two operands and the result.
  static std::array<Side, 3> order(ConvPass pass, const Side& x, const Side& weight, const Side& y) {
    if (pass == ConvPass::forward) return {x, weight, y};
    if (pass == ConvPass::backward_input) return {weight, y, x};
    return {x, y, weight};
  }

  /// Chooses the first deterministic algorithm of cuDNN's list, which is sorted by speed.
  void choose(ConvPass pass, Handle handle) {
    const Pass& f = functions_of(pass);
    const auto [first, second, result] =
        order(pass, {x_.get(), nullptr}, {weight_.get(), nullptr}, {y_.get(), nullptr});
    std::array<Algorithm, 16> found{};
    int count = 0;
    const Status status = f.algorithms(handle, first.descriptor, second.descriptor, conv_.get(), result.descriptor,
                                       static_cast<int>(found.size()), &count, found.data());
    if (is_unsupported(status)) return;
    check(status, "choosing cuDNN's algorithm");
    for (int i = 0; i < count; ++i) {
      const Algorithm& a = found[static_cast<std::size_t>(i)];
      if (a.status != kSuccess || a.determinism != kDeterministic) continue;
      if (math_ != kFmaMath) check(cudnn().set_math(conv_.get(), a.math), "cudnnSetConvolutionMathType");
      std::size_t bytes = 0;
      if (f.workspace_size(handle, first.descriptor, second.descriptor, conv_.get(), result.descriptor, a.algorithm,
                           &bytes) != kSuccess ||
          bytes > kMostWorkspace)
        continue;
      algorithm_ = a.algorithm;
      workspace_ = bytes;
      return;
    }
  }

  Math math_;
  Descriptor x_{cudnn().create_tensor, cudnn().destroy_tensor, "cudnnCreateTensorDescriptor"};
  Descriptor y_{cudnn().create_tensor, cudnn().destroy_tensor, "cudnnCreateTensorDescriptor"};
  Descriptor weight_{cudnn().create_filter, cudnn().destroy_filter, "cudnnCreateFilterDescriptor"};
  Descriptor conv_{cudnn().create_convolution, cudnn().destroy_convolution, "cudnnCreateConvolutionDescriptor"};
  int algorithm_ = -1;
  std::size_t workspace_ = 0;
};

using Key = std::array<std::int64_t, 22>;

Key key_of(ConvPass pass, const Conv2dArgs& args, int device) {
  Key key{};
  std::size_t i = 0;
  const auto put = [&](std::int64_t x) { key[i++] = x; };
  for (const TensorView* t : {&args.x, &args.weight, &args.y}) {
    for (int axis = 0; axis < 4; ++axis) put(t->size(axis));
  }
  for (const std::int64_t x :
       {args.stride_h, args.stride_w, args.padding_h, args.padding_w, args.dilation_h, args.dilation_w, args.groups})
    put(x);
  put(static_cast<std::int64_t>(pass) * 2 + (allow_tf32 ? 1 : 0));
  put(static_cast<std::int64_t>(args.y.dtype));
  put(device);
  return key;
}

/// Returns the cached plan. The choice takes cuDNN a while, and a training step repeats the same shapes.
std::shared_ptr<const Plan> plan_for(ConvPass pass, const Conv2dArgs& args, int device, Handle handle) {
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<const Plan>>& plans = *new std::map<Key, std::shared_ptr<const Plan>>;
  const Key key = key_of(pass, args, device);
  const std::lock_guard lock(mutex);
  if (const auto found = plans.find(key); found != plans.end()) return found->second;
  if (plans.size() >= kMostPlans) plans.clear();
  return plans[key] = std::make_shared<const Plan>(pass, args, handle);
}

/// True if cuDNN's integers can hold the sizes, and y has the size that it expects.
bool fits(const Conv2dArgs& args) {
  for (const TensorView* t : {&args.x, &args.weight, &args.y}) {
    if (t->numel() == 0 || t->numel() > std::numeric_limits<int>::max()) return false;
  }
  const auto size = [](std::int64_t n, std::int64_t padding, std::int64_t dilation, std::int64_t kernel,
                       std::int64_t stride) { return (n + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; };
  return args.y.size(2) == size(args.x.size(2), args.padding_h, args.dilation_h, args.weight.size(2), args.stride_h) &&
         args.y.size(3) == size(args.x.size(3), args.padding_w, args.dilation_w, args.weight.size(3), args.stride_w);
}

}  // namespace

bool cudnn_conv(ConvPass pass, const Conv2dArgs& args, Stream& stream) {
  if (!fits(args)) return false;
  const int device = stream.device().index;
  const Session session(handles(), device, create_handle);
  check(cudnn().set_stream(session.handle(), static_cast<cudaStream_t>(stream.handle())), "cudnnSetStream");
  const std::shared_ptr<const Plan> plan = plan_for(pass, args, device, session.handle());
  if (!plan->usable()) return false;
  const TensorView& result = pass == ConvPass::forward ? args.y : args.x;
  const bool bias = pass != ConvPass::backward_weight && args.bias.pointer;
  if (bias) fill_with_bias(result, args.bias, 1, stream);
  const Scratch<std::byte> workspace(stream, plan->workspace());
  const Status status = plan->run(pass, args, bias ? 1.0 : 0.0, session.handle(), workspace.get());
  if (is_unsupported(status)) return false;
  check(status, "a convolution of cuDNN");
  return true;
}

}  // namespace levin::kernels::cuda
