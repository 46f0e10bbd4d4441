#include <levin/kernels/amp.h>
#include <levin/kernels/attention.h>
#include <levin/kernels/conv.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/creation.h>
#include <levin/kernels/dropout.h>
#include <levin/kernels/elementwise.h>
#include <levin/kernels/indexing.h>
#include <levin/kernels/loss.h>
#include <levin/kernels/matmul.h>
#include <levin/kernels/norm.h>
#include <levin/kernels/optim.h>
#include <levin/kernels/pool.h>
#include <levin/kernels/random.h>
#include <levin/kernels/reduce.h>
#include <levin/kernels/scan.h>
#include <levin/kernels/softmax.h>
#include <levin/kernels/sort.h>
#include <levin/kernels/work.h>

#include <string_view>
#include <typeindex>
#include <unordered_map>

namespace levin::kernels {
namespace {

using std::string_view;

double count(const TensorView& t) { return static_cast<double>(t.numel()); }

double bytes(const TensorView& t) {
  if (!t.pointer) return 0;  // absent, or a number
  double elements = 1;
  for (int i = 0; i < t.dim(); ++i)
    if (t.stride(i) != 0) elements *= static_cast<double>(t.size(i));
  return elements * static_cast<double>(size_of(t.dtype));
}

template <class... T>
double bytes(const TensorView& first, const T&... rest) {
  return bytes(first) + (bytes(rest) + ... + 0.0);
}

template <std::size_t N>
bool is_one(string_view kernel, const string_view (&names)[N]) {
  for (const string_view name : names)
    if (kernel == name) return true;
  return false;
}

double flops_each(string_view kernel) {
  static constexpr string_view kCheap[] = {"neg",   "abs",        "sign",       "square", "floor",    "ceil",
                                           "round", "trunc",      "reciprocal", "sqrt",   "rsqrt",    "clamp",
                                           "relu",  "leaky_relu", "isnan",      "isinf",  "isfinite", "logical_not"};
  static constexpr string_view kFunctions[] = {
      "atan2",        "gelu_backward",     "gelu_tanh_backward", "silu_backward",
      "elu_backward", "softplus_backward", "logsigmoid_backward"};
  if (is_one(kernel, kCheap)) return 1;
  if (kernel == "pow") return 40;
  return is_one(kernel, kFunctions) ? 20 : 0;
}

Work unary(string_view kernel, const UnaryArgs& a) {
  const double each = flops_each(kernel);
  return {bytes(a.out, a.x), count(a.out) * (each > 0 ? each : 20), a.x.dtype};
}

Work binary(string_view kernel, const BinaryArgs& a) {
  const double each = flops_each(kernel);
  const bool three = kernel == "sigmoid_backward" || kernel == "tanh_backward";
  return {bytes(a.out, a.a, a.b), count(a.out) * (each > 0 ? each : three ? 3 : 1), a.compute};
}

Work ternary(string_view kernel, const TernaryArgs& a) {
  return {bytes(a.out, a.a, a.b, a.c), kernel == "where" ? 0 : 3 * count(a.out), a.compute};
}

Work conv(string_view, const Conv2dArgs& a) {
  // Two of the three are read and one is written, whichever way it goes.
  const double taps = count(a.weight) / static_cast<double>(std::max<int64_t>(1, a.weight.size(0)));
  return {bytes(a.x, a.weight, a.bias, a.y), 2 * count(a.y) * taps, a.x.dtype};
}

Work matmul_work(string_view, const MatmulArgs& a) {
  const double k = static_cast<double>(a.a.size(a.a.dim() - 1));
  return {bytes(a.a, a.b, a.bias) + bytes(a.out) * (a.beta != 0 ? 2 : 1), 2 * k * count(a.out), a.a.dtype};
}

Work attention_work(string_view, const AttentionArgs& a) {
  const double scores = count(a.q) / static_cast<double>(std::max<int64_t>(1, a.q.size(a.q.dim() - 1))) *
                        static_cast<double>(a.k.size(a.k.dim() - 2));
  const double widths = static_cast<double>(a.q.size(a.q.dim() - 1) + a.v.size(a.v.dim() - 1));
  return {bytes(a.out, a.q, a.k, a.v), 2 * scores * widths * (a.causal ? 0.5 : 1), a.q.dtype};
}

Work attention_backward_work(string_view, const AttentionBackwardArgs& a) {
  const double scores = count(a.q) / static_cast<double>(std::max<int64_t>(1, a.q.size(a.q.dim() - 1))) *
                        static_cast<double>(a.k.size(a.k.dim() - 2));
  const double widths = static_cast<double>(3 * a.q.size(a.q.dim() - 1) + 2 * a.v.size(a.v.dim() - 1));
  return {bytes(a.dq, a.dk, a.dv, a.g, a.out, a.q, a.k, a.v), 2 * scores * widths * (a.causal ? 0.5 : 1), a.q.dtype};
}

Work norm_work(string_view, const NormArgs& a) {
  return {bytes(a.out, a.x), count(a.x) * (a.p == 1 || a.p == 2 ? 2 : 40), a.x.dtype};
}

Work softmax_work(string_view, const SoftmaxArgs& a) { return {bytes(a.out, a.x), 25 * count(a.x), a.x.dtype}; }

Work softmax_backward_work(string_view kernel, const SoftmaxBackwardArgs& a) {
  return {bytes(a.dx, a.g, a.y), count(a.y) * (kernel == "softmax_backward" ? 4 : 25), a.y.dtype};
}

Work cross_entropy_work(string_view kernel, const CrossEntropyArgs& a) {
  const bool backward = kernel == "cross_entropy_backward";
  return {backward ? bytes(a.x, a.target, a.dx) : bytes(a.x, a.target), 25 * count(a.x), a.x.dtype};
}

Work bce_work(string_view kernel, const BceArgs& a) {
  const bool backward = kernel == "bce_with_logits_backward";
  return {backward ? bytes(a.x, a.target, a.dx) : bytes(a.x, a.target, a.out), 40 * count(a.x), a.x.dtype};
}

Work max_pool_work(string_view, const MaxPool2dArgs& a) {
  const double window = static_cast<double>(a.geometry.kernel_h * a.geometry.kernel_w);
  return {bytes(a.x, a.y, a.indices), window * count(a.y), a.x.dtype};
}

Work max_pool_backward_work(string_view, const MaxPool2dBackwardArgs& a) {
  return {bytes(a.dx, a.dy, a.indices), count(a.dy), a.dx.dtype};
}

Work avg_pool_work(string_view, const AvgPool2dArgs& a) {
  const double window = static_cast<double>(a.geometry.kernel_h * a.geometry.kernel_w);
  return {bytes(a.x, a.y), window * count(a.y), a.x.dtype};
}

Work batch_norm_work(string_view, const BatchNormArgs& a) { return {bytes(a.x, a.y), 8 * count(a.x), a.x.dtype}; }
Work batch_norm_backward_work(string_view, const BatchNormBackwardArgs& a) {
  return {bytes(a.x, a.g, a.dx), 10 * count(a.x), a.x.dtype};
}
Work layer_norm_work(string_view, const LayerNormArgs& a) { return {bytes(a.x, a.y), 8 * count(a.x), a.x.dtype}; }
Work layer_norm_backward_work(string_view, const LayerNormBackwardArgs& a) {
  return {bytes(a.x, a.g, a.dx), 12 * count(a.x), a.x.dtype};
}

/// `passes` over the parameters' memory, `flops` an element.
Work optimizer_work(std::span<const OptimTensor> tensors, double passes, double flops) {
  Work w;
  for (const auto& t : tensors) {
    w.dtype = t.dtype;
    w.bytes += passes * static_cast<double>(t.numel) * static_cast<double>(size_of(t.dtype));
    w.flops += flops * static_cast<double>(t.numel);
  }
  return w;
}

Work sgd_work(string_view, const SgdStepArgs& a) {
  return optimizer_work(a.tensors, a.momentum != 0 ? 5 : 3, a.momentum != 0 ? 6 : 4);
}
Work adam_work(string_view, const AdamStepArgs& a) { return optimizer_work(a.tensors, a.amsgrad ? 9 : 7, 15); }

Work unscale_work(string_view, const UnscaleArgs& a) {
  Work w;
  for (const auto& t : a.tensors) {
    w.bytes += 2.0 * static_cast<double>(t.numel) * static_cast<double>(size_of(t.dtype));
    w.flops += static_cast<double>(t.numel);
    w.dtype = t.dtype;
  }
  return w;
}

Work update_scale_work(string_view, const UpdateScaleArgs&) { return {7 * sizeof(float), 4, DType::f32}; }

Work cat_work(string_view, const CatArgs& a) {
  Work w{bytes(a.out), 0, a.out.dtype};
  for (const auto& part : a.parts) w.bytes += bytes(part);
  return w;
}

// Bytes of elements that move by position: each element that arrives was read once, with its index.
Work index_select_work(string_view, const IndexSelectArgs& a) {
  return {2 * bytes(a.out) + bytes(a.index), 0, a.out.dtype};
}
Work index_add_work(string_view, const IndexAddArgs& a) {
  return {3 * bytes(a.source) + bytes(a.index), count(a.source), a.out.dtype};
}
Work gather_work(string_view, const GatherArgs& a) { return {2 * bytes(a.out) + bytes(a.index), 0, a.out.dtype}; }
Work scatter_work(string_view kernel, const ScatterArgs& a) {
  const double moved = count(a.index) * static_cast<double>(size_of(a.out.dtype));
  const bool adds = kernel == "scatter_add";
  return {moved * (adds ? 3 : 2) + bytes(a.index), adds ? count(a.index) : 0, a.out.dtype};
}

Work sort_work(string_view, const SortArgs& a) { return {bytes(a.x, a.values, a.indices), 0, a.x.dtype}; }
Work sum_work(string_view, const SumArgs& a) { return {bytes(a.out, a.x), count(a.x), a.x.dtype}; }
Work reduce_work(string_view, const ReduceArgs& a) { return {bytes(a.out, a.x), count(a.x), a.x.dtype}; }
Work arg_reduce_work(string_view, const ArgReduceArgs& a) {
  return {bytes(a.values, a.indices, a.x), count(a.x), a.x.dtype};
}
Work cumsum_work(string_view, const CumsumArgs& a) { return {bytes(a.out, a.x), count(a.x), a.x.dtype}; }
Work copy_work(string_view, const CopyArgs& a) { return {bytes(a.out, a.x), 0, a.out.dtype}; }
Work fill_work(string_view, const FillArgs& a) { return {bytes(a.out), 0, a.out.dtype}; }
Work range_work(string_view, const RangeArgs& a) { return {bytes(a.out), 2 * count(a.out), a.out.dtype}; }
Work linspace_work(string_view, const LinspaceArgs& a) { return {bytes(a.out), 2 * count(a.out), a.out.dtype}; }
Work dropout_work(string_view, const DropoutArgs& a) { return {bytes(a.out, a.x), 2 * count(a.x), a.x.dtype}; }
Work random_work(string_view, const RandomArgs& a) { return {bytes(a.out), 2 * count(a.out), a.out.dtype}; }
Work randint_work(string_view, const RandintArgs& a) { return {bytes(a.out), 0, a.out.dtype}; }
Work bernoulli_work(string_view, const BernoulliArgs& a) { return {bytes(a.out, a.p), count(a.out), a.out.dtype}; }
Work labels_work(string_view, const CheckLabelsArgs& a) { return {bytes(a.labels), 0, a.labels.dtype}; }
Work count_nonzero_work(string_view, const CountNonzeroArgs& a) {
  return {bytes(a.counts, a.x), count(a.x), a.x.dtype};
}
Work nonzero_work(string_view, const NonzeroArgs& a) { return {bytes(a.out, a.x, a.counts), 0, a.x.dtype}; }
Work triangle_work(string_view, const TriangleArgs& a) { return {bytes(a.out, a.x), 0, a.out.dtype}; }
Work one_hot_work(string_view, const OneHotArgs& a) { return {bytes(a.out, a.index), 0, a.out.dtype}; }

using Entry = std::pair<const std::type_index, Work (*)(string_view, const void*)>;

template <auto function>
Entry entry() {
  return []<class Args>(Work (*)(string_view, const Args&)) {
    return Entry(typeid(Args), [](string_view kernel, const void* args) {
      return function(kernel, *static_cast<const Args*>(args));
    });
  }(function);
}

}  // namespace

Work work_of(const char* kernel, const std::type_info& type, const void* args) {
  static const std::unordered_map<std::type_index, Work (*)(string_view, const void*)> table = {
      entry<unary>(),
      entry<binary>(),
      entry<ternary>(),
      entry<conv>(),
      entry<matmul_work>(),
      entry<attention_work>(),
      entry<attention_backward_work>(),
      entry<norm_work>(),
      entry<softmax_work>(),
      entry<softmax_backward_work>(),
      entry<cross_entropy_work>(),
      entry<bce_work>(),
      entry<max_pool_work>(),
      entry<max_pool_backward_work>(),
      entry<avg_pool_work>(),
      entry<batch_norm_work>(),
      entry<batch_norm_backward_work>(),
      entry<layer_norm_work>(),
      entry<layer_norm_backward_work>(),
      entry<sgd_work>(),
      entry<adam_work>(),
      entry<unscale_work>(),
      entry<update_scale_work>(),
      entry<cat_work>(),
      entry<index_select_work>(),
      entry<index_add_work>(),
      entry<gather_work>(),
      entry<scatter_work>(),
      entry<sort_work>(),
      entry<sum_work>(),
      entry<reduce_work>(),
      entry<arg_reduce_work>(),
      entry<cumsum_work>(),
      entry<copy_work>(),
      entry<fill_work>(),
      entry<range_work>(),
      entry<linspace_work>(),
      entry<dropout_work>(),
      entry<random_work>(),
      entry<randint_work>(),
      entry<bernoulli_work>(),
      entry<labels_work>(),
      entry<count_nonzero_work>(),
      entry<nonzero_work>(),
      entry<triangle_work>(),
      entry<one_hot_work>()};
  const auto found = table.find(type);
  return found == table.end() ? Work{} : found->second(kernel, args);
}

}  // namespace levin::kernels
