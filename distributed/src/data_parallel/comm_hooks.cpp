#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/comm_hooks.h>

namespace levin::distributed {

namespace {

CommStages rounded_to(DType dtype, ProcessGroup& group, const GradBucket& bucket) {
  if (size_of(bucket.buffer.dtype()) <= size_of(dtype)) return allreduce_hook(group, bucket);
  // Gradients are divided before they are rounded, so that their sum does not overflow unless the average does.
  const Tensor rounded = mul(bucket.buffer, 1.0 / group.size()).to(dtype);
  return {[work = group.all_reduce(rounded), rounded, buffer = bucket.buffer] {
    work.wait();
    buffer.copy_(rounded);
  }};
}

}  // namespace

CommStages allreduce_hook(ProcessGroup& group, const GradBucket& bucket) {
  return {[work = group.all_reduce(bucket.buffer, ReduceOp::avg)] { work.wait(); }};
}

CommStages fp16_compress_hook(ProcessGroup& group, const GradBucket& bucket) {
  return rounded_to(kFloat16, group, bucket);
}

CommStages bf16_compress_hook(ProcessGroup& group, const GradBucket& bucket) {
  return rounded_to(kBFloat16, group, bucket);
}

}  // namespace levin::distributed
