#include "support/files.h"

#include <doctest/doctest.h>
#include <levin/core/error.h>
#include <levin/core/io.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace levin;
using levin::test::gzip;
using levin::test::TempDir;
namespace fs = std::filesystem;

namespace {

auto entries(const TempDir& dir) {
  return std::distance(fs::directory_iterator(dir.path), fs::directory_iterator());
}

struct FailingDisk {
  explicit FailingDisk(std::int64_t after) { io::fail_writes_after(after); }
  ~FailingDisk() { io::fail_writes_after(-1); }
};

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }
std::string text_of(const io::Bytes& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

std::string sample_text() {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + " ";
  return text;
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const IoError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("write_file replaces a file, and read_file returns its contents") {
  const TempDir dir;
  const fs::path file = dir.path / "a.txt";
  io::write_file(file, std::string("one"));
  CHECK(io::read_text(file) == "one");
  io::write_file(file, std::string(100000, 'x'));
  CHECK(io::read_text(file) == std::string(100000, 'x'));
  io::write_file(file, std::string());
  CHECK(io::read_text(file).empty());
  CHECK(entries(dir) == 1);
}

TEST_CASE("a full disk leaves only the old file") {
  const TempDir dir;
  const fs::path file = dir.path / "a.bin";
  io::write_file(file, std::string("precious"));
  for (const std::int64_t after : {0, 1, 4999}) {
    const FailingDisk disk(after);
    const std::string text = message_of([&] { io::write_file(file, std::string(5000, 'y')); });
    CHECK(text ==
          "[write] " + file.string() +
              ": No space left on device. Free some space or choose another folder; what was there is untouched.");
    CHECK(io::read_text(file) == "precious");
    CHECK(entries(dir) == 1);
  }
  const FailingDisk disk(5000);
  io::write_file(file, std::string(5000, 'y'));
  CHECK(io::read_text(file) == std::string(5000, 'y'));
}

TEST_CASE("errors give the reason and a remedy") {
  const TempDir dir;
  CHECK(message_of([&] { io::write_file(dir.path / "missing" / "a", std::string("x")); })
            .ends_with("No such file or directory. Make the folder first."));
  CHECK(message_of([&] { io::read_file(dir.path / "none"); })
            .ends_with("none: No such file or directory. Check the name and your permission to read it."));
  CHECK(message_of([&] { io::read_file(dir.path); }).ends_with("Is a directory. Name a file inside it."));
  if (geteuid() != 0) {
    fs::permissions(dir.path, fs::perms::owner_read | fs::perms::owner_exec);
    CHECK(message_of([&] { io::write_file(dir.path / "a", std::string("x")); })
              .ends_with("Permission denied. Choose a folder that you may write to."));
    fs::permissions(dir.path, fs::perms::owner_all);
  }
}

TEST_CASE("a folder is replaced atomically") {
  const TempDir dir;
  const fs::path folder = dir.path / "checkpoint";
  const auto write = [&](const std::string& text) {
    io::write_folder(folder, [&](const fs::path& inside) {
      io::write_file(inside / "a", text);
      io::write_file(inside / "b", text + text);
    });
  };
  write("one");
  CHECK(io::read_text(folder / "b") == "oneone");
  write("two");
  CHECK(io::read_text(folder / "b") == "twotwo");
  CHECK(entries(dir) == 1);
  {
    const FailingDisk disk(7);
    CHECK_THROWS_AS(write("three"), IoError);
  }
  CHECK(io::read_text(folder / "a") == "two");
  CHECK(entries(dir) == 1);
  CHECK_THROWS_AS(io::write_folder(folder, [](const fs::path&) { throw ValueError("stop"); }), ValueError);
  CHECK(entries(dir) == 1);
  io::write_folder(folder.string() + "/", [](const fs::path&) {});
  CHECK(fs::is_empty(folder));
}

TEST_CASE("recovery finishes an operation interrupted by a crash") {
  const TempDir dir;
  const fs::path folder = dir.path / "checkpoint";
  fs::create_directory(dir.path / "checkpoint.old");
  io::write_file(dir.path / "checkpoint.old" / "a", std::string("old"));
  fs::create_directory(dir.path / ".checkpoint.999999999.0.tmp");  // a process id that cannot exist
  fs::create_directory(dir.path / ".checkpoint.x.tmp");
  io::write_file(dir.path / ".other.999999999.0.tmp", std::string("not ours"));
  io::recover_folder(folder);
  CHECK(io::read_text(folder / "a") == "old");
  CHECK_FALSE(fs::exists(dir.path / ".checkpoint.999999999.0.tmp"));
  CHECK(fs::exists(dir.path / ".checkpoint.x.tmp"));
  CHECK(fs::exists(dir.path / ".other.999999999.0.tmp"));
  fs::create_directory(dir.path / "checkpoint.old");
  io::recover_folder(folder);
  CHECK(io::read_text(folder / "a") == "old");
  CHECK_FALSE(fs::exists(dir.path / "checkpoint.old"));
  io::recover_folder(dir.path / "nowhere" / "x");
}

TEST_CASE("temporary files of dead processes are removed; other files and those of live processes stay") {
  const TempDir dir;
  for (const char* name : {".a.999999999.0.tmp", ".b.c.999999999.12.tmp", ".a.tmp", ".a.x.0.tmp", ".a.999999999.tmp",
                           "a.999999999.0.tmp", ".a.1.0.tmp", ".a.999999999.0.tmp2"})
    io::write_file(dir.path / name, std::string("x"));
  fs::create_directories(dir.path / ".folder.999999999.3.tmp" / "inside");
  CHECK(io::remove_strays(dir.path) == 3);
  CHECK(entries(dir) == 6);  // process 1 lives
  CHECK(io::remove_strays(dir.path / "nowhere") == 0);
}

TEST_CASE("a folder is removed atomically") {
  const TempDir dir;
  io::write_folder(dir.path / "a", [](const fs::path& to) { io::write_file(to / "b", std::string("x")); });
  io::remove_folder(dir.path / "a");
  CHECK(entries(dir) == 0);
  CHECK_THROWS_AS(io::remove_folder(dir.path / "a"), IoError);
}

TEST_CASE("a pointer file is replaced atomically") {
  const TempDir dir;
  io::write_pointer(dir.path / "last", "epoch=1");
  io::write_pointer(dir.path / "last", "epoch=2");
  CHECK(fs::read_symlink(dir.path / "last") == "epoch=2");
  CHECK(entries(dir) == 1);
}

TEST_CASE("gunzip reads members one after another") {
  const std::string text = sample_text();
  CHECK(text_of(io::gunzip(bytes_of(gzip(text)), "x.gz")) == text);
  CHECK(text_of(io::gunzip(bytes_of(gzip(text) + gzip("") + gzip("end")), "x.gz")) == text + "end");
  CHECK(io::gunzip(bytes_of(gzip("")), "x.gz").empty());
}

TEST_CASE("gunzip refuses damaged, truncated and oversized data") {
  const std::string text = sample_text(), good = gzip(text);
  for (const std::size_t keep : {std::size_t{0}, std::size_t{5}, std::size_t{10}, good.size() / 2, good.size() - 1}) {
    const std::string cut = good.substr(0, keep);
    CHECK(message_of([&] { io::gunzip(bytes_of(cut), "x.gz"); }) ==
          "[gunzip] x.gz: it ends early, after " + std::to_string(keep) + " compressed bytes. Fetch the file again.");
  }
  for (const std::size_t at : {std::size_t{0}, good.size() / 2, good.size() - 6}) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    CHECK(message_of([&] {
            io::gunzip(bytes_of(damaged), "x.gz");
          }).starts_with("[gunzip] x.gz: it is damaged near byte"));
  }
  CHECK(
      message_of([&] { io::gunzip(bytes_of(good + "trailing"), "x.gz"); }).starts_with("[gunzip] x.gz: it is damaged"));
  CHECK(message_of([&] { io::gunzip(bytes_of(good), "x.gz", text.size() - 1); })
            .starts_with("[gunzip] x.gz: it holds more than the"));
  CHECK(io::gunzip(bytes_of(good), "x.gz", text.size()).size() == text.size());
}

TEST_CASE("crc32 is the IEEE checksum and can be continued") {
  CHECK(io::crc32(bytes_of("123456789")) == 0xcbf43926u);
  CHECK(io::crc32(bytes_of("6789"), io::crc32(bytes_of("12345"))) == 0xcbf43926u);
  CHECK(io::crc32({}) == 0);
}
