#pragma once
// What the CUDA benchmarks measure: a problem is one computation at one size, with the rungs that compute it, others'
// ways to compute the same on the same buffers, and the exact result of some of its rows.

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

/// Another's way to compute the same.
struct Peer {
  std::string name;       ///< "cublas", "cudnn", "cub", or "memcpy", which moves as many bytes
  Run run{};              ///< empty: there is none here
  std::string missing{};  ///< why there is none: one sentence
  bool computes = true;   ///< whether it writes the problem's outputs
};

/// The order of measuring, should the time run out: what ships, the other rungs, and each ladder's first one.
enum class Level { ships, others, naive };

struct Rung {
  std::string name;
  Run run;
  std::vector<Peer> peers{};
  std::string unit{};    ///< whose rate bounds it: "f32", "tf32", "f16", "bf16"; empty where memory does
  double tolerance = 0;  ///< largest norm of the error over the norm of the result
  Level level = Level::ships;
};

struct Problem {
  std::string family{};  ///< a ladder ("sgemm"), or an operation on its own ("adamw")
  std::string dtype{};
  std::vector<std::pair<std::string, int64_t>> sizes{};  ///< by name, in the order of the shape
  double bytes = 0, flops = 0;                           ///< that the work needs, by the contract
  std::vector<Rung> rungs{};
  std::vector<Tensor> outputs{};  ///< contiguous on the device; written by every rung
  std::function<void()> reset{};  ///< before a checked call; fills outputs with NaN where it is empty
  /// Rows [first, first + count) of the outputs' first axis, computed on the CPU in double precision.
  std::function<std::vector<Tensor>(int64_t first, int64_t count)> exact{};

  int64_t rows() const { return outputs.at(0).size(0); }
  std::string shape() const;  ///< "m=4096 n=4096 k=4096"
};

/// check: sizes that the emulator computes in moments. full: sizes that fill the chip.
enum class Scale { check, full };

/// A problem that is made when its turn comes, and gone after it.
struct Entry {
  std::string family{};
  std::function<Problem()> make;
  bool ladder = true;  ///< it has rungs of all levels; without a ladder there is what ships alone
};

/// Every problem of the benchmarks.
std::vector<Entry> problems(Scale scale);

void add_gemm(std::vector<Entry>& list, Scale scale);
void add_conv(std::vector<Entry>& list, Scale scale);
void add_attention(std::vector<Entry>& list, Scale scale);
void add_lines(std::vector<Entry>& list, Scale scale);    ///< reduce, softmax, layer_norm, transpose
void add_streams(std::vector<Entry>& list, Scale scale);  ///< elementwise, adamw, scan, sort

// Helpers of the families.

/// Gives the rungs of a ladder their levels: `ships` is the rung of that name, or the last one where there is none.
void set_levels(Problem& problem, const std::string& ships = "");

/// Standard normal numbers on the device.
Tensor normal(const Shape& sizes, DType dtype);
Tensor on_device(const Shape& sizes, DType dtype);
/// The rows in double precision on the CPU.
Tensor rows_of(const Tensor& x, int64_t first, int64_t count);
/// Norm of the error that a result of this type may have, over the result's norm.
double tolerance_of(DType dtype);
double bytes_of(std::span<const Tensor> tensors);
inline double bytes_of(std::initializer_list<Tensor> tensors) { return bytes_of(std::span(tensors)); }

/// NVIDIA's libraries on the same arguments, or the reason why they are not there. A product or convolution that the
/// library does not take throws DeviceError.
Peer cublas_peer(const kernels::MatmulArgs& args, bool tf32);
enum class ConvPass { forward, backward_input, backward_weight };
Peer cudnn_peer(ConvPass pass, const kernels::Conv2dArgs& args);
/// A copy inside the device that reads half of the bytes and writes the other half.
Peer memcpy_peer(double bytes);

/// CUB, which only nvcc compiles: sums of one line, running sums, and stable sorts of keys with their places.
Peer cub_sum_peer(const Tensor& out, const Tensor& x);
Peer cub_scan_peer(const Tensor& out, const Tensor& x);
Peer cub_sort_peer(const Tensor& values, const Tensor& indices, const Tensor& x);

}  // namespace levin::bench
