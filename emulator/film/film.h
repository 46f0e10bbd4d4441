#pragma once
// A film of one block of a kernel: what each lane does at each step, and the block's accesses to memory.
//
// The kernel's source is compiled with -O0 -g1 -fsanitize=thread -fsanitize-coverage=trace-pc (levin_filmed in
// CMakeLists.txt). The compiler then calls a function before each access to memory and at the start of each basic
// block; recorder.cpp implements these functions in the place of the sanitizer's library, which is not linked.

#include <levin/emulator/execution.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace levin::emulator::film {

inline constexpr int kLanes = 32, kBanks = 32, kBankBytes = 4, kSectorBytes = 32;

/// The element type of an array, for the values that the page shows.
enum class Element { f32, u32 };

/// A tensor in global memory, aligned to 32 bytes.
struct Buffer {
  std::string name{};
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::size_t columns = 0;  ///< elements of a row
};

/// A declaration in shared memory. Its first element lies in bank 0.
struct Array {
  std::string name{};
  std::size_t bytes = 0;
  std::size_t columns = 0;  ///< elements of a row as declared; 0: one dimension
};

enum class Memory { none, shared, global };

/// An access of a warp's lanes, and its cost.
struct Access {
  Memory memory = Memory::none;
  bool write = false;
  std::size_t array = 0;  ///< index of the array or buffer
  unsigned bytes = 0;     ///< of one lane
  std::array<std::uint32_t, kLanes> offsets{};  ///< in bytes from the array's start
  std::array<std::uint64_t, kLanes> bits{};     ///< read or written
  /// Shared memory: passes that the banks need, and that they would need without conflicts. Global memory: sectors of
  /// 32 bytes that are moved, and that would hold the bytes if they were neighbours.
  int cost = 0, least = 0;
  /// Words of shared memory that another thread uses in the same interval between barriers, where one of the two
  /// writes.
  std::vector<std::uint32_t> races{};
};

/// A step that lanes of a warp do together on one line of the source.
struct Step {
  enum class Kind { run, barrier, warp_function };
  Kind kind = Kind::run;
  int frame = 0;                            ///< when it takes place
  int line = -1;                            ///< index in Film::lines
  std::uint32_t active = 0, ended = 0;      ///< masks of lanes; all others wait
  Access access{};
};

struct Line {
  std::string file;
  int number = 0;
  std::string text;
};

struct Film {
  std::string title{}, kernel{}, caption{};
  Element element = Element::f32;
  int threads = 0, frames = 0;
  std::vector<Array> arrays{};
  std::vector<Buffer> buffers{};
  std::vector<Line> lines{};               ///< the functions that ran, in the order of the sources
  std::vector<std::vector<Step>> warps{};  ///< a warp's steps; it waits in frames without one
};

/// Sums over all steps.
struct Totals {
  int shared_reads = 0, shared_writes = 0;  ///< by lanes
  int global_reads = 0, global_writes = 0;
  int passes = 0, least_passes = 0, worst_conflict = 0;  ///< worst: the most passes that replace one
  int sectors = 0, least_sectors = 0;
  int barriers = 0;  ///< of the block
  int warp_functions = 0;
  int races = 0;  ///< accesses
  int active = 0, lanes = 0;  ///< lanes that work in a step, of those that have not ended
};
Totals totals(const Film& film);

/// A kernel to film.
struct Scene {
  std::string title{}, kernel{}, caption{};
  Element element = Element::f32;
  Launch launch{};  ///< block (0, 0, 0) is filmed
  std::vector<Buffer> buffers{};
  std::size_t shared_columns = 0;  ///< elements of a row of the shared arrays; 0: one dimension
  std::filesystem::path root{};    ///< of the source tree
  std::vector<std::string> sources{};  ///< files to show, relative to the root
};

/// Runs the launch and films its first block. Throws std::runtime_error if the kernel fails or was compiled without
/// instrumentation.
Film shoot(const Scene& scene);

/// Returns the film as one HTML page without outside parts.
std::string page_of(const Film& film, const std::filesystem::path& root);

}  // namespace levin::emulator::film
