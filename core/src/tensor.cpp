#include <levin/core/tensor.h>

#include "host_copy.h"

#include <levin/core/capture/host_capture.h>

#include <fmt/format.h>

#include <algorithm>
#include <complex>

namespace levin {

namespace {

/// Returns the number of bytes of a tensor; throws ShapeError that names `op` for negative sizes and for products that
/// overflow.
std::size_t checked_bytes(const Shape& sizes, DType dtype, const char* op) {
  int64_t bytes = size_of(dtype);
  bool overflow = false, negative = false, zero = false;
  for (const int64_t s : sizes) {
    negative = negative || s < 0;
    zero = zero || s == 0;
    overflow = overflow || __builtin_mul_overflow(bytes, std::max<int64_t>(s, 1), &bytes);
  }
  if (negative) [[unlikely]] throw ShapeError(fmt::format("[{}] sizes are 0 or more, not {}.", op, to_string(sizes)));
  if (overflow) [[unlikely]] {
    throw ShapeError(fmt::format("[{}] shape {} has more elements than memory can address.", op, to_string(sizes)));
  }
  return zero ? 0 : static_cast<std::size_t>(bytes);
}

Tensor make(StoragePtr storage, const Shape& sizes, const Shape& strides, DType dtype, bool requires_grad) {
  Tensor t(make_intrusive<TensorImpl>(std::move(storage), 0, sizes, strides, dtype));
  if (requires_grad) [[unlikely]] t.requires_grad_();
  return t;
}

template <class To, class From>
To convert(From x) {
  if constexpr (detail::ComplexNumber<To> && detail::ComplexNumber<From>) {
    return To(x);
  } else if constexpr (detail::ComplexNumber<To>) {
    return To(convert<typename To::value_type>(x));
  } else if constexpr (detail::ComplexNumber<From>) {
    return convert<To>(x.real());  // not reached: callers refuse to drop a part
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<bool>(x != From{});
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

/// As dispatch_all, with the complex types.
template <class F>
decltype(auto) dispatch_every(DType t, const char* op, F&& f) {
  if (t == DType::c64) return f.template operator()<std::complex<float>>();
  if (t == DType::c128) return f.template operator()<std::complex<double>>();
  return dispatch_all(t, op, static_cast<F&&>(f));
}

/// Throws DTypeError where complex numbers would become real ones.
template <class To>
void refuse_loss(const char* op, DType from) {
  if (is_complex(from) && !detail::ComplexNumber<To>) {
    throw DTypeError(fmt::format("[{}] the tensor holds {}, whose imaginary part would be lost. Ask for "
                                 "std::complex<double>, or take real(x), imag(x) or abs(x) first.", op, name_of(from)));
  }
}

/// Calls f with the offsets of all elements in row-major order.
template <class F>
void for_each_offset(const Shape& sizes, const Shape& strides, F&& f) {
  const int64_t n = sizes.numel();
  Shape index = Shape::filled(sizes.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < n; ++i) {
    f(offset);
    for (int d = sizes.size() - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace

void Tensor::undefined() {
  throw ValueError(
      "[tensor] this tensor is undefined: give it a value before it is used. grad() is undefined until backward() has "
      "run.");
}

TensorView Tensor::tensor_view() const {
  const TensorImpl* t = impl();
  if (levin::is_complex(t->dtype)) [[unlikely]] detail::refuse_dtype("kernel", t->dtype, "real tensors");
  TensorView v;
  if (detail::host_capture && t->device == kCpu) [[unlikely]] detail::host_capture->keep(t->storage);
  v.pointer = raw_data();
  v.sizes = t->sizes;
  v.strides = t->strides;
  v.dtype = t->dtype;
  v.device = t->device;
  return v;
}

void* Tensor::checked_data(DType t) const {
  if (device() != kCpu) {
    throw DeviceError(fmt::format("[data] the tensor is on {}: copy it with x.cpu() before reading it.",
                                  levin::to_string(device())));
  }
  if (dtype() != t) {
    throw DTypeError(fmt::format("[data] the tensor holds {}, but {} was asked for. Convert it with x.to(...).",
                                 name_of(dtype()), name_of(t)));
  }
  detail::require_not_captured("data", "its values cannot be read or written by the host now. Do it between replays");
  return raw_data();
}

namespace {

/// Calls f with a pointer to the only element, on the host.
template <class F>
decltype(auto) with_element(const Tensor& x, F&& f) {
  if (x.numel() != 1) {
    throw ShapeError(fmt::format("[item] a tensor of shape {} has {} elements, not 1. Reduce it or index it first.",
                                 levin::to_string(x.sizes()), x.numel()));
  }
  alignas(16) std::byte bytes[16];
  const void* p = x.raw_data();
  if (x.device() == kCpu) {
    detail::require_not_captured("item", "no number can be read now. Read it after a replay");
  } else {
    Stream stream = current_stream(x.device());
    device_backend(x.device()).copy(bytes, kCpu, p, x.device(), static_cast<std::size_t>(size_of(x.dtype())), stream);
    p = bytes;
  }
  return f(p);
}

}  // namespace

Scalar Tensor::item_scalar() const {
  refuse_loss<double>("item", dtype());
  return with_element(*this, [&](const void* p) {
    return dispatch_all(dtype(), "item", [&]<class T>() { return Scalar(*static_cast<const T*>(p)); });
  });
}

Tensor::ComplexItem Tensor::item_complex() const {
  return with_element(*this, [&](const void* p) {
    return dispatch_every(dtype(), "item", [&]<class T>() {
      const auto z = convert<std::complex<double>>(*static_cast<const T*>(p));
      return ComplexItem{z.real(), z.imag()};
    });
  });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  refuse_loss<T>("to_vector", dtype());
  const detail::HostCopy host(*this);
  std::vector<T> result(static_cast<std::size_t>(numel()));
  dispatch_every(dtype(), "to_vector", [&]<class From>() {
    const From* p = static_cast<const From*>(host.first());
    std::size_t i = 0;
    for_each_offset(sizes(), strides(), [&](int64_t offset) { result[i++] = convert<T>(p[offset]); });
  });
  return result;
}

Tensor empty(const Shape& sizes, const TensorOptions& options) {
  const DType dtype = options.dtype.value_or(default_dtype());
  auto storage = make_intrusive<Storage>(checked_bytes(sizes, dtype, "empty"), options.device.value_or(kCpu));
  return make(std::move(storage), sizes, contiguous_strides(sizes), dtype, options.requires_grad);
}

Tensor from_blob(void* data, const Shape& sizes, const TensorOptions& options, std::function<void()> release) {
  return from_blob(data, sizes, contiguous_strides(sizes), options, std::move(release));
}

Tensor from_blob(void* data, const Shape& sizes, const Shape& strides, const TensorOptions& options,
                 std::function<void()> release) {
  const DType dtype = options.dtype.value_or(default_dtype());
  const std::size_t dense = checked_bytes(sizes, dtype, "from_blob");
  if (strides.size() != sizes.size() || std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; })) {
    throw ShapeError(fmt::format("[from_blob] strides {} do not fit sizes {}: give one of 0 or more for each size.",
                                 to_string(strides), to_string(sizes)));
  }
  if (!data && dense > 0) throw ValueError("[from_blob] the memory is a null pointer.");
  int64_t last = 0;
  for (int i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
  const std::size_t bytes = dense == 0 ? 0 : static_cast<std::size_t>((last + 1) * size_of(dtype));
  auto storage = make_intrusive<Storage>(data, bytes, options.device.value_or(kCpu), std::move(release));
  return make(std::move(storage), sizes, strides, dtype, options.requires_grad);
}

bool is_sole_owner(const Tensor& x) {
  return x.defined() && x.impl_ptr()->use_count() == 1 && x.storage()->use_count() == 1 && !x.storage()->is_borrowed();
}

Tensor alias(const Tensor& source, const Shape& sizes, const Shape& strides, int64_t offset,
             std::optional<DType> dtype) {
  const TensorImpl* from = source.impl();
  auto impl = make_intrusive<TensorImpl>(from->storage, offset, sizes, strides, dtype.value_or(from->dtype));
  impl->inference = from->inference;
  return Tensor(std::move(impl));
}

template <class T>
Tensor from_data(std::span<const T> values, const Shape& sizes, const TensorOptions& options) {
  const DType dtype = options.dtype.value_or(dtype_of<T>);
  checked_bytes(sizes, dtype, "from_data");
  if constexpr (detail::ComplexNumber<T>) {
    if (!is_complex(dtype)) refuse_loss<double>("from_data", dtype_of<T>);
  }
  if (sizes.numel() != static_cast<int64_t>(values.size())) {
    throw ShapeError(fmt::format("[from_data] {} values do not fill shape {}, which has {} elements.", values.size(),
                                 to_string(sizes), sizes.numel()));
  }
  detail::require_not_captured(
      "from_data", "the host's values would be lost. Create the tensor before the capture, or fill it by full()");
  Tensor host = empty(sizes, {.dtype = dtype});
  dispatch_every(dtype, "from_data", [&]<class To>() {
    std::transform(values.begin(), values.end(), static_cast<To*>(host.raw_data()), [](T v) { return convert<To>(v); });
  });
  const Device device = options.device.value_or(kCpu);
  if (device == kCpu) {
    if (options.requires_grad) host.requires_grad_();
    return host;
  }
  Tensor result = empty(sizes, {.dtype = dtype, .device = device, .requires_grad = options.requires_grad});
  Stream stream = current_stream(device);
  device_backend(device).copy(result.raw_data(), device, host.raw_data(), kCpu, host.storage()->bytes(), stream);
  return result;
}

namespace {

DType type_of(const Scalar& value) {
  return value.is_floating() ? default_dtype() : value.is_integral() ? DType::i64 : DType::boolean;
}

/// Appends the numbers of a list to `numbers`. All lists of one depth have the length that the first one has.
void flatten_into(std::vector<Scalar>& numbers, std::span<const NumberOrList> list, const Shape& sizes, int depth) {
  if (static_cast<int64_t>(list.size()) != sizes[depth]) {
    throw ShapeError(fmt::format("[tensor] a list has {} entries where the first one of its depth has {}; give all "
                                 "lists of one depth the same length.", list.size(), sizes[depth]));
  }
  const bool innermost = depth + 1 == sizes.size();
  for (const NumberOrList& entry : list) {
    if (entry.is_list() == innermost) {
      throw ShapeError("[tensor] a list holds numbers beside lists; nest all numbers in lists of the same depth.");
    }
    if (innermost) numbers.push_back(entry.number());
    else flatten_into(numbers, entry.values(), sizes, depth + 1);
  }
}

std::vector<double> reals_of(const std::vector<Scalar>& numbers) {
  std::vector<double> values;
  for (const Scalar& n : numbers) values.push_back(n.to<double>());
  return values;
}

}  // namespace

Tensor tensor(std::initializer_list<NumberOrList> values, const TensorOptions& options) {
  Shape sizes{static_cast<int64_t>(values.size())};
  for (const NumberOrList* first = values.begin(); sizes.back() > 0 && first->is_list();
       first = first->values().data())
    sizes.push_back(static_cast<int64_t>(first->values().size()));
  std::vector<Scalar> numbers;
  flatten_into(numbers, {values.begin(), values.size()}, sizes, 0);
  DType own = numbers.empty() ? default_dtype() : DType::boolean;
  for (const Scalar& number : numbers) own = promote_types(own, type_of(number));
  TensorOptions chosen = options;
  chosen.dtype = options.dtype.value_or(own);
  if (is_complex(*chosen.dtype)) return from_data(reals_of(numbers), sizes, chosen);
  return dispatch_all(*chosen.dtype, "tensor", [&]<class T>() {
    const auto converted = std::make_unique<T[]>(numbers.size());  // not std::vector<bool>
    std::transform(numbers.begin(), numbers.end(), converted.get(), [](const Scalar& n) { return n.to<T>(); });
    return from_data(std::span<const T>(converted.get(), numbers.size()), sizes, chosen);
  });
}

Tensor tensor(const Scalar& value, const TensorOptions& options) {
  if (is_complex(options.dtype.value_or(kBool))) return from_data<double>({value.to<double>()}, {}, options);
  return dispatch_all(options.dtype.value_or(type_of(value)), "tensor", [&]<class T>() {
    const T v = value.to<T>();
    return from_data(std::span<const T>(&v, 1), {}, options);
  });
}

#define LEVIN_INSTANTIATE(T)                                                               \
  template std::vector<T> Tensor::to_vector<T>() const;                                    \
  template Tensor from_data<T>(std::span<const T>, const Shape&, const TensorOptions&);
LEVIN_INSTANTIATE(double)
LEVIN_INSTANTIATE(float)
LEVIN_INSTANTIATE(Half)
LEVIN_INSTANTIATE(BFloat16)
LEVIN_INSTANTIATE(std::int64_t)
LEVIN_INSTANTIATE(long long)
LEVIN_INSTANTIATE(std::int32_t)
LEVIN_INSTANTIATE(std::int16_t)
LEVIN_INSTANTIATE(std::int8_t)
LEVIN_INSTANTIATE(std::uint8_t)
LEVIN_INSTANTIATE(bool)
LEVIN_INSTANTIATE(std::complex<float>)
LEVIN_INSTANTIATE(std::complex<double>)
#undef LEVIN_INSTANTIATE

HookHandle::HookHandle(std::function<void()> remove)
    : remove_(std::make_shared<std::function<void()>>(std::move(remove))) {}

void HookHandle::remove() {
  if (remove_ && *remove_) std::exchange(*remove_, nullptr)();
}

}  // namespace levin
