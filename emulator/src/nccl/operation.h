#pragma once
// A rank's calls as one operation of a stream: executes the steps of their plans in order as messages arrive.

#include "../runtime/state.h"
#include "plan.h"
#include "reduction.h"

#include <vector>

namespace levin::emulator::nccl {

class Operation : public Collective {
 public:
  Operation(std::shared_ptr<Segment> segment, int rank) : segment_(std::move(segment)), rank_(rank) {}

  /// Adds the steps of one call, after those of earlier calls with the same peers. Other lanes proceed independently.
  void add(const Call& call, std::vector<Step> steps);

  State advance() override;
  std::string failure() const override { return failure_; }
  void abandon(const std::string& why) override;

  /// Returns whether other ranks wait for this call.
  bool is_wanted();
  bool is_message() const { return first_call().kind == Kind::message; }

 private:
  struct Part {
    Call call;
    std::vector<Step> steps;
  };
  struct Lane {
    int from, to;
    std::vector<Part> parts;
    std::size_t part = 0, step = 0;
    bool done() const { return part == parts.size(); }
  };

  const Call& first_call() const { return lanes_.front().parts.front().call; }
  void announce();
  void compare_announced();
  bool advance(Lane& lane);
  bool take_step(const Call& call, const Step& step);
  void produce(const Call& call, const Step& step);
  bool accept(const Message& message, const Call& call, const Step& step);
  bool ask();
  int awaited(const Step& step);
  void mismatch(int peer, const Call& theirs, const Call& ours);
  void notify(int peer);

  std::shared_ptr<Segment> segment_;
  int rank_;
  std::vector<Lane> lanes_;
  bool begun_ = false;
  std::string failure_;
};

}  // namespace levin::emulator::nccl
