#pragma once
// The tensor type: a handle to memory with a shape, and optionally a place in the autograd graph. Copies of a handle
// refer to the same tensor. The members below the headings `// autograd` are defined by that module. Those that forward
// to free functions of the same names are listed in tensor_methods.h.

#include <levin/core/axes.h>
#include <levin/core/index.h>
#include <levin/core/owned_ptr.h>
#include <levin/core/storage.h>
#include <levin/core/tensor_view.h>

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

namespace levin {

class Generator;
class IndexedTensor;
class Tensor;
struct Index;
struct ValuesIndices;

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

class TensorImpl : public RefCounted, public Pooled<TensorImpl> {
 public:
  TensorImpl(StoragePtr storage_, int64_t offset_, const Shape& sizes_, const Shape& strides_, DType dtype_)
      : storage(std::move(storage_)), offset(offset_), numel(sizes_.numel()), sizes(sizes_), strides(strides_),
        dtype(dtype_), device(storage->device()), contiguous(levin::is_contiguous(sizes_, strides_)) {}

  StoragePtr storage;
  int64_t offset;  ///< offset of the first element, in elements
  int64_t numel;
  Shape sizes, strides;
  DType dtype;
  Device device;
  bool contiguous;
  bool inference = detail::inference_mode_on;  ///< created under inference_mode: may not be saved for backward
  OwnedPtr<AutogradData> autograd;
};

using TensorImplPtr = IntrusivePtr<TensorImpl>;

/// Options of creation functions; absent fields have default values.
struct TensorOptions {
  std::optional<DType> dtype{};    ///< default_dtype(), or the data's own type; of x in zeros_like(x) and the others
  std::optional<Device> device{};  ///< the CPU; x's device in zeros_like(x) and the others
  bool requires_grad = false;
  Generator* generator = nullptr;  ///< default_generator(); random functions only
};

/// Removes a hook. Copies refer to the same hook; an empty handle does nothing.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove);
  void remove();

 private:
  std::shared_ptr<std::function<void()>> remove_;
};

/// Arguments of Tensor::backward and levin::backward.
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
};

/// An index of this type selects without copying: the result is a view.
template <class I>
inline constexpr bool kSelectsView = (std::integral<I> && !std::same_as<I, bool>) || std::same_as<I, Slice> ||
                                     std::same_as<I, Nil> || std::same_as<I, EllipsisType>;

/// How scatter_reduce combines values.
enum class ScatterReduce { sum, mean, prod, amax, amin };

/// Arguments of index_put.
struct IndexPutOptions {
  bool accumulate = false;  ///< adds the values instead; positions that repeat are summed, in a fixed order
};

class Tensor {
 public:
  Tensor() = default;
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

  // Information
  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const = delete;  // use defined() or item<bool>()
  const Shape& sizes() const { return impl()->sizes; }
  const Shape& shape() const { return impl()->sizes; }
  const Shape& strides() const { return impl()->strides; }
  int64_t size(int64_t axis) const { return sizes()[wrap_axis(axis, dim(), "size")]; }
  int64_t stride(int64_t axis) const { return strides()[wrap_axis(axis, dim(), "stride")]; }
  int dim() const { return impl()->sizes.size(); }
  int64_t numel() const { return impl()->numel; }
  DType dtype() const { return impl()->dtype; }
  Device device() const { return impl()->device; }
  bool is_contiguous() const { return impl()->contiguous; }
  bool is_floating() const { return levin::is_floating(dtype()); }
  bool is_complex() const { return levin::is_complex(dtype()); }
  const StoragePtr& storage() const { return impl()->storage; }
  int64_t storage_offset() const { return impl()->offset; }
  std::uint32_t version() const { return impl()->storage->version(); }
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
  Scalar item_scalar() const;
  struct ComplexItem { double real, imag; };
  ComplexItem item_complex() const;
  /// Returns all elements in row-major order, converted to T, which may be std::complex. Throws DTypeError where
  /// complex elements would lose a part.
  template <class T>
  std::vector<T> to_vector() const;

  // autograd: the graph
  bool requires_grad() const;
  /// Sets whether operations on this leaf are recorded (floating and complex types only). Returns the same tensor.
  const Tensor& requires_grad_(bool on = true) const;
  bool is_leaf() const;
  /// Returns the accumulated gradient of a leaf, or of a tensor with retain_grad; undefined when there is none.
  const Tensor& grad() const;
  void set_grad(const Tensor& g) const;
  void retain_grad() const;
  bool retains_grad() const;
  /// Returns the name of the operation that created this tensor, e.g. "mul"; empty for leaves.
  std::string grad_fn() const;
  /// Computes the gradients of this tensor with respect to the graph's leaves and adds them to their grad(). `gradient`
  /// has this tensor's shape and may be omitted for a tensor of one element. Throws GradError.
  void backward(const Tensor& gradient = {}, const BackwardOptions& options = {}) const;
  /// Registers a hook that is called with the gradient of this tensor during backward; a defined result replaces it.
  HookHandle register_hook(std::function<Tensor(const Tensor&)> hook) const;
  /// Registers a hook that is called after the grad() of this leaf was updated.
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
  // Tensors of these sizes, of this one's dtype and device.
  Tensor new_empty(const Shape& sizes) const;
  Tensor new_zeros(const Shape& sizes) const;
  Tensor new_ones(const Shape& sizes) const;
  Tensor new_full(const Shape& sizes, const Scalar& value) const;
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  /// Returns this tensor where the condition is true, else `other`.
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor where(const Tensor& condition, const Scalar& other) const;
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
  Tensor operator[](int64_t i) const { return select(0, i); }
  template <class I>
    requires(!std::integral<I> && std::is_convertible_v<const I&, Index>)
  auto operator[](const I& i) const {
    return (*this)(i);
  }

  // autograd: copies and conversions
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor to(Device device, DType dtype) const;
  Tensor to(const Tensor& like) const { return to(like.device(), like.dtype()); }
  Tensor cpu() const { return to(kCpu); }
  Tensor cuda(int index = 0) const { return to(levin::cuda(index)); }

  // autograd: in place
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
  const Tensor& clamp_(std::optional<Scalar> min, std::optional<Scalar> max = std::nullopt) const;
  const Tensor& masked_fill_(const Tensor& mask, const Scalar& value) const;
  const Tensor& copy_(const Tensor& source) const;  ///< broadcasts and converts
  /// Writes values (of this dtype; they broadcast) at x[indices]. Of several values for one place the last one stays.
  const Tensor& index_put_(std::span<const Index> indices, const Tensor& values,
                           const IndexPutOptions& options = {}) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, const Tensor& values,
                           const IndexPutOptions& options = {}) const;
  const Tensor& fill_(const Scalar& value) const;
  const Tensor& zero_() const;
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

  // For other modules of Levin
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

/// One element of an index expression.
struct Index {
  enum class Kind : std::uint8_t { integer, slice, ellipsis, new_axis, boolean, tensor };
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

/// Returns a row-major tensor whose values are not initialized.
Tensor empty(const Shape& sizes, const TensorOptions& options = {});
/// Returns a tensor on memory of the caller. The memory must stay valid until `release` is called (once), or until the
/// tensor is destroyed when `release` is absent.
Tensor from_blob(void* data, const Shape& sizes, const TensorOptions& options, std::function<void()> release = {});
Tensor from_blob(void* data, const Shape& sizes, const Shape& strides, const TensorOptions& options,
                 std::function<void()> release = {});
/// Returns a new tensor on `source`'s memory with other sizes, strides and offset, which autograd does not track.
/// Strides and offset count elements of `dtype`, by default the source's. Other modules implement views with it.
Tensor alias(const Tensor& source, const Shape& sizes, const Shape& strides, int64_t offset,
             std::optional<DType> dtype = std::nullopt);

/// Returns a tensor with a copy of the values; its dtype is that of T unless the options name another one.
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
/// A number of a braced list, or such a list in it.
class NumberOrList {
 public:
  template <class T>
    requires std::is_convertible_v<T, Scalar>
  NumberOrList(T value) : number_(value) {}  // NOLINT: implicit
  NumberOrList(std::initializer_list<NumberOrList> values) : values_(values.begin(), values.size()), is_list_(true) {}
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
/// Returns a one-dimensional tensor of these values, whose dtype is that of T: tensor<float>({1, 2}).
template <class T>
Tensor tensor(std::initializer_list<std::type_identity_t<T>> values, const TensorOptions& options = {}) {
  return from_data<T>(values, {static_cast<int64_t>(values.size())}, options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return from_data(values, {static_cast<int64_t>(values.size())}, options);
}
/// Returns a 0-dim tensor. Its dtype is int64 for integers and default_dtype() for floating-point numbers, unless the
/// options name another one.
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
