#pragma once
// Scores generated images with a trained classifier.

#include <levin/levin.h>

#include "../mnist/nets.h"

/// `confident` is the fraction of images for which some class has a probability above 0.9. `entropy` is that of the
/// mean distribution over the classes, in nats: ln 10 = 2.303 if all classes are drawn equally often. `as_asked` is the
/// fraction of images that the classifier assigns to the class that they should have.
struct Score {
  double confident = 0, entropy = 0, as_asked = 0;
};

class Judge {
 public:
  /// Loads a checkpoint of ./run mnist. Throws IoError if there is none, StateError if it belongs to another network.
  explicit Judge(const std::string& checkpoint);

  /// Scores images (N, 1, 28, 28) in [-1, 1] that should have the classes y (N).
  Score score(const levin::Tensor& images, const levin::Tensor& y);
  /// Returns the fraction of these images that it classifies correctly.
  double accuracy(const levin::data::FashionMnist& data);

 private:
  explicit Judge(const levin::StateDict& weights);
  levin::nn::Sequential net_;
};
