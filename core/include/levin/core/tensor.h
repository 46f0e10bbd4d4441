#pragma once
// The tensor type: a handle to memory with a shape, and optionally a place in the autograd graph. Copies of a handle
// refer to the same tensor. The members below the headings `// autograd` are defined by that module. Those that forward
// to free functions of the same names are listed in tensor_methods.h.

#include <levin/core/axes.h>
#include <levin/core/index.h>
#include <levin/core/storage.h>
#include <levin/core/tensor_view.h>

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

namespace levin {

class IndexedTensor;
class Tensor;
struct Index;
struct ValuesIndices;

/// Removes a hook. Copies refer to the same hook; an empty handle does nothing.
class HookHandle {
 public:
  HookHandle() = default;
  /// Calls the function `remove` on the first remove(). A handle that ends removes nothing.
  explicit HookHandle(std::function<void()> remove);
  /// Removes the hook; further calls do nothing.
  void remove();

 private:
  std::shared_ptr<std::function<void()>> remove_;
};

/// A handle to a tensor: memory with sizes, strides, dtype and device, and optionally a place in the gradient graph.
/// Copies of a handle refer to the same tensor, so members that change it are const. A default-constructed handle is
/// undefined, and using it throws ValueError. Besides the members below, those of core/tensor_methods.h forward to the
/// functions of autograd/ops: x.exp() is exp(x). Threads may read one tensor at the same time, but not change it.
class Tensor {
 public:
  Tensor() = default;
  /// Makes a handle of what another part of Levin made; null gives an undefined one.
  explicit Tensor(TensorImplPtr impl) : impl_(std::move(impl)) {}

  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;

  // Assignment to a named tensor makes it another handle; assignment to a temporary writes, because a temporary is what
  // `x(0) = y` and `x.t() = y` have on their left. LibTorch chose the same. A proxy type instead would spoil
  // `auto part = x(0)`, and std::swap, containers and moves of members assign to names only.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// Writes values of this shape, or that broadcast to it, into the memory that a view shares, converting the dtype.
  /// Throws as copy_ does, and ValueError for a temporary that shares its memory with nothing.
  Tensor& operator=(const Tensor& value) &&;
  Tensor& operator=(const Scalar& value) &&;

  /// False for a default-constructed handle.
  bool defined() const { return static_cast<bool>(impl_); }

  explicit operator bool() const = delete;  // use defined() or item<bool>()

  /// The sizes of the axes, which PyTorch also calls shape, and the distances of neighbours along them, in elements.
  const Shape& sizes() const { return impl()->sizes; }
  const Shape& shape() const { return impl()->sizes; }
  const Shape& strides() const { return impl()->strides; }
  /// The same of one axis, negative ones counted from the end. Throw IndexError.
  int64_t size(int64_t axis) const { return sizes()[wrap_axis(axis, dim(), "size")]; }
  int64_t stride(int64_t axis) const { return strides()[wrap_axis(axis, dim(), "stride")]; }
  /// The number of axes, and of elements.
  int dim() const { return impl()->sizes.size(); }
  int64_t numel() const { return impl()->numel; }
  /// The type of the elements, and where they are.
  DType dtype() const { return impl()->dtype; }
  Device device() const { return impl()->device; }
  /// True if the elements lie in row-major order without gaps.
  bool is_contiguous() const { return impl()->contiguous; }
  /// True for the real floating types, and for the complex ones.
  bool is_floating() const { return levin::is_floating(dtype()); }
  bool is_complex() const { return levin::is_complex(dtype()); }
  /// The memory, the offset of the first element in it (in elements), and the number of its changes in place.
  const StoragePtr& storage() const { return impl()->storage; }
  int64_t storage_offset() const { return impl()->offset; }
  std::uint32_t version() const { return impl()->storage->version(); }
  /// True if it was created under inference_mode: recorded operations refuse to save it.
  bool is_inference() const { return impl()->inference; }
  /// True if both handles refer to the same tensor.
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }
  /// True if both share memory.
  bool shares_storage(const Tensor& o) const { return impl()->storage == o.impl()->storage; }

  /// Returns memory, sizes and strides for a kernel. Throws DTypeError for a complex tensor: kernels read complex
  /// numbers as a last axis of two real ones, view_as_real(x).
  TensorView tensor_view() const;
  /// Returns a pointer to the first element. Throws DTypeError unless T is the tensor's type, and DeviceError unless
  /// the tensor is on the CPU.
  template <class T>
  T* data() const {
    return static_cast<T*>(checked_data(dtype_of<T>));
  }
  /// Returns a pointer to the first element, for any type and device.
  void* raw_data() const {
    return static_cast<std::byte*>(impl()->storage->data()) + impl()->offset * size_of(impl()->dtype);
  }
  /// Returns the single element, converted to T; throws ShapeError unless numel() is 1, and DTypeError for a complex
  /// element unless T is std::complex. Waits for the device.
  template <class T>
  T item() const {
    if constexpr (detail::ComplexNumber<T>) {
      using Part = typename T::value_type;
      const ComplexItem z = item_complex();
      return T(static_cast<Part>(z.real), static_cast<Part>(z.imag));
    } else {
      return item_scalar().to<T>();
    }
  }
  /// As item(), as a number of the same category; throws DTypeError for a complex element.
  Scalar item_scalar() const;
  /// The parts `real` and `imag` of an element.
  struct ComplexItem {
    double real, imag;
  };
  /// As item(), for any type; a real element has imag = 0.
  ComplexItem item_complex() const;
  /// Returns all elements in row-major order, converted to T, which may be std::complex. Throws DTypeError where
  /// complex elements would lose a part. Waits for the device.
  template <class T>
  std::vector<T> to_vector() const;

  // autograd: the graph

  /// True for a leaf after requires_grad_(), and for the result of a recorded operation.
  bool requires_grad() const;
  /// Sets whether operations on this leaf are recorded. Returns the same tensor. Throws DTypeError unless its type is
  /// floating or complex, and GradError for a tensor of inference_mode and to turn off what is not a leaf.
  const Tensor& requires_grad_(bool on = true) const;
  /// True unless a recorded operation made it.
  bool is_leaf() const;
  /// Returns the accumulated gradient of a leaf, or of a tensor with retain_grad; undefined when there is none. Throws
  /// GradError for a row-wise one (row_grad() of autograd/row_gradient.h).
  const Tensor& grad() const;
  /// Replaces the gradient; an undefined one removes it. Throws ShapeError unless sizes, dtype and device are the same.
  void set_grad(const Tensor& g) const;
  /// Lets backward store the gradient of a tensor that is not a leaf too. Throws GradError unless it requires grad.
  void retain_grad() const;
  /// True if it is not a leaf and retain_grad() was called.
  bool retains_grad() const;
  /// Returns the name of the operation that created this tensor, e.g. "mul"; empty for leaves.
  std::string grad_fn() const;
  /// Computes the gradients of this tensor with respect to the graph's leaves and adds them to their grad(). `gradient`
  /// has this tensor's shape and may be omitted for a tensor of one element. Throws GradError.
  void backward(const Tensor& gradient = {}, const BackwardOptions& options = {}) const;
  /// Registers a hook that is called with the gradient of this tensor during backward; a defined result replaces it.
  /// Throws GradError unless the tensor requires grad.
  HookHandle register_hook(std::function<Tensor(const Tensor&)> hook) const;
  /// Registers a hook that is called with this leaf after its grad() was updated. Throws GradError for other tensors.
  HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const;

  // autograd: operations. keepdim, dim and dtype are as in PyTorch: x.exp(), x.sum(1, true), x.softmax(-1), x.exp_().
  // In-place ones, which end in an underscore, throw outside no_grad for a leaf that requires grad.
#define LEVIN_DEFAULT(value) = value
#define LEVIN_METHOD(result, name, parameters, ...) result name parameters const;
#define LEVIN_IN_PLACE_METHOD(name) const Tensor& name##_() const;
#define LEVIN_EDIT(name, tensors, parameters, ...) const Tensor& name##_ parameters const;
#include <levin/core/tensor_methods.h>

  /// Exchanges the last two axes.
  Tensor mT() const { return transpose(-2, -1); }
  /// Return tensors of these sizes, of this one's dtype and device: uninitialized, or filled with 0, 1 or the value.
  Tensor new_empty(const Shape& sizes) const;
  Tensor new_zeros(const Shape& sizes) const;
  Tensor new_ones(const Shape& sizes) const;
  Tensor new_full(const Shape& sizes, const Scalar& value) const;
  /// The same as view(other.sizes()) and expand(other.sizes()).
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  /// Returns this tensor where the condition is true, else `other`.
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor where(const Tensor& condition, const Scalar& other) const;
  /// The negated elements.
  Tensor operator-() const;

  /// Reads as Python's x[...]. Integers, Slice, nil (a new axis) and Ellipsis give a view. A bool tensor chooses the
  /// elements of the axes whose sizes it has, in row-major order. int64 or int32 tensors broadcast together and choose
  /// by position; negative ones count from the end. The axes of what tensors choose stand where the tensors stood if
  /// these were next to each other, else in front, as in PyTorch. Throws IndexError for positions out of range and too
  /// many indices, ShapeError for masks of other sizes and positions that do not broadcast, DTypeError for tensors of
  /// other types.
  Tensor index(std::span<const Index> indices) const;
  /// The same; also what an assignment writes to: x(0) = y, x(mask) = 0, x(Slice(), positions) += y.
  template <class... I>
    requires(sizeof...(I) > 0 && (std::is_convertible_v<const I&, Index> && ...))
  std::conditional_t<(kSelectsView<I> && ...), Tensor, IndexedTensor> operator()(const I&... indices) const;
  /// The same with one index.
  Tensor operator[](int64_t i) const { return select(0, i); }
  template <class I>
    requires(!std::integral<I> && std::is_convertible_v<const I&, Index>)
  auto operator[](const I& i) const {
    return (*this)(i);
  }

  /// Convert the dtype, copy to a device, or both, as a recorded operation; x.to(y) takes both from y. Return this
  /// tensor itself if nothing changes.
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor to(Device device, DType dtype) const;
  Tensor to(const Tensor& like) const { return to(like.device(), like.dtype()); }
  Tensor cpu() const { return to(kCpu); }
  Tensor cuda(int index = 0) const { return to(levin::cuda(index)); }

  /// Change this tensor in place, as a recorded operation, and return it: += alpha * other, -=, *= and /= other, which
  /// broadcasts. All members of this kind throw ShapeError and DTypeError if the result does not fit into this tensor
  /// (5 / 2 into an integer), and GradError for a leaf that requires grad, unless under no_grad.
  const Tensor& add_(const Tensor& other, const Scalar& alpha = 1) const;
  const Tensor& add_(const Scalar& other) const;
  const Tensor& sub_(const Tensor& other) const;
  const Tensor& sub_(const Scalar& other) const;
  const Tensor& mul_(const Tensor& other) const;
  const Tensor& mul_(const Scalar& other) const;
  const Tensor& div_(const Tensor& other) const;
  const Tensor& div_(const Scalar& other) const;
  /// Bitwise for integers and logical for bool.
  const Tensor& bitwise_and_(const Tensor& other) const;
  const Tensor& bitwise_and_(const Scalar& other) const;
  const Tensor& bitwise_or_(const Tensor& other) const;
  const Tensor& bitwise_or_(const Scalar& other) const;
  const Tensor& bitwise_xor_(const Tensor& other) const;
  const Tensor& bitwise_xor_(const Scalar& other) const;
  const Tensor& bitwise_not_() const;
  /// Replaces values below min by min and above max by max. One of the two may be absent; throws ValueError without
  /// both.
  const Tensor& clamp_(std::optional<Scalar> min, std::optional<Scalar> max = std::nullopt) const;
  /// Writes `value` where the bool mask, which broadcasts, is true.
  const Tensor& masked_fill_(const Tensor& mask, const Scalar& value) const;
  /// Writes source's values, which broadcast and are converted, from any device.
  const Tensor& copy_(const Tensor& source) const;
  /// Writes values (of this dtype; they broadcast) at x[indices]. Of several values for one place the last one stays.
  const Tensor& index_put_(std::span<const Index> indices, const Tensor& values,
                           const IndexPutOptions& options = {}) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, const Tensor& values,
                           const IndexPutOptions& options = {}) const;
  /// Sets all elements to the value, or to 0.
  const Tensor& fill_(const Scalar& value) const;
  const Tensor& zero_() const;
  /// The same as add_, sub_, mul_, div_ and the bitwise operations.
  const Tensor& operator+=(const Tensor& o) const { return add_(o); }
  const Tensor& operator+=(const Scalar& o) const { return add_(o); }
  const Tensor& operator-=(const Tensor& o) const { return sub_(o); }
  const Tensor& operator-=(const Scalar& o) const { return sub_(o); }
  const Tensor& operator*=(const Tensor& o) const { return mul_(o); }
  const Tensor& operator*=(const Scalar& o) const { return mul_(o); }
  const Tensor& operator/=(const Tensor& o) const { return div_(o); }
  const Tensor& operator/=(const Scalar& o) const { return div_(o); }
  const Tensor& operator&=(const Tensor& o) const { return bitwise_and_(o); }
  const Tensor& operator&=(const Scalar& o) const { return bitwise_and_(o); }
  const Tensor& operator|=(const Tensor& o) const { return bitwise_or_(o); }
  const Tensor& operator|=(const Scalar& o) const { return bitwise_or_(o); }
  const Tensor& operator^=(const Tensor& o) const { return bitwise_xor_(o); }
  const Tensor& operator^=(const Scalar& o) const { return bitwise_xor_(o); }

  /// For other modules of Levin: the object of the handle. impl() throws ValueError for an undefined handle.
  TensorImpl* impl() const {
    if (!impl_) undefined();
    return impl_.get();
  }
  TensorImpl* impl_or_null() const { return impl_.get(); }
  const TensorImplPtr& impl_ptr() const { return impl_; }

 private:
  [[noreturn]] static void undefined();
  void* checked_data(DType t) const;
  TensorImplPtr impl_;
};

/// One element of an index expression; converts from an integer, a bool, a Slice, Ellipsis, nil and a tensor. The field
/// named by `kind` holds the value: `integer` (1 or 0 for a bool), `slice` or `tensor`.
struct Index {
  /// The sorts of elements.
  enum class Kind : std::uint8_t { integer, slice, ellipsis, new_axis, boolean, tensor };
  /// Convert from that type.
  template <std::integral T>
  Index(T i)  // NOLINT: implicit
      : kind(std::same_as<T, bool> ? Kind::boolean : Kind::integer), integer(static_cast<std::int64_t>(i)) {}
  Index(const Slice& s) : kind(Kind::slice), slice(s) {}    // NOLINT
  Index(EllipsisType) : kind(Kind::ellipsis) {}             // NOLINT
  Index(Nil) : kind(Kind::new_axis) {}                      // NOLINT
  Index(const Tensor& t) : kind(Kind::tensor), tensor(t) {}  // NOLINT

  Kind kind;
  std::int64_t integer = 0;
  Slice slice;
  Tensor tensor;
};

/// x(mask) and x(positions): a tensor that owns the chosen values. Assignment to a temporary one writes to x; one with
/// a name is a tensor as any other, which keeps x alive (`Tensor chosen = x(mask)` does not). The values are read even
/// if they are only written: x.masked_fill_(mask, 0) and x.index_put_({positions}, y) spare that.
class IndexedTensor : public Tensor {
 public:
  /// Reads x[indices]; throws what Tensor::index throws.
  IndexedTensor(const Tensor& x, std::span<const Index> indices);

  IndexedTensor(const IndexedTensor&) = default;
  IndexedTensor(IndexedTensor&&) noexcept = default;
  IndexedTensor& operator=(const IndexedTensor&) & = default;
  IndexedTensor& operator=(IndexedTensor&&) & noexcept = default;
  IndexedTensor& operator=(const Tensor& other) &;
  /// Write to x[indices]: value broadcasts and is converted, and of several values for one place the last one stays.
  void operator=(const Tensor& value) &&;
  void operator=(const Scalar& value) &&;

  // As in Python, x[indices] += y writes the sums of the chosen values and y to x: where a position repeats, only one
  // of its sums stays. index_put_ with accumulate adds them all.
  using Tensor::operator+=, Tensor::operator-=, Tensor::operator*=, Tensor::operator/=;
  using Tensor::operator&=, Tensor::operator|=, Tensor::operator^=;
  template <class V>
  void operator+=(const V& value) && {
    Tensor::operator+=(value), write_back();
  }
  template <class V>
  void operator-=(const V& value) && {
    Tensor::operator-=(value), write_back();
  }
  template <class V>
  void operator*=(const V& value) && {
    Tensor::operator*=(value), write_back();
  }
  template <class V>
  void operator/=(const V& value) && {
    Tensor::operator/=(value), write_back();
  }
  template <class V>
  void operator&=(const V& value) && {
    Tensor::operator&=(value), write_back();
  }
  template <class V>
  void operator|=(const V& value) && {
    Tensor::operator|=(value), write_back();
  }
  template <class V>
  void operator^=(const V& value) && {
    Tensor::operator^=(value), write_back();
  }

 private:
  void write_back();
  Tensor x_;
  std::vector<Index> indices_;
};

template <class... I>
  requires(sizeof...(I) > 0 && (std::is_convertible_v<const I&, Index> && ...))
std::conditional_t<(kSelectsView<I> && ...), Tensor, IndexedTensor> Tensor::operator()(const I&... indices) const {
  const Index list[] = {Index(indices)...};
  if constexpr ((kSelectsView<I> && ...)) return index(list);
  else return IndexedTensor(*this, list);
}

/// Returns a row-major tensor whose values are not initialized. Throws ShapeError for negative sizes or more elements
/// than memory can address, and OutOfMemory.
Tensor empty(const Shape& sizes, const TensorOptions& options = {});
/// Returns a tensor on memory of the caller, of the options' dtype and device. The memory must stay valid until
/// `release` is called (once), or until the tensor and its views are destroyed when `release` is absent. Strides are in
/// elements, row-major by default. Throws ShapeError for negative sizes or strides, and ValueError for a null pointer.
Tensor from_blob(void* data, const Shape& sizes, const TensorOptions& options, std::function<void()> release = {});
Tensor from_blob(void* data, const Shape& sizes, const Shape& strides, const TensorOptions& options,
                 std::function<void()> release = {});
/// True if nobody but this handle holds the tensor and its memory, which belongs to the engine and may be overwritten.
bool is_sole_owner(const Tensor& x);
/// Returns a new tensor on `source`'s memory with other sizes, strides and offset, which autograd does not track.
/// Strides and offset count elements of `dtype`, by default the source's. Other modules implement views with it.
Tensor alias(const Tensor& source, const Shape& sizes, const Shape& strides, int64_t offset,
             std::optional<DType> dtype = std::nullopt);

/// Returns a tensor with a copy of the values, in row-major order; its dtype is that of T unless the options name
/// another one. Throws ShapeError unless there are as many values as elements, and DTypeError for complex values in a
/// real type.
template <class T>
Tensor from_data(std::span<const T> values, const Shape& sizes, const TensorOptions& options = {});
template <class T>
Tensor from_data(const std::vector<T>& values, const Shape& sizes, const TensorOptions& options = {}) {
  return from_data(std::span<const T>(values), sizes, options);
}
template <class T>
Tensor from_data(std::initializer_list<T> values, const Shape& sizes, const TensorOptions& options = {}) {
  return from_data(std::span<const T>(values.begin(), values.size()), sizes, options);
}

/// A number of a braced list, or such a list in it, which lives until the end of the full expression.
class NumberOrList {
 public:
  /// Holds a number.
  template <class T>
    requires std::is_convertible_v<T, Scalar>
  NumberOrList(T value) : number_(value) {}  // NOLINT: implicit
  /// Refers to the list, without a copy.
  NumberOrList(std::initializer_list<NumberOrList> values) : values_(values.begin(), values.size()), is_list_(true) {}
  /// True for a list; values() are its entries, and number() is the value otherwise.
  bool is_list() const { return is_list_; }
  const Scalar& number() const { return number_; }
  std::span<const NumberOrList> values() const { return values_; }

 private:
  Scalar number_ = false;
  std::span<const NumberOrList> values_;
  bool is_list_ = false;
};

/// Returns a tensor of the numbers in a list, which may be nested: tensor({{1, 2}, {3, 4}}) has shape (2, 2). As of a
/// single number, the dtype is default_dtype() if one of them is floating, else int64, or bool if all are bool, unless
/// the options name another one. Throws ShapeError for lists of different lengths or depths.
Tensor tensor(std::initializer_list<NumberOrList> values, const TensorOptions& options = {});
/// Returns a one-dimensional tensor of these values, whose dtype is that of T unless the options name another one:
/// tensor<float>({1, 2}).
template <class T>
Tensor tensor(std::initializer_list<std::type_identity_t<T>> values, const TensorOptions& options = {}) {
  return from_data<T>(values, {static_cast<int64_t>(values.size())}, options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return from_data(values, {static_cast<int64_t>(values.size())}, options);
}
/// Returns a 0-dim tensor. Its dtype is int64 for integers, bool for bools, and default_dtype() for floating-point
/// numbers, unless the options name another one.
Tensor tensor(const Scalar& value, const TensorOptions& options = {});

// A dtype alone may stand for the options. It is deduced, so that braces always mean the options.
inline Tensor empty(const Shape& sizes, std::same_as<DType> auto dtype) { return empty(sizes, {.dtype = dtype}); }
inline Tensor from_blob(void* data, const Shape& sizes, std::same_as<DType> auto dtype,
                        std::function<void()> release = {}) {
  return from_blob(data, sizes, {.dtype = dtype}, std::move(release));
}
inline Tensor tensor(std::initializer_list<NumberOrList> values, std::same_as<DType> auto dtype) {
  return tensor(values, TensorOptions{.dtype = dtype});
}
inline Tensor tensor(const Scalar& value, std::same_as<DType> auto dtype) {
  return tensor(value, TensorOptions{.dtype = dtype});
}

/// Returns the dtype and device of a tensor as options, for `randn({2, 3}, like(x))`.
inline TensorOptions like(const Tensor& t) { return {.dtype = t.dtype(), .device = t.device()}; }

/// Returns PyTorch's form: nested brackets, four digits, "..." in tensors above 1000 elements, then dtype and device.
std::string to_string(const Tensor& t);
std::ostream& operator<<(std::ostream& out, const Tensor& t);

}  // namespace levin
