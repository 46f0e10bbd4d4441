#pragma once
// The launchers of the shipping rungs, for the choice between them and for the ladder.

#include <levin/kernels/attention.h>

namespace levin::kernels::cuda {

/// True if there is neither mask nor dropout, the flash kernels support the type, sizes and scale, and the device has
/// the shared memory that they need.
bool can_attention_flash(const AttentionArgs& a);
bool can_attention_flash(const AttentionBackwardArgs& a);
void run_attention_flash(const AttentionArgs& a, Stream& stream);
void run_attention_flash(const AttentionBackwardArgs& a, Stream& stream);
/// True for 16-bit floats that can_attention_flash() admits, in rows that 16-byte copies can move, on a device of
/// compute capability 9.
bool can_attention_warpgroups(const AttentionArgs& a);
bool can_attention_warpgroups(const AttentionBackwardArgs& a);
void run_attention_warpgroups(const AttentionArgs& a, Stream& stream);
void run_attention_warpgroups(const AttentionBackwardArgs& a, Stream& stream);
/// Any floating type, mask and dropout.
void run_attention_tiled(const AttentionArgs& a, Stream& stream);
void run_attention_tiled(const AttentionBackwardArgs& a, Stream& stream);

}  // namespace levin::kernels::cuda
