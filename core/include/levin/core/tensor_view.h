#pragma once
// The tensor type of kernel arguments: memory, sizes and strides, without autograd or ownership.

#include <levin/core/device.h>
#include <levin/core/scalar.h>
#include <levin/core/shape.h>

#include <cstring>

namespace levin {

/// A tensor as kernels see it. It owns nothing: the memory must outlive it. A default one stands for an absent operand.
struct TensorView {
  void* pointer = nullptr;  ///< first element; null for a number stored inline
  Shape sizes;              ///< one for each axis
  Shape strides;            ///< in elements
  DType dtype = DType::f32; ///< element type, never a complex one
  Device device;            ///< device of the memory
  alignas(8) std::byte inline_value[8] = {};  ///< the number's bytes, of type dtype, if pointer is null

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

  /// True for a number stored inline, and for an absent operand.
  bool is_number() const { return pointer == nullptr && sizes.empty(); }
  /// Returns the first element, or the number. T must be the type of dtype; this is not checked.
  template <class T>
  T* data() const {
    return static_cast<T*>(pointer ? pointer : const_cast<std::byte*>(inline_value));
  }
  /// As the members of Tensor with these names, except that axes are counted from 0 and not checked.
  int dim() const { return sizes.size(); }
  int64_t size(int axis) const { return sizes[axis]; }
  int64_t stride(int axis) const { return strides[axis]; }
  int64_t numel() const { return sizes.numel(); }
  bool is_contiguous() const { return levin::is_contiguous(sizes, strides); }
};

}  // namespace levin
