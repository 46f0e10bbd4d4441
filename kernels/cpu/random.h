#pragma once
// Random words for kernels that draw them where they are needed.

#include <cstdint>

namespace levin::kernels::cpu {

/// Computes the words of the Philox blocks [first, first + blocks) of stream `seed`: four per block.
void random_words_of(std::uint64_t seed, std::uint64_t first, std::int64_t blocks, std::uint32_t* words);

}  // namespace levin::kernels::cpu
