// A stand-in for cuDNN's convolutions on emulated devices: simple loops. It refuses what cuDNN refuses, and lists
// unsuitable algorithms before the suitable one.

#include <algorithm>
#include <utility>

#include "cuda/vendor/fake/numbers.h"

namespace levin::test::fake {

namespace {

constexpr int kSuccess = 0, kBadParameter = 2000, kNotSupported = 3000;
constexpr int kUndetermined = 0, kGreedy = 1, kFailing = 2, kGood = 3;  // algorithms
constexpr std::size_t kWorkspace = 5000, kTooMuch = std::size_t{1} << 40;

struct Handle {
  int device = 0;
  cudaStream_t stream = nullptr;
};
struct Tensor {
  int type = -1, size[4] = {};
};
struct Convolution {
  int padding[2], stride[2], dilation[2], mode, compute, groups = 1, math = 0;
};
struct Algorithm {
  int algorithm, status;
  float time;
  std::size_t memory;
  int determinism, math, reserved[3];
};

enum Pass { kForward, kBackwardInput, kBackwardWeight };

struct Problem {
  Pass pass;
  Type type;
  bool tf32;
  int x[4], weight[4], y[4], padding[2], stride[2], dilation[2], groups;
  const void *first, *second;
  void* result;
  double alpha, beta;
  char* workspace;
};

/// Sums every product that contributes to element `e` of the result. It searches all products, because any of the three
/// convolutions may be requested.
__global__ void convolve(Problem p) {
  const long long e = thread_index();
  if (e < static_cast<long long>(kWorkspace)) p.workspace[e] = 1;
  const int* size = p.pass == kForward ? p.y : p.pass == kBackwardInput ? p.x : p.weight;
  if (e >= static_cast<long long>(size[0]) * size[1] * size[2] * size[3]) return;
  const int at[4] = {static_cast<int>(e / size[3] / size[2] / size[1]),
                     static_cast<int>(e / size[3] / size[2] % size[1]), static_cast<int>(e / size[3] % size[2]),
                     static_cast<int>(e % size[3])};
  const int inputs = p.weight[1], outputs = p.y[1] / p.groups;
  double sum = 0;
  const auto index = [](const int* s, int i, int j, int k, int l) {
    return ((static_cast<long long>(i) * s[1] + j) * s[2] + k) * s[3] + l;
  };
  const auto add = [&](int b, int o, int c, int i, int j, int r, int s) {
    const int h = i * p.stride[0] - p.padding[0] + r * p.dilation[0];
    const int w = j * p.stride[1] - p.padding[1] + s * p.dilation[1];
    const int channel = o / outputs * inputs + c;
    if (h < 0 || h >= p.x[2] || w < 0 || w >= p.x[3]) return;
    if (p.pass == kBackwardInput && (channel != at[1] || h != at[2] || w != at[3])) return;
    const long long x = index(p.x, b, channel, h, w), weight = index(p.weight, o, c, r, s), y = index(p.y, b, o, i, j);
    double first = load(p.first, p.type, p.pass == kBackwardInput ? weight : x);
    double second = load(p.second, p.type, p.pass == kForward ? weight : y);
    if (p.tf32) first = to_tf32(first), second = to_tf32(second);
    sum += first * second;
  };
  const auto each_output = [&](int b, int o, int c, int r, int s) {
    for (int i = 0; i < p.y[2]; ++i) {
      for (int j = 0; j < p.y[3]; ++j) add(b, o, c, i, j, r, s);
    }
  };
  if (p.pass == kBackwardWeight) {
    for (int b = 0; b < p.x[0]; ++b) each_output(b, at[0], at[1], at[2], at[3]);
  }
  for (int r = 0; p.pass != kBackwardWeight && r < p.weight[2]; ++r) {
    for (int s = 0; s < p.weight[3]; ++s) {
      if (p.pass == kForward) {
        for (int c = 0; c < inputs; ++c) add(at[0], at[1], c, at[2], at[3], r, s);
      } else {
        for (int o = at[1] / inputs * outputs; o < (at[1] / inputs + 1) * outputs; ++o)
          each_output(at[0], o, at[1] % inputs, r, s);
      }
    }
  }
  double result = p.alpha * sum;
  if (p.beta != 0) result += p.beta * load(p.result, p.type, e);
  store(p.result, p.type, e, result);
}

bool is_consistent(const Tensor& x, const Tensor& weight, const Convolution& c, const Tensor& y) {
  if (x.type != weight.type || x.type != y.type) return complain("types %d %d %d", x.type, weight.type, y.type);
  if (c.mode != 1) return complain("mode %d turns the kernel round", c.mode);
  if (c.compute != (x.type == 1 ? 1 : 0)) return complain("type %d computed in type %d", x.type, c.compute);
  if (x.size[0] != y.size[0] || y.size[1] != weight.size[0]) return complain("batches or outputs differ");
  if (x.size[1] != weight.size[1] * c.groups || y.size[1] % c.groups != 0) return complain("%d groups", c.groups);
  for (int i = 0; i < 2; ++i) {
    const int reach = c.dilation[i] * (weight.size[i + 2] - 1) + 1;
    if (y.size[i + 2] != (x.size[i + 2] + 2 * c.padding[i] - reach) / c.stride[i] + 1)
      return complain("axis %d of y is %d", i + 2, y.size[i + 2]);
  }
  return true;
}

int list_algorithms(const Tensor& x, const Tensor& weight, const Convolution& c, const Tensor& y, int wanted,
                    int* found, Algorithm* list) {
  if (!is_consistent(x, weight, c, y)) return kBadParameter;
  ++levin_fake_vendor()->choices;
  if (wanted < 4) return kBadParameter;
  const bool never = levin_fake_vendor()->only_undetermined;
  *found = 4;
  for (int i = 0; i < 4; ++i) {
    list[i] = {};
    list[i].algorithm = i;
    list[i].status = i == kFailing ? kNotSupported : kSuccess;
    list[i].memory = i == kGreedy ? kTooMuch : kWorkspace;
    list[i].determinism = i == kUndetermined || never ? 0 : 1;
    list[i].math = c.math;
  }
  return kSuccess;
}

int workspace_of(int algorithm, std::size_t* bytes) {
  *bytes = algorithm == kGreedy ? kTooMuch : kWorkspace;
  return kSuccess;
}

int run(Pass pass, const Handle& h, const void* alpha, const Tensor& x, const Tensor& weight, const Convolution& c,
        const Tensor& y, const void* first, const void* second, int algorithm, void* workspace, std::size_t bytes,
        const void* beta, void* result) {
  FakeVendor& record = *levin_fake_vendor();
  if (const int status = std::exchange(record.next_status, 0)) return status;
  int device = -1;
  cudaGetDevice(&device);
  if (device != h.device || !h.stream) complain("the wrong device, or no stream");
  if (algorithm != kGood) complain("algorithm %d was taken", algorithm);
  if (!workspace || bytes < kWorkspace) complain("a workspace of %zu bytes", bytes);
  if (record.complaint[0] || !is_consistent(x, weight, c, y)) return kBadParameter;
  Problem p{};
  p.pass = pass;
  p.type = x.type == 0 ? Type::f32 : x.type == 1 ? Type::f64 : x.type == 2 ? Type::f16 : Type::bf16;
  p.tf32 = x.type == 0 && c.math != 3;
  std::copy_n(x.size, 4, p.x), std::copy_n(weight.size, 4, p.weight), std::copy_n(y.size, 4, p.y);
  std::copy_n(c.padding, 2, p.padding), std::copy_n(c.stride, 2, p.stride), std::copy_n(c.dilation, 2, p.dilation);
  p.groups = c.groups;
  p.first = first, p.second = second, p.result = result;
  p.alpha = scalar(alpha, x.type == 1), p.beta = scalar(beta, x.type == 1);
  p.workspace = static_cast<char*>(workspace);
  const int* size = pass == kForward ? p.y : pass == kBackwardInput ? p.x : p.weight;
  const long long elements = static_cast<long long>(size[0]) * size[1] * size[2] * size[3];
  if (!queue(convolve, h.stream, std::max(elements, static_cast<long long>(kWorkspace)), p)) return kBadParameter;
  record.math = c.math;
  record.beta = static_cast<float>(p.beta);
  ++record.convolutions[pass];
  return kSuccess;
}

template <class T>
int create(T** made) {
  *made = new T;
  ++levin_fake_vendor()->descriptors;
  return kSuccess;
}
template <class T>
int destroy(T* gone) {
  delete gone;
  --levin_fake_vendor()->descriptors;
  return kSuccess;
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return 91300; }
const char* cudnnGetErrorString(int status) {
  return status == 5000 ? "CUDNN_STATUS_EXECUTION_FAILED" : "another status";
}
int cudnnCreate(Handle** handle) {
  *handle = new Handle;  // never freed, because Levin keeps handles forever
  cudaGetDevice(&(*handle)->device);
  ++levin_fake_vendor()->handles;
  return kSuccess;
}
int cudnnSetStream(Handle* handle, cudaStream_t stream) {
  handle->stream = stream;
  return kSuccess;
}

int cudnnCreateTensorDescriptor(Tensor** t) { return create(t); }
int cudnnSetTensor4dDescriptor(Tensor* t, int format, int type, int n, int c, int h, int w) {
  *t = {type, {n, c, h, w}};
  return format == 0 ? kSuccess : kBadParameter;
}
int cudnnDestroyTensorDescriptor(Tensor* t) { return destroy(t); }
int cudnnCreateFilterDescriptor(Tensor** t) { return create(t); }
int cudnnSetFilter4dDescriptor(Tensor* t, int type, int format, int k, int c, int h, int w) {
  *t = {type, {k, c, h, w}};
  return format == 0 ? kSuccess : kBadParameter;
}
int cudnnDestroyFilterDescriptor(Tensor* t) { return destroy(t); }
int cudnnCreateConvolutionDescriptor(Convolution** c) { return create(c); }
int cudnnSetConvolution2dDescriptor(Convolution* c, int padding_h, int padding_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int compute) {
  *c = {{padding_h, padding_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, mode, compute};
  return kSuccess;
}
int cudnnSetConvolutionGroupCount(Convolution* c, int groups) {
  c->groups = groups;
  return kSuccess;
}
int cudnnSetConvolutionMathType(Convolution* c, int math) {
  c->math = math;
  return kSuccess;
}
int cudnnDestroyConvolutionDescriptor(Convolution* c) { return destroy(c); }

int cudnnGetConvolutionForwardAlgorithm_v7(Handle*, Tensor* x, Tensor* weight, Convolution* c, Tensor* y, int wanted,
                                           int* found, Algorithm* list) {
  return list_algorithms(*x, *weight, *c, *y, wanted, found, list);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle*, Tensor* weight, Tensor* y, Convolution* c, Tensor* x,
                                                int wanted, int* found, Algorithm* list) {
  return list_algorithms(*x, *weight, *c, *y, wanted, found, list);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle*, Tensor* x, Tensor* y, Convolution* c, Tensor* weight,
                                                  int wanted, int* found, Algorithm* list) {
  return list_algorithms(*x, *weight, *c, *y, wanted, found, list);
}
int cudnnGetConvolutionForwardWorkspaceSize(Handle*, Tensor*, Tensor*, Convolution*, Tensor*, int algorithm,
                                            std::size_t* bytes) {
  return workspace_of(algorithm, bytes);
}
int cudnnGetConvolutionBackwardDataWorkspaceSize(Handle*, Tensor*, Tensor*, Convolution*, Tensor*, int algorithm,
                                                 std::size_t* bytes) {
  return workspace_of(algorithm, bytes);
}
int cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle*, Tensor*, Tensor*, Convolution*, Tensor*, int algorithm,
                                                   std::size_t* bytes) {
  return workspace_of(algorithm, bytes);
}

int cudnnConvolutionForward(Handle* h, const void* alpha, Tensor* x, const void* x_data, Tensor* weight,
                            const void* weight_data, Convolution* c, int algorithm, void* workspace, std::size_t bytes,
                            const void* beta, Tensor* y, void* y_data) {
  return run(kForward, *h, alpha, *x, *weight, *c, *y, x_data, weight_data, algorithm, workspace, bytes, beta, y_data);
}
int cudnnConvolutionBackwardData(Handle* h, const void* alpha, Tensor* weight, const void* weight_data, Tensor* y,
                                 const void* y_data, Convolution* c, int algorithm, void* workspace, std::size_t bytes,
                                 const void* beta, Tensor* x, void* x_data) {
  return run(kBackwardInput, *h, alpha, *x, *weight, *c, *y, weight_data, y_data, algorithm, workspace, bytes, beta,
             x_data);
}
int cudnnConvolutionBackwardFilter(Handle* h, const void* alpha, Tensor* x, const void* x_data, Tensor* y,
                                   const void* y_data, Convolution* c, int algorithm, void* workspace,
                                   std::size_t bytes, const void* beta, Tensor* weight, void* weight_data) {
  return run(kBackwardWeight, *h, alpha, *x, *weight, *c, *y, x_data, y_data, algorithm, workspace, bytes, beta,
             weight_data);
}

}  // extern "C"

}  // namespace levin::test::fake
