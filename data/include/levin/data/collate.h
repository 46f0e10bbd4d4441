#pragma once
// Collate functions for samples whose sizes differ.

#include <levin/data/dataloader.h>

#include <span>
#include <vector>

namespace levin::data {

/// Arguments of pad_sequence, with PyTorch's defaults.
struct PadSequenceOptions {
  bool batch_first = false;  ///< (B, T, *) instead of (T, B, *)
  double padding_value = 0;  ///< value after the end of a sequence
};

/// Stacks sequences (T_i, *) into one tensor (T, B, *), or (B, T, *) if batch_first, where T is the largest T_i; the
/// rest is padding_value. Throws ValueError without sequences, ShapeError and DTypeError when more than T_i differs.
Tensor pad_sequence(std::span<const Tensor> sequences, const PadSequenceOptions& options = {});

/// Options of pad_collate.
struct PadOptions {
  double value = 0;            ///< value after the end of a sequence
  std::vector<int> places{0};  ///< the tensors of a sample to pad along axis 0; the others are stacked
  bool lengths = true;         ///< for each padded place, int64 lengths (B) follow as a further tensor
};
/// Returns a collate function that pads tensors to (B, T, *). The samples are lists of tensors; it throws ValueError
/// for others, IndexError for a place that they lack, and the errors of pad_sequence and default_collate.
Collate pad_collate(PadOptions options = {});

/// Returns a collate function that stacks nothing: part i of a batch lists tensor i of each sample, and for
/// dictionaries part(key) lists the tensors under that key. It serves images and boxes of different sizes.
Collate list_collate();

}  // namespace levin::data
