#pragma once
// Copies from global to shared memory that a thread has begun and not yet waited for (cp.async). Until a copy lands its
// destination holds bytes 0xff (NaN in every floating type). It lands at a seeded random moment, at the latest at the
// wait, so that a missing wait gives wrong values here as it does on the chip.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace levin::emulator {

class AsyncCopies {
 public:
  /// Begins a copy of `bytes`, of which `source_bytes` come from `from` and the rest are zeros. `bytes` is a multiple
  /// of 4 and both addresses are aligned to 4.
  void begin(void* to, const void* from, std::size_t bytes, std::size_t source_bytes);
  /// Closes the group of the copies begun since the last commit; the group may be empty.
  void commit();
  /// Ends all committed groups but the newest `pending`.
  void wait(int pending);
  /// Ends everything begun, committed or not.
  void wait_all();
  /// Lands some copies, by chance: a quarter of them, none for 0. The scheduler calls it whenever the thread stops or
  /// goes on.
  void progress(std::uint64_t random);
  /// True when no copy is left to wait for.
  bool empty() const { return copies_.empty(); }
  /// Forgets everything begun.
  void clear() { copies_.clear(), groups_ = 0; }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes, source_bytes;
    int group;    ///< number of commits before it
    bool landed;  ///< its bytes have arrived, but nobody has waited for them yet
  };
  static void land(Copy& copy);
  void end_before(int group);

  std::vector<Copy> copies_;  ///< in order of their beginning
  int groups_ = 0;
};

}  // namespace levin::emulator
