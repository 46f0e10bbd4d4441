#include "plan.h"

#include <algorithm>

namespace levin::emulator::nccl {

namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

class Ring {
 public:
  Ring(const Call& call, int rank, int ranks, const char* send, char* receive)
      : call_(call), rank_(rank), ranks_(ranks), send_(send), receive_(receive), size_(size_of(call.type)) {}

  std::vector<Step> steps;

  void build() {
    switch (call_.kind) {
      case Kind::all_reduce:
        return all_reduce();
      case Kind::reduce_scatter:
        return in_pieces([&](std::size_t at, std::size_t n) { reduce_scatter(at, n); });
      case Kind::all_gather:
        return in_pieces([&](std::size_t at, std::size_t n) { all_gather(at, n); });
      case Kind::reduce:
        return in_pieces([&](std::size_t at, std::size_t n) { reduce(at, n); });
      case Kind::broadcast:
        return in_pieces([&](std::size_t at, std::size_t n) { broadcast(at, n); });
      case Kind::message:
        return;
    }
  }

 private:
  int next() const { return (rank_ + 1) % ranks_; }
  int previous() const { return (rank_ + ranks_ - 1) % ranks_; }
  /// Returns the rank i places behind this one in the ring.
  int behind(int i) const { return (rank_ + ranks_ - i) % ranks_; }
  const char* own(std::size_t element) const { return send_ + element * size_; }
  char* out(std::size_t element) const { return receive_ + element * size_; }
  void add(const Step& step) {
    if (step.count > 0) steps.push_back(step);
  }

  template <class F>
  void in_pieces(F&& f) {
    const std::size_t most = kMessageBytes / size_;
    for (std::size_t at = 0; at < call_.count; at += most) f(at, std::min(most, call_.count - at));
  }

  /// Chunk c travels around the ring from rank c + 1 to rank c, which then has the result, and travels around again.
  void all_reduce() {
    const std::size_t unit = 16 / size_, most = kMessageBytes / size_, n = index(ranks_);
    for (std::size_t at = 0; at < call_.count;) {
      const std::size_t rest = call_.count - at;
      const std::size_t chunk = std::min(most, ((rest + n - 1) / n + unit - 1) / unit * unit);
      const auto begin = [&](int c) { return at + index(c) * chunk; };
      const auto length = [&](int c) {
        const std::size_t offset = index(c) * chunk;
        return offset < rest ? std::min(chunk, rest - offset) : 0;
      };
      all_reduce_loop(begin, length);
      at += n * chunk;
    }
  }

  template <class B, class L>
  void all_reduce_loop(B&& begin, L&& length) {
    if (ranks_ == 1) return add({-1, -1, own(begin(0)), out(begin(0)), length(0), true});
    int c = behind(1);
    add({-1, next(), own(begin(c)), nullptr, length(c)});
    for (int i = 2; i < ranks_; ++i) {
      c = behind(i);
      add({previous(), next(), own(begin(c)), nullptr, length(c)});
    }
    add({previous(), next(), own(begin(rank_)), out(begin(rank_)), length(rank_), true});
    for (int i = 1; i < ranks_ - 1; ++i) {
      c = behind(i);
      add({previous(), next(), nullptr, out(begin(c)), length(c)});
    }
    c = next();
    add({previous(), -1, nullptr, out(begin(c)), length(c)});
  }

  /// Block b travels around the ring from rank b + 1 to rank b.
  void reduce_scatter(std::size_t at, std::size_t count) {
    const auto block = [&](int b) { return own(index(b) * call_.count + at); };
    if (ranks_ == 1) return add({-1, -1, block(0), out(at), count, true});
    add({-1, next(), block(behind(1)), nullptr, count});
    for (int i = 2; i < ranks_; ++i) add({previous(), next(), block(behind(i)), nullptr, count});
    add({previous(), -1, block(rank_), out(at), count, true});
  }

  void all_gather(std::size_t at, std::size_t count) {
    const auto block = [&](int b) { return out(index(b) * call_.count + at); };
    if (ranks_ == 1) return add({-1, -1, own(at), block(0), count});
    add({-1, next(), own(at), block(rank_), count});
    for (int i = 1; i < ranks_ - 1; ++i) add({previous(), next(), nullptr, block(behind(i)), count});
    add({previous(), -1, nullptr, block(next()), count});
  }

  /// Data travels around the ring from rank root + 1 to the root.
  void reduce(std::size_t at, std::size_t count) {
    if (ranks_ == 1) return add({-1, -1, own(at), out(at), count, true});
    if (rank_ == call_.root) return add({previous(), -1, own(at), out(at), count, true});
    add({previous() == call_.root ? -1 : previous(), next(), own(at), nullptr, count});
  }

  void broadcast(std::size_t at, std::size_t count) {
    if (rank_ == call_.root) return add({-1, ranks_ == 1 ? -1 : next(), own(at), out(at), count});
    add({previous(), next() == call_.root ? -1 : next(), nullptr, out(at), count});
  }

  const Call& call_;
  const int rank_, ranks_;
  const char* const send_;
  char* const receive_;
  const std::size_t size_;
};

}  // namespace

std::vector<Step> plan_collective(const Call& call, int rank, int ranks, const char* send, char* receive) {
  Ring ring(call, rank, ranks, send, receive);
  ring.build();
  return std::move(ring.steps);
}

std::vector<Step> plan_message(const Call& call, int from, int to, const char* send, char* receive) {
  std::vector<Step> steps;
  const std::size_t size = size_of(call.type), most = kMessageBytes / size;
  for (std::size_t at = 0; at < call.count; at += most) {
    const std::size_t count = std::min<std::size_t>(most, call.count - at);
    steps.push_back({from, to, send ? send + at * size : nullptr, receive ? receive + at * size : nullptr, count});
  }
  return steps;
}

std::size_t elements_sent(const Call& call, int rank, int ranks) {
  if (call.kind == Kind::broadcast && rank != call.root) return 0;
  return call.kind == Kind::reduce_scatter ? call.count * index(ranks) : call.count;
}

std::size_t elements_received(const Call& call, int rank, int ranks) {
  if (call.kind == Kind::reduce && rank != call.root) return 0;
  return call.kind == Kind::all_gather ? call.count * index(ranks) : call.count;
}

}  // namespace levin::emulator::nccl
