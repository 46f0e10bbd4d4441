#include "host_recording.h"

#include <levin/kernels/kernel.h>

#include <algorithm>

namespace levin {

namespace {

/// The calling thread's capture; HostRecording is the only kind.
HostRecording* current() { return static_cast<HostRecording*>(detail::host_capture); }

const bool recordings_registered =
    (register_recordings(DeviceType::cpu, [](const Stream&) -> Recording* { return current(); }), true);

}  // namespace

HostRecording::HostRecording(const HostRecording* before)
    : memory_(before ? before->memory_ : std::make_shared<ReplayMemory>()) {
  memory_->plan(true);
  detail::host_capture = this;
}

HostRecording::~HostRecording() { end(); }

void HostRecording::end() {
  if (current() != this) return;
  detail::host_capture = nullptr;
  memory_->plan(false);
}

PhiloxState HostRecording::draw(const std::shared_ptr<Generator>& generator, std::uint64_t blocks) {
  auto d = std::ranges::find(drawn_, generator, &Drawn::generator);
  if (d == drawn_.end()) d = drawn_.insert(d, Drawn{generator});
  const std::uint64_t before = d->blocks;
  d->blocks += blocks;
  return {0, before, &d->at};
}

const double* HostRecording::variable(std::function<double()> now) {
  numbers_.push_back({std::move(now)});
  return &numbers_.back().value;
}

void* HostRecording::allocate(std::size_t bytes, std::function<void()>& release) {
  void* const p = memory_->allocate(bytes);
  release = [memory = memory_, p] { memory->free(p); };
  return p;
}

void HostRecording::keep(const StoragePtr& storage) {
  if (!memory_->owns(storage->data())) kept_.emplace(storage.get(), storage);
}

void* HostRecording::argument_memory(std::size_t bytes, std::size_t alignment) {
  const auto padding = [&] { return (0 - reinterpret_cast<std::uintptr_t>(next_)) % alignment; };
  if (!next_ || padding() + bytes > left_) {
    left_ = std::max<std::size_t>(bytes + alignment, 8192);
    arguments_.push_back(std::make_unique<std::byte[]>(left_));
    next_ = arguments_.back().get();
  }
  const std::size_t skipped = padding();
  std::byte* const p = next_ + skipped;
  next_ = p + bytes;
  left_ -= skipped + bytes;
  return p;
}

void HostRecording::read_values() {
  for (Number& n : numbers_) n.value = n.now();
}

void HostRecording::run() {
  for (Drawn& d : drawn_) d.at = d.generator->reserve(d.blocks);
  Stream stream(kCpu);
  if (kernels::detail::observer.load(std::memory_order_acquire)) {
    for (const detail::CapturedCall& c : calls_) c.observed(c.data, stream);
  } else {
    for (const detail::CapturedCall& c : calls_) c.run(c.data, stream);
  }
}

}  // namespace levin
