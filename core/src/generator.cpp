#include <levin/core/generator.h>
#include <levin/core/recording.h>
#include <levin/core/side_by_side.h>

#include <thread>
#include <utility>

namespace levin {

void detail::SpinLock::wait() {
  do {
    std::this_thread::yield();
  } while (held_.exchange(true, std::memory_order_acquire));
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
