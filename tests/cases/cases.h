#pragma once
// The cases of all operations by family; each family is in the source file of its name.

#include "support/ops/op_case.h"

namespace levin::test {

std::vector<OpCase> elementwise_cases();
std::vector<OpCase> activation_cases();
std::vector<OpCase> creation_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> scan_cases();
std::vector<OpCase> softmax_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> loss_cases();
std::vector<OpCase> indexing_cases();
std::vector<OpCase> index_expression_cases();
std::vector<OpCase> masking_cases();
std::vector<OpCase> sort_cases();
std::vector<OpCase> pool_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> recurrent_cases();
std::vector<OpCase> matmul_cases();
std::vector<OpCase> conv_cases();
std::vector<OpCase> quantized_cases();
std::vector<OpCase> view_cases();
std::vector<OpCase> rearrange_cases();
std::vector<OpCase> further_composed_cases();
std::vector<OpCase> product_cases();
std::vector<OpCase> composed_function_cases();
std::vector<OpCase> composed_norm_cases();
std::vector<OpCase> composed_loss_cases();
std::vector<OpCase> statistics_cases();
std::vector<OpCase> composed_image_cases();
std::vector<OpCase> linalg_cases();
std::vector<OpCase> spectral_cases();
std::vector<OpCase> short_time_cases();
std::vector<OpCase> distribution_cases();
std::vector<OpCase> optim_cases();
std::vector<OpCase> amp_cases();
std::vector<OpCase> edge_cases();
std::vector<OpCase> edge_slope_cases();
std::vector<OpCase> edge_infinity_cases();

/// Returns contiguous copies, because the fused kernels require contiguous tensors.
Tensors contiguous_copies(const Tensors& inputs);

/// Returns all cases.
std::vector<OpCase> all_cases();

}  // namespace levin::test
