#include <levin/core/generator.h>

namespace levin {

Generator& default_generator() {
  static Generator& generator = *new Generator(67280421310721ull);  // PyTorch's default seed
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace levin
