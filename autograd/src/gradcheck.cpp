#include <levin/autograd/engine.h>
#include <levin/autograd/gradcheck.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>

#include <fmt/format.h>

#include <cmath>

namespace levin {

namespace {

std::vector<Tensor> differentiable_outputs(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> kept;
  for (Tensor& y : f(inputs))
    if (y.requires_grad()) kept.push_back(std::move(y));
  return kept;
}

/// Returns the elements of all outputs, one output after the other.
std::vector<double> values_of(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& t : tensors)
    for (const double v : t.to_vector<double>()) all.push_back(v);
  return all;
}

/// Returns values_of() of the differentiable outputs, without recording.
std::vector<double> evaluate(const TensorFunction& f, const std::vector<Tensor>& inputs, std::size_t elements) {
  std::vector<Tensor> fresh;
  for (const Tensor& x : inputs) fresh.push_back(x.detach().requires_grad_(x.requires_grad()));
  const std::vector<double> v = values_of(differentiable_outputs(f, fresh));
  if (v.size() != elements) throw GradError("[gradcheck] the function's outputs change their number of elements.");
  return v;
}

/// Computes jacobian[input element][output element] by central differences.
std::vector<std::vector<double>> numeric_jacobian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                                  std::size_t which, std::size_t elements, double eps) {
  std::vector<std::vector<double>> jacobian;
  const Tensor& x = inputs[which];
  const std::vector<double> original = x.to_vector<double>();
  std::vector<Tensor> moved = inputs;
  for (std::size_t i = 0; i < original.size(); ++i) {
    const auto at = [&](double delta) {
      std::vector<double> v = original;
      v[i] += delta;
      moved[which] = from_data(v, x.sizes()).requires_grad_();
      return evaluate(f, moved, elements);
    };
    const std::vector<double> above = at(eps), below = at(-eps);
    std::vector<double> row;
    for (std::size_t o = 0; o < elements; ++o) row.push_back((above[o] - below[o]) / (2.0 * eps));
    jacobian.push_back(std::move(row));
  }
  return jacobian;
}

/// Computes the same Jacobian with one backward per output element.
std::vector<std::vector<double>> analytic_jacobian(const std::vector<Tensor>& outputs, const Tensor& input,
                                                   std::size_t elements) {
  std::vector<std::vector<double>> jacobian(static_cast<std::size_t>(input.numel()),
                                            std::vector<double>(elements, 0.0));
  std::size_t column = 0;
  for (const Tensor& y : outputs)
    for (int64_t o = 0; o < y.numel(); ++o, ++column) {
      Tensor one_hot = zeros({y.numel()}, like(y));
      one_hot.data<double>()[o] = 1.0;
      const Tensor seed = one_hot.view(y.sizes());
      const std::vector<Tensor> g =
          grad({&y, 1}, {&input, 1}, {.retain_graph = true, .allow_unused = true}, {&seed, 1});
      if (!g[0].defined()) continue;
      const std::vector<double> column_values = g[0].to_vector<double>();
      for (std::size_t i = 0; i < column_values.size(); ++i) jacobian[i][column] = column_values[i];
    }
  return jacobian;
}

/// Returns random numbers of norm 1.
std::vector<double> direction(std::size_t n, Generator& g) {
  std::vector<double> v(n);
  double squares = 0;
  for (double& x : v) x = g.uniform() + 0.1, squares += x * x;
  for (double& x : v) x /= std::sqrt(squares);
  return v;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Both slopes of the outputs along `weights` for a step of input `which` along a random direction.
struct Slopes {
  double analytic, numeric;
};
Slopes slopes(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
              std::size_t which, const std::vector<double>& weights, double eps, Generator& g) {
  const Tensor& x = inputs[which];
  const std::vector<double> step = direction(static_cast<std::size_t>(x.numel()), g), original = x.to_vector<double>();
  std::vector<Tensor> moved = inputs, seeds;
  const auto at = [&](double by) {
    std::vector<double> v = original;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] += by * step[i];
    moved[which] = from_data(v, x.sizes()).requires_grad_();
    return product(evaluate(f, moved, weights.size()), weights);
  };
  auto next = weights.begin();
  for (const Tensor& y : outputs) {
    seeds.push_back(from_data(std::vector<double>(next, next + y.numel()), y.sizes()));
    next += y.numel();
  }
  const Tensor slope = grad(outputs, {&x, 1}, {.retain_graph = true, .allow_unused = true}, seeds)[0];
  return {slope.defined() ? product(slope.to_vector<double>(), step) : 0.0, (at(eps) - at(-eps)) / (2 * eps)};
}

}  // namespace

std::string gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  enable_grad recording;
  bool any_nonzero = false, any_element = false;
  Generator generator(11);  // of directions
  const std::vector<Tensor> outputs = differentiable_outputs(f, inputs);
  if (outputs.empty()) return "no output requires grad";
  const std::size_t elements = values_of(outputs).size();
  for (const Tensor& y : outputs)
    if (y.dtype() != kFloat64) return fmt::format("an output is {}; gradcheck needs float64", name_of(y.dtype()));
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    if (!inputs[n].defined() || !inputs[n].requires_grad()) continue;
    if (inputs[n].dtype() != kFloat64)
      return fmt::format("input {} is {}; gradcheck needs float64", n, name_of(inputs[n].dtype()));
    if (options.fast_mode) {
      if (elements == 0 || inputs[n].numel() == 0) continue;
      const auto [a, b] = slopes(f, inputs, outputs, n, direction(elements, generator), options.eps, generator);
      any_element = true;
      any_nonzero = any_nonzero || a != 0.0;
      if (!(std::abs(a - b) <= options.atol + options.rtol * std::abs(b)))
        return fmt::format(
            "slope for input {} along a random direction: backward gives {}, differences give {} "
            "(allowed {})",
            n, a, b, options.atol + options.rtol * std::abs(b));
      continue;
    }
    const auto analytic = analytic_jacobian(outputs, inputs[n], elements);
    const auto numeric = numeric_jacobian(f, inputs, n, elements, options.eps);
    for (std::size_t i = 0; i < analytic.size(); ++i)
      for (std::size_t o = 0; o < elements; ++o) {
        const double a = analytic[i][o], b = numeric[i][o];
        any_element = true;
        any_nonzero = any_nonzero || a != 0.0;
        if (!(std::abs(a - b) <= options.atol + options.rtol * std::abs(b)))
          return fmt::format("d output element {} / d input {} element {}: backward gives {}, differences give {} "
                             "(allowed {})", o, n, i, a, b, options.atol + options.rtol * std::abs(b));
      }
  }
  if (any_element && !any_nonzero) return "every gradient is zero, which proves nothing";
  return "";
}

std::string gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  enable_grad recording;
  // The checked function maps (inputs, output gradients) to the input gradients.
  Generator generator(7);
  std::vector<Tensor> all = inputs;
  const std::vector<Tensor> outputs = differentiable_outputs(f, inputs);
  for (const Tensor& y : outputs)
    all.push_back(randn(y.sizes(), {.dtype = kFloat64, .generator = &generator}).requires_grad_());
  const std::size_t count = inputs.size();
  const TensorFunction gradient = [&](const std::vector<Tensor>& arguments) {
    const std::vector<Tensor> xs(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(count));
    const std::vector<Tensor> gs(arguments.begin() + static_cast<std::ptrdiff_t>(count), arguments.end());
    const std::vector<Tensor> ys = differentiable_outputs(f, xs);
    std::vector<Tensor> wanted, result;
    for (const Tensor& x : xs)
      if (x.defined() && x.requires_grad()) wanted.push_back(x);
    for (Tensor& g : grad(ys, wanted, {.create_graph = true, .allow_unused = true}, gs))
      if (g.defined() && g.requires_grad()) result.push_back(std::move(g));
    return result;
  };
  return gradcheck(gradient, all, options);
}

}  // namespace levin
