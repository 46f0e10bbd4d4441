#pragma once
// The headers that ranks exchange before the data of an operation.

#include <levin/distributed/process_group.h>

#include <functional>
#include <vector>

#include "src/transports/transport.h"

namespace levin::distributed {

/// Describes a rank's call. Fixed in size and free of padding, as it is sent as bytes.
struct CollectiveHeader {
  std::uint64_t sequence;
  std::int64_t numel;  // 0 where it may differ between ranks
  std::int32_t root;
  std::uint8_t kind, dtype, op, unused = 0;
  std::uint64_t place = 0;  // offset of the rank's tensor in its shared arena; 0: not there
};

static_assert(sizeof(CollectiveHeader) == 32);

/// True for the same operation; `place` may differ.
bool headers_match(const CollectiveHeader& a, const CollectiveHeader& b);
CollectiveHeader header_of(const Collective& c, std::uint64_t sequence, int size);
/// Returns e.g. "all_reduce #3 (sum) of 12 float32".
std::string describe(const CollectiveHeader& a);
/// Returns the slot of the operation's data. Different operations use different slots, so that no rank receives a
/// message of another operation.
std::uint64_t data_slot(const CollectiveHeader& own);

/// Compares the header of rank `from` with this rank's, and throws if they do not match.
using Check = std::function<void(const CollectiveHeader& other, int from)>;

/// Sends this rank's header to the next rank or, in shared memory, to all ranks, and receives theirs.
class Handshake {
 public:
  Handshake(Channel& channel, const CollectiveHeader& own);
  /// Waits for the headers and checks each as it arrives, since another may never come. Returns them with their ranks.
  std::vector<std::pair<int, CollectiveHeader>> receive(const Check& check);
  void finish() { mailboxes_ != nullptr ? mailboxes_->finish() : out_->wait_send(); }

 private:
  Mailboxes* mailboxes_;
  CollectiveHeader own_, other_{};
  std::vector<int> from_;
  std::unique_ptr<MessageBuffer> out_, in_;
};

/// Runs a complete handshake.
void exchange(Channel& channel, const CollectiveHeader& own, const Check& check);

}  // namespace levin::distributed
