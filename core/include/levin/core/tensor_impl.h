#pragma once
// The object to which a Tensor is a handle. Programs use Tensor; other modules of Levin read these fields.

#include <levin/core/owned_ptr.h>
#include <levin/core/shape.h>
#include <levin/core/storage.h>

#include <string>

namespace levin {

/// Base of the data that autograd attaches to a tensor; its contents are private to that module.
class AutogradData {
 public:
  virtual ~AutogradData() = default;
  /// Returns the text that printing appends: "requires_grad=True", "grad_fn=<mul>", or nothing.
  virtual std::string describe() const { return {}; }
};

namespace detail {
/// Set by autograd's inference_mode; defined here because every new tensor reads it.
inline constinit thread_local bool inference_mode_on = false;
}  // namespace detail

/// Part of a storage with sizes, strides and a type, and its place in the gradient graph.
class TensorImpl : public RefCounted, public Pooled<TensorImpl> {
 public:
  /// Sets the fields of these names; the device is that of the storage. Whether the elements lie inside the storage is
  /// not checked.
  TensorImpl(StoragePtr storage_, int64_t offset_, const Shape& sizes_, const Shape& strides_, DType dtype_)
      : storage(std::move(storage_)), offset(offset_), numel(sizes_.numel()), sizes(sizes_), strides(strides_),
        dtype(dtype_), device(storage->device()), contiguous(levin::is_contiguous(sizes_, strides_)) {}

  StoragePtr storage;      ///< memory, which views share
  int64_t offset;          ///< offset of the first element, in elements
  int64_t numel;           ///< number of elements
  Shape sizes, strides;    ///< one for each axis; strides are in elements
  DType dtype;             ///< element type
  Device device;           ///< device of the storage
  bool contiguous;         ///< the strides are those of row-major order
  bool inference = detail::inference_mode_on;  ///< created under inference_mode: may not be saved for backward
  OwnedPtr<AutogradData> autograd;             ///< null unless the tensor has to do with gradients
};

/// A share of a tensor; Tensor wraps it.
using TensorImplPtr = IntrusivePtr<TensorImpl>;

}  // namespace levin
