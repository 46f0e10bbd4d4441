#include "src/collectives/eager_all_reduce.h"

#include <algorithm>
#include <cstring>

#include "src/collectives/parts.h"

namespace levin::distributed {

namespace {

// Two ranks may swap up to this many bytes: each then reduces everything, and beyond it a ring's second round is
// cheaper.
constexpr std::size_t kLargestSwap = std::size_t{1} << 20;

// Reduces the inputs of all ranks, of[r], into of[rank] in the order of the ring; overwrites the other inputs.
void reduce_all(DType dtype, ReduceOp op, const std::vector<std::byte*>& of, int rank,
                const std::vector<std::size_t>& begin) {
  const std::size_t size = of.size(), element = static_cast<std::size_t>(size_of(dtype));
  for (std::size_t part = 0; part < size; ++part) {
    const std::size_t at = begin[part], count = (begin[part + 1] - at) / element;
    if (count == 0) continue;
    for (std::size_t i = 2; i <= size; ++i) {
      reduce_into(dtype, op, of[(part + i) % size] + at, of[(part + i - 1) % size] + at, count);
    }
    if (op == ReduceOp::avg) divide(dtype, of[part] + at, count, static_cast<int>(size));
    if (part != static_cast<std::size_t>(rank)) {
      std::memcpy(of[static_cast<std::size_t>(rank)] + at, of[part] + at, count * element);
    }
  }
}

class EagerAllReduce {
 public:
  EagerAllReduce(Channel& channel, const Collective& c, const CollectiveHeader& own)
      : channel_(channel), mailboxes_(*channel.mailboxes()), tensor_(c.output), op_(c.op), own_(own) {
    bytes_ = size_in_bytes(tensor_);
    const std::size_t element = static_cast<std::size_t>(size_of(tensor_.dtype()));
    carried_ = std::min(bytes_, (mailboxes_.room() - sizeof own_) / element * element);
  }

  void run(const Check& check) {
    send();
    if (carried_ < bytes_) send_rest();
    std::vector<std::byte*> of(static_cast<std::size_t>(size()), bytes_of(tensor_));
    for (int i = 1; i < size(); ++i) {
      const int from = (rank() + size() - i) % size();
      std::byte* message = mailboxes_.take(from);
      CollectiveHeader other{};
      std::memcpy(&other, message, sizeof other);
      check(other, from);
      of[static_cast<std::size_t>(from)] = message + sizeof other;
    }
    reduce(of, 0, carried_);
    if (carried_ < bytes_) reduce_rest();
    mailboxes_.finish();
  }

 private:
  void send() {
    for (int i = 1; i < size(); ++i) {
      const int to = (rank() + i) % size();
      std::byte* message = mailboxes_.write(to);
      std::memcpy(message, &own_, sizeof own_);
      if (carried_ != 0) std::memcpy(message + sizeof own_, bytes_of(tensor_), carried_);
      mailboxes_.send(to, sizeof own_ + carried_);
    }
  }
  void send_rest() {
    const std::size_t n = bytes_ - carried_;
    theirs_ = channel_.scratch(n);
    out_ = channel_.buffer(bytes_of(tensor_) + carried_, n), in_ = channel_.buffer(theirs_, n);
    in_->recv(1 - rank(), data_slot(own_), 0, n);
    out_->send(1 - rank(), data_slot(own_), 0, n);
  }
  // Waits for the sends too, since the result overwrites the data being sent.
  void reduce_rest() {
    in_->wait_recv();
    out_->wait_send();
    std::vector<std::byte*> of(2, bytes_of(tensor_) + carried_);
    of[static_cast<std::size_t>(1 - rank())] = theirs_;
    reduce(of, carried_, bytes_);
  }
  // Reduces bytes [from, to) of the tensor, which begin at of[r] for rank r.
  void reduce(const std::vector<std::byte*>& of, std::size_t from, std::size_t to) {
    std::vector<std::size_t> begin = even_parts(tensor_, size());
    for (std::size_t& at : begin) at = std::clamp(at, from, to) - from;
    reduce_all(tensor_.dtype(), op_, of, rank(), begin);
  }
  int rank() const { return channel_.rank(); }
  int size() const { return channel_.size(); }

  Channel& channel_;
  Mailboxes& mailboxes_;
  const Tensor& tensor_;
  ReduceOp op_;
  CollectiveHeader own_;
  std::size_t bytes_, carried_;
  std::byte* theirs_ = nullptr;
  std::unique_ptr<MessageBuffer> out_, in_;
};

}  // namespace

bool uses_eager_all_reduce(Channel& channel, const Collective& c) {
  Mailboxes* mailboxes = channel.mailboxes();
  if (c.kind != Collective::Kind::all_reduce || mailboxes == nullptr) return false;
  const std::size_t bytes = size_in_bytes(c.output);
  const bool in_memory = channel.blocks() != nullptr;
  return sizeof(CollectiveHeader) + bytes <= mailboxes->room() ||
         (channel.size() == 2 && !in_memory && bytes <= kLargestSwap);
}

void eager_all_reduce(Channel& channel, const Collective& c, const CollectiveHeader& own, const Check& check) {
  EagerAllReduce(channel, c, own).run(check);
}

}  // namespace levin::distributed
