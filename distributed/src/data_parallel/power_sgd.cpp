#include <fmt/format.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/comm_hooks.h>

#include <cmath>
#include <map>

namespace levin::distributed {

namespace {

// A column is redrawn if no more than this fraction of it is independent of earlier ones: the rest is rounding error.
constexpr double kIndependent = 1e-6;

struct Columns {
  std::vector<double> values;  // (rows, count)
  std::size_t rows, count;

  double dot(std::size_t a, std::size_t b) const {
    double sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += values[i * count + a] * values[i * count + b];
    return sum;
  }
  void subtract(std::size_t from, std::size_t column, double times) {
    for (std::size_t i = 0; i < rows; ++i) values[i * count + from] -= times * values[i * count + column];
  }
  void scale(std::size_t column, double by) {
    for (std::size_t i = 0; i < rows; ++i) values[i * count + column] *= by;
  }
  void draw(std::size_t column, Generator& rng) {
    const auto drawn = randn({static_cast<int64_t>(rows)}, {.dtype = kFloat64, .generator = &rng}).to_vector<double>();
    for (std::size_t i = 0; i < rows; ++i) values[i * count + column] = drawn[i];
  }
};

// Orthonormalises the columns (Gram-Schmidt, twice). A column that is zero, not finite, or depends on earlier ones is
// replaced by a random one, as a zero column would stay zero forever. There are at least as many rows as columns.
void orthogonalize(const Tensor& matrix, Generator& rng) {
  Columns c{matrix.to_vector<double>(), static_cast<std::size_t>(matrix.size(0)),
            static_cast<std::size_t>(matrix.size(1))};
  for (std::size_t k = 0; k < c.count; ++k) {
    for (;;) {
      const double before = std::sqrt(c.dot(k, k));
      for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t j = 0; j < k; ++j) c.subtract(k, j, c.dot(j, k));
      }
      const double after = std::sqrt(c.dot(k, k));
      if (std::isfinite(after) && after > kIndependent * before) {
        c.scale(k, 1 / after);
        break;
      }
      c.draw(k, rng);
    }
  }
  matrix.copy_(from_data(c.values, matrix.sizes()));
}

// Returns views of tensors that lie one after the other in a message buffer.
std::vector<Tensor> parts_of(const Tensor& buffer, const std::vector<Shape>& shapes) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const Shape& s : shapes) {
    parts.push_back(buffer.narrow(0, at, s.numel()).view(s));
    at += s.numel();
  }
  return parts;
}

int64_t numel_of(const std::vector<Shape>& shapes) {
  int64_t sum = 0;
  for (const Shape& s : shapes) sum += s.numel();
  return sum;
}

// A bucket in flight.
struct FactorExchange {
  std::vector<Tensor> gradients, matrices;  // of the factored parameters: where results go, and what is factored
  std::vector<std::size_t> parameters;      // indices of the factored parameters
  std::vector<Tensor> left, right;          // P (n, r) and Q (m, r)
  Tensor all_left, all_right;
  std::vector<Tensor> vectors, sums;  // gradients that are averaged uncompressed
  Tensor all_vectors;
  Work left_work, right_work, vector_work;
};

}  // namespace

struct PowerSgd::State {
  PowerSgdOptions options;
  Generator rng;
  int64_t steps = 0;
  Traffic traffic{};
  std::map<std::size_t, Tensor> right, errors;  // by parameter

  bool factored(const Tensor& gradient) const {
    if (gradient.dim() < 2) return false;
    const auto n = static_cast<double>(gradient.size(0)), m = static_cast<double>(gradient.numel()) / n;
    return (n + m) * static_cast<double>(options.rank) * options.min_compression < n * m;
  }
  void sort_gradients(const GradBucket& bucket, FactorExchange& e);
  void send_left(ProcessGroup& group, FactorExchange& e);
  void send_right(ProcessGroup& group, FactorExchange& e);
  void finish(FactorExchange& e);
};

void PowerSgd::State::sort_gradients(const GradBucket& bucket, FactorExchange& e) {
  const DType dtype = bucket.buffer.dtype() == kFloat64 ? kFloat64 : kFloat32;
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    const Tensor& gradient = bucket.gradients[i];
    traffic.elements += gradient.numel();
    if (!factored(gradient)) {
      e.vectors.push_back(gradient);
      continue;
    }
    const std::size_t p = bucket.parameters[i];
    const Tensor matrix = gradient.view({gradient.size(0), gradient.numel() / gradient.size(0)});
    const auto error = errors.find(p);
    e.gradients.push_back(matrix);
    e.matrices.push_back(error == errors.end() ? matrix.to(dtype).clone() : add(matrix.to(dtype), error->second));
    e.parameters.push_back(p);
  }
}

// Computes P = M Q and begins its average over the ranks.
void PowerSgd::State::send_left(ProcessGroup& group, FactorExchange& e) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < e.matrices.size(); ++i) {
    const Tensor& m = e.matrices[i];
    const int64_t columns = std::min({options.rank, m.size(0), m.size(1)});
    const auto kept = right.find(e.parameters[i]);
    if (kept != right.end() && kept->second.sizes() != Shape{m.size(1), columns}) {
      throw StateError(fmt::format(
          "[PowerSgd] the factor of parameter {} is {}, its gradient needs {}. Is the state "
          "another module's?",
          e.parameters[i], levin::to_string(kept->second.sizes()), levin::to_string(Shape{m.size(1), columns})));
    }
    e.right.push_back(kept == right.end() ? zeros({m.size(1), columns}, like(m)) : kept->second);
    orthogonalize(e.right.back(), rng);
    shapes.push_back({m.size(0), columns});
  }
  e.all_left = empty({numel_of(shapes)}, like(e.matrices[0]));
  e.left = parts_of(e.all_left, shapes);
  for (std::size_t i = 0; i < e.left.size(); ++i) e.left[i].copy_(matmul(e.matrices[i], e.right[i]));
  traffic.sent += e.all_left.numel();
  e.left_work = group.all_reduce(e.all_left, ReduceOp::avg);
}

// Computes Q = M^T P with an orthonormal P and begins its average over the ranks.
void PowerSgd::State::send_right(ProcessGroup& group, FactorExchange& e) {
  e.left_work.wait();
  std::vector<Shape> shapes;
  for (const Tensor& q : e.right) shapes.push_back(q.sizes());
  e.all_right = empty({numel_of(shapes)}, like(e.all_left));
  e.right = parts_of(e.all_right, shapes);
  for (std::size_t i = 0; i < e.left.size(); ++i) {
    orthogonalize(e.left[i], rng);
    e.right[i].copy_(matmul(e.matrices[i].t(), e.left[i]));
  }
  traffic.sent += e.all_right.numel();
  e.right_work = group.all_reduce(e.all_right, ReduceOp::avg);
}

void PowerSgd::State::finish(FactorExchange& e) {
  e.right_work.wait();
  for (std::size_t i = 0; i < e.matrices.size(); ++i) {
    const std::size_t p = e.parameters[i];
    const Tensor product = matmul(e.left[i], e.right[i].t());
    e.gradients[i].copy_(product);
    if (options.warm_start) right.insert_or_assign(p, e.right[i].clone());
    if (!options.error_feedback) continue;
    const auto old = errors.find(p);
    const Tensor kept = old == errors.end() ? zeros_like(product) : old->second;
    errors.insert_or_assign(p, where(all(isfinite(product)), sub(e.matrices[i], product), kept));
  }
}

PowerSgd::PowerSgd(const PowerSgdOptions& options) : state_(std::make_shared<State>()) {
  if (options.rank < 1 || options.start_step < 0 || !(options.min_compression > 0)) {
    throw ValueError(
        fmt::format("[PowerSgd] rank {}, start_step {} and min_compression {} are out of range: the rank is at "
                    "least 1, the step at least 0, min_compression above 0.",
                    options.rank, options.start_step, options.min_compression));
  }
  state_->options = options;
  state_->rng = Generator(options.seed);
}

PowerSgd::Traffic PowerSgd::traffic() const { return state_->traffic; }

StateDict PowerSgd::state_dict() const {
  const GeneratorState rng = state_->rng.state();
  const auto number = [](auto n) { return tensor(static_cast<int64_t>(n)); };
  StateDict all = {{"steps", number(state_->steps)}, {"seed", number(rng.seed)}, {"offset", number(rng.offset)}};
  for (const auto& [p, t] : state_->right) all.set(fmt::format("factor.{}", p), t);
  for (const auto& [p, t] : state_->errors) all.set(fmt::format("error.{}", p), t);
  return all;
}

void PowerSgd::load_state_dict(const StateDict& state) {
  std::map<std::size_t, Tensor> right, errors;
  std::map<std::string, int64_t> numbers;
  for (const auto& [name, t] : state) {
    const auto dot = name.find('.');
    const std::string kind = name.substr(0, dot);
    if (dot == std::string::npos && t.dtype() == kInt64 && t.numel() == 1) {
      numbers[name] = t.item<int64_t>();
    } else if ((kind == "factor" || kind == "error") && dot + 1 < name.size() &&
               name.find_first_not_of("0123456789", dot + 1) == std::string::npos) {
      (kind == "factor" ? right : errors)[std::stoull(name.substr(dot + 1))] = t.clone();
    } else {
      throw StateError(fmt::format("[PowerSgd] \"{}\" is not part of a PowerSGD state.", name));
    }
  }
  for (const char* name : {"steps", "seed", "offset"}) {
    if (!numbers.contains(name)) throw StateError(fmt::format("[PowerSgd] the state has no \"{}\".", name));
  }
  state_->steps = numbers["steps"];
  state_->rng.set_state({static_cast<std::uint64_t>(numbers["seed"]), static_cast<std::uint64_t>(numbers["offset"])});
  state_->right = std::move(right);
  state_->errors = std::move(errors);
}

CommStages PowerSgd::operator()(ProcessGroup& group, const GradBucket& bucket) const {
  if (bucket.index == 0) ++state_->steps;
  if (state_->steps <= state_->options.start_step) return allreduce_hook(group, bucket);
  const auto e = std::make_shared<FactorExchange>();
  state_->sort_gradients(bucket, *e);
  if (!e->vectors.empty()) {
    std::vector<Shape> shapes;
    for (const Tensor& v : e->vectors) shapes.push_back(v.sizes());
    e->all_vectors = empty({numel_of(shapes)}, like(bucket.buffer));
    e->sums = parts_of(e->all_vectors, shapes);
    for (std::size_t i = 0; i < shapes.size(); ++i) e->sums[i].copy_(e->vectors[i]);
    state_->traffic.sent += e->all_vectors.numel();
    e->vector_work = group.all_reduce(e->all_vectors, ReduceOp::avg);
  }
  CommStages stages;
  if (!e->matrices.empty()) {
    state_->send_left(group, *e);
    stages.push_back([state = state_, &group, e] { state->send_right(group, *e); });
    stages.push_back([state = state_, e] { state->finish(*e); });
  }
  stages.push_back([e] {
    e->vector_work.wait();
    for (std::size_t i = 0; i < e->vectors.size(); ++i) e->vectors[i].copy_(e->sums[i]);
  });
  return stages;
}

}  // namespace levin::distributed
