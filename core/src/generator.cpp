#include <levin/core/generator.h>
#include <levin/core/recording.h>

namespace levin {

PhiloxState Generator::reserve(std::uint64_t blocks, const Stream& stream) {
  Recording* const recorded = recording(stream);
  if (!recorded) return reserve(blocks);
  if (!shared_) shared_ = std::make_shared<GeneratorState>(own_);
  return recorded->draw(shared_, blocks);
}

Generator& default_generator() {
  static Generator& generator = *new Generator(67280421310721ull);  // PyTorch's default seed
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace levin
