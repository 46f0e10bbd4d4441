#pragma once
// Fourier transforms of contiguous lines by cuFFT, which is opened at the first call. Its few functions that Levin
// calls are declared here, so that no build needs the headers of cuFFT and no program links it. A test compares names
// and numbers with cufft.h if the toolkit is installed. NVIDIA, cuFFT library user guide, version 13.0.

#include <levin/core/device.h>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace levin::kernels::cuda {

namespace cufft_api {

using Handle = int;
enum Type : int { kR2C = 0x2a, kC2R = 0x2c, kC2C = 0x29, kD2Z = 0x6a, kZ2D = 0x6c, kZ2Z = 0x69 };
inline constexpr int kForward = -1, kInverse = 1, kSuccess = 0;

/// cuFFT's functions by their names without the prefix; each returns kSuccess or another number.
struct Functions {
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*set_auto_allocation)(Handle, int);
  int (*make_plan)(Handle, int rank, long long* n, long long* in_embed, long long in_stride, long long in_distance,
                   long long* out_embed, long long out_stride, long long out_distance, Type, long long batch,
                   std::size_t* workspace);
  int (*set_stream)(Handle, cudaStream_t);
  int (*set_work_area)(Handle, void*);
  int (*c2c)(Handle, const void*, void*, int);
  int (*z2z)(Handle, const void*, void*, int);
  int (*r2c)(Handle, const void*, void*);
  int (*d2z)(Handle, const void*, void*);
  int (*c2r)(Handle, const void*, void*);
  int (*z2d)(Handle, const void*, void*);
};

}  // namespace cufft_api

/// True if cuFFT can be opened; asked once. In the emulator only a library that LEVIN_CUFFT_LIBRARY names counts: a
/// stand-in, because the real one does not read the emulator's memory.
bool has_cufft();

enum class CufftKind { complex, to_half, to_real };
struct CufftCall {
  CufftKind kind;
  bool wide;     ///< float64
  bool inverse;  ///< of complex transforms
  std::int64_t n, lines;
  bool operator==(const CufftCall&) const = default;
};

/// Transforms `lines` lines of n elements without scaling. `in` and `out` do not overlap and may begin at any element;
/// `in` may be overwritten if the kind is to_real. Throws DeviceError with cuFFT's number.
void run_cufft(const CufftCall& call, const void* in, void* out, Stream& stream);

}  // namespace levin::kernels::cuda
