#include "src/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/shared_collectives.h"

namespace levin::distributed {

namespace {

using Kind = Collective::Kind;

constexpr std::uint64_t kHeaderSlot = 0, kDataSlot = 1;
// Reducing one segment overlaps with receiving the next.
constexpr std::size_t kSegment = std::size_t{256} << 10;

std::uint64_t slot_of(int tag, std::uint64_t part) { return 2 + 2 * static_cast<std::uint64_t>(tag) + part; }

std::byte* bytes_of(const Tensor& t) { return static_cast<std::byte*>(t.raw_data()); }
std::size_t size_in_bytes(const Tensor& t) {
  return static_cast<std::size_t>(t.numel()) * static_cast<std::size_t>(size_of(t.dtype()));
}

// Where each rank's part of `count` elements begins, in bytes; the first parts are one element longer.
std::vector<std::size_t> even_parts(int64_t count, std::size_t element, int size) {
  std::vector<std::size_t> begin(static_cast<std::size_t>(size) + 1, 0);
  const auto n = static_cast<std::size_t>(size), all = static_cast<std::size_t>(count);
  for (std::size_t r = 0; r < n; ++r) begin[r + 1] = begin[r] + (all / n + (r < all % n ? 1 : 0)) * element;
  return begin;
}

struct Segments {
  std::size_t begin, end;
  std::size_t count() const { return (end - begin + kSegment - 1) / kSegment; }
  template <class F>
  void each(const F& f) const {
    for (std::size_t at = begin; at < end; at += kSegment) f(at, std::min(kSegment, end - at));
  }
};

// A ring over the parts of one buffer.
class Ring {
 public:
  Ring(Channel& channel, std::byte* data, std::vector<std::size_t> begin)
      : channel_(channel), data_(data), begin_(std::move(begin)), own_(channel.buffer(data, begin_.back())) {}

  // Part c sets out from rank c + 1 and ends, summed up, on rank c.
  void reduce_scatter(DType dtype, ReduceOp op) {
    const auto element = static_cast<std::size_t>(size_of(dtype));
    std::size_t largest = 0;
    for (std::size_t r = 0; r + 1 < begin_.size(); ++r) largest = std::max(largest, begin_[r + 1] - begin_[r]);
    scratch_.resize(largest);
    const auto incoming = channel_.buffer(scratch_.data(), largest);
    for (int step = 0; step + 1 < size(); ++step) {
      const Segments out = part(rank() - 1 - step), in = part(rank() - 2 - step);
      in.each([&](std::size_t at, std::size_t n) { incoming->recv(before(), kDataSlot, at - in.begin, n); });
      out.each([&](std::size_t at, std::size_t n) { own_->send(after(), kDataSlot, at, n); });
      in.each([&](std::size_t at, std::size_t n) {
        incoming->wait_recv();
        reduce_into(dtype, op, data_ + at, scratch_.data() + (at - in.begin), n / element);
      });
      for (std::size_t i = 0; i < out.count(); ++i) own_->wait_send();
    }
    if (op == ReduceOp::avg) {
      const Segments mine = part(rank());
      divide(dtype, data_ + mine.begin, (mine.end - mine.begin) / element, size());
    }
  }

  void all_gather() {
    for (int step = 0; step + 1 < size(); ++step) {
      const Segments out = part(rank() - step), in = part(rank() - 1 - step);
      in.each([&](std::size_t at, std::size_t n) { own_->recv(before(), kDataSlot, at, n); });
      out.each([&](std::size_t at, std::size_t n) { own_->send(after(), kDataSlot, at, n); });
      for (std::size_t i = 0; i < in.count(); ++i) own_->wait_recv();
      for (std::size_t i = 0; i < out.count(); ++i) own_->wait_send();
    }
  }

 private:
  int rank() const { return channel_.rank(); }
  int size() const { return channel_.size(); }
  int before() const { return (rank() + size() - 1) % size(); }
  int after() const { return (rank() + 1) % size(); }
  Segments part(int r) const {
    const auto i = static_cast<std::size_t>(((r % size()) + size()) % size());
    return {begin_[i], begin_[i + 1]};
  }

  Channel& channel_;
  std::byte* data_;
  std::vector<std::size_t> begin_;
  std::unique_ptr<MessageBuffer> own_;
  std::vector<std::byte> scratch_;
};

std::vector<std::size_t> even_parts(const Tensor& t, int size) {
  return even_parts(t.numel(), static_cast<std::size_t>(size_of(t.dtype())), size);
}

Ring ring_over(Channel& channel, const Tensor& t) { return {channel, bytes_of(t), even_parts(t, channel.size())}; }

// Directly, where all ranks see the same memory. False: they do not.
bool reduced_in_memory(Channel& channel, const Collective& c, const Tensor& in, std::byte* own, std::byte* out) {
  SharedBlocks* blocks = channel.blocks();
  if (blocks == nullptr) return false;
  const auto begin = even_parts(in, channel.size());
  const bool shown = c.kind != Kind::reduce_scatter;
  reduce_parts(channel, *blocks, {bytes_of(in), own, out, begin, in.dtype(), c.op, shown});
  return true;
}

std::byte* own_part(Channel& channel, const Tensor& t) {
  return bytes_of(t) + even_parts(t, channel.size())[static_cast<std::size_t>(channel.rank())];
}

void all_reduce(Channel& channel, const Collective& c) {
  if (reduced_in_memory(channel, c, c.output, own_part(channel, c.output), bytes_of(c.output))) return;
  Ring ring = ring_over(channel, c.output);
  ring.reduce_scatter(c.output.dtype(), c.op);
  ring.all_gather();
}

// Every rank sends its part [begin[r], begin[r + 1]) to the root, or gets it from there.
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

void reduce(Channel& channel, const Collective& c) {
  std::byte* out = channel.rank() == c.root ? bytes_of(c.output) : nullptr;
  if (reduced_in_memory(channel, c, c.output, own_part(channel, c.output), out)) return;
  ring_over(channel, c.output).reduce_scatter(c.output.dtype(), c.op);
  const auto begin = even_parts(c.output, channel.size());
  std::byte* data = bytes_of(c.output);
  with_root(channel, data, data + begin[static_cast<std::size_t>(channel.rank())], begin, c.root, true);
}

// Down a binomial tree with the root on top.
void broadcast(Channel& channel, const Collective& c) {
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

void all_gather(Channel& channel, const Collective& c) {
  const std::size_t part = size_in_bytes(c.input);
  std::byte* own = bytes_of(c.output) + static_cast<std::size_t>(channel.rank()) * part;
  if (part != 0 && own != bytes_of(c.input)) std::memmove(own, bytes_of(c.input), part);
  if (SharedBlocks* blocks = channel.blocks()) {
    return share_parts(channel, *blocks, bytes_of(c.output), even_parts(c.output, channel.size()));
  }
  ring_over(channel, c.output).all_gather();
}

void reduce_scatter(Channel& channel, const Collective& c) {
  const std::size_t part = size_in_bytes(c.output);
  if (channel.blocks() != nullptr) {
    if (part != 0) std::memmove(bytes_of(c.output), own_part(channel, c.input), part);
    reduced_in_memory(channel, c, c.input, bytes_of(c.output), nullptr);
    return;
  }
  std::vector<std::byte> sum(bytes_of(c.input), bytes_of(c.input) + size_in_bytes(c.input));
  const auto begin = even_parts(c.input, channel.size());
  Ring(channel, sum.data(), begin).reduce_scatter(c.input.dtype(), c.op);
  if (part != 0) std::memcpy(bytes_of(c.output), sum.data() + static_cast<std::size_t>(channel.rank()) * part, part);
}

void gather(Channel& channel, const Collective& c) {
  const std::size_t part = size_in_bytes(c.input);
  std::vector<std::size_t> begin;
  for (int r = 0; r <= channel.size(); ++r) begin.push_back(static_cast<std::size_t>(r) * part);
  std::byte* whole = c.output.defined() ? bytes_of(c.output) : nullptr;
  if (whole != nullptr && part != 0) {
    std::memmove(whole + begin[static_cast<std::size_t>(c.root)], bytes_of(c.input), part);
  }
  with_root(channel, whole, bytes_of(c.input), begin, c.root, true);
}

void scatter(Channel& channel, const Collective& c) {
  const std::size_t part = size_in_bytes(c.output);
  std::vector<std::size_t> begin;
  for (int r = 0; r <= channel.size(); ++r) begin.push_back(static_cast<std::size_t>(r) * part);
  std::byte* whole = c.input.defined() ? bytes_of(c.input) : nullptr;
  if (whole != nullptr && part != 0) {
    std::memmove(bytes_of(c.output), whole + begin[static_cast<std::size_t>(c.root)], part);
  }
  with_root(channel, whole, bytes_of(c.output), begin, c.root, false);
}

// All pairs at once: part r of `from` goes to rank r, part r of `to` comes from there.
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

void all_to_all(Channel& channel, const Collective& c) {
  compare_splits(channel, c);
  const auto element = static_cast<std::size_t>(size_of(c.input.dtype()));
  exchange_all(channel, bytes_of(c.input), offsets(c.input_splits, element), bytes_of(c.output),
               offsets(c.output_splits, element));
}

// Dissemination: after round k everybody knows of the 2^(k + 1) ranks before it.
void barrier(Channel& channel) {
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

}  // namespace

Announcement announcement_of(const Collective& c, std::uint64_t sequence, int size) {
  const Tensor& t = c.output.defined() ? c.output : c.input;
  Announcement a{sequence, 0, c.root, static_cast<std::uint8_t>(c.kind), 0, static_cast<std::uint8_t>(c.op)};
  if (!t.defined()) return a;
  a.dtype = static_cast<std::uint8_t>(t.dtype());
  a.numel = t.numel();
  if (c.kind == Kind::all_gather || c.kind == Kind::gather) a.numel = c.input.numel();
  if (c.kind == Kind::reduce_scatter) a.numel = c.output.numel() * size;
  if (c.kind == Kind::all_to_all) a.numel = 0;
  return a;
}

std::string describe(const Announcement& a) {
  const auto kind = static_cast<Kind>(a.kind);
  std::string text = fmt::format("{} #{}", to_string(kind), a.sequence);
  if (kind == Kind::barrier) return text;
  if (kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter) {
    text += fmt::format(" ({})", to_string(static_cast<ReduceOp>(a.op)));
  }
  if (kind != Kind::all_to_all) text += fmt::format(" of {}", a.numel);
  text += fmt::format(" {}", name_of(static_cast<DType>(a.dtype)));
  if (kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather || kind == Kind::scatter) {
    text += fmt::format(" with root {}", a.root);
  }
  return text;
}

Announcement exchange(Channel& channel, const Announcement& own) {
  Announcement mine = own, other{};
  const int rank = channel.rank(), size = channel.size();
  const auto out = channel.buffer(&mine, sizeof mine), in = channel.buffer(&other, sizeof other);
  in->recv((rank + size - 1) % size, kHeaderSlot, 0, sizeof other);
  out->send((rank + 1) % size, kHeaderSlot, 0, sizeof mine);
  in->wait_recv();
  out->wait_send();
  return other;
}

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

void send_head(Channel& channel, const Collective& c, const Announcement& own) {
  Announcement mine = own;
  const auto head = channel.buffer(&mine, sizeof mine);
  head->send(c.root, slot_of(c.tag, 0), 0, sizeof mine);
  head->wait_send();
}

Announcement recv_head(Channel& channel, const Collective& c) {
  Announcement other{};
  const auto head = channel.buffer(&other, sizeof other);
  head->recv(c.root, slot_of(c.tag, 0), 0, sizeof other);
  head->wait_recv();
  return other;
}

void run_collective(Channel& channel, const Collective& c) {
  switch (c.kind) {
    case Kind::all_reduce:
      return all_reduce(channel, c);
    case Kind::reduce:
      return reduce(channel, c);
    case Kind::broadcast:
      return broadcast(channel, c);
    case Kind::all_gather:
      return all_gather(channel, c);
    case Kind::reduce_scatter:
      return reduce_scatter(channel, c);
    case Kind::all_to_all:
      return all_to_all(channel, c);
    case Kind::gather:
      return gather(channel, c);
    case Kind::scatter:
      return scatter(channel, c);
    default:
      return barrier(channel);
  }
}

void run_send(Channel& channel, const Collective& c, const Announcement& own) {
  send_head(channel, c, own);
  const std::size_t bytes = size_in_bytes(c.input);
  if (bytes == 0) return;
  const auto data = channel.buffer(bytes_of(c.input), bytes);
  data->send(c.root, slot_of(c.tag, 1), 0, bytes);
  data->wait_send();
}

void run_recv(Channel& channel, const Collective& c, const std::function<void(const Announcement&)>& check) {
  check(recv_head(channel, c));
  const std::size_t bytes = size_in_bytes(c.output);
  if (bytes == 0) return;
  const auto data = channel.buffer(bytes_of(c.output), bytes);
  data->recv(c.root, slot_of(c.tag, 1), 0, bytes);
  data->wait_recv();
}

}  // namespace levin::distributed
