// mma.sync: the operands of all lanes are gathered into plain matrices, multiplied by a plain loop, and scattered back.

#include <levin/emulator/float16_base.h>
#include <levin/emulator/instructions.h>

#include "whole_warp.h"

#include <bit>

namespace levin::emulator {

namespace {

constexpr int kM = 16, kN = 8;

/// A lane's registers. c and d are floats, or pairs of f16.
struct MmaOperand {
  void* d;
  const std::uint32_t *a, *b;
  const void* c;
  Site site;
};

template <MmaInput input>
float float_from(std::uint32_t element) {
  switch (input) {
    case MmaInput::f16:
      return float16::Binary16::decode(static_cast<std::uint16_t>(element));
    case MmaInput::bf16:
      return std::bit_cast<float>(element << 16);
    case MmaInput::tf32:
      return std::bit_cast<float>(element & ~0x1fffu);
  }
}

template <MmaInput input, int k>
struct Shape {
  static constexpr int in_register = input == MmaInput::tf32 ? 1 : 2;  ///< elements per register
  static constexpr int chunk = 4 * in_register;                        ///< columns of a or rows of b per register
  static constexpr int b_registers = k / chunk, a_registers = 2 * b_registers;
};

template <MmaInput input, int k>
void gather(void* const* operands, float (&a)[kM][k], float (&b)[k][kN]) {
  using S = Shape<input, k>;
  std::uint32_t a_bits[kM][k], b_bits[k][kN];
  const auto element = [](std::uint32_t value, int e) {
    return S::in_register == 1 ? value : e == 0 ? value & 0xffff : value >> 16;
  };
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const MmaOperand*>(operands[lane]);
    const int g = lane / 4, first = lane % 4 * S::in_register;
    for (int i = 0; i < S::a_registers; ++i) {
      for (int e = 0; e < S::in_register; ++e) {
        a_bits[g + 8 * (i % 2)][first + S::chunk * (i / 2) + e] = element(own.a[i], e);
      }
    }
    for (int i = 0; i < S::b_registers; ++i) {
      for (int e = 0; e < S::in_register; ++e) b_bits[first + S::chunk * i + e][g] = element(own.b[i], e);
    }
  }
  for (int r = 0; r < kM; ++r) {
    for (int l = 0; l < k; ++l) a[r][l] = float_from<input>(a_bits[r][l]);
  }
  for (int l = 0; l < k; ++l) {
    for (int n = 0; n < kN; ++n) b[l][n] = float_from<input>(b_bits[l][n]);
  }
}

template <bool f16>
void gather_sums(void* const* operands, float (&sums)[kM][kN]) {
  for (int lane = 0; lane < 32; ++lane) {
    const void* c = static_cast<const MmaOperand*>(operands[lane])->c;
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      float& sum = sums[g + 8 * (i / 2)][2 * t + i % 2];
      if constexpr (f16) {
        const std::uint32_t pair = static_cast<const std::uint32_t*>(c)[i / 2];
        sum = float16::Binary16::decode(static_cast<std::uint16_t>(pair >> (16 * (i % 2))));
      } else {
        sum = static_cast<const float*>(c)[i];
      }
    }
  }
}

template <bool f16>
void scatter_sums(void* const* operands, const float (&sums)[kM][kN]) {
  for (int lane = 0; lane < 32; ++lane) {
    void* d = static_cast<const MmaOperand*>(operands[lane])->d;
    const int g = lane / 4, t = lane % 4;
    for (int half = 0; half < 2; ++half) {  // rows g and g + 8
      const float low = sums[g + 8 * half][2 * t], high = sums[g + 8 * half][2 * t + 1];
      if constexpr (f16) {
        const std::uint32_t upper = float16::Binary16::encode(high);
        static_cast<std::uint32_t*>(d)[half] = float16::Binary16::encode(low) | upper << 16;
      } else {
        static_cast<float*>(d)[2 * half] = low;
        static_cast<float*>(d)[2 * half + 1] = high;
      }
    }
  }
}

template <MmaInput input, int k, bool f16_sums>
void multiply(void* const* operands, std::uint32_t) {
  require_one_place<MmaOperand>("mma.sync", operands);
  float a[kM][k], b[k][kN], sums[kM][kN];
  gather<input, k>(operands, a, b);
  gather_sums<f16_sums>(operands, sums);
  for (int r = 0; r < kM; ++r) {
    for (int l = 0; l < k; ++l) {
      const float factor = a[r][l];
      for (int n = 0; n < kN; ++n) sums[r][n] += factor * b[l][n];
    }
  }
  scatter_sums<f16_sums>(operands, sums);
}

struct Instruction {
  const char* name;
  WarpFunction run;
};

/// Instructions by input, then by whether k is the larger of the two.
constexpr Instruction kInstructions[3][2] = {{{"mma.m16n8k8.f32.f16", multiply<MmaInput::f16, 8, false>},
                                              {"mma.m16n8k16.f32.f16", multiply<MmaInput::f16, 16, false>}},
                                             {{"mma.m16n8k8.f32.bf16", multiply<MmaInput::bf16, 8, false>},
                                              {"mma.m16n8k16.f32.bf16", multiply<MmaInput::bf16, 16, false>}},
                                             {{"mma.m16n8k4.f32.tf32", multiply<MmaInput::tf32, 4, false>},
                                              {"mma.m16n8k8.f32.tf32", multiply<MmaInput::tf32, 8, false>}}};
constexpr Instruction kInstructionsF16[2] = {{"mma.m16n8k8.f16.f16", multiply<MmaInput::f16, 8, true>},
                                             {"mma.m16n8k16.f16.f16", multiply<MmaInput::f16, 16, true>}};

void run_instruction(const Instruction& instruction, MmaOperand operand) {
  require_whole_warp(instruction.name, operand.site);
  warp_collective(instruction.name, 0xffffffffu, &operand, instruction.run, operand.site);
}

}  // namespace

void multiply_matrices(MmaInput input, int k, float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
                       Site site) {
  const bool large = k == (input == MmaInput::tf32 ? 8 : 16);
  run_instruction(kInstructions[static_cast<int>(input)][large], {d, a, b, c, site});
}

void multiply_matrices_f16(int k, std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b,
                           const std::uint32_t* c, Site site) {
  run_instruction(kInstructionsF16[k == 16], {d, a, b, c, site});
}

std::uint32_t round_to_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;  // NaN
  if ((bits & 0x7fffffffu) == 0x7f800000u) return bits;
  return (bits + 0x1000u) & ~0x1fffu;
}

}  // namespace levin::emulator
