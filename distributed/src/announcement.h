#pragma once
// What the ranks of a group tell each other before they do anything together.

#include <levin/distributed/process_group.h>

#include <functional>
#include <vector>

#include "src/transport.h"

namespace levin::distributed {

/// What a rank is about to do. Fixed in size and free of padding, as it travels as bytes.
struct Announcement {
  std::uint64_t sequence;
  std::int64_t numel;  // 0 where it may differ between ranks
  std::int32_t root;
  std::uint8_t kind, dtype, op, unused = 0;
  std::uint64_t place = 0;  // of the rank's tensor in memory that all see; 0: elsewhere
};

static_assert(sizeof(Announcement) == 32);

/// The same operation, wherever its tensors are.
bool fit_together(const Announcement& a, const Announcement& b);
Announcement announcement_of(const Collective& c, std::uint64_t sequence, int size);
/// "all_reduce #3 (sum) of 12 float32"
std::string describe(const Announcement& a);
/// Where its data travel. Ranks that call different operations use different slots, so that no message meets a call
/// that it is not meant for.
std::uint64_t data_slot(const Announcement& own);

/// What compares the announcement of rank `from` with this rank's, and throws where they do not fit.
using Check = std::function<void(const Announcement& other, int from)>;

/// This rank's announcement sets out to the next one or, where all see the same memory, to all; theirs are read.
class Greeting {
 public:
  Greeting(Channel& channel, const Announcement& own);
  /// Waits for them and compares each as it comes, since another may never do. Gives who announces what.
  std::vector<std::pair<int, Announcement>> hear(const Check& check);
  void finish() { letters_ != nullptr ? letters_->finish() : out_->wait_send(); }

 private:
  Letters* letters_;
  Announcement own_, other_{};
  std::vector<int> from_;
  std::unique_ptr<MessageBuffer> out_, in_;
};

/// A greeting alone.
void exchange(Channel& channel, const Announcement& own, const Check& check);

}  // namespace levin::distributed
