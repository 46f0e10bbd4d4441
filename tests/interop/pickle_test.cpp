// Pickles that no program of good will writes: they end in one sentence, in little time and memory.
#include <levin/core/allocator.h>
#include <levin/core/io.h>
#include <levin/core/io/zip.h>
#include <levin/interop/torch_file.h>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "support/files.h"
#include "support/paths.h"

using namespace levin;
using namespace levin::test;
using interop::load_torch;
using interop::LoadTorchOptions;

namespace {

/// ./run test --full tries more damaged files.
int rounds() { return std::getenv("LEVIN_FULL") ? 40 : 1; }

/// Writes without waiting for the disk, as io::write_file does.
void write(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

using Records = std::map<std::string, std::string>;

/// Writes an archive of torch.save.
void write_archive(const std::filesystem::path& path, const std::string& pickle, const Records& records) {
  io::ZipWriter zip;
  zip.add("a/data.pkl", pickle);
  for (const auto& [name, content] : records) zip.add("a/" + name, content);
  write(path, zip.finish());
}

std::string outcome(const std::string& pickle, const Records& records = {}, const LoadTorchOptions& options = {}) {
  const TempDir dir;
  const std::filesystem::path path = dir.path / "x.pt";
  write_archive(path, pickle, records);
  try {
    return to_string(load_torch(path, options));
  } catch (const IoError& e) {
    const std::string what = e.what(), name = path.string();
    CHECK(what.starts_with("[load_torch] " + name + " "));
    return what.substr(name.size() + 14);
  }
}

std::string bytes_of(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }
std::string text(const std::string& s) { return 'X' + bytes_of(static_cast<std::uint32_t>(s.size())) + s; }
std::string number(std::int64_t v) { return "\x8a\x08" + std::string(reinterpret_cast<const char*>(&v), 8); }
std::string tuple(const std::vector<std::int64_t>& values) {
  std::string out = "(";
  for (const auto v : values) out += number(v);
  return out + 't';
}
std::string storage(const std::string& type, std::int64_t count, const std::string& key = "0") {
  return '(' + text("storage") + "c" + type + '\n' + text(key) + text("cpu") + number(count) + "tQ";
}
std::string tensor_of(const std::string& stored, std::int64_t offset, const std::string& sizes,
                      const std::string& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + stored + number(offset) + sizes + strides +
         "\x89" "ccollections\nOrderedDict\n)RtR";
}
std::string pickle(const std::string& body) { return "\x80\x02" + body + '.'; }

const std::string kFloats = "torch\nFloatStorage";
const Records kFour = {{"data/0", std::string(16, '\0')}};

}  // namespace

TEST_CASE("the pickles of these tests are read when they are right") {
  CHECK(outcome(pickle("N")) == "None\n");
  CHECK(outcome(pickle(tensor_of(storage(kFloats, 4), 1, tuple({3}), tuple({1}))), kFour) == "float32 (3,)\n");
  CHECK(outcome(pickle("(" + text("a") + number(-7) + text("b") + "\x88t")) == "[\"a\", -7, \"b\", True]\n");
  CHECK(outcome(pickle("cbuiltins\nset\n(]N" "atR")) == "[None]\n");
  // An OrderedDict of pairs, as Python 2 wrote it.
  CHECK(outcome(pickle("ccollections\nOrderedDict\n(](" + text("k") + "K\x05" "tatR")) == "k: 5\n");
  // Integers: of no bytes, negative, of 8 bytes, and beyond.
  CHECK(outcome(pickle(std::string("\x8a\0", 2))) == "0\n");
  CHECK(outcome(pickle("\x8a\x01\xff")) == "-1\n");
  CHECK(outcome(pickle(std::string("\x8a\x09\0\0\0\0\0\0\0\x80\0", 11))) == "\"0x8000000000000000\"\n");
  CHECK(outcome(pickle("J\xfe\xff\xff\xff")) == "-2\n");
  CHECK(outcome(pickle(std::string("G\xbf\xf8\0\0\0\0\0\0", 9))) == "-1.5\n");
}

TEST_CASE("a damaged pickle is refused with one sentence") {
  struct Attack {
    std::string name, body, expected;
  };
  const std::string four = storage(kFloats, 4);
  const std::vector<Attack> attacks = {
      {"nothing", "", "it ends with 0 values, not 1"},
      {"two values", "NN", "it ends with 2 values"},
      {"open mark", "(N", "it ends with 1 values"},
      {"trailing bytes", "N.N", "2 bytes follow its end"},
      {"unknown instruction", "\x01", "instruction 0x01 is none of those"},
      {"text of protocol 0", "I1\n", "instruction 0x49"},
      {"protocol 9", "\x80\x09N", "protocol 9 is not one of 2 to 5"},
      {"text beyond the end", "X\xff\xff\xff\xff" "abc", "bytes are missing"},
      {"text of 2^63 bytes", std::string("\x8d\0\0\0\0\0\0\0\x80", 9), "bytes are missing"},
      {"long integer", std::string("\x8b\0\x01\0\0", 5), "an integer has 256 bytes"},
      {"line without end", "ctorch", "bytes are missing"},
      {"pop of nothing", "0N", "a value is missing on the stack"},
      {"pop across a mark", "N(0", "a value is missing on the stack"},
      {"tuple without mark", "Nt", "a mark is missing"},
      {"value that was not stored", "h\x07", "value 7 was not stored"},
      {"append to a number", "K\x01Na", "items are added to what is no list"},
      {"item of a list", "]" + text("k") + "Ns", "items are set in what is no dictionary"},
      {"key without value", "}(" + text("k") + "u", "a key has no value"},
      {"attributes of a list", "]}b", "attributes are set of what is no object"},
      {"call of a text", text("f") + ")R", "there is no function where one is needed"},
      {"call without tuple", "ccollections\nOrderedDict\nNR", "there is no tuple of arguments"},
      {"call of a class", "ctorch\nTensor\n)R", "it calls torch.Tensor, which is no function"},
      {"name that is no text", "NN\x93", "there is no name where one is needed"},
      {"list as key", "}]Ns", "a key that is neither text nor a number"},
      {"key twice", "}(" + text("k") + "N" + text("k") + "Nu", "the key \"k\" occurs twice"},
      {"long key", "}" + text(std::string(1001, 'k')) + "Ns", "has a key of 1001 bytes; 1000 are read."},
      {"list in itself", "]q\1h\1a", "has a list that contains itself. Save a plain tree."},
      {"dictionary in itself", "}q\1" + text("k") + "h\1s", "contains itself"},
      {"storage by itself", four, "holds a storage outside of a tensor. Save a tensor instead."},
      {"class by itself", "ctorch\nTensor\n", "holds the class torch.Tensor. Save its name instead."},
      {"unknown name with controls", "cevil\x1b\nx\n", "names evil?.x, which is none of the classes"},
      {"persistent number", "K\1Q", "a storage has no description"},
      {"persistent text", "(" + text("module") + "tQ", "a persistent value is no storage"},
      {"storage without a class", "(" + text("storage") + text("x") + "tQ", "argument 1 of a storage is not as"},
      {"storage that is missing", storage(kFloats, 4, "../0"), "storage \"../0\" is missing"},
      {"storage of another size", storage(kFloats, 5), "should have 5 elements of 4 bytes, and has 16 bytes"},
      {"storage of -1", storage(kFloats, -1), "should have -1 elements"},
      {"storage of 2^62", storage(kFloats, std::int64_t{1} << 62), "should have 4611686018427387904 elements"},
      {"quantized storage", storage("torch\nQInt8Storage", 16), "holds a tensor of QInt8Storage, which is not read"},
      {"class as storage", storage("torch\nTensor", 16), "holds a tensor of an unknown class"},
      {"too long", tensor_of(four, 0, tuple({5}), tuple({1})), "exceeds its storage of 16 bytes"},
      {"one beyond the end", tensor_of(four, 1, tuple({4}), tuple({1})), "exceeds its storage"},
      {"strides beyond the end", tensor_of(four, 0, tuple({2, 2}), tuple({3, 1})), "exceeds its storage"},
      {"strides that overflow", tensor_of(four, 0, tuple({3}), tuple({INT64_MAX})), "exceeds its storage"},
      {"strides that wrap", tensor_of(four, 1, tuple({2, 2}), tuple({INT64_MAX, INT64_MAX})), "exceeds its storage"},
      {"sizes that overflow", tensor_of(four, 0, tuple({INT64_MAX, 2}), tuple({0, 0})), "overflows"},
      {"overflow hidden by 0", tensor_of(four, 0, tuple({INT64_MAX, 2, 0}), tuple({1, 1, 1})), "overflows"},
      {"negative offset", tensor_of(four, -1, tuple({1}), tuple({1})), "exceeds its storage"},
      {"negative size", tensor_of(four, 0, tuple({-1}), tuple({1})), "argument 2 of a tensor is not as PyTorch"},
      {"negative stride", tensor_of(four, 3, tuple({2}), tuple({-1})), "argument 3 of a tensor is not as PyTorch"},
      {"fewer strides", tensor_of(four, 0, tuple({2, 2}), tuple({1})), "exceeds its storage"},
      {"nine dimensions", tensor_of(four, 0, tuple(std::vector<std::int64_t>(9, 1)), tuple({1})),
       "holds a tensor of 9 dimensions; at most 8 are read. Reshape it first."},
      {"tensor without arguments", "ctorch._utils\n_rebuild_tensor_v2\n)R", "argument 0 of a tensor is not"},
      {"tensor built by a builder of itself", "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n"
       "_rebuild_from_type_v2\nctorch\nTensor\n)NtR", "a tensor is built by torch._tensor._rebuild_from_type_v2"},
      {"bytes that are no Latin-1", "c_codecs\nencode\n(" + text("\xe2\x82\xac") + text("latin1") + "tR",
       "its bytes are no Latin-1"},
  };
  for (const Attack& a : attacks) {
    const std::string said = outcome(pickle(a.body), kFour);
    INFO(a.name, ": ", said);
    CHECK(said.find(a.expected) != std::string::npos);
    CHECK(said.ends_with("."));
  }
}

TEST_CASE("records are checked before they are trusted") {
  const std::string bools = pickle(tensor_of(storage("torch\nBoolStorage", 2), 0, tuple({2}), tuple({1})));
  CHECK(outcome(bools, {{"data/0", std::string("\0\1", 2)}}) == "bool (2,)\n");
  CHECK(outcome(bools, {{"data/0", "\1\2"}}).find("one of its booleans is neither 0 nor 1") != std::string::npos);
  CHECK(outcome(pickle("N"), {{"byteorder", "big"}}) ==
        "has the byte order \"big\". Save it again on a little-endian machine.");
  CHECK(outcome(pickle("N"), {{"byteorder", "little"}}) == "None\n");
  CHECK(outcome(pickle("N"), {{"constants.pkl", ""}}).find("TorchScript") != std::string::npos);
  const auto untyped = "torch.storage\nUntypedStorage";
  const std::string third = "ctorch._utils\n_rebuild_tensor_v3\n(" + storage(untyped, 16) + number(1) + tuple({1}) +
                            tuple({1}) + "\x89" "ccollections\nOrderedDict\n)R";
  CHECK(outcome(pickle(third + "ctorch\nfloat64\ntR"), kFour) == "float64 (1,)\n");
  CHECK(outcome(pickle(third + "ctorch\nuint16\ntR"), kFour).find("tensor of torch.uint16") != std::string::npos);
}

TEST_CASE("a small file cannot ask for much memory or time") {
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;  // MiB
  };
  const auto before = peak();
  // Lists in lists: 10 copies of 10 copies of ... would be 10^60 values.
  std::string laughs = "]q" + std::string(1, '\0');
  for (char i = 0; i < 60; ++i) {
    laughs += "0](";
    for (int copy = 0; copy < 10; ++copy) laughs += std::string("h") + i;
    laughs += std::string("eq") + static_cast<char>(i + 1);
  }
  CHECK(outcome(pickle(laughs)).find("shares lists within lists so often") != std::string::npos);
  CHECK(outcome(pickle(std::string(200, ']') + std::string(199, 'a'))).find("nests lists more than 100 deep") !=
        std::string::npos);
  // Two million nested lists would exhaust the stack of a destructor that calls itself.
  CHECK(outcome(pickle(std::string(2'000'000, ']') + std::string(1'999'999, 'a'))).find("more than 100 deep") !=
        std::string::npos);
  // One list is copied again and again.
  std::string copies = "](" + std::string(100'000, 'N') + "e\x85q\1" "0]";
  for (int i = 0; i < 1000; ++i) copies += "cbuiltins\nset\nh\1Ra";
  CHECK(outcome(pickle(copies)).find("holds more than 16000000 values. Save tensors, not lists.") != std::string::npos);
  // Two objects take each other's attributes, so that their number grows as Fibonacci's.
  std::string grow = "cx\ny\n)Rq\1" + text("a") + "Nscx\ny\n)Rq\2" + text("b") + "Ns";
  for (int i = 0; i < 100; ++i) grow += "0h\1h\2b0h\2h\1b";
  CHECK(outcome(pickle("]q\3" "0" + grow + "q\4" "0h\4"), {}, {.any_class = true}).find("holds more than 16000000") !=
        std::string::npos);
#if defined(__SANITIZE_THREAD__)  // which keeps as much for itself
  constexpr long most = 1400;
#else
  constexpr long most = 700;
#endif
  CHECK(peak() - before < most);
}

TEST_CASE("files of PyTorch that are cut off or have flipped bits are read or refused") {
  std::mt19937 random(20);
  const TempDir dir;
  const std::filesystem::path path = dir.path / "x.pt";
  int refused = 0, tried = 0;
  const auto attempt = [&](const io::Bytes& bytes) {
    write(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    for (const LoadTorchOptions& options : {LoadTorchOptions{}, {.mmap = true, .any_class = true}}) {
      ++tried;
      try {
        const auto file = load_torch(path, options);
        to_string(file);
        if (file.kind() == interop::TorchValue::Kind::dict)
          for (const auto& entry : file.state_dict())
            if (entry.second.numel() < 100'000) entry.second.contiguous();
      } catch (const OutOfMemory& e) {
        FAIL("a damaged file asked for too much memory: ", e.what());
      } catch (const Error&) {
        ++refused;
      }
    }
  };
  cpu_allocator::set_cap((std::size_t{64} << 20) + cpu_allocator::stats().allocated);
  for (const char* name : {"views.pt", "parameters.pt", "checkpoint.pt", "protocol4.pt", "module.pt"}) {
    const io::Bytes good = io::read_file(source_dir() / "tests/interop/files" / name);
    for (int i = 0; i < 50 * rounds(); ++i) {
      attempt(io::Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(random() % good.size())));
      io::Bytes changed = good;
      for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
        changed[random() % changed.size()] ^= static_cast<std::byte>(1U << (random() % 8));
      attempt(changed);
    }
  }
  cpu_allocator::set_cap(0);
  CHECK(refused > tried / 2);
}

TEST_CASE("pickles with changed bytes behind a right checksum are read or refused") {
  std::mt19937 random(21);
  const TempDir dir;
  const std::filesystem::path path = dir.path / "x.pt";
  int refused = 0, tried = 0;
  for (const char* name : {"views.pt", "checkpoint.pt", "protocol4.pt", "module.pt"}) {
    const std::string bytes = io::read_text(source_dir() / "tests/interop/files" / name);
    std::string good;
    Records records;
    for (const auto& m : io::zip_members(std::as_bytes(std::span(bytes)), name)) {
      const std::string content = bytes.substr(static_cast<std::size_t>(m.begin), static_cast<std::size_t>(m.size));
      const std::string key = m.name.substr(m.name.find('/') + 1);
      if (key == "data.pkl")
        good = content;
      else
        records[key] = content;
    }
    for (int i = 0; i < 150 * rounds(); ++i) {
      std::string changed = good;
      for (int edits = 1 + static_cast<int>(random() % 2); edits > 0; --edits) {
        const std::size_t at = random() % changed.size();
        switch (random() % 3) {
          case 0: changed[at] = static_cast<char>(random()); break;
          case 1: changed.erase(at, 1 + random() % 8); break;
          default: changed.insert(at, good.substr(random() % good.size(), random() % 16));
        }
      }
      ++tried;
      write_archive(path, changed, records);
      try {
        to_string(load_torch(path, {.any_class = i % 2 == 0}));
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > tried / 4);
}
