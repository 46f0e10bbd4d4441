// wgmma. Each thread computes its own sums, so that sanitizers blame the right one for reading an operand too early.

#include <levin/emulator/float16_base.h>
#include <levin/emulator/instructions.h>

#include "whole_warp.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace levin::emulator {

namespace {

constexpr int kDepth = 16;

/// Returns the address of an element of the operand: the 16-byte chunk's number within its 128 bytes is combined with
/// bits 7 to 9 of the address.
const unsigned char* address_of(const GroupOperand& x, int line, int step) {
  const std::ptrdiff_t offset =
      x.along_lines ? line / 64 * std::ptrdiff_t{x.block_stride} + line % 64 * 2 + step * 128 : line * 128 + step * 2;
  const auto address = reinterpret_cast<std::uintptr_t>(x.start) + static_cast<std::uintptr_t>(offset);
  return reinterpret_cast<const unsigned char*>(address ^ ((address >> 7 & 7) << 4));
}

float decode(MmaInput input, std::uint16_t bits) {
  if (input == MmaInput::f16) return float16::Binary16::decode(bits);
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

float element(MmaInput input, const GroupOperand& x, int line, int step) {
  std::uint16_t bits;
  std::memcpy(&bits, address_of(x, line, step), sizeof(bits));
  return decode(input, bits);
}

float element_of_a(const GroupProduct& p, int half, int step) {
  if (!p.registers.registers) return element(p.input, p.a, p.row + 8 * half, step);
  return decode(p.input, static_cast<std::uint16_t>(p.registers.pairs[half][step / 2] >> step % 2 * 16));
}

using Four = float __attribute__((vector_size(16)));

/// The columns of B of four tiles that belong to a thread, two of each tile.
constexpr int kColumns = 8;
struct Columns {
  Four steps[kDepth][kColumns / 4];
};

/// Reads the columns of `tiles` tiles, four at most, from `first` on; those of other tiles are 0.
void read_columns(const GroupProduct& p, int first, int tiles, Columns& columns) {
  std::uint16_t bits[kDepth][kColumns] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int line = (first + tile) * 8 + p.column;
    if (p.b.along_lines) {  // both columns stand side by side
      for (int k = 0; k < kDepth; ++k) std::memcpy(&bits[k][2 * tile], address_of(p.b, line, k), 4);
      continue;
    }
    for (int side = 0; side < 2; ++side) {
      for (int chunk = 0; chunk < kDepth; chunk += 8) {
        std::uint16_t steps[8];
        std::memcpy(steps, address_of(p.b, line + side, chunk), sizeof(steps));
        for (int k = 0; k < 8; ++k) bits[chunk + k][2 * tile + side] = steps[k];
      }
    }
  }
  for (int k = 0; k < kDepth; ++k) {
    float step[kColumns];
    for (int column = 0; column < kColumns; ++column) step[column] = decode(p.input, bits[k][column]);
    std::memcpy(columns.steps[k], step, sizeof(step));
  }
}

void compute(const GroupProduct& p) {
  const GroupRegisters& r = p.registers;
  if (r.registers && std::memcmp(r.registers, r.values, sizeof(r.values)) != 0)
    fail("wgmma: the registers of A were changed before the wait", p.site);
  float a[2][kDepth];
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < kDepth; ++k) a[half][k] = element_of_a(p, half, k);
  }
  for (int first = 0; first < p.tiles; first += kColumns / 2) {
    const int tiles = std::min(p.tiles - first, kColumns / 2);
    Columns b;
    read_columns(p, first, tiles, b);
    float* const d = p.d + first * 4;
    Four top[2] = {}, bottom[2] = {};  // rows g and g + 8
    const auto place = [&](int half, int i) -> float& { return d[i / 2 * 4 + half * 2 + i % 2]; };
    for (int i = 0; p.add && i < 2 * tiles; ++i) top[i / 4][i % 4] = place(0, i), bottom[i / 4][i % 4] = place(1, i);
    for (int k = 0; k < kDepth; ++k) {
      top[0] += a[0][k] * b.steps[k][0], top[1] += a[0][k] * b.steps[k][1];
      bottom[0] += a[1][k] * b.steps[k][0], bottom[1] += a[1][k] * b.steps[k][1];
    }
    for (int i = 0; i < 2 * tiles; ++i) place(0, i) = top[i / 4][i % 4], place(1, i) = bottom[i / 4][i % 4];
  }
}

const char* what_is_wrong(const GroupOperand& x) {
  const auto address = reinterpret_cast<std::uintptr_t>(x.start);
  if (!is_shared(x.start)) return "an operand is not in shared memory";
  if (address % 16 != 0) return "an operand is not aligned to 16 bytes";
  if (x.along_lines ? address % 128 != 0 : address / 128 % 8 != 0)
    return "an operand does not begin at a row that is a multiple of eight";
  return nullptr;
}

struct Place {
  Site site;
  GroupRegisters registers;
};

struct Wait {
  Site site;
};
void require_one_wait(void* const* operands, std::uint32_t) { require_one_place<Wait>("wgmma.wait_group", operands); }

/// Lane 4 g + t gets rows g and g + 8 from the lanes 4 g to 4 g + 3.
void meet(void* const* operands, std::uint32_t) {
  require_one_place<Place>("wgmma", operands);
  for (int lane = 0; lane < 32; ++lane) {
    GroupRegisters& own = static_cast<Place*>(operands[lane])->registers;
    if (!own.registers) return;
    for (int t = 0; t < 4; ++t) {
      const GroupRegisters& other = static_cast<const Place*>(operands[lane / 4 * 4 + t])->registers;
      for (int i = 0; i < 4; ++i) own.pairs[i % 2][t + i / 2 * 4] = other.values[i];
    }
  }
}

/// Starts a product; `registers` is null for an A in shared memory.
void start(GroupProduct product, const std::uint32_t* registers) {
  Place place{product.site, {}};
  if (registers) {
    place.registers.registers = registers;
    std::memcpy(place.registers.values, registers, sizeof(place.registers.values));
  }
  warp_collective("wgmma", 0xffffffffu, &place, meet, product.site);
  if (!product.add) {  // the sums are unknown until the wait
    for (int i = 0; i < product.tiles * 4; ++i) product.d[i] = std::numeric_limits<float>::quiet_NaN();
  }
  product.row = thread_number() / 32 % 4 * 16 + lane() / 4;
  product.column = 2 * (lane() % 4);
  product.registers = place.registers;
  group_products().begin(product);
}

void require_operand(const GroupOperand& x, Site site) {
  if (const char* reason = what_is_wrong(x)) fail(std::string("wgmma: ") + reason, site);
}

}  // namespace

void wait_for_products(int pending, Site site) {
  require_whole_warp("wgmma.wait_group", site);
  GroupProduct product;
  while (group_products().take(pending, product)) compute(product);
  // One lane may then let the operands be overwritten, for the whole warp. The thread sanitizer cannot order reads of
  // operands alone, so other accesses of the lanes are ordered with them.
  Wait own{site};
  warp_collective("wgmma.wait_group", 0xffffffffu, &own, require_one_wait, site, true);
}

void multiply_group(MmaInput input, int tiles, float* d, const GroupOperand& a, const GroupOperand& b, bool add,
                    Site site) {
  require_whole_warp("wgmma", site);
  require_operand(a, site);
  require_operand(b, site);
  start({input, tiles, d, a, b, add, 0, 0, {}, site}, nullptr);
}

void multiply_group(MmaInput input, int tiles, float* d, const std::uint32_t* a, const GroupOperand& b, bool add,
                    Site site) {
  require_whole_warp("wgmma", site);
  require_operand(b, site);
  start({input, tiles, d, {}, b, add, 0, 0, {}, site}, a);
}

}  // namespace levin::emulator
