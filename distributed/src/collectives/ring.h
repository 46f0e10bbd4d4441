#pragma once
// Ring algorithms on the parts of one buffer.

#include <functional>

#include "src/collectives/parts.h"
#include "src/collectives/reduction.h"
#include "src/transports/transport.h"

namespace levin::distributed {

/// Part c starts on rank c + 1, is fully reduced on rank c, and then goes round once more. Segments are pipelined: one
/// that has arrived is sent on while the next is in flight. P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce
/// algorithms" (2009).
class Ring {
 public:
  /// Messages use `slot`; rank r's part is [begin[r], begin[r + 1]).
  Ring(Channel& channel, std::uint64_t slot, std::byte* data, std::vector<std::size_t> begin);

  /// `agreed` is called when the first messages are in flight, before any received data is used.
  void all_reduce(DType dtype, ReduceOp op, const std::function<void()>& agreed);
  void reduce_scatter(DType dtype, ReduceOp op, const std::function<void()>& agreed);
  void all_gather(const std::function<void()>& agreed);

 private:
  struct Segment {
    int round;
    std::size_t at, bytes;
  };
  void run(int first, int last, DType dtype, ReduceOp op, const std::function<void()>& agreed);
  void expect(std::size_t i);
  void take(std::size_t i, DType dtype, ReduceOp op);
  void send(std::size_t at, std::size_t bytes);

  int size() const { return channel_.size(); }
  int before() const { return (channel_.rank() + size() - 1) % size(); }
  int after() const { return (channel_.rank() + 1) % size(); }
  /// Rounds below this one reduce, later ones pass on results.
  int sums() const { return size() - 1; }
  /// The part sent in a round, which was received in the round before.
  Segments part(int round) const;

  Channel& channel_;
  std::uint64_t slot_;
  std::byte* data_;
  std::vector<std::size_t> begin_;
  std::size_t segment_ = 0;
  std::byte* scratch_ = nullptr;
  std::unique_ptr<MessageBuffer> own_, incoming_;
  std::vector<Segment> expected_;
  std::size_t sent_ = 0;
};

}  // namespace levin::distributed
