// ldmatrix, stmatrix, movmatrix. Each lane accesses its own row in memory, so that sanitizers blame the right lane; the
// warp synchronises only to exchange registers.

#include <levin/emulator/instructions.h>

#include "whole_warp.h"

#include <array>
#include <cstring>

namespace levin::emulator {

namespace {

using Row = std::array<std::uint16_t, 8>;  // one row of a matrix

struct MatrixOperand {
  Row row;                     ///< the row at the lane's address
  std::uint32_t registers[4];  ///< the lane's fragment
  Site site;
};

struct Names {
  const char *load, *store;
};
/// Names by transposed, then by log2 of the count.
constexpr Names kNames[2][3] = {
    {{"ldmatrix.x1", "stmatrix.x1"}, {"ldmatrix.x2", "stmatrix.x2"}, {"ldmatrix.x4", "stmatrix.x4"}},
    {{"ldmatrix.x1.trans", "stmatrix.x1.trans"},
     {"ldmatrix.x2.trans", "stmatrix.x2.trans"},
     {"ldmatrix.x4.trans", "stmatrix.x4.trans"}}};

constexpr int log2_of(int count) { return count == 4 ? 2 : count - 1; }

MatrixOperand& operand(void* const* operands, int lane) { return *static_cast<MatrixOperand*>(operands[lane]); }

std::uint32_t pair(std::uint16_t low, std::uint16_t high) { return low | std::uint32_t{high} << 16; }

template <int count, bool transposed>
void rows_to_registers(void* const* operands, std::uint32_t) {
  require_one_place<MatrixOperand>(kNames[transposed][log2_of(count)].load, operands);
  for (int lane = 0; lane < 32; ++lane) {
    const std::size_t g = static_cast<std::size_t>(lane) / 4, t = static_cast<std::size_t>(lane) % 4;
    for (int i = 0; i < count; ++i) {
      const auto element = [&](std::size_t r, std::size_t c) {
        return operand(operands, 8 * i + static_cast<int>(r)).row[c];
      };
      operand(operands, lane).registers[i] =
          transposed ? pair(element(2 * t, g), element(2 * t + 1, g)) : pair(element(g, 2 * t), element(g, 2 * t + 1));
    }
  }
}

template <int count, bool transposed>
void registers_to_rows(void* const* operands, std::uint32_t) {
  require_one_place<MatrixOperand>(kNames[transposed][log2_of(count)].store, operands);
  for (int lane = 0; lane < 32; ++lane) {
    const std::size_t g = static_cast<std::size_t>(lane) / 4, t = static_cast<std::size_t>(lane) % 4;
    for (int i = 0; i < count; ++i) {
      const auto element = [&](std::size_t r, std::size_t c) -> std::uint16_t& {
        return operand(operands, 8 * i + static_cast<int>(r)).row[c];
      };
      const std::uint32_t value = operand(operands, lane).registers[i];
      (transposed ? element(2 * t, g) : element(g, 2 * t)) = static_cast<std::uint16_t>(value);
      (transposed ? element(2 * t + 1, g) : element(g, 2 * t + 1)) = static_cast<std::uint16_t>(value >> 16);
    }
  }
}

constexpr WarpFunction kLoad[2][3] = {
    {rows_to_registers<1, false>, rows_to_registers<2, false>, rows_to_registers<4, false>},
    {rows_to_registers<1, true>, rows_to_registers<2, true>, rows_to_registers<4, true>}};
constexpr WarpFunction kStore[2][3] = {
    {registers_to_rows<1, false>, registers_to_rows<2, false>, registers_to_rows<4, false>},
    {registers_to_rows<1, true>, registers_to_rows<2, true>, registers_to_rows<4, true>}};

/// Returns whether the instruction uses this lane's row address, after checking the address.
bool gives_row(const char* name, int count, const void* row, Site site) {
  if (lane() >= 8 * count) return false;
  if (!is_shared(row)) fail(std::string(name) + ": the row of this lane is not in shared memory", site);
  const auto address = reinterpret_cast<std::uintptr_t>(row);
  if (address % 16 != 0) {
    fail(std::string(name) + ": the row of this lane is not aligned to 16 bytes: it lies " +
             std::to_string(address % 16) + " bytes beyond",
         site);
  }
  return true;
}

}  // namespace

void load_matrices(int count, bool transposed, std::uint32_t* registers, const void* row, Site site) {
  const int size = log2_of(count);
  const char* name = kNames[transposed][size].load;
  require_whole_warp(name, site);
  MatrixOperand own{.row = {}, .registers = {}, .site = site};
  if (gives_row(name, count, row, site)) std::memcpy(own.row.data(), row, sizeof(Row));
  warp_collective(name, 0xffffffffu, &own, kLoad[transposed][size], site);
  std::memcpy(registers, own.registers, static_cast<std::size_t>(count) * sizeof(std::uint32_t));
}

void store_matrices(int count, bool transposed, void* row, const std::uint32_t* registers, Site site) {
  const int size = log2_of(count);
  const char* name = kNames[transposed][size].store;
  require_whole_warp(name, site);
  MatrixOperand own{.row = {}, .registers = {}, .site = site};
  std::memcpy(own.registers, registers, static_cast<std::size_t>(count) * sizeof(std::uint32_t));
  const bool stores = gives_row(name, count, row, site);
  warp_collective(name, 0xffffffffu, &own, kStore[transposed][size], site);
  if (stores) std::memcpy(row, own.row.data(), sizeof(Row));
}

namespace {

struct MoveOperand {
  std::uint32_t value, result;
  Site site;
};

void transpose_lanes(void* const* operands, std::uint32_t) {
  require_one_place<MoveOperand>("movmatrix.trans", operands);
  const auto element = [&](int r, int c) {
    const std::uint32_t value = static_cast<const MoveOperand*>(operands[4 * r + c / 2])->value;
    return static_cast<std::uint16_t>(c % 2 == 0 ? value : value >> 16);
  };
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    static_cast<MoveOperand*>(operands[lane])->result = pair(element(2 * t, g), element(2 * t + 1, g));
  }
}

}  // namespace

std::uint32_t transpose_matrix(std::uint32_t value, Site site) {
  require_whole_warp("movmatrix.trans", site);
  MoveOperand own{value, 0, site};
  warp_collective("movmatrix.trans", 0xffffffffu, &own, &transpose_lanes, site);
  return own.result;
}

}  // namespace levin::emulator
