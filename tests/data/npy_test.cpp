#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/npy.h>

#include "damage.h"
#include "support/files.h"
#include "support/paths.h"

#include <complex>
#include <string>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;
namespace fs = std::filesystem;

namespace {

fs::path stored(const char* name) { return source_dir() / "tests/data/files" / name; }

std::string npy(const std::string& dictionary, const std::string& content, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  out += static_cast<char>(dictionary.size());
  out += '\0';
  if (version > 1) out += std::string(2, '\0');
  return out + dictionary + content;
}

}  // namespace

TEST_CASE("round trip of every type through NumPy's format") {
  const TempDir dir;
  const fs::path file = dir.path / "x.npy";
  for (const DType t : {kBool, kInt8, kUInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64}) {
    for (const Shape& sizes : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0, 4}, Shape{2, 1, 3}}) {
      std::vector<int> values(static_cast<std::size_t>(sizes.numel()));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i % 2);
      const Tensor x = from_data(values, sizes, {.dtype = t});
      save_npy(file, x);
      for (const bool mmap : {false, true}) {
        const Tensor back = load_npy(file, {.mmap = mmap});
        CHECK(back.dtype() == t);
        CHECK(back.sizes() == sizes);
        CHECK(back.to_vector<int>() == values);
      }
      const auto bytes = static_cast<std::size_t>(x.numel() * size_of(t));
      CHECK((fs::file_size(file) - bytes) % 64 == 0);
    }
  }
  CHECK_THROWS_AS(save_npy(file, empty({2}, {.dtype = kBFloat16})), DTypeError);
  save_npy(file, from_data<float>({1, 2, 3, 4}, {2, 2}).t());
  CHECK(load_npy(file).to_vector<int>() == std::vector<int>{1, 3, 2, 4});
}

TEST_CASE("complex numbers keep both parts, in either byte order") {
  using Complex = std::complex<double>;
  const TempDir dir;
  const fs::path file = dir.path / "z.npy";
  const std::vector<Complex> values{{1, -2}, {0.5, 3}, {0, 0}};
  for (const DType t : {kComplex64, kComplex128}) {
    save_npy(file, from_data(values, {3}, {.dtype = t}));
    CHECK(load_npy(file).dtype() == t);
    CHECK(load_npy(file).to_vector<Complex>() == values);
  }
  const std::string big_endian("\x3f\x80\0\0\xc0\0\0\0", 8);  // 1 - 2i in float32
  io::write_file(file, npy("{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", big_endian));
  CHECK(load_npy(file).item<Complex>() == Complex(1, -2));
}

TEST_CASE("the header matches NumPy's byte for byte") {
  const TempDir dir;
  const fs::path file = dir.path / "x.npy";
  const auto header = [&](const Tensor& t) {
    save_npy(file, t);
    const std::string text = io::read_text(file);
    return text.substr(10, text.find(" }") + 2 - 10);
  };
  CHECK(header(empty({2, 3})) == "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(header(empty({5}, {.dtype = kUInt8})) == "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }");
  CHECK(header(empty({}, {.dtype = kInt64})) == "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
}

TEST_CASE("files written by NumPy") {
  for (const bool mmap : {false, true}) {
    const Tensor f = load_npy(stored("fortran_big.npy"), {.mmap = mmap});
    CHECK(f.dtype() == kInt32);
    CHECK(f.sizes() == Shape{2, 3});
    CHECK(f.to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
    for (const char* name : {"stored.npz", "deflated.npz"}) {
      const StateDict arrays = load_npz(stored(name), {.mmap = mmap});
      CHECK(arrays.size() == 2);
      CHECK(arrays.at("a").sizes() == Shape{2, 3});
      CHECK(arrays.at("a").to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
      CHECK(arrays.at("b").dtype() == kBool);
      CHECK(arrays.at("b").to_vector<int>() == std::vector<int>{1, 0});
    }
  }
}

TEST_CASE("round trip of archives, aligned for mapping") {
  const TempDir dir;
  const fs::path file = dir.path / "x.npz";
  const StateDict arrays{{"fc1.weight", from_data<float>({1, 2, 3}, {3})}, {"epoch", from_data<int64_t>({7}, {})}};
  save_npz(file, arrays);
  for (const bool mmap : {false, true}) {
    const StateDict back = load_npz(file, {.mmap = mmap});
    CHECK(back.begin()->first == "fc1.weight");
    CHECK(back.at("fc1.weight").to_vector<int>() == std::vector<int>{1, 2, 3});
    CHECK(back.at("epoch").item<int64_t>() == 7);
    CHECK(reinterpret_cast<std::uintptr_t>(back.at("fc1.weight").raw_data()) % (mmap ? 64 : 4) == 0);
  }
  CHECK_THROWS_AS(save_npz(file, {{"", empty({1})}}), ValueError);
  CHECK_THROWS_AS(save_npz(file, {{"x.npy", empty({1})}}), ValueError);
}

TEST_CASE("headers that are not NumPy's are refused with the values") {
  const TempDir dir;
  const fs::path file = dir.path / "x.npy";
  const std::string head = "[npy] " + file.string() + ": ";
  const auto error = [&](const std::string& bytes) {
    io::write_file(file, bytes);
    const std::string read = message_of([&] { load_npy(file); });
    CHECK(message_of([&] { load_npy(file, {.mmap = true}); }) == read);
    return read;
  };
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  CHECK(error(npy(dict, std::string(8, 'x'))) == "nothing was thrown");
  CHECK(error(npy(dict, std::string(8, 'x'), 2)) == "nothing was thrown");
  CHECK(error("") == head + "it has 0 bytes and does not begin as a .npy file. Is this the right file?");
  CHECK(error(npy(dict, "1234567")) ==
        head + "shape (2,) of float32 needs 8 bytes after the header, the file has 7: it is truncated.");
  CHECK(error(npy(dict, "123456789")).ends_with("it has trailing bytes" + std::string(".")));
  CHECK(error(npy(dict, "", 4)) == head + "it has version 4; versions 1 to 3 are read.");
  CHECK(error(npy(dict, "").substr(0, 30)) == head + "it is truncated: its header needs 67 bytes, the file has 30.");
  CHECK(error(npy("{'descr': '<U4', 'fortran_order': False, 'shape': (), }", ""))
            .find("its type '<U4' is none of bool") != std::string::npos);
  CHECK(error(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (), }", "")).find("'<u2'") != std::string::npos);
  CHECK(
      error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "")).find("its header is not NumPy's") !=
      std::string::npos);
  CHECK(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", ""))
            .find("more than any file holds") != std::string::npos);
  CHECK(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "1234"))
            .find("more than 8 dimensions") != std::string::npos);
  CHECK(error(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\x02")) ==
        head + "one of its booleans is neither 0 nor 1. It is damaged.");
  for (const char* bad :
       {"{'descr': '<f4', 'shape': (), }", "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (), }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (), }", "", "{", "{'descr"}) {
    CHECK(error(npy(bad, "1234")).find("its header is not NumPy's") != std::string::npos);
  }
  CHECK(message_of([&] { load_npy(dir.path / "none.npy"); }).find("none.npy") != std::string::npos);
  CHECK(message_of([&] { load_npy(dir.path, {.mmap = true}); }).find("Is a directory") != std::string::npos);
}

TEST_CASE("truncated and changed .npy and .npz files are harmless") {
  const TempDir dir;
  const fs::path file = dir.path / "x";
  for (const char* name : {"fortran_big.npy", "stored.npz", "deflated.npz"}) {
    const std::string good = io::read_text(stored(name));
    const bool archive = std::string_view(name).ends_with("npz");
    for (const bool mmap : {false, true}) {
      const int refused = damage(good, [&](const std::string& bytes) {
        io::write_file(file, bytes);
        if (archive) {
          load_npz(file, {.mmap = mmap});
        } else {
          load_npy(file, {.mmap = mmap});
        }
      });
      CHECK(refused >= static_cast<int>(good.size()));  // every truncation, and more
    }
  }
}

TEST_CASE("inconsistent archives are refused") {
  const TempDir dir;
  const fs::path file = dir.path / "x.npz";
  save_npz(file, {{"a", from_data<float>({1, 2, 3}, {3})}});
  const std::string good = io::read_text(file);
  const auto error = [&](std::size_t at, const std::string& bytes) {
    std::string bad = good;
    bad.replace(at, bytes.size(), bytes);
    io::write_file(file, bad);
    return message_of([&] { load_npz(file); });
  };
  const std::size_t directory = good.find("PK\1\2");
  CHECK(error(good.find("NUMPY"), "NUMPX").find("does not match its checksum") != std::string::npos);
  CHECK(error(directory + 8, std::string("\1\0", 2)).find("is encrypted") != std::string::npos);
  CHECK(error(directory + 10, std::string("\x0c\0", 2)).find("packed by method 12") != std::string::npos);
  // A deflated member that claims a thousand times its possible size.
  CHECK(error(directory + 10,
              std::string("\x08\0", 2) + good.substr(directory + 12, 12) + std::string("\xff\xff\xff\x7f", 4))
            .find("cannot hold 2147483647 bytes") != std::string::npos);
  CHECK(error(directory + 42, std::string("\xff\xff\xff\x00", 4)).find("is not at byte 16777215") != std::string::npos);
  CHECK(error(good.find("PK\5\6"), "XXXX").find("not an archive, or truncated") != std::string::npos);
}
