#pragma once
// What a trained classifier thinks of pictures.

#include <levin/levin.h>

#include "../mnist/nets.h"

/// confident: share of the pictures with a class above 0.9. entropy: of the mean distribution over the classes, in nats
/// (ln 10 = 2.303 where all are drawn alike).
struct Score {
  double confident = 0, entropy = 0;
};

class Judge {
 public:
  /// The network of a checkpoint of ./run mnist. Throws IoError where there is none, StateError for another network.
  explicit Judge(const std::filesystem::path& checkpoint);

  /// pictures (N, 1, 28, 28) in [-1, 1]
  Score score(const levin::Tensor& pictures);
  /// Share of these pictures that it tells rightly.
  double accuracy(const levin::data::FashionMnist& data);

 private:
  explicit Judge(const levin::StateDict& weights);
  levin::nn::Sequential net_;
};
