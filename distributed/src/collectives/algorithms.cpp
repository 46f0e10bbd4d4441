#include "src/collectives/algorithms.h"

#include <algorithm>
#include <cstring>

#include "src/collectives/eager_all_reduce.h"
#include "src/collectives/parts.h"
#include "src/collectives/ring.h"
#include "src/collectives/shared_collectives.h"

namespace levin::distributed {

namespace {

using Kind = Collective::Kind;

constexpr std::uint64_t kDataSlot = 1;
std::uint64_t slot_of(int tag, std::uint64_t part) { return 2 + 2 * static_cast<std::uint64_t>(tag) + part; }

/// One call of a collective, and the check that must pass before any data of the other ranks is used.
struct Call {
  Channel& channel;
  const Collective& c;
  const CollectiveHeader& own;
  const std::function<void()>& agree;
  const std::vector<std::byte*>& of;  // after agree(): the tensors of all ranks, if this rank sees them; else empty
};

Ring ring_over(const Call& call, const Tensor& t) {
  return {call.channel, data_slot(call.own), bytes_of(t), even_parts(t, call.channel.size())};
}

// Reduces directly in shared memory. Returns false if the ranks share none.
bool reduced_in_memory(const Call& call, const Tensor& in, std::byte* own, std::byte* out) {
  SharedBlocks* blocks = call.channel.blocks();
  if (blocks == nullptr) return false;
  call.agree();
  const auto begin = even_parts(in, call.channel.size());
  const bool shown = call.c.kind != Kind::reduce_scatter;
  if (!call.of.empty()) {
    reduce_in_place(call.channel, *blocks, {call.of, own, shown, begin, in.dtype(), call.c.op});
    return true;
  }
  reduce_parts(call.channel, *blocks, {bytes_of(in), own, out, begin, in.dtype(), call.c.op, shown});
  return true;
}

std::byte* own_part(Channel& channel, const Tensor& t) {
  return bytes_of(t) + even_parts(t, channel.size())[static_cast<std::size_t>(channel.rank())];
}

void all_reduce(const Call& call) {
  const Tensor& t = call.c.output;
  if (reduced_in_memory(call, t, own_part(call.channel, t), bytes_of(t))) return;
  ring_over(call, t).all_reduce(t.dtype(), call.c.op, call.agree);
}

// Every rank sends its part [begin[r], begin[r + 1]) to the root, or receives it from the root.
void with_root(Channel& channel, std::byte* whole, std::byte* own, const std::vector<std::size_t>& begin, int root,
               bool to_root) {
  const auto length = [&](int r) {
    return begin[static_cast<std::size_t>(r) + 1] - begin[static_cast<std::size_t>(r)];
  };
  const int rank = channel.rank();
  if (rank != root) {
    if (length(rank) == 0) return;
    const auto buffer = channel.buffer(own, length(rank));
    to_root ? buffer->send(root, kDataSlot, 0, length(rank)) : buffer->recv(root, kDataSlot, 0, length(rank));
    return to_root ? buffer->wait_send() : buffer->wait_recv();
  }
  const auto buffer = channel.buffer(whole, begin.back());
  int messages = 0;
  for (int r = 0; r < channel.size(); ++r) {
    if (r == root || length(r) == 0) continue;
    const std::size_t at = begin[static_cast<std::size_t>(r)];
    to_root ? buffer->recv(r, kDataSlot, at, length(r)) : buffer->send(r, kDataSlot, at, length(r));
    ++messages;
  }
  for (int i = 0; i < messages; ++i) to_root ? buffer->wait_recv() : buffer->wait_send();
}

void reduce(const Call& call) {
  const Collective& c = call.c;
  Channel& channel = call.channel;
  std::byte* out = channel.rank() == c.root ? bytes_of(c.output) : nullptr;
  if (reduced_in_memory(call, c.output, own_part(channel, c.output), out)) return;
  ring_over(call, c.output).reduce_scatter(c.output.dtype(), c.op, call.agree);
  with_root(channel, bytes_of(c.output), own_part(channel, c.output), even_parts(c.output, channel.size()), c.root,
            true);
}

// Sends the data down a binomial tree from the root.
void broadcast(const Call& call) {
  const Collective& c = call.c;
  Channel& channel = call.channel;
  call.agree();
  if (SharedBlocks* blocks = channel.blocks()) {
    std::vector<std::size_t> begin(static_cast<std::size_t>(channel.size()) + 1, size_in_bytes(c.output));
    std::fill_n(begin.begin(), c.root + 1, 0);  // the root's part is all of it
    return share_parts(channel, *blocks, bytes_of(c.output), begin);
  }
  const int size = channel.size(), place = (channel.rank() - c.root + size) % size;
  const Segments all{0, size_in_bytes(c.output)};
  const auto buffer = channel.buffer(bytes_of(c.output), all.end);
  int reach = 1;
  while (reach < size && (place & reach) == 0) reach <<= 1;
  if (place != 0) {
    const int from = (place - reach + c.root) % size;
    all.each([&](std::size_t at, std::size_t n) { buffer->recv(from, kDataSlot, at, n); });
    for (std::size_t i = 0; i < all.count(); ++i) buffer->wait_recv();
  }
  std::size_t sent = 0;
  for (reach >>= 1; reach > 0; reach >>= 1) {
    if (place + reach >= size) continue;
    const int to = (place + reach + c.root) % size;
    all.each([&](std::size_t at, std::size_t n) { buffer->send(to, kDataSlot, at, n); });
    sent += all.count();
  }
  for (std::size_t i = 0; i < sent; ++i) buffer->wait_send();
}

void all_gather(const Call& call) {
  const Collective& c = call.c;
  Channel& channel = call.channel;
  const std::size_t part = size_in_bytes(c.input);
  std::byte* own = bytes_of(c.output) + static_cast<std::size_t>(channel.rank()) * part;
  if (part != 0 && own != bytes_of(c.input)) std::memmove(own, bytes_of(c.input), part);
  if (SharedBlocks* blocks = channel.blocks()) {
    call.agree();
    const auto begin = even_parts(c.output, channel.size());
    return call.of.empty() ? share_parts(channel, *blocks, bytes_of(c.output), begin)
                           : share_in_place(channel, *blocks, call.of, begin);
  }
  ring_over(call, c.output).all_gather(call.agree);
}

void reduce_scatter(const Call& call) {
  const Collective& c = call.c;
  Channel& channel = call.channel;
  const std::size_t part = size_in_bytes(c.output);
  if (channel.blocks() != nullptr) {
    if (part != 0) std::memmove(bytes_of(c.output), own_part(channel, c.input), part);
    reduced_in_memory(call, c.input, bytes_of(c.output), nullptr);
    return;
  }
  const Tensor sum = c.input.clone();
  ring_over(call, sum).reduce_scatter(sum.dtype(), c.op, call.agree);
  if (part != 0) std::memcpy(bytes_of(c.output), own_part(channel, sum), part);
}

void gather(const Call& call) {
  const Collective& c = call.c;
  Channel& channel = call.channel;
  call.agree();
  const std::size_t part = size_in_bytes(c.input);
  std::vector<std::size_t> begin;
  for (int r = 0; r <= channel.size(); ++r) begin.push_back(static_cast<std::size_t>(r) * part);
  std::byte* whole = c.output.defined() ? bytes_of(c.output) : nullptr;
  if (whole != nullptr && part != 0) {
    std::memmove(whole + begin[static_cast<std::size_t>(c.root)], bytes_of(c.input), part);
  }
  with_root(channel, whole, bytes_of(c.input), begin, c.root, true);
}

void scatter(const Call& call) {
  const Collective& c = call.c;
  Channel& channel = call.channel;
  call.agree();
  const std::size_t part = size_in_bytes(c.output);
  std::vector<std::size_t> begin;
  for (int r = 0; r <= channel.size(); ++r) begin.push_back(static_cast<std::size_t>(r) * part);
  std::byte* whole = c.input.defined() ? bytes_of(c.input) : nullptr;
  if (whole != nullptr && part != 0) {
    std::memmove(bytes_of(c.output), whole + begin[static_cast<std::size_t>(c.root)], part);
  }
  with_root(channel, whole, bytes_of(c.output), begin, c.root, false);
}

// Exchanges data between all pairs at once: part r of `from` goes to rank r, part r of `to` comes from there.
void exchange_all(Channel& channel, std::byte* from, const std::vector<std::size_t>& from_begin, std::byte* to,
                  const std::vector<std::size_t>& to_begin) {
  const auto rank = static_cast<std::size_t>(channel.rank()), size = static_cast<std::size_t>(channel.size());
  const auto out = channel.buffer(from, from_begin.back()), in = channel.buffer(to, to_begin.back());
  std::size_t sent = 0, received = 0;
  for (std::size_t i = 1; i < size; ++i) {
    const std::size_t source = (rank + size - i) % size, target = (rank + i) % size;
    if (const std::size_t n = to_begin[source + 1] - to_begin[source]; n > 0) {
      in->recv(static_cast<int>(source), kDataSlot, to_begin[source], n);
      ++received;
    }
    if (const std::size_t n = from_begin[target + 1] - from_begin[target]; n > 0) {
      out->send(static_cast<int>(target), kDataSlot, from_begin[target], n);
      ++sent;
    }
  }
  const std::size_t own = from_begin[rank + 1] - from_begin[rank];
  if (own != 0) std::memcpy(to + to_begin[rank], from + from_begin[rank], own);
  for (std::size_t i = 0; i < received; ++i) in->wait_recv();
  for (std::size_t i = 0; i < sent; ++i) out->wait_send();
}

std::vector<std::size_t> offsets(const std::vector<int64_t>& splits, std::size_t element) {
  std::vector<std::size_t> begin = {0};
  for (const int64_t n : splits) begin.push_back(begin.back() + static_cast<std::size_t>(n) * element);
  return begin;
}

void all_to_all(const Call& call) {
  const Collective& c = call.c;
  Channel& channel = call.channel;
  call.agree();
  compare_splits(channel, c);
  const auto element = static_cast<std::size_t>(size_of(c.input.dtype()));
  exchange_all(channel, bytes_of(c.input), offsets(c.input_splits, element), bytes_of(c.output),
               offsets(c.output_splits, element));
}

// A dissemination barrier: after round k each rank knows that the 2^(k + 1) ranks before it have arrived. With shared
// memory every rank receives the headers of all others, so agree() is already a barrier.
void barrier(const Call& call) {
  Channel& channel = call.channel;
  call.agree();
  if (channel.blocks() != nullptr) return;
  std::byte token[2] = {};
  const auto out = channel.buffer(token, 1), in = channel.buffer(token + 1, 1);
  const int rank = channel.rank(), size = channel.size();
  for (int reach = 1; reach < size; reach <<= 1) {
    in->recv((rank + size - reach) % size, kDataSlot, 0, 1);
    out->send((rank + reach) % size, kDataSlot, 0, 1);
    in->wait_recv();
    out->wait_send();
  }
}

// Offset in the shared arena of the tensor that other ranks read or write; 0 if it is not there.
std::uint64_t place_of(const SharedBlocks& blocks, const Collective& c) {
  const bool reads_input = c.kind == Kind::reduce_scatter;
  if (c.kind != Kind::all_reduce && c.kind != Kind::all_gather && !reads_input) return 0;
  return blocks.place_of(bytes_of(reads_input ? c.input : c.output));
}

// Addresses of the ranks' tensors, by rank; empty if one of them is not in a shared arena.
std::vector<std::byte*> seen_by_all(const SharedBlocks& blocks, const CollectiveHeader& own, int rank,
                                    const std::vector<std::pair<int, CollectiveHeader>>& others) {
  if (own.place == 0) return {};
  std::vector<std::byte*> of(others.size() + 1);
  of[static_cast<std::size_t>(rank)] = blocks.tensor_at(rank, own.place);
  for (const auto& [r, other] : others) {
    if (other.place == 0) return {};
    of[static_cast<std::size_t>(r)] = blocks.tensor_at(r, other.place);
  }
  return of;
}

void run_agreed(const Call& call) {
  switch (call.c.kind) {
    case Kind::all_reduce:
      return all_reduce(call);
    case Kind::reduce:
      return reduce(call);
    case Kind::broadcast:
      return broadcast(call);
    case Kind::all_gather:
      return all_gather(call);
    case Kind::reduce_scatter:
      return reduce_scatter(call);
    case Kind::all_to_all:
      return all_to_all(call);
    case Kind::gather:
      return gather(call);
    case Kind::scatter:
      return scatter(call);
    default:
      return barrier(call);
  }
}

}  // namespace

void compare_splits(Channel& channel, const Collective& c) {
  const auto size = static_cast<std::size_t>(channel.size());
  std::vector<int64_t> sent = c.input_splits, announced(size);
  const auto one_each = offsets(std::vector<int64_t>(size, 1), sizeof(int64_t));
  exchange_all(channel, reinterpret_cast<std::byte*>(sent.data()), one_each,
               reinterpret_cast<std::byte*>(announced.data()), one_each);
  for (std::size_t r = 0; r < size; ++r) {
    if (announced[r] != c.output_splits[r]) throw SplitMismatch{static_cast<int>(r), announced[r], c.output_splits[r]};
  }
}

void send_header(Channel& channel, const Collective& c, const CollectiveHeader& own) {
  CollectiveHeader mine = own;
  const auto head = channel.buffer(&mine, sizeof mine);
  head->send(c.root, slot_of(c.tag, 0), 0, sizeof mine);
  head->wait_send();
}

CollectiveHeader recv_header(Channel& channel, const Collective& c) {
  CollectiveHeader other{};
  const auto head = channel.buffer(&other, sizeof other);
  head->recv(c.root, slot_of(c.tag, 0), 0, sizeof other);
  head->wait_recv();
  return other;
}

void run_collective(Channel& channel, const Collective& c, const CollectiveHeader& own, const Check& check) {
  if (uses_eager_all_reduce(channel, c)) return eager_all_reduce(channel, c, own, check);
  SharedBlocks* blocks = channel.blocks();
  CollectiveHeader mine = own;
  if (blocks != nullptr) mine.place = place_of(*blocks, c);
  Handshake handshake(channel, mine);
  std::vector<std::byte*> of;
  const std::function<void()> agree = [&] {
    const auto others = handshake.receive(check);
    if (blocks != nullptr) of = seen_by_all(*blocks, mine, channel.rank(), others);
  };
  run_agreed({channel, c, own, agree, of});
  handshake.finish();
}

void run_send(Channel& channel, const Collective& c, const CollectiveHeader& own) {
  send_header(channel, c, own);
  const std::size_t bytes = size_in_bytes(c.input);
  if (bytes == 0) return;
  const auto data = channel.buffer(bytes_of(c.input), bytes);
  data->send(c.root, slot_of(c.tag, 1), 0, bytes);
  data->wait_send();
}

void run_recv(Channel& channel, const Collective& c, const std::function<void(const CollectiveHeader&)>& check) {
  check(recv_header(channel, c));
  const std::size_t bytes = size_in_bytes(c.output);
  if (bytes == 0) return;
  const auto data = channel.buffer(bytes_of(c.output), bytes);
  data->recv(c.root, slot_of(c.tag, 1), 0, bytes);
  data->wait_recv();
}

}  // namespace levin::distributed
