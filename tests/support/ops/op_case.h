#pragma once
// One declarative description of an operation, from which the tests of tests/ops, the stored PyTorch values, the
// benchmarks and the table of support are made. Type-erased: a case is data and a few functions, no templates.
//
//   {.name = "relu",
//    .op = [](const Tensors& x) -> Tensors { return {relu(x[0])}; },
//    .reference = pointwise([](double x) { return x > 0 ? x : 0; }),
//    .samples = unary_samples(away_from(uniform(-3, 3), {0.0})),
//    .dtypes = kFloatTypes,
//    .torch = "torch.relu(x0)"}

#include "support/draw.h"
#include "support/tolerance.h"

#include <levin/autograd/gradcheck.h>
#include <levin/core/generator.h>
#include <levin/core/tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace levin::test {

using Tensors = std::vector<Tensor>;

inline const std::vector<DType> kFloatTypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
inline const std::vector<DType> kRoundedFloats = {DType::f32, DType::f16, DType::bf16};
inline const std::vector<DType> kWideFloats = {DType::f64, DType::f32};
inline const std::vector<DType> kNumericTypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                                 DType::i32, DType::i16, DType::i8,  DType::u8};
inline const std::vector<DType> kAllTypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                             DType::i32, DType::i16, DType::i8,  DType::u8,   DType::boolean};

/// Value of element i of n. What does not fit an integer type is truncated towards zero, for u8 after abs().
using Values = std::function<double(int64_t i, int64_t n, Generator& g)>;
Values uniform(double low = -2.0, double high = 2.0);
/// Whole numbers in [low, high).
Values integers(int64_t low, int64_t high);
/// A shuffled arithmetic sequence round zero: no ties, and neighbours `step` apart (for max, sort, topk).
Values distinct(double step = 0.25);
/// The list over and over (special values, ties, booleans).
Values cycle(std::vector<double> values);
/// `values`, moved out of the `margin` round each kink, so that finite differences do not cross one.
Values away_from(Values values, std::vector<double> kinks, double margin = 0.05);

/// The memory layout of an input. Transposed: last two axes swapped; sliced: every second element of a longer last
/// axis, from an offset; expanded: stride 0 on the first axis.
enum class Layout { contiguous, transposed, sliced, expanded };
inline const std::vector<Layout> kAllLayouts = {Layout::contiguous, Layout::transposed, Layout::sliced,
                                                Layout::expanded};
std::string to_string(Layout layout);

struct InputSpec {
  Shape sizes{};
  Values values = uniform();
  std::optional<DType> dtype{};  ///< fixed (int64 for labels, ...); absent: the type under test
  bool differentiable = true;    ///< floating inputs only
  bool rearrange = true;         ///< false: contiguous in every layout
  bool finite = false;           ///< random tests draw no infinity or NaN; the case gives the reason
  bool sign = false;             ///< the operation reads the sign, which is undefined for a computed NaN
  bool own = false;              ///< random tests draw `values` only, since the operation takes no others
  bool factor = false;           ///< gradients are proportional to this input, as to an incoming gradient
};

/// int64 in [0, bound): labels, rows.
inline InputSpec index_input(const Shape& sizes, int64_t bound) {
  return {.sizes = sizes, .values = integers(0, bound), .dtype = DType::i64, .differentiable = false};
}
inline InputSpec bool_input(const Shape& sizes) {
  return {.sizes = sizes, .values = integers(0, 2), .dtype = DType::boolean, .differentiable = false};
}

/// One set of inputs. `op`, `reference` and `torch` replace those of the case where a sample needs other arguments.
struct Sample {
  std::vector<InputSpec> inputs{};
  int64_t terms = 1;      ///< number of terms summed for one output element (see Tolerance)
  int64_t grad_terms = 0;  ///< the same for one gradient element; 0: as terms
  std::optional<Tolerance> tolerance{}, grad_tolerance{};  ///< replace those of the case
  std::string label{};    ///< shown in failures, e.g. "axis 1, keepdim"
  TensorFunction op{};
  TensorFunction reference{};
  std::string torch{};
  std::string code{};     ///< the call in C++, of x0, x1, ...; empty: the case's name and all inputs
  bool fixed = false;     ///< random tests keep the sizes, which the call's arguments depend on
};

/// dtype of an output as a function of the type under test.
enum class Output {
  same,         ///< the type under test
  boolean,
  index,        ///< int64
  floating,     ///< integers and bool give f32
  accumulated,  ///< integers and bool give int64
  any           ///< not checked
};

/// The minimal memory traffic and the arithmetic of the work.
struct Work {
  double bytes = 0;
  double flops = 0;
};

/// Inputs that must be refused: `run` has to throw a levin::Error whose text contains `expected`.
struct ErrorSample {
  std::string expected{};
  std::function<void()> run{};
};

struct OpCase {
  std::string name{};
  TensorFunction op{};
  /// The reference in double precision with simple loops: floating and integer inputs under test are passed as
  /// contiguous f64, inputs with their own type unchanged but contiguous. Null: PyTorch's stored values are the
  /// reference.
  TensorFunction reference{};
  std::vector<Sample> samples{};
  /// A sample of random sizes and arguments, for tests/fuzz; null: one of the samples.
  std::function<Sample(Draw&)> draw{};
  /// Big enough for several chunks of parallel_for: forward once in the first type that is f32, and thread counts.
  std::vector<Sample> large{};
  /// Samples with exactly the elements of one parallel task, and one more: forward and gradients, as `large`.
  std::vector<Sample> limits{};
  std::vector<DType> dtypes = kWideFloats;
  std::vector<Layout> layouts = kAllLayouts;
  std::vector<Output> outputs = {Output::same};  ///< the last one repeats
  Tolerance tolerance{};
  /// Tolerance of gradients in grad_dtypes compared with those in f64 at the same inputs.
  Tolerance grad_tolerance = {.ulps = 16, .scale = 1};
  /// Types whose gradients are compared with those in f64 at the same inputs, on the CPU and on other devices.
  std::vector<DType> grad_dtypes = {DType::f32};
  /// Tolerance::rounded of results and gradients in the 16-bit floats, on devices whose kernels take these directly.
  double rounded = 0, grad_rounded = 0;
  /// Each output element is a function of one element of each input, rounded a few times: it is right over all of a
  /// type's range.
  bool pointwise = false;
  bool differentiable = true;
  bool twice = true;          ///< gradgradcheck too
  bool zero_gradient = false;  ///< gradient is zero everywhere by definition (floor, sign): checked to be just that
  /// Python expression of x0, x1, ... (n of them; and torch, F): a tensor or a tuple. Empty: no PyTorch values; "-" in
  /// a sample: none for that one.
  std::string torch{};
  std::vector<ErrorSample> errors{};
  /// Inputs for benchmarks and their work; without `work` all inputs and outputs count once, without flops.
  std::vector<Sample> bench{};
  std::function<Work(const Tensors& inputs, const Tensors& outputs)> work{};
};

// Functions that make samples.
/// One input in shapes (), (0), (1), (31), (33), (7, 13), (2, 3, 5), (4, 0, 3).
std::vector<Sample> unary_samples(const Values& values = uniform());
/// Two inputs, the same shapes plus broadcasting both ways.
std::vector<Sample> binary_samples(const Values& a = uniform(), const Values& b = uniform());
/// A sample of inputs of the type under test with these shapes.
Sample sample(const std::vector<Shape>& shapes, const Values& values = uniform(), int64_t terms = 1);

/// "{2, 3}", as C++ writes a shape.
std::string braces(const Shape& shape);

// Functions that make references.
TensorFunction pointwise(std::function<double(double)> f);
TensorFunction pointwise(std::function<double(double, double)> f);
TensorFunction pointwise(std::function<double(double, double, double)> f);
/// x (f64) read as if broadcast to `target`, row-major.
std::vector<double> broadcast_values(const Tensor& x, const Shape& target);

// Functions that run cases, used by tests/ops, bench and the script's dump.
/// Contiguous storage for each input; the same for the same case, sample and type.
Tensors make_bases(const OpCase& c, const Sample& s, DType dtype, Layout layout = Layout::contiguous);
Tensor make_base(const InputSpec& spec, DType dtype, Layout layout, Generator& g);
/// The inputs in the wanted layout as views of the bases; differentiable.
Tensors arrange(const Sample& s, const Tensors& bases, Layout layout);
Tensors make_inputs(const OpCase& c, const Sample& s, DType dtype, Layout layout = Layout::contiguous);
const TensorFunction& op_of(const OpCase& c, const Sample& s);
Tolerance tolerance_of(const OpCase& c, const Sample& s);
Tolerance grad_tolerance_of(const OpCase& c, const Sample& s);
/// Returns the number of terms summed for one gradient element.
int64_t grad_terms_of(const Sample& s);
Work work_of(const OpCase& c, const Tensors& inputs, const Tensors& outputs);

// The modes. Each returns an empty string or the error (worst element, its allowance, its indices). With
// LEVIN_SMALL_CASES=1 in the environment the samples share types and layouts out, so that each sample and each pair of
// a type and a layout has its turn; of the large samples only the first is differentiated and given to more threads.
/// Compares with the reference in every type and layout, with guard zones around every buffer.
std::string check_forward(const OpCase& c);
/// Compares first derivatives with finite differences in f64, and gradients in f32 with f64.
std::string check_gradients(const OpCase& c);
/// Gradients of `large` and `limits`: in f64 against the reference's slope along a random direction, in the first of
/// grad_dtypes against those in f64, and in the first sample with an incoming gradient that is not contiguous.
std::string check_large_gradients(const OpCase& c);
/// Gradients for incoming ones that are transposed, sliced and expanded against those for contiguous copies.
std::string check_incoming_layouts(const OpCase& c);
/// Compares second derivatives with finite differences.
std::string check_second_gradients(const OpCase& c);
/// Checks for the same bits of outputs and gradients with 1, 2, 3 and 7 threads.
std::string check_thread_counts(const OpCase& c);
std::string check_errors(const OpCase& c);
/// Forward in every type and layout, and gradients in grad_dtypes, on `device`, each with threads in another order (see
/// ThreadOrder) and in memory that was filled with NaN.
std::string check_device(const OpCase& c, Device device);

}  // namespace levin::test
