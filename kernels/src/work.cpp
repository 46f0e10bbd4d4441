#include <levin/kernels/elementwise.h>

namespace levin::kernels {

double bytes(const TensorView& t) {
  if (!t.pointer) return 0;  // absent, or a number
  double elements = 1;
  for (int i = 0; i < t.dim(); ++i)
    if (t.stride(i) != 0) elements *= static_cast<double>(t.size(i));
  return elements * static_cast<double>(size_of(t.dtype));
}

namespace {

using std::string_view;

struct Flops {
  string_view kernel;
  double each;
};
/// Flops per element by kernel; all others take 1.
constexpr Flops kFlops[] = {
#define LEVIN_UNARY_ROW(name, types, flops, ...) {#name, flops},
#define LEVIN_ACTIVATION_ROW(name, types, flops, formula, saved, slope_flops, ...) \
  {#name, flops}, {#name "_backward", slope_flops},
#define LEVIN_BINARY_ROW(name, types, flops, ...) {#name, flops},
#define LEVIN_SCALAR_ROW(name, types, flops, ...) {#name, flops},
#define LEVIN_TERNARY_ROW(name, types, flops, ...) {#name, flops},
#include <levin/kernels/elementwise_rows.h>
    {"where", 0}};

double flops_each(string_view kernel) {
  for (const Flops& f : kFlops)
    if (f.kernel == kernel) return f.each;
  return 1;
}

}  // namespace

Work UnaryArgs::work(string_view kernel) const { return {bytes(out, x), count(out) * flops_each(kernel), x.dtype}; }

Work BinaryArgs::work(string_view kernel) const {
  return {bytes(out, a, b), count(out) * flops_each(kernel), compute};
}

Work TernaryArgs::work(string_view kernel) const {
  return {bytes(out, a, b, c), count(out) * flops_each(kernel), compute};
}

}  // namespace levin::kernels
