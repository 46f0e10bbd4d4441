#pragma once
// The tensor type of kernel arguments: memory, sizes and strides, without autograd or ownership.

#include <levin/core/device.h>
#include <levin/core/scalar.h>
#include <levin/core/shape.h>

#include <cstring>

namespace levin {

struct TensorView {
  void* pointer = nullptr;  ///< first element; null for a number stored inline
  Shape sizes;
  Shape strides;            ///< in elements
  DType dtype = DType::f32;
  Device device;
  alignas(8) std::byte inline_value[8] = {};

  /// Returns a number as a 0-dim operand for any device, converted to `dtype`.
  static TensorView number(const Scalar& value, DType dtype) {
    TensorView v;
    v.dtype = dtype;
    dispatch_all(dtype, "scalar", [&]<class T>() {
      const T x = value.to<T>();
      std::memcpy(v.inline_value, &x, sizeof x);
    });
    return v;
  }

  bool is_number() const { return pointer == nullptr && sizes.empty(); }
  template <class T>
  T* data() const {
    return static_cast<T*>(pointer ? pointer : const_cast<std::byte*>(inline_value));
  }
  int dim() const { return sizes.size(); }
  int64_t size(int axis) const { return sizes[axis]; }
  int64_t stride(int axis) const { return strides[axis]; }
  int64_t numel() const { return sizes.numel(); }
  bool is_contiguous() const { return levin::is_contiguous(sizes, strides); }
};

}  // namespace levin
