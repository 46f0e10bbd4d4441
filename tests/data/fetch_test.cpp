#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/fetch.h>

#include "damage.h"
#include "support/files.h"

#include <cstdlib>

using namespace levin;
using namespace levin::data;
using namespace levin::test;
namespace fs = std::filesystem;

namespace {

std::size_t files_in(const fs::path& dir) {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(dir)) n += entry.exists();
  return n;
}

/// Sets an environment variable for the lifetime of the object.
struct Environment {
  Environment(const char* n, const std::string& value) : name(n), former(std::getenv(n) ? std::getenv(n) : "") {
    setenv(n, value.c_str(), 1);
  }
  ~Environment() { setenv(name, former.c_str(), 1); }
  const char* name;
  std::string former;
};

}  // namespace

TEST_CASE("MD5 of RFC 1321's test suite") {
  CHECK(md5("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(md5("abc") == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(md5("abcdefghijklmnopqrstuvwxyz") == "c3fcd3d76192e4007dfb496cca67e13b");
  CHECK(md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "57edf4a22be3c955ac49da2e2107b67a");
  for (const std::size_t n : {55u, 56u, 63u, 64u, 65u}) CHECK(md5(std::string(n, 'x')).size() == 32);
}

TEST_CASE("files are fetched once, checked, and renamed last") {
  const TempDir from, to;
  io::write_file(from.path / "a.bin", std::string("abc"));
  const std::string mirror = "file://" + from.path.string() + "/", none = "file://" + from.path.string() + "/none/";
  const std::vector<RemoteFile> files{{"a.bin", "900150983cd24fb0d6963f7d28e17f72"}};
  const fs::path dir = to.path / "deep" / "dir";
  fetch(dir, files, {none, mirror});  // the second mirror has it
  CHECK(io::read_text(dir / "a.bin") == "abc");
  CHECK(files_in(dir) == 1);
  fetch(dir, files, {none});  // the file exists, so nothing is fetched
  io::write_file(dir / "a.bin", std::string("damaged"));
  fetch(dir, files, {mirror});
  CHECK(io::read_text(dir / "a.bin") == "abc");

  io::write_file(from.path / "a.bin", std::string("abd"));
  fs::remove(dir / "a.bin");
  const std::string text = message_of([&] { fetch(dir, files, {mirror, none}); });
  CHECK(text.find(mirror + "a.bin: its 3 bytes have the MD5 4911e516e5aa21d327512e0c8b197616, not "
                           "900150983cd24fb0d6963f7d28e17f72; ") != std::string::npos);
  CHECK(text.find(none + "a.bin: there is no such file") != std::string::npos);
  CHECK(text.ends_with("Copy the file there by hand, or try again later."));
  CHECK(files_in(dir) == 0);
  CHECK_THROWS_AS(fetch(dir, files, {}), ValueError);
  io::write_file(to.path / "file", std::string("x"));
  CHECK_THROWS_AS(fetch(to.path / "file" / "sub", files, {mirror}), IoError);
}

TEST_CASE("a missing network or a missing curl is reported") {
  const TempDir dir;
  CHECK(message_of([&] {
          fetch_mnist(dir.path, {"http://no-such-host.invalid/"});
        }).find("train-images-idx3-ubyte.gz: there is no network, or the host's name is unknown") != std::string::npos);
  CHECK(message_of([&] {
          fetch_fashion_mnist(dir.path, {"http://127.0.0.1:1/"});
        }).find("there is no connection to the host") != std::string::npos);
  const Environment path("PATH", dir.path.string());
  CHECK(message_of([&] {
          fetch_mnist(dir.path, {"http://127.0.0.1:1/"});
        }).find("the program curl is missing (apt-get install curl)") != std::string::npos);
}
