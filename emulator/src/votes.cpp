// Votes, matches and counts over the lanes of a warp or the threads of a block.

#include <levin/emulator/builtins.h>

namespace levin::emulator {

namespace {

VoteOperand& operand(void* p) { return *static_cast<VoteOperand*>(p); }

/// Writes the result to every lane of the mask.
void give(void* const* operands, std::uint32_t mask, std::uint64_t result) {
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) operand(operands[lane]).result = result;
  }
}

std::uint32_t lanes_that_voted(void* const* operands, std::uint32_t mask) {
  std::uint32_t lanes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) && operand(operands[lane]).value != 0) lanes |= 1u << lane;
  }
  return lanes;
}

}  // namespace

std::uint64_t vote(const char* name, unsigned mask, std::uint64_t value, WarpFunction run, Site site) {
  VoteOperand own{value, 0};
  warp_collective(name, mask, &own, run, site);
  return own.result;
}

void any_lanes(void* const* operands, std::uint32_t mask) {
  give(operands, mask, lanes_that_voted(operands, mask) != 0);
}
void all_lanes(void* const* operands, std::uint32_t mask) {
  give(operands, mask, lanes_that_voted(operands, mask) == mask);
}
void ballot_lanes(void* const* operands, std::uint32_t mask) { give(operands, mask, lanes_that_voted(operands, mask)); }

void match_any_lanes(void* const* operands, std::uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    std::uint32_t same = 0;
    for (int other = 0; other < 32; ++other) {
      if ((mask >> other & 1) && operand(operands[other]).value == operand(operands[lane]).value) same |= 1u << other;
    }
    operand(operands[lane]).result = same;
  }
}

void match_all_lanes(void* const* operands, std::uint32_t mask) {
  int first = 0;
  while (!(mask >> first & 1)) ++first;
  bool same = true;
  for (int lane = first; lane < 32; ++lane) {
    if (mask >> lane & 1) same = same && operand(operands[lane]).value == operand(operands[first]).value;
  }
  give(operands, mask, same ? mask : 0);
}

namespace {

struct CountOperand {
  int predicate, result;
};

void count_threads(void* const* operands, int threads) {
  int n = 0;
  for (int i = 0; i < threads; ++i) n += static_cast<CountOperand*>(operands[i])->predicate != 0;
  for (int i = 0; i < threads; ++i) static_cast<CountOperand*>(operands[i])->result = n;
}

int count(const char* name, int predicate, Site site) {
  CountOperand own{predicate, 0};
  block_collective(name, &own, &count_threads, site);
  return own.result;
}

}  // namespace
}  // namespace levin::emulator

void __syncwarp(unsigned mask, levin::emulator::Site site) {
  levin::emulator::warp_collective("__syncwarp", mask, nullptr, nullptr, site, true);
}
int __syncthreads_count(int predicate, levin::emulator::Site site) {
  return levin::emulator::count("__syncthreads_count", predicate, site);
}
int __syncthreads_and(int predicate, levin::emulator::Site site) {
  return levin::emulator::count("__syncthreads_and", predicate == 0, site) == 0;
}
int __syncthreads_or(int predicate, levin::emulator::Site site) {
  return levin::emulator::count("__syncthreads_or", predicate, site) != 0;
}
