// Films of kernels show exactly what the kernels do.
#include "film/scenes.h"

#include "emulator/film/costs.h"
#include "support/paths.h"

#include <levin/emulator/builtins.h>

#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

using namespace levin::emulator::film;
using levin::test::source_dir;

namespace {

Film film_of(const std::string& kernel) { return levin::film::shoot(kernel, source_dir()); }

Access shared_access(unsigned bytes, unsigned (*offset)(unsigned lane), std::uint32_t active = ~0u) {
  Access a{.memory = Memory::shared, .bytes = bytes};
  for (unsigned lane = 0; lane < 32; ++lane) a.offsets[lane] = offset(lane);
  find_cost(a, active);
  return a;
}

/// The steps of a warp that access shared memory.
std::vector<Step> shared_steps(const Film& film, std::size_t warp) {
  std::vector<Step> out;
  for (const Step& s : film.warps[warp]) {
    if (s.access.memory == Memory::shared) out.push_back(s);
  }
  return out;
}

std::string text_of(const Film& film, const Step& s) { return film.lines[static_cast<std::size_t>(s.line)].text; }

}  // namespace

TEST_CASE("banks need a pass for each word of the bank that the lanes use most") {
  CHECK(shared_access(4, [](unsigned lane) { return 4 * lane; }).cost == 1);
  CHECK(shared_access(4, [](unsigned) { return 64u; }).cost == 1);  // all lanes get the same word
  CHECK(shared_access(4, [](unsigned lane) { return 8 * lane; }).cost == 2);
  CHECK(shared_access(4, [](unsigned lane) { return 128 * lane; }).cost == 32);
  CHECK(shared_access(4, [](unsigned lane) { return 132 * lane; }).cost == 1);
  CHECK(shared_access(4, [](unsigned lane) { return 128 * lane; }, 0x0000000fu).cost == 4);
  CHECK(shared_access(1, [](unsigned lane) { return lane; }).cost == 1);
  // 8 bytes of 32 lanes fill the banks twice, 16 bytes four times.
  const Access pairs = shared_access(8, [](unsigned lane) { return 8 * lane; });
  CHECK(pairs.cost == 2);
  CHECK(pairs.least == 2);
  const Access fours = shared_access(16, [](unsigned lane) { return 16 * lane; });
  CHECK(fours.cost == 4);
  CHECK(fours.least == 4);
  CHECK(shared_access(8, [](unsigned lane) { return 16 * lane; }).cost == 4);
}

TEST_CASE("global memory moves the sectors of 32 bytes that the lanes touch") {
  Access a{.memory = Memory::global, .bytes = 4};
  for (unsigned lane = 0; lane < 32; ++lane) a.offsets[lane] = 4 + 4 * lane;  // one element off a line
  find_cost(a, ~0u);
  CHECK(a.cost == 5);
  CHECK(a.least == 4);
  for (unsigned lane = 0; lane < 32; ++lane) a.offsets[lane] = 128 * lane;
  find_cost(a, ~0u);
  CHECK(a.cost == 32);
  CHECK(a.least == 4);
  find_cost(a, 1u);
  CHECK(a.cost == 1);
  CHECK(a.least == 1);
}

TEST_CASE("threads race for a word if one of them writes it and nothing orders them") {
  Access write{.memory = Memory::shared, .write = true, .bytes = 4}, read{.memory = Memory::shared, .bytes = 4};
  read.offsets[1] = write.offsets[1] = 4;
  Races races;
  races.add(write, 1, 0);  // lane 0 of warp 0 writes word 0
  CHECK(write.races.empty());
  races.add(read, 1, 0);  // and reads it again
  CHECK(read.races.empty());
  races.add(read, 1, 1);
  CHECK(read.races == std::vector<std::uint32_t>{0});
  races.pass_barrier();
  races.add(read, 1, 1);
  CHECK(read.races.empty());
  races.add(read, 1, 0);  // two reads
  CHECK(read.races.empty());
  races.pass_barrier();
  races.add(write, 2, 0);  // lane 1 of warp 0 writes word 1
  races.pass_warp_function(0);
  read.offsets[0] = 4;
  races.add(read, 1, 0);
  CHECK(read.races.empty());
  races.add(read, 1, 1);  // another warp is not ordered by it
  CHECK(read.races == std::vector<std::uint32_t>{1});
}

TEST_CASE("the film of the tour's kernel has its accesses, and its barriers prevent races") {
  for (const bool with_barriers : {true, false}) {
    CAPTURE(with_barriers);
    const Film film = film_of(with_barriers ? "tour/block_sums" : "tour/block_sums_without_barriers");
    const Totals t = totals(film);
    CHECK(film.threads == 64);
    CHECK(film.warps.size() == 2);
    REQUIRE(film.arrays.size() == 1);
    CHECK(film.arrays[0].name == "partial");
    CHECK(film.arrays[0].bytes == 256);
    CHECK(t.global_reads == 64);
    CHECK(t.global_writes == 1);
    CHECK(t.shared_writes == 64 + 32 + 16 + 8 + 4 + 2 + 1);
    CHECK(t.shared_reads == 2 * 63 + 1);
    CHECK(t.passes == t.least_passes);
    CHECK(t.sectors == 9);
    CHECK(t.barriers == (with_barriers ? 7 : 0));
    CHECK(t.races == (with_barriers ? 0 : 6));
  }
}

TEST_CASE("lanes go in step: those of a branch work while the others wait where they join") {
  const Film film = film_of("reduce/01_interleaved");
  const Totals t = totals(film);
  CHECK(t.shared_writes == 511);
  CHECK(t.shared_reads == 511);
  CHECK(t.barriers == 9);
  CHECK(t.races == 0);
  CHECK(t.worst_conflict == 1);
  std::vector<std::uint32_t> masks;  // of warp 0's writes
  float last = 0;
  for (const Step& s : shared_steps(film, 0)) {
    CHECK(text_of(film, s).find("tile[") != std::string::npos);
    if (!s.access.write) continue;
    masks.push_back(s.active);
    last = std::bit_cast<float>(static_cast<std::uint32_t>(s.access.bits[0]));
  }
  CHECK(masks == std::vector<std::uint32_t>{~0u, 0x55555555, 0x11111111, 0x01010101, 0x00010001, 1, 1, 1, 1});
  CHECK(last == 256);
  int joined = 0;
  for (const Step& s : film.warps[0]) {
    if (text_of(film, s).find("__syncthreads") == std::string::npos) continue;
    ++joined;
    CHECK(s.active == ~0u);
    CHECK(s.kind == Step::Kind::barrier);
  }
  CHECK(joined == 9);
}

TEST_CASE("in the second rung of the sums most warps go straight to the barriers") {
  const Film film = film_of("reduce/02_sequential");
  const Totals t = totals(film), apart = totals(film_of("reduce/01_interleaved"));
  CHECK(t.shared_writes == 511);
  CHECK(t.shared_reads == 511);
  CHECK(t.barriers == 9);
  CHECK(t.races == 0);
  CHECK(shared_steps(film, 7).size() == 1);  // its own elements
  CHECK(shared_steps(film, 3).size() == 1 + 3);
  CHECK(t.passes < apart.passes / 3);
  const bool fuller = std::int64_t{t.active} * apart.lanes > std::int64_t{apart.active} * t.lanes;
  CHECK(fuller);
}

TEST_CASE("exchanges of registers are steps of the whole warp") {
  const Film film = film_of("reduce/04_shuffles");
  const Totals t = totals(film);
  CHECK(t.warp_functions == 8 * 2 * 5);
  CHECK(t.barriers == 2);
  CHECK(t.shared_writes == 8);
  CHECK(t.shared_reads == 8 * 8);
  for (const auto& warp : film.warps) {
    for (const Step& s : warp) {
      if (text_of(film, s).find("__shfl_xor_sync(") == std::string::npos) continue;
      CHECK(s.active == ~0u);
      CHECK(s.kind == Step::Kind::warp_function);
    }
  }
}

TEST_CASE("a transposition conflicts in one bank, and the padded tile in none") {
  const Totals naive = totals(film_of("transpose/01_naive"));
  CHECK(naive.global_reads == 1024);
  CHECK(naive.global_writes == 1024);
  CHECK(naive.sectors == 128 + 1024);
  CHECK(naive.least_sectors == 256);
  const Film tile = film_of("transpose/02_shared_tile");
  const Totals conflicts = totals(tile), padded = totals(film_of("transpose/03_padded"));
  for (const Totals& t : {conflicts, padded}) {
    CHECK(t.shared_writes == 1024);
    CHECK(t.shared_reads == 1024);
    CHECK(t.sectors == 256);
    CHECK(t.least_sectors == 256);
    CHECK(t.least_passes == 64);
    CHECK(t.barriers == 1);
    CHECK(t.races == 0);
  }
  CHECK(conflicts.worst_conflict == 32);
  CHECK(conflicts.passes == 32 + 32 * 32);
  CHECK(padded.worst_conflict == 1);
  CHECK(padded.passes == 64);
  for (const Step& s : shared_steps(tile, 3)) CHECK(s.access.cost == (s.access.write ? 1 : 32));
}

TEST_CASE("every warp makes at most one step in a frame, and barriers let all pass together") {
  for (const std::string& kernel : levin::film::scenes()) {
    CAPTURE(kernel);
    const Film film = film_of(kernel);
    std::vector<std::vector<int>> barriers;
    for (const auto& warp : film.warps) {
      REQUIRE(!warp.empty());
      barriers.emplace_back();
      int before = -1;
      for (const Step& s : warp) {
        const bool later = s.frame > before && s.frame < film.frames;
        CHECK(later);
        CHECK(s.active != 0);
        CHECK((s.active & s.ended) == 0);
        before = s.frame;
        if (s.kind == Step::Kind::barrier) barriers.back().push_back(s.frame);
      }
    }
    for (const auto& passed : barriers) CHECK(passed == barriers.front());
  }
}

TEST_CASE("the page is one file without outside parts") {
  Film film = film_of("transpose/03_padded");
  film.caption = "</script><script>stop()</script>";
  const std::string page = page_of(film, source_dir());
  CHECK(page.size() < 200'000);
  for (const char* outside : {"src=", "<link", "url(", "@import", "fetch(", "import("}) {
    CHECK_MESSAGE(page.find(outside) == std::string::npos, outside);
  }
  std::size_t scripts = 0;
  for (auto at = page.find("</script>"); at != std::string::npos; at = page.find("</script>", at + 1)) ++scripts;
  CHECK(scripts == 2);  // the film and the player
  CHECK(page.find("\\u003c/script>") != std::string::npos);
}

TEST_CASE("what cannot be filmed is reported") {
  CHECK_THROWS_WITH_AS(film_of("reduce/nothing"), doctest::Contains("film: there is no kernel reduce/nothing"),
                       std::invalid_argument);
  Scene scene;
  scene.root = source_dir();
  scene.launch.block = {32, 1, 1};
  scene.launch.body = [](void*) {};
  CHECK_THROWS_WITH_AS(shoot(scene), doctest::Contains("film: nothing was recorded"), std::runtime_error);
  scene.launch.body = [](void*) {
    if (threadIdx.x < 16) __syncthreads();
  };
  CHECK_THROWS_WITH_AS(shoot(scene), doctest::Contains("divergent barrier"), std::runtime_error);
}
