#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/npy.h>
#include <levin/data/preload.h>

#include "counted_data.h"
#include "damage.h"
#include "support/files.h"

#include <atomic>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

using namespace levin;
using namespace levin::data;
using namespace levin::test;
namespace fs = std::filesystem;

namespace {

/// Samples from index 3 on have i + 1 numbers.
class LateRagged final : public Dataset {
 public:
  int64_t size() const override { return 6; }
  Sample get(int64_t i, Generator&) const override {
    const int64_t n = i < 3 ? 2 : i + 1;
    return {from_data(std::vector<float>(static_cast<std::size_t>(n), static_cast<float>(i)), {n})};
  }
};

/// Returns this process's share of the file's mapped pages in kilobytes; a page mapped by n processes counts as 1/n.
std::int64_t share_of(const fs::path& file) {
  std::ifstream in("/proc/self/smaps");
  std::int64_t sum = 0;
  bool of_file = false;
  for (std::string line; std::getline(in, line);) {
    if (line.find('-') < line.find(' ')) of_file = line.ends_with(file.string());  // the first line of a mapping
    if (of_file && line.starts_with("Pss:")) sum += std::stoll(line.substr(4));
  }
  return sum;
}

/// Returns a name that concurrent runs of the tests do not share.
std::string shared_name(const char* what) { return std::string("test-") + what + "-" + std::to_string(getpid()); }

struct Shared {
  explicit Shared(const char* what) : name(shared_name(what)) {}
  ~Shared() { remove_shared(name); }
  std::string name;
};

}  // namespace

TEST_CASE("data/in_memory_equals_disk") {
  std::atomic<int> read{0};
  const auto disk = share(Numbers(150, [&](int64_t) { ++read; }));
  for (const int workers : {0, 3}) {
    read = 0;
    const InMemoryDataset memory(disk, workers);
    CHECK(read == 150);
    REQUIRE(memory.rows().has_value());
    CHECK(memory.size() == 150);
    DataLoader from_memory(memory, {.batch_size = 7, .shuffle = true, .num_workers = 2, .seed = 3});
    DataLoader from_disk(disk, {.batch_size = 7, .shuffle = true, .seed = 3});
    CHECK(indices(walk(from_memory)) == indices(walk(from_disk)));
    CHECK(read == 300);
    // Numbers drawn while reading stay, in every epoch and for any number of workers.
    Generator unused;
    CHECK(memory.get(140, unused)[1].item<double>() == InMemoryDataset(disk).get(140, unused)[1].item<double>());
    CHECK_THROWS_AS(memory.get(150, unused), IndexError);
  }
}

TEST_CASE("samples of several shapes stay apart in memory") {
  for (const int workers : {0, 2}) {
    const InMemoryDataset memory(LateRagged(), workers);
    CHECK_FALSE(memory.rows().has_value());
    Generator unused;
    for (int64_t i = 0; i < 6; ++i) {
      const Sample expected = LateRagged().get(i, unused), s = memory.get(i, unused);
      CHECK(s[0].to_vector<float>() == expected[0].to_vector<float>());
    }
    CHECK_THROWS_AS(memory.get(6, unused), IndexError);
  }
  CHECK(InMemoryDataset(Numbers(0)).size() == 0);
}

TEST_CASE("a dataset in mapped files") {
  const TempDir dir;
  const fs::path folder = dir.path / "rows";
  MmapDataset::write(folder, share(Numbers(20)), 2);
  const MmapDataset mapped(folder);
  CHECK(mapped.size() == 20);
  DataLoader loader(mapped, {.batch_size = 6, .num_workers = 2});
  CHECK(indices(walk(loader))[13] == 13);
  CHECK(load_npy(folder / "0.npy").sizes() == Shape{20});
  CHECK_THROWS_AS(MmapDataset::write(folder, share(LateRagged())), ShapeError);
  CHECK(MmapDataset(folder).size() == 20);  // the old one is unchanged

  CHECK(message_of([&] { MmapDataset(dir.path / "none"); }).find("0.npy was not found. Write the folder") !=
        std::string::npos);
  save_npy(folder / "1.npy", empty({3}));
  CHECK(message_of([&] { MmapDataset{folder}; }) ==
        "[mmap_dataset] " + (folder / "1.npy").string() + " is (3,), but 0.npy has 20 rows. Write the folder again.");
  const std::string good = io::read_text(folder / "0.npy");
  const int refused = damage(good, [&](const std::string& bytes) {
    io::write_file(folder / "1.npy", bytes);
    MmapDataset{folder};
  });
  CHECK(refused >= static_cast<int>(good.size()));
}

TEST_CASE("writing to a mapped tensor changes neither file nor other maps") {
  const TempDir dir;
  const fs::path file = dir.path / "x.npy";
  save_npy(file, from_data<float>({1, 2, 3}, {3}));
  const Tensor first = load_npy(file, {.mmap = true}), second = load_npy(file, {.mmap = true});
  first.data<float>()[0] = 9;
  CHECK(first.to_vector<int>() == std::vector<int>{9, 2, 3});
  CHECK(second.to_vector<int>() == std::vector<int>{1, 2, 3});
  CHECK(load_npy(file).to_vector<int>() == std::vector<int>{1, 2, 3});
}

TEST_CASE("data/mmap_rss_shared") {
  const Shared shared("rss");
  constexpr int64_t megabytes = 32, rows = megabytes * 64;
  const std::vector<float> ones(static_cast<std::size_t>(rows * 4096), 1.f);
  preload_shared(shared.name, share(TensorDataset({from_data(ones, {rows, 4096})})));
  const fs::path file = "/dev/shm/levin-" + std::to_string(getuid()) + "-" + shared.name + "/0.npy";
  // Two processes read every page; each reports its share while both have it mapped.
  int ready[2], told[2], measure[2], leave[2];
  REQUIRE(pipe(ready) + pipe(told) + pipe(measure) + pipe(leave) == 0);
  const auto child = [&] {
    const Tensor mapped = load_npy(file, {.mmap = true});
    double sum = 0;
    for (int64_t k = 0; k < mapped.numel(); k += 512) sum += static_cast<double>(mapped.data<float>()[k]);
    char c = sum > 0 ? 'r' : 'x';
    if (write(ready[1], &c, 1) != 1 || read(measure[0], &c, 1) != 1) return 1;
    const std::int64_t share = share_of(file);
    if (write(told[1], &share, sizeof share) != sizeof share || read(leave[0], &c, 1) != 1) return 1;
    return 0;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(child());
    children.push_back(pid);
  }
  char c = 0;
  for (int i = 0; i < 2; ++i) REQUIRE(read(ready[0], &c, 1) == 1);
  CHECK(write(measure[1], "gg", 2) == 2);
  std::int64_t sum = 0, one = 0;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(read(told[0], &one, sizeof one) == sizeof one);
    sum += one;
  }
  CHECK(write(leave[1], "gg", 2) == 2);
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  for (int* ends : {ready, told, measure, leave}) {
    close(ends[0]);
    close(ends[1]);
  }
  INFO("together " << sum << " kB for " << megabytes * 1024 << " kB of data");
  CHECK(sum > megabytes * 1024 * 8 / 10);
  CHECK(sum < megabytes * 1024 * 13 / 10);
}

TEST_CASE("shared data is read once, and again if its size differs") {
  const Shared shared("once");
  std::atomic<int> read{0};
  const auto data = [&](int64_t n) { return share(Numbers(n, [&](int64_t) { ++read; })); };
  CHECK(preload_shared(shared.name, data(10)).size() == 10);
  CHECK(preload_shared(shared.name, data(10)).size() == 10);
  CHECK(read == 10);
  CHECK(preload_shared(shared.name, data(12)).size() == 12);
  CHECK(read == 22);
  CHECK_THROWS_AS(preload_shared("a/b", data(1)), ValueError);
  remove_shared(shared.name);
  CHECK_FALSE(fs::exists("/dev/shm/levin-" + std::to_string(getuid()) + "-" + shared.name));
}
