#pragma once
// A problem of the CUDA benchmarks is one computation at one size, with the rungs that compute it, peers that compute
// it with other libraries on the same buffers, and the exact result of some of its rows.

#include <levin/core/tensor.h>
#include <levin/kernels/conv.h>
#include <levin/kernels/matmul.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace levin::bench {

/// Queues one computation on the stream.
using Run = std::function<void(Stream&)>;

/// Another library's implementation of the same computation.
struct Peer {
  std::string name;       ///< "cublas", "cudnn", "cub", or "memcpy", which moves as many bytes
  Run run{};              ///< empty: the library is missing
  std::string missing{};  ///< the reason as one sentence
  bool computes = true;   ///< whether it writes the problem's outputs
};

/// The order of measurement, in case time runs out: shipping rungs, other rungs, and each ladder's first rung.
enum class Level { ships, others, naive };

struct Rung {
  std::string name;
  Run run;
  std::vector<Peer> peers{};
  std::string unit{};    ///< unit that bounds it: "f32", "tf32", "f16", "bf16"; empty if memory does
  double tolerance = 0;  ///< maximum of the error's norm over the result's norm
  Level level = Level::ships;
};

struct Problem {
  std::string family{};  ///< a ladder ("sgemm"), or an operation without one ("adamw")
  std::string dtype{};
  std::vector<std::pair<std::string, int64_t>> sizes{};  ///< by name, in the order of the shape
  double bytes = 0, flops = 0;                           ///< of the work, by the kernel's contract
  std::vector<Rung> rungs{};
  std::vector<Tensor> outputs{};  ///< contiguous on the device; written by every rung
  std::function<void()> reset{};  ///< called before a checked call; if empty, outputs are filled with NaN
  /// Computes rows [first, first + count) of the outputs' first axis on the CPU in double precision.
  std::function<std::vector<Tensor>(int64_t first, int64_t count)> exact{};

  int64_t rows() const { return outputs.at(0).size(0); }
  std::string shape() const;  ///< as text: "m=4096 n=4096 k=4096"
};

/// `check`: sizes that the emulator computes quickly. `full`: sizes that fill the GPU.
enum class Scale { check, full };

/// A problem that is created for its measurement and destroyed after it.
struct Entry {
  std::string family{};
  std::function<Problem()> make;
  bool ladder = true;  ///< true: rungs of all levels; false: only the shipping kernel
};

/// Returns every problem of the benchmarks.
std::vector<Entry> problems(Scale scale);

void add_gemm(std::vector<Entry>& list, Scale scale);
void add_conv(std::vector<Entry>& list, Scale scale);
void add_attention(std::vector<Entry>& list, Scale scale);
void add_lines(std::vector<Entry>& list, Scale scale);    ///< reduce, softmax, layer_norm, transpose
void add_streams(std::vector<Entry>& list, Scale scale);  ///< families without a ladder

// Helpers for the families.

/// Sets the levels of a ladder's rungs: `ships` names the shipping rung; if empty, it is the last one.
void set_levels(Problem& problem, const std::string& ships = "");

/// Returns standard normal numbers on the device.
Tensor normal(const Shape& sizes, DType dtype);
Tensor on_device(const Shape& sizes, DType dtype);
/// Returns these rows in double precision on the CPU.
Tensor rows_of(const Tensor& x, int64_t first, int64_t count);
/// Returns the tolerated norm of the error of a result of this type, relative to the result's norm.
double tolerance_of(DType dtype);
/// Returns the unit that bounds arithmetic in this type: "f32", "f16" or "bf16".
std::string unit_of(DType dtype);
double bytes_of(std::span<const Tensor> tensors);
inline double bytes_of(std::initializer_list<Tensor> tensors) { return bytes_of(std::span(tensors)); }

/// Return NVIDIA's libraries on the same arguments, or the reason why they are missing. Their calls throw DeviceError
/// for a product or convolution that the library does not support.
Peer cublas_peer(const kernels::MatmulArgs& args, bool tf32);
enum class ConvPass { forward, backward_input, backward_weight };
Peer cudnn_peer(ConvPass pass, const kernels::Conv2dArgs& args);
/// Returns a copy within the device that reads half of the bytes and writes the other half.
Peer memcpy_peer(double bytes);

/// Return CUB's algorithms, which only nvcc compiles: the sum of one row, prefix sums, and stable sorts of keys with
/// their indices.
Peer cub_sum_peer(const Tensor& out, const Tensor& x);
Peer cub_scan_peer(const Tensor& out, const Tensor& x);
Peer cub_sort_peer(const Tensor& values, const Tensor& indices, const Tensor& x);

}  // namespace levin::bench
