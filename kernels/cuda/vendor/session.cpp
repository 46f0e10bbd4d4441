#include "kernels/cuda/vendor/session.h"

#include "kernels/cuda/device/relaxed_capture.h"

#include <levin/kernels/copy.h>

namespace levin::kernels::cuda {

void copy(const CopyArgs& args, Stream& stream);

void* HandlePool::take(int device, void* (*create)()) {
  {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[device];
    if (!free.empty()) {
      void* handle = free.back();
      free.pop_back();
      return handle;
    }
  }
  const RelaxedCapture relaxed;  // a library allocates memory for a handle
  return create();
}

void HandlePool::put_back(int device, void* handle) noexcept {
  const std::lock_guard lock(mutex_);
  free_[device].push_back(handle);
}

void fill_with_bias(const TensorView& out, const TensorView& bias, int axis, Stream& stream) {
  CopyArgs args{out, bias};
  args.x.sizes = Shape(out.sizes);
  args.x.strides = Shape(out.sizes);
  for (int i = 0; i < out.dim(); ++i) args.x.strides[i] = i == axis ? 1 : 0;
  copy(args, stream);
}

}  // namespace levin::kernels::cuda
