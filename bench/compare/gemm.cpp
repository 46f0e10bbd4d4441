// Products of float32 matrices, square ones in all transposes and those of the nets. The names and shapes are those of
// bench/peers/gemm_peers.py.

#include "operations.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>

using namespace levin;

namespace {

/// One product of (m, k) by (k, n); `how` has t for each operand that is the transpose of contiguous memory.
void product(const ProductVisitor& visitor, int64_t m, int64_t n, int64_t k, const char* how) {
  const std::string name = fmt::format("{}x{}x{} {}", m, n, k, how);
  if (!visitor.wanted(name)) return;
  const Tensor a = how[0] == 't' ? randn({k, m}).transpose(0, 1) : randn({m, k});
  const Tensor b = how[1] == 't' ? randn({n, k}).transpose(0, 1) : randn({k, n});
  visitor.visit(name, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), [=] {
    const no_grad guard;
    matmul(a, b);
  });
}

struct Sizes {
  int64_t m, n, k;
};

}  // namespace

void for_each_product(const ProductVisitor& visitor) {
  for (const int64_t size : {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096})
    for (const char* how : {"nn", "nt", "tn", "tt"}) product(visitor, size, size, size, how);
  for (const auto& [m, n, k] :
       {Sizes{128, 512, 784}, Sizes{128, 10, 512}, Sizes{128, 128, 800}, Sizes{128, 128, 9216}, Sizes{64, 1, 6272},
        Sizes{1024, 576, 192}, Sizes{1024, 192, 768}, Sizes{1024, 768, 192}, Sizes{1024, 256, 192},
        Sizes{2048, 576, 192}, Sizes{2048, 192, 768}, Sizes{32, 1024, 256}, Sizes{2048, 1024, 256}}) {
    product(visitor, m, n, k, "nt");  // y = x w^T and its two gradients
    product(visitor, m, k, n, "nn");
    product(visitor, n, k, m, "tn");
  }
}
