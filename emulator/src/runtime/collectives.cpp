// Work that involves several devices: it starts like other work and then proceeds in steps until it is done.

#include "state.h"

#include <utility>

namespace levin::emulator {

/// Starts the operation. From here on, drive() advances it.
void Runtime::start(Op& op) {
  const cudaError_t error = devices[static_cast<std::size_t>(op.device)].error;
  std::string text = check_alive(op.work);
  if (error == cudaSuccess && text.empty()) {
    running_.push_back(live_.at(op.number));
    return;
  }
  op.work.collective->abandon(text.empty() ? "device " + std::to_string(op.device) + " has failed" : text);
  if (!text.empty()) fail(op, cudaErrorIllegalAddress, std::move(text));
  finish(op);
}

/// Starts the work that others wait for and advances running work. Returns false if nothing could proceed.
bool Runtime::drive(Lock& lock, Turn& turn) {
  if (!demanded) return false;
  bool moved = false;
  const std::vector<OpRef> wanted = demanded();
  while (!wanted.empty() && run_one(lock, turn, needed(wanted), 0)) moved = true;
  for (const OpRef& op : std::vector<OpRef>(running_)) {
    open(op->work.opens, false);
    lock.unlock();
    const Collective::State state = op->work.collective->advance();
    lock.lock();
    moved = moved || state != Collective::State::waits;
    if (state != Collective::State::done) continue;
    std::string text = op->work.collective->failure();
    if (!text.empty()) report = std::move(text);
    std::erase(running_, op);
    finish(*op);
  }
  return moved;
}

void Runtime::drive_until(const bool& stop) {
  Lock lock(mutex);
  while (!stop) {
    const std::uint64_t rings = rings_;
    bool moved = false;
    if (!running_.empty() || (demanded && !demanded().empty())) {
      Turn turn(*this, lock);
      moved = drive(lock, turn);
    }
    if (!moved && rings == rings_ && !stop) progress_.wait(lock);
  }
}

}  // namespace levin::emulator
