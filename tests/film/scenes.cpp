#include "film/scenes.h"

#include "film/kernels.h"
#include "kernels/cuda/reduce/lines.cuh"
#include "kernels/cuda/transpose/problem.cuh"

#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>

namespace levin::film {

namespace {

using emulator::film::Element;
using emulator::film::Film;
using emulator::film::Scene;
using Body = void (*)(void*);

struct alignas(256) Numbers {
  float values[256];
};
struct alignas(256) Words {
  std::uint32_t values[1024];
};

const char* const kPage = "docs/tour/5_cuda.md";
const std::string kReduce = "kernels/cuda/reduce/", kTranspose = "kernels/cuda/transpose/";

void expect(bool right, const std::string& kernel) {
  if (!right) throw std::runtime_error("film: " + kernel + " gave a wrong result");
}

Film sum_a_block(Scene scene, Body body, bool racy) {
  Numbers x{}, sums{};
  for (float& v : x.values) v = 1;
  BlockSums arguments{x.values, sums.values};
  scene.launch.block = {64, 1, 1};
  scene.launch.body = body;
  scene.launch.context = &arguments;
  scene.buffers = {{"x", x.values, 64 * sizeof(float), 0}, {"sums", sums.values, sizeof(float), 0}};
  Film film = emulator::film::shoot(scene);
  expect(racy || sums.values[0] == 64, scene.kernel);
  return film;
}

Film reduce(Scene scene, Body body) {
  Numbers x{}, out{};
  for (float& v : x.values) v = 1;
  kernels::cuda::ReduceLines<float, float> lines;
  lines.x = x.values;
  lines.outputs = 1;
  lines.n = lines.each = 256;
  lines.out = out.values;
  scene.launch.block = {256, 1, 1};
  scene.launch.body = body;
  scene.launch.context = &lines;
  scene.buffers = {{"x", x.values, sizeof x.values, 0}, {"out", out.values, sizeof(float), 0}};
  Film film = emulator::film::shoot(scene);
  expect(out.values[0] == 256, scene.kernel);
  return film;
}

Film transpose(Scene scene, Body body) {
  Words in{}, out{};
  for (std::uint32_t i = 0; i < 1024; ++i) in.values[i] = i;
  kernels::cuda::TransposeProblem problem;
  problem.out = out.values;
  problem.in = in.values;
  problem.rows = problem.columns = problem.out_pitch = problem.in_pitch = 32;
  problem.cut(32);
  scene.element = Element::u32;
  scene.launch.block = {256, 1, 1};
  scene.launch.body = body;
  scene.launch.context = &problem;
  scene.buffers = {{"in", in.values, sizeof in.values, 32}, {"out", out.values, sizeof out.values, 32}};
  Film film = emulator::film::shoot(scene);
  for (std::uint32_t i = 0; i < 1024; ++i) expect(out.values[i] == i % 32 * 32 + i / 32, scene.kernel);
  return film;
}

using Shoot = std::function<Film(const std::filesystem::path& root)>;

const std::map<std::string, Shoot>& all() {
  using Path = std::filesystem::path;
  static const std::map<std::string, Shoot> films = {
      {"tour/block_sums",
       [](const Path& root) {
         return sum_a_block({.title = "A block adds up 64 numbers",
                             .kernel = "tour::block_sums<true>",
                             .caption = "Half of the threads add the other half's numbers, then a quarter, and so on. "
                                        "A barrier separates the steps of the tree.",
                             .root = root,
                             .sources = {kPage}},
                            block_sums, false);
       }},
      {"tour/block_sums_without_barriers",
       [](const Path& root) {
         return sum_a_block({.title = "A block adds up 64 numbers without barriers",
                             .kernel = "tour::block_sums<false>",
                             .caption = "Threads read words that others may not have written yet. Words in a race are "
                                        "outlined in red. The values are those of the emulator's run, in which thread "
                                        "0 ran to its end before thread 1 started.",
                             .root = root,
                             .sources = {kPage}},
                            block_sums_without_barriers, true);
       }},
      {"reduce/01_interleaved",
       [](const Path& root) {
         return reduce({.title = "The sum of a line, rung 1: a tree whose active threads lie apart",
                        .kernel = "reduce_interleaved",
                        .caption = "In each step of the tree every warp works, with fewer and fewer of its lanes; the "
                                   "others wait for them.",
                        .root = root,
                        .sources = {kReduce + "01_interleaved.cuh"}},
                       reduce_01);
       }},
      {"reduce/02_sequential",
       [](const Path& root) {
         return reduce({.title = "The sum of a line, rung 2: a tree whose active threads are neighbours",
                        .kernel = "reduce_sequential",
                        .caption = "Whole warps have nothing to add after a few steps and go straight to the barrier. "
                                   "Only the last five steps divide a warp.",
                        .root = root,
                        .sources = {kReduce + "02_sequential.cuh"}},
                       reduce_02);
       }},
      {"reduce/04_shuffles",
       [](const Path& root) {
         return reduce({.title = "The sum of a line, rung 4: lanes exchange registers",
                        .kernel = "reduce_shuffles",
                        .caption = "Five exchanges of registers add up a warp. Shared memory holds one number of each "
                                   "warp, and two barriers are enough.",
                        .root = root,
                        .sources = {kReduce + "04_shuffles.cuh", "kernels/cuda/base/warp.h"}},
                       reduce_04);
       }},
      {"transpose/01_naive",
       [](const Path& root) {
         return transpose({.title = "A transposition, rung 1: one element at a time",
                           .kernel = "transpose_naive",
                           .caption = "A warp reads 32 neighbours, which lie in 4 sectors, and writes them to 32 rows, "
                                      "each in a sector of its own.",
                           .root = root,
                           .sources = {kTranspose + "01_naive.cuh"}},
                          transpose_01);
       }},
      {"transpose/02_shared_tile",
       [](const Path& root) {
         return transpose({.title = "A transposition, rung 2: a tile in shared memory",
                           .kernel = "transpose_shared_tile",
                           .caption = "Global memory is read and written by whole rows. But a column of the tile lies "
                                      "in one bank, which gives its 32 words one after the other.",
                           .shared_columns = 32,
                           .root = root,
                           .sources = {kTranspose + "02_shared_tile.cuh"}},
                          transpose_02);
       }},
      {"transpose/03_padded",
       [](const Path& root) {
         return transpose({.title = "A transposition, rung 3: a padded tile",
                           .kernel = "transpose_padded",
                           .caption = "Rows of the tile begin 33 words apart, so that a column passes through all 32 "
                                      "banks. Nothing else has changed against rung 2.",
                           .shared_columns = 33,
                           .root = root,
                           .sources = {kTranspose + "03_padded.cuh", kTranspose + "02_shared_tile.cuh"}},
                          transpose_03);
       }},
  };
  return films;
}

}  // namespace

std::vector<std::string> scenes() {
  std::vector<std::string> names;
  for (const auto& [name, shoot_it] : all()) names.push_back(name);
  return names;
}

Film shoot(const std::string& name, const std::filesystem::path& root) {
  const auto at = all().find(name);
  if (at != all().end()) return at->second(root);
  std::string text = "film: there is no kernel " + name + "; choose one of:";
  for (const std::string& known : scenes()) text += " " + known;
  throw std::invalid_argument(text);
}

}  // namespace levin::film
