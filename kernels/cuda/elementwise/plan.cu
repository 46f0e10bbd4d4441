#include "kernels/cuda/elementwise/plan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace levin::kernels::cuda::elementwise {

namespace {

/// Like the kernels' element_cast, for the host's types.
template <class To, class From>
To cast_number(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return cast_number<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<std::int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

TensorView number_as(const TensorView& number, DType dtype) {
  TensorView result;
  result.dtype = dtype;
  dispatch_all(number.dtype, "number", [&]<class From>() {
    const From value = *number.data<From>();
    dispatch_all(dtype, "number", [&]<class To>() {
      const To cast = cast_number<To>(value);
      std::memcpy(result.inline_value, &cast, sizeof cast);
    });
  });
  return result;
}

void refuse_type(const char* op, DType compute) {
  throw DTypeError(std::string("[") + op + "] " + std::string(name_of(compute)) +
                   " values are not accepted; convert them with x.to(kFloat32).");
}

void refuse_zero(const char* op, const BinaryArgs& a) {
  if (!is_integral(a.compute) || !a.b.is_number() || a.out.numel() == 0) return;
  if (*number_as(a.b, a.compute).data<std::int64_t>() != 0) return;
  throw ValueError(std::string("[") + op + "] an integer was divided by zero; convert to a floating type.");
}

Plan::Plan(const TensorView& out, std::initializer_list<const TensorView*> inputs) {
  add(out, out.sizes);
  for (const TensorView* view : inputs) add(*view, out.sizes);
  simplify(out.sizes);
}

void Plan::add(const TensorView& view, const Shape& sizes) {
  const int k = operands_++;
  views_[k] = &view;
  pointers_[k] = static_cast<std::byte*>(view.pointer);
  const int lead = sizes.size() - view.dim();
  for (int d = lead; d < sizes.size(); ++d) strides_[k][d] = view.sizes[d - lead] == 1 ? 0 : view.strides[d - lead];
}

void Plan::swap_axes(int a, int b) {
  std::swap(sizes_[a], sizes_[b]);
  for (int k = 0; k < operands_; ++k) std::swap(strides_[k][a], strides_[k][b]);
}

void Plan::simplify(const Shape& sizes) {
  for (int d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    sizes_[dims_] = sizes[d];
    for (int k = 0; k < operands_; ++k) strides_[k][dims_] = strides_[k][d];
    ++dims_;
  }
  if (dims_ == 0) {  // a single element
    dims_ = 1;
    sizes_[0] = 1;
    for (int k = 0; k < operands_; ++k) strides_[k][0] = 1;
    return;
  }
  for (int d = 1; d < dims_; ++d)
    for (int e = d; e > 0 && strides_[0][e - 1] < strides_[0][e]; --e) swap_axes(e - 1, e);
  int last = 0;
  for (int d = 1; d < dims_; ++d) {
    bool even = true;
    for (int k = 0; k < operands_; ++k) even = even && strides_[k][last] == strides_[k][d] * sizes_[d];
    if (even) {
      sizes_[last] *= sizes_[d];
    } else {
      sizes_[++last] = sizes_[d];
    }
    for (int k = 0; k < operands_; ++k) strides_[k][last] = strides_[k][d];
  }
  dims_ = last + 1;
}

std::int64_t Plan::numel() const {
  std::int64_t n = 1;
  for (int d = 0; d < dims_; ++d) n *= sizes_[d];
  return n;
}

bool Plan::has_dtypes(std::span<const DType> dtypes) const {
  for (int k = 0; k < operands_; ++k)
    if (pointers_[k] && views_[k]->dtype != dtypes[static_cast<std::size_t>(k)]) return false;
  return true;
}

bool Plan::packable(int width) const {
  const int last = dims_ - 1;
  if (strides_[0][last] != 1 || (dims_ > 1 && sizes_[last] % width != 0)) return false;
  for (int k = 0; k < operands_; ++k) {
    const std::int64_t stride = strides_[k][last];
    if (!pointers_[k] || stride == 0) continue;
    if (stride != 1) return false;
    const auto bytes = static_cast<std::uint64_t>(size_of(views_[k]->dtype)) * static_cast<std::uint64_t>(width);
    if (reinterpret_cast<std::uintptr_t>(pointers_[k]) % bytes != 0) return false;
    for (int d = 0; d < last; ++d)
      if (strides_[k][d] % width != 0) return false;
  }
  return true;
}

Operands Plan::operands(int width, std::span<const DType> values, DType compute) const {
  Operands o;
  const int last = dims_ - 1;
  o.dims = dims_;
  o.elements = static_cast<std::uint32_t>(numel());
  o.steps = static_cast<std::uint32_t>(ceil_div(numel(), width));
  o.compute = compute;
  for (int d = 0; d < dims_; ++d) {
    const std::int64_t size = d == last ? ceil_div(sizes_[d], width) : sizes_[d];
    o.sizes[d] = Divider(static_cast<std::uint32_t>(size));
    for (int k = 0; k < operands_; ++k) o.strides[k][d] = strides_[k][d] * (d == last ? width : 1);
  }
  for (int k = 0; k < operands_; ++k) {
    o.pointers[k] = pointers_[k];
    o.dtypes[k] = views_[k]->dtype;
    if (pointers_[k] || k == 0) continue;
    const DType value = values[static_cast<std::size_t>(k)];
    const TensorView number = number_as(is_floating(value) ? *views_[k] : number_as(*views_[k], compute), value);
    std::memcpy(&o.numbers[k], number.inline_value, sizeof o.numbers[k]);
  }
  return o;
}

Plan Plan::part(std::int64_t first, std::int64_t count) const {
  Plan p = *this;
  p.sizes_[0] = count;
  for (int k = 0; k < operands_; ++k)
    if (pointers_[k]) p.pointers_[k] += first * strides_[k][0] * size_of(views_[k]->dtype);
  return p;
}

std::pair<double, double> bounded_parameters(const UnaryArgs& a) {
  std::pair<double, double> p{a.p0, a.p1};
  if (is_integral(a.out.dtype)) {
    dispatch_integral(a.out.dtype, "bounds", [&]<class T>() {
      constexpr auto low = static_cast<double>(std::numeric_limits<T>::min());
      constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());
      p = {std::clamp(a.p0, low, high), std::clamp(a.p1, low, high)};
    });
  }
  return p;
}

}  // namespace levin::kernels::cuda::elementwise
