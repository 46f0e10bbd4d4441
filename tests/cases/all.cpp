#include "cases/cases.h"

namespace levin::test {

Tensors contiguous_copies(const Tensors& inputs) {
  Tensors result;
  for (const Tensor& x : inputs) result.push_back(x.detach().clone().contiguous());
  return result;
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> all;
  for (auto family :
       {elementwise_cases, activation_cases, creation_cases,     reduce_cases,  scan_cases,  softmax_cases,
        norm_cases,        loss_cases,       indexing_cases,     masking_cases, sort_cases,  pool_cases,
        attention_cases, recurrent_cases,  matmul_cases,     conv_cases,         view_cases,    optim_cases, amp_cases,
        edge_cases,        edge_slope_cases, edge_infinity_cases, index_expression_cases,
        rearrange_cases,   product_cases,    composed_function_cases, composed_norm_cases, composed_loss_cases,
         statistics_cases,  composed_image_cases, linalg_cases, spectral_cases, short_time_cases,
         distribution_cases, further_composed_cases, quantized_cases}) {
    for (OpCase& c : family()) all.push_back(std::move(c));
  }
  return all;
}

}  // namespace levin::test
