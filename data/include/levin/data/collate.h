#pragma once
// Batches from samples whose sizes differ.

#include <levin/data/dataloader.h>

#include <span>
#include <vector>

namespace levin::data {

/// Arguments of pad_sequence, with PyTorch's defaults.
struct PadSequenceOptions {
  bool batch_first = false;
  double padding_value = 0;
};

/// Sequences (T_i, *) in one tensor (T, B, *), or (B, T, *) when batch_first, where T is the longest; the rest is
/// padding_value. Throws ValueError without sequences, ShapeError and DTypeError when more than T_i differs.
Tensor pad_sequence(std::span<const Tensor> sequences, const PadSequenceOptions& options = {});

struct PadOptions {
  double value = 0;
  std::vector<int> places{0};  ///< which tensors of a sample are padded along their axis 0; the others are stacked
  bool lengths = true;         ///< for each padded place, int64 lengths (B) follow as a further tensor
};
/// A batch with padded tensors (B, T, *).
Collate pad_collate(PadOptions options = {});

/// A batch that keeps the tensors apart: part i lists tensor i of each sample. For pictures and boxes of any size.
Collate list_collate();

}  // namespace levin::data
