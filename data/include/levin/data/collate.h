#pragma once
// Collate functions for samples whose sizes differ.

#include <levin/data/dataloader.h>

#include <span>
#include <vector>

namespace levin::data {

/// Arguments of pad_sequence, with PyTorch's defaults.
struct PadSequenceOptions {
  bool batch_first = false;
  double padding_value = 0;
};

/// Stacks sequences (T_i, *) into one tensor (T, B, *), or (B, T, *) if batch_first, where T is the largest T_i; the
/// rest is padding_value. Throws ValueError without sequences, ShapeError and DTypeError when more than T_i differs.
Tensor pad_sequence(std::span<const Tensor> sequences, const PadSequenceOptions& options = {});

struct PadOptions {
  double value = 0;
  std::vector<int> places{0};  ///< the tensors of a sample to pad along axis 0; the others are stacked
  bool lengths = true;         ///< for each padded place, int64 lengths (B) follow as a further tensor
};
/// Returns a collate function that pads tensors to (B, T, *). The samples are lists of tensors; it throws ValueError
/// for others.
Collate pad_collate(PadOptions options = {});

/// Returns a collate function that stacks nothing: part i of a batch lists tensor i of each sample, and for
/// dictionaries part(key) lists the tensors under that key. It serves images and boxes of different sizes.
Collate list_collate();

}  // namespace levin::data
