// Blocks of C by AMX. C's four tiles stay in registers over all steps; of the other four registers two hold parts of A
// and two parts of B. In the order of kPartPairs each pair replaces two of them, so that a step loads 14 tiles for 24
// multiplications of 16 cycles.
#include "kernels/cpu/gemm/amx.h"

#include "kernels/cpu/targets.h"

#include <hwy/targets.h>

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cpuid.h>
#include <cstdlib>
#include <string_view>

#define LEVIN_AMX __attribute__((target("amx-tile,amx-bf16")))

namespace levin::kernels::cpu {

namespace {

/// All eight registers have 16 rows of 64 bytes. The layout is the instruction's.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

LEVIN_AMX void begin_tiles() {
  static const TileShapes shapes;
  _tile_loadconfig(&shapes);
}

LEVIN_AMX void end_tiles() { _tile_release(); }

// Macros, since registers are constants of the instructions. This one loads the tiles at one place of a step (see
// kPlacesOfA) of one or two strips.
#define LEVIN_LOAD_PARTS(first, second, strips, from, place, distance) \
  _tile_loadd(first, (from) + (place)*kTileNumbers, 64);               \
  if constexpr ((strips) == 2) _tile_loadd(second, (from) + (distance) + (place)*kTileNumbers, 64)

#define LEVIN_MULTIPLY()                                 \
  _tile_dpbf16ps(0, 4, 6);                               \
  if constexpr (C == 2) _tile_dpbf16ps(1, 4, 7);         \
  if constexpr (R == 2) _tile_dpbf16ps(2, 5, 6);         \
  if constexpr (R == 2 && C == 2) _tile_dpbf16ps(3, 5, 7)

/// Steps after which a tile is stored that nobody reads. The first store after 700 ns without one takes 300 ns longer,
/// as long as two steps (Xeon, Sapphire Rapids).
constexpr int64_t kAwakeSteps = 4;

template <int R, int C>
LEVIN_AMX void compute(const AmxBlock& block) {
  if (block.start) {
    const int64_t row = block.start_rs * static_cast<int64_t>(sizeof(float));
    const float* const below = block.start + kStripWidth * block.start_rs;
    _tile_loadd(0, block.start, row);
    if constexpr (C == 2) _tile_loadd(1, block.start + kStripWidth, row);
    if constexpr (R == 2) _tile_loadd(2, below, row);
    if constexpr (R == 2 && C == 2) _tile_loadd(3, below + kStripWidth, row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const std::uint16_t *a = block.a, *b = block.b;
  alignas(64) std::uint16_t unused[kTileNumbers];
  float* c = block.c;
  const int64_t c_rows = (R * kStripWidth + block.steps - 1) / block.steps;
  for (int64_t s = 0; s < block.steps; ++s, a += kStepNumbers, b += kStepNumbers) {
    if (s * c_rows < R * kStripWidth)
      for (int64_t i = 0; i < c_rows; ++i, c += block.c_rs) {
        __builtin_prefetch(c, 1);
        if constexpr (C == 2) __builtin_prefetch(c + kStripWidth, 1);
      }
    LEVIN_LOAD_PARTS(4, 5, R, a, 0, block.strip);
    LEVIN_LOAD_PARTS(6, 7, C, b, 0, block.strip);
    LEVIN_MULTIPLY();
    LEVIN_LOAD_PARTS(6, 7, C, b, 1, block.strip);
    LEVIN_MULTIPLY();
    LEVIN_LOAD_PARTS(6, 7, C, b, 2, block.strip);
    LEVIN_MULTIPLY();
    LEVIN_LOAD_PARTS(4, 5, R, a, 1, block.strip);
    LEVIN_MULTIPLY();
    LEVIN_LOAD_PARTS(6, 7, C, b, 0, block.strip);
    LEVIN_MULTIPLY();
    LEVIN_LOAD_PARTS(4, 5, R, a, 2, block.strip);
    LEVIN_MULTIPLY();
    if (s % kAwakeSteps == kAwakeSteps - 1) _tile_stored(6, unused, 64);
  }
  const int64_t row = block.c_rs * static_cast<int64_t>(sizeof(float));
  float* const c_below = block.c + kStripWidth * block.c_rs;
  _tile_stored(0, block.c, row);
  if constexpr (C == 2) _tile_stored(1, block.c + kStripWidth, row);
  if constexpr (R == 2) _tile_stored(2, c_below, row);
  if constexpr (R == 2 && C == 2) _tile_stored(3, c_below + kStripWidth, row);
}

void compute_block(const AmxBlock& block) {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // g++'s intrinsics do not tell it that they access memory
  if (block.row_strips == 2) block.column_strips == 2 ? compute<2, 2>(block) : compute<2, 1>(block);
  else block.column_strips == 2 ? compute<1, 2>(block) : compute<1, 1>(block);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// Returns whether the processor has the unit and Linux permits this process to use it. Linux saves the tiles of a
/// thread only in processes that ask for it, and refuses those whose alternate signal stacks are too small for them.
bool is_permitted() {
  const char* const limit = std::getenv("LEVIN_CPU_CAPABILITY");
  if (limit && *limit && std::string_view(limit) != "amx") return false;
  if (!(hwy::SupportedTargets() & HWY_AVX3)) return false;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned bf16_bit = 1U << 22, tile_bit = 1U << 24;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  if ((edx & bf16_bit) == 0 || (edx & tile_bit) == 0) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

const MatrixUnit* amx_unit() {
  static constexpr MatrixUnit unit{&begin_tiles, &compute_block, &end_tiles};
  static const bool usable = is_permitted();
  return usable ? &unit : nullptr;
}

}  // namespace levin::kernels::cpu

#undef LEVIN_AMX
#undef LEVIN_LOAD_PARTS
#undef LEVIN_MULTIPLY

#else

namespace levin::kernels::cpu {
const MatrixUnit* amx_unit() { return nullptr; }
}  // namespace levin::kernels::cpu

#endif
