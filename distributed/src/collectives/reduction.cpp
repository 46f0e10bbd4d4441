#include "src/collectives/reduction.h"

#include <algorithm>
#include <type_traits>

#include "src/collectives/vector_sum.h"

namespace levin::distributed {

namespace {

template <class T>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return a < b ? b : a;
    case ReduceOp::product:
      if constexpr (std::is_same_v<T, std::uint16_t>) return static_cast<T>(1u * a * b);  // int would overflow
      return static_cast<T>(a * b);
    default:
      return static_cast<T>(a + b);
  }
}

// One loop for each operation, so that the compiler can vectorise them.
template <class T, ReduceOp op>
void loop(T* into, const T* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = combine(op, into[i], from[i]);
}

template <class T>
void reduce_typed(ReduceOp op, void* into, const void* from, std::size_t count) {
  T* a = static_cast<T*>(into);
  const T* b = static_cast<const T*>(from);
  switch (op) {
    case ReduceOp::min:
      return loop<T, ReduceOp::min>(a, b, count);
    case ReduceOp::max:
      return loop<T, ReduceOp::max>(a, b, count);
    case ReduceOp::product:
      return loop<T, ReduceOp::product>(a, b, count);
    default:
      return loop<T, ReduceOp::sum>(a, b, count);
  }
}

// Signed sums wrap around, as in the tensor library.
template <class T>
void reduce_signed(ReduceOp op, void* into, const void* from, std::size_t count) {
  using Unsigned = std::make_unsigned_t<T>;
  const bool wraps = op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::product;
  wraps ? reduce_typed<Unsigned>(op, into, from, count) : reduce_typed<T>(op, into, from, count);
}

template <class T>
void divide_typed(void* into, std::size_t count, int divisor) {
  T* a = static_cast<T*>(into);
  for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>(a[i] / static_cast<decltype(a[i] + a[i])>(divisor));
}

}  // namespace

void reduce_into(DType dtype, ReduceOp op, void* into, const void* from, std::size_t count) {
  const bool sum = op == ReduceOp::sum || op == ReduceOp::avg;
  if (sum && add_into(dtype, into, from, count)) return;
  switch (dtype) {
    case DType::f64:
      return reduce_typed<double>(op, into, from, count);
    case DType::f32:
      return reduce_typed<float>(op, into, from, count);
    case DType::f16:
      return reduce_typed<Half>(op, into, from, count);
    case DType::bf16:
      return reduce_typed<BFloat16>(op, into, from, count);
    case DType::i64:
      return reduce_signed<std::int64_t>(op, into, from, count);
    case DType::i32:
      return reduce_signed<std::int32_t>(op, into, from, count);
    case DType::i16:
      return reduce_signed<std::int16_t>(op, into, from, count);
    case DType::i8:
      return reduce_signed<std::int8_t>(op, into, from, count);
    case DType::u8:
      return reduce_typed<std::uint8_t>(op, into, from, count);
    case DType::boolean:  // bytes of 0 and 1: "or" is their maximum, "and" their minimum
      return reduce_typed<std::uint8_t>(op == ReduceOp::min || op == ReduceOp::product ? ReduceOp::min : ReduceOp::max,
                                        into, from, count);
    default:
      levin::detail::refuse_dtype("all_reduce", dtype, "real types");
  }
}

void divide(DType dtype, void* into, std::size_t count, int divisor) {
  switch (dtype) {
    case DType::f64:
      return divide_typed<double>(into, count, divisor);
    case DType::f32:
      return divide_typed<float>(into, count, divisor);
    case DType::f16:
      return divide_typed<Half>(into, count, divisor);
    case DType::bf16:
      return divide_typed<BFloat16>(into, count, divisor);
    default:
      return;
  }
}

}  // namespace levin::distributed
