#include <levin/core/dtype.h>

#include <fmt/format.h>

namespace levin {

namespace {

thread_local DType t_default_dtype = DType::f32;

/// Returns the rank in bool < integers < floats; types of equal rank may need a wider common type.
int category(DType t) { return t == DType::boolean ? 0 : is_integral(t) ? 1 : 2; }

/// The result has float64's digits if one of the two has.
DType promote_complex(DType a, DType b) {
  const bool wide = complex_type_of(a) == DType::c128 || complex_type_of(b) == DType::c128;
  return wide ? DType::c128 : DType::c64;
}

DType promote_integers(DType a, DType b) {
  if (a == b) return a;
  const bool has_u8 = a == DType::u8 || b == DType::u8;
  if (has_u8 && (a == DType::i8 || b == DType::i8)) return DType::i16;
  return size_of(a) >= size_of(b) ? a : b;
}

}  // namespace

std::string_view name_of(DType t) {
  constexpr std::string_view names[kDTypeCount] = {"float64", "float32", "float16",   "bfloat16",
                                                   "int64",   "int32",   "int16",     "int8",
                                                   "uint8",   "bool",    "complex64", "complex128"};
  return names[static_cast<int>(t)];
}

DType promote_types(DType a, DType b) {
  if (is_complex(a) || is_complex(b)) return promote_complex(a, b);
  const int ca = category(a), cb = category(b);
  if (ca != cb) return ca > cb ? a : b;
  if (ca == 0) return a;
  if (ca == 1) return promote_integers(a, b);
  if (a == b) return a;
  if (size_of(a) == size_of(b)) return DType::f32;  // f16 with bf16
  return size_of(a) > size_of(b) ? a : b;
}

DType default_dtype() { return t_default_dtype; }

void set_default_dtype(DType t) {
  if (!is_floating(t)) {
    throw DTypeError(fmt::format(
        "[set_default_dtype] the default type must be floating, not {}. Use kFloat or kDouble.", name_of(t)));
  }
  t_default_dtype = t;
}

namespace detail {

void refuse_dtype(const char* op, DType t, const char* accepted) {
  if (is_complex(t)) {
    throw DTypeError(fmt::format(
        "[{}] {} is not accepted here, only {}. Take the parts with view_as_real(x), real(x) or imag(x), or abs(x).",
        op, name_of(t), accepted));
  }
  throw DTypeError(
      fmt::format("[{}] {} is not accepted here, only {}. Convert it with x.to(...).", op, name_of(t), accepted));
}

}  // namespace detail
}  // namespace levin
