#include "src/collectives/collective_header.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

namespace levin::distributed {

namespace {

using Kind = Collective::Kind;

constexpr std::uint64_t kHeaderSlot = 0, kCollectiveSlots = std::uint64_t{1} << 63;

}  // namespace

bool headers_match(const CollectiveHeader& a, const CollectiveHeader& b) {
  return a.sequence == b.sequence && a.numel == b.numel && a.root == b.root && a.kind == b.kind && a.dtype == b.dtype &&
         a.op == b.op;
}

CollectiveHeader header_of(const Collective& c, std::uint64_t sequence, int size) {
  const Tensor& t = c.output.defined() ? c.output : c.input;
  CollectiveHeader a{sequence, 0, c.root, static_cast<std::uint8_t>(c.kind), 0, static_cast<std::uint8_t>(c.op)};
  if (!t.defined()) return a;
  a.dtype = static_cast<std::uint8_t>(t.dtype());
  a.numel = t.numel();
  if (c.kind == Kind::all_gather || c.kind == Kind::gather) a.numel = c.input.numel();
  if (c.kind == Kind::reduce_scatter) a.numel = c.output.numel() * size;
  if (c.kind == Kind::all_to_all) a.numel = 0;
  return a;
}

std::string describe(const CollectiveHeader& a) {
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

std::uint64_t data_slot(const CollectiveHeader& own) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](const auto& value) {
    for (const std::byte b : std::as_bytes(std::span(&value, 1))) {
      hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
    }
  };
  add(own.numel), add(own.root), add(own.kind), add(own.dtype), add(own.op);
  return kCollectiveSlots | hash >> 2;
}

Handshake::Handshake(Channel& channel, const CollectiveHeader& own) : mailboxes_(channel.mailboxes()), own_(own) {
  const int size = channel.size(), rank = channel.rank(), to = (rank + 1) % size, before = (rank + size - 1) % size;
  const int others = mailboxes_ != nullptr && channel.blocks() != nullptr ? size - 1 : 1;
  for (int i = 1; i <= others; ++i) from_.push_back((rank + size - i) % size);
  if (mailboxes_ == nullptr) {
    out_ = channel.buffer(&own_, sizeof own_), in_ = channel.buffer(&other_, sizeof other_);
    in_->recv(before, kHeaderSlot, 0, sizeof other_);
    out_->send(to, kHeaderSlot, 0, sizeof own_);
    return;
  }
  for (int i = 1; i <= others; ++i) {
    std::memcpy(mailboxes_->write((rank + i) % size), &own_, sizeof own_);
    mailboxes_->send((rank + i) % size, sizeof own_);
  }
}

std::vector<std::pair<int, CollectiveHeader>> Handshake::receive(const Check& check) {
  std::vector<std::pair<int, CollectiveHeader>> all;
  if (mailboxes_ == nullptr) in_->wait_recv();
  for (const int r : from_) {
    if (mailboxes_ != nullptr) std::memcpy(&other_, mailboxes_->take(r), sizeof other_);
    check(other_, r);
    all.emplace_back(r, other_);
  }
  return all;
}

void exchange(Channel& channel, const CollectiveHeader& own, const Check& check) {
  Handshake handshake(channel, own);
  handshake.receive(check);
  handshake.finish();
}

}  // namespace levin::distributed
