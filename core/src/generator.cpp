#include <levin/core/capture/recording.h>
#include <levin/core/generator.h>
#include <levin/core/side_by_side.h>

#include <mutex>
#include <thread>
#include <utility>

namespace levin {

void detail::SpinLock::wait() {
  do {
    std::this_thread::yield();
  } while (held_.exchange(true, std::memory_order_acquire));
}

namespace {
std::uint64_t joined(std::uint32_t high, std::uint32_t low) { return (static_cast<std::uint64_t>(high) << 32) | low; }
}  // namespace

Generator::Generator(Generator&& other) noexcept {
  const std::lock_guard lock(other.lock_);
  own_ = other.own_;
  shared_ = std::move(other.shared_);
}

GeneratorState Generator::state() const {
  const std::lock_guard lock(lock_);
  return shared_ ? shared_->state() : own_;
}

void Generator::set_state(const GeneratorState& s) {
  const std::lock_guard lock(lock_);
  if (shared_) return shared_->set_state(s);
  own_ = s;
}

GeneratorState Generator::reserve(std::uint64_t blocks) {
  const std::lock_guard lock(lock_);
  if (shared_) return shared_->reserve(blocks);
  const GeneratorState before = own_;
  own_.offset += blocks;
  return before;
}

std::uint64_t Generator::next_u64() {
  const auto [seed, counter] = reserve(1);
  const auto w = philox(seed, counter);
  return joined(w[0], w[1]);
}

std::uint64_t Generator::below(std::uint64_t bound) {
  std::uint64_t x = next_u64();
  auto wide = static_cast<detail::u128>(x) * bound;
  if (static_cast<std::uint64_t>(wide) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(wide) < threshold) {
      x = next_u64();
      wide = static_cast<detail::u128>(x) * bound;
    }
  }
  return static_cast<std::uint64_t>(wide >> 64);
}

double Generator::uniform() {
  const auto [seed, counter] = reserve(1);
  const auto w = philox(seed, counter);
  return uniform53(w[0], w[1]);
}

Generator Generator::fork(std::uint64_t a, std::uint64_t b) const {
  const auto w = philox(seed() ^ 0x6c6576696e000000ull, a, b);
  return Generator(joined(w[0], w[1]));
}

PhiloxState Generator::reserve(std::uint64_t blocks, const Stream& stream) {
  Recording* const recorded = recording(stream);
  return recorded ? recorded->draw(share(), blocks) : reserve(blocks);
}

std::shared_ptr<Generator> Generator::share() {
  const std::lock_guard lock(lock_);
  if (!shared_) {
    shared_ = std::make_shared<Generator>();
    shared_->set_state(own_);
  }
  return shared_;
}

namespace {
constinit thread_local Generator* t_default = nullptr;
}

Generator& default_generator() {
  if (t_default) return *t_default;
  static Generator& generator = *new Generator(67280421310721ull);  // PyTorch's default seed
  return generator;
}

DefaultGeneratorGuard::DefaultGeneratorGuard(Generator& generator) : before_(std::exchange(t_default, &generator)) {}
DefaultGeneratorGuard::~DefaultGeneratorGuard() { t_default = before_; }

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace levin
