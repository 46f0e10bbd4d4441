// safetensors: round trips, the exact bytes, and a reader that validates everything.
#include <levin/interop/safetensors.h>

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

using namespace levin;
using interop::decode_safetensors;
using interop::encode_safetensors;

namespace {

io::Bytes file_of(std::string_view header, std::size_t data_bytes, std::uint64_t length) {
  io::Bytes out(8 + header.size() + data_bytes);
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(length >> (8 * i));
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}

io::Bytes file_of(std::string_view header, std::size_t data_bytes) {
  return file_of(header, data_bytes, header.size());
}

std::string refusal(std::span<const std::byte> data) {
  try {
    decode_safetensors(data, "x.safetensors");
  } catch (const IoError& e) {
    return e.what();
  }
  return "accepted";
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

}  // namespace

TEST_CASE("a round trip keeps every type's bits, shape and name") {
  StateDict in;
  for (int i = 0; i < kRealDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    Tensor t = empty({2, 3}, {.dtype = dtype});
    auto* p = static_cast<std::uint8_t*>(t.raw_data());
    const auto bytes = static_cast<std::size_t>(6 * size_of(dtype));
    for (std::size_t k = 0; k < bytes; ++k) p[k] = static_cast<std::uint8_t>(dtype == kBool ? k % 2 : k * 37 + 11);
    in.set("t." + std::string(name_of(dtype)), t);
  }
  in.set("empty", empty({0, 5}));
  in.set("scalar", from_data<float>({2.5f}, {}));
  const auto out = decode_safetensors(encode_safetensors(in, {{"format", "pt"}}), "round trip");
  CHECK(out.metadata.at("format") == "pt");
  REQUIRE(out.tensors.size() == in.size());
  for (const auto& [name, t] : in) {
    REQUIRE_MESSAGE(out.tensors.contains(name), name);
    CHECK_MESSAGE(same_bytes(out.tensors.at(name), t), name);
  }
}

TEST_CASE("the bytes match the format") {
  const auto bytes =
      encode_safetensors({{"b", from_data<std::uint8_t>({7}, {1})}, {"a", from_data<float>({1.f}, {1})}});
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  REQUIRE(bytes.size() == 8 + padded + 5);
  CHECK(std::to_integer<std::size_t>(bytes[0]) == padded);
  CHECK(std::memcmp(bytes.data() + 8, header.data(), header.size()) == 0);
  CHECK(bytes[8 + padded + 3] == std::byte{0x3f});
  CHECK(bytes[8 + padded + 4] == std::byte{7});
}

TEST_CASE("a transposed tensor is written row by row") {
  const Tensor t = from_data<float>({1, 2, 3, 4, 5, 6}, {2, 3}).t();
  const auto out = decode_safetensors(encode_safetensors({{"t", t}}), "view");
  CHECK(out.tensors.at("t").to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("names must differ when writing") {
  const auto t = from_data<float>({1.f}, {1});
  CHECK_THROWS_AS(encode_safetensors({{"a", t}, {"a", t}}), ValueError);
  CHECK_THROWS_AS(encode_safetensors({{"__metadata__", t}}), ValueError);
  CHECK_THROWS_AS(encode_safetensors({{"a", Tensor()}}), ValueError);
}

TEST_CASE("attacks on the reader are refused with one sentence") {
  struct Attack {
    const char* name;
    std::string header;
    std::size_t data;
    const char* expected;
  };
  const auto one = [](const std::string& fields) { return "{\"a\":{" + fields + "}}"; };
  const std::string f32 = R"("dtype":"F32","shape":[1],"data_offsets":)";
  const std::vector<Attack> attacks = {
      {"no brace", "[]", 0, "does not begin with {"},
      {"leading space", " {}", 0, "does not begin with {"},
      {"no JSON", "{\"a\":", 0, "no JSON"},
      {"trailing text", "{}x", 0, "no JSON"},
      {"bad UTF-8", "{\"\xff\":{}}", 0, "no JSON"},
      {"deep nesting", "{\"a\":" + std::string(200000, '['), 0, "an array"},
      {"null entry", "{\"a\":null}", 0, "a null"},
      {"number entry", "{\"a\":3}", 0, "the number 3"},
      {"unknown type", one(R"("dtype":"F4","shape":[1],"data_offsets":[0,4])"), 4, "has the type F4"},
      {"unknown field", one(f32 + R"([0,4],"evil":1)"), 4, "the field \"evil\""},
      {"field twice", one(f32 + R"([0,4],"dtype":"F32")"), 4, "the field \"dtype\" twice"},
      {"field missing", one(R"("dtype":"F32","shape":[1])"), 4, "no dtype, shape or data_offsets"},
      {"name twice", R"({"a":{)" + f32 + R"([0,4]},"a":{)" + f32 + "[4,8]}}", 8, "two entries"},
      {"negative size", one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4, "the number -1"},
      {"fractional size", one(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])"), 4, "the number 1.5"},
      {"size above int64", one(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4])"), 4, "the size"},
      {"size above uint64", one(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4])"), 4,
       "the number"},
      {"product overflows", one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0,
       "overflows"},
      {"overflow hidden by 0", one(R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"), 0,
       "overflows"},
      {"nine dimensions", one(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1])"), 1, "more than 8"},
      {"offsets reversed", one(f32 + "[4,0]"), 4, "outside"},
      {"offset outside", one(f32 + "[0,8]"), 4, "outside"},
      {"offset wraps", one(f32 + "[18446744073709551612,18446744073709551615]"), 4, "outside"},
      {"three offsets", one(f32 + "[0,4,4]"), 4, "the number 4"},
      {"one offset", one(f32 + "[0]"), 4, "other than two"},
      {"size differs", one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4, "should have 8 bytes"},
      {"hole in front", one(f32 + "[4,8]"), 8, "no tensor owns bytes 0 to 4"},
      {"bytes behind", one(f32 + "[0,4]"), 8, "end at byte 4 of 8"},
      {"overlap", R"({"a":{)" + f32 + R"([0,4]},"b":{)" + f32 + "[2,6]}}", 6, "overlaps"},
      {"same bytes twice", R"({"a":{)" + f32 + R"([0,4]},"b":{)" + f32 + "[0,4]}}", 4, "overlaps"},
      {"metadata value", R"({"__metadata__":{"a":1}})", 0, "the number 1"},
      {"metadata key twice", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "twice"},
      {"metadata is no object", R"({"__metadata__":"a"})", 0, "the text"},
  };
  for (const auto& a : attacks) {
    const std::string said = refusal(file_of(a.header, a.data));
    INFO(a.name, ": ", said);
    CHECK(said.find(a.expected) != std::string::npos);
    CHECK(said.starts_with("[safetensors] x.safetensors"));
  }
}

TEST_CASE("invalid header lengths are refused") {
  CHECK(refusal(io::Bytes(3)).find("too few") != std::string::npos);
  CHECK(refusal({}).find("too few") != std::string::npos);
  CHECK(refusal(file_of("{}", 0, 3)).find("longer than the file") != std::string::npos);
  CHECK(refusal(file_of("{}", 0, 100'000'001)).find("more than 100000000") != std::string::npos);
  CHECK(refusal(file_of("{}", 0, std::numeric_limits<std::uint64_t>::max())).find("more than 100000000") !=
        std::string::npos);
  CHECK(refusal(file_of("", 0, 0)).find("does not begin") != std::string::npos);
}

TEST_CASE("a file truncated anywhere is refused, and so is a BOOL that is neither 0 nor 1") {
  const auto whole = encode_safetensors({{"weight", from_data<float>({1, 2, 3, 4}, {2, 2})}});
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK(refusal(std::span(whole).first(n)) != "accepted");
  auto flag = encode_safetensors({{"flag", from_data<bool>({true}, {1})}});
  flag.back() = std::byte{2};
  CHECK(refusal(flag).find("BOOL") != std::string::npos);
}

TEST_CASE("every flipped bit of a header is refused or leaves a readable file") {
  const auto whole = encode_safetensors({{"a", from_data<float>({1, 2}, {2})}, {"b", from_data<float>({3}, {1})}});
  const auto header = 8 + std::to_integer<std::size_t>(whole[0]);
  int refused = 0;
  for (std::size_t i = 0; i < header; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto copy = whole;
      copy[i] ^= static_cast<std::byte>(1 << bit);
      refused += refusal(copy) != "accepted" ? 1 : 0;
    }
  }
  CHECK(refused > static_cast<int>(header) * 6);
}

TEST_CASE("a file on disk") {
  const auto path = std::filesystem::temp_directory_path() / "levin-safetensors-test.safetensors";
  interop::save_safetensors(path, {{"x", from_data<double>({0.1, -0.0}, {2})}});
  CHECK(interop::load_safetensors(path).tensors.at("x").to_vector<double>()[0] == 0.1);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(interop::load_safetensors(path), IoError);
}

TEST_CASE("every type has its name in the format") {
  const std::map<DType, const char*> names = {{kFloat64, "F64"}, {kFloat32, "F32"}, {kFloat16, "F16"},
                                              {kBFloat16, "BF16"}, {kInt64, "I64"}, {kInt32, "I32"},
                                              {kInt16, "I16"}, {kInt8, "I8"}, {kUInt8, "U8"}, {kBool, "BOOL"}};
  REQUIRE(names.size() == kRealDTypeCount);
  for (const auto& [dtype, name] : names) {
    const auto bytes = encode_safetensors({{"t", empty({1}, {.dtype = dtype})}});
    const std::string header(reinterpret_cast<const char*>(bytes.data()) + 8, bytes.size() - 8);
    CHECK_MESSAGE(header.starts_with("{\"t\":{\"dtype\":\"" + std::string(name) + "\","), header);
  }
}

TEST_CASE("complex tensors are refused with the way to store them") {
  CHECK_THROWS_WITH_AS(encode_safetensors({{"z", empty({2}, kComplex64)}}),
                       "[safetensors] tensor \"z\" is complex64, which the format does not have here. Store "
                       "view_as_real(x), and read it with view_as_complex.",
                       DTypeError);
}

TEST_CASE("tensors of one width are written in the order of their names") {
  const Tensor one = from_data<float>({1}, {1}), two = from_data<float>({2}, {1});
  const auto a = encode_safetensors({{"b", two}, {"a", one}}), b = encode_safetensors({{"a", one}, {"b", two}});
  CHECK(a == b);
  const std::string text(reinterpret_cast<const char*>(a.data()) + 8, a.size() - 8);
  CHECK(text.find("\"a\"") < text.find("\"b\""));
  CHECK(text.find("\"shape\":[1],\"data_offsets\":[0,4]") < text.find("\"b\""));
}

TEST_CASE("round trip of eight dimensions, and of empty tensors before, between and after others") {
  const Tensor deep = from_data<float>({1, 2, 3, 4}, {1, 2, 1, 1, 2, 1, 1, 1});
  const auto back = decode_safetensors(encode_safetensors({{"deep", deep}}), "deep").tensors;
  CHECK(same_bytes(back.at("deep"), deep));
  // As another writer may order them: each empty tensor begins where another begins or ends.
  const std::string f32 = R"("dtype":"F32",)";
  const std::string header = "{\"a\":{" + f32 + R"("shape":[1],"data_offsets":[0,4]},"b":{)" + f32 +
                             R"("shape":[0],"data_offsets":[0,0]},"c":{)" + f32 +
                             R"("shape":[2,0],"data_offsets":[4,4]},"d":{)" + f32 +
                             R"("shape":[1],"data_offsets":[4,8]},"e":{)" + f32 +
                             R"("shape":[0,3],"data_offsets":[8,8]}})";
  const auto read = decode_safetensors(file_of(header, 8), "empty").tensors;
  REQUIRE(read.size() == 5);
  CHECK(read.at("c").sizes() == Shape{2, 0});
  CHECK(read.at("d").numel() == 1);
}

TEST_CASE("a file keeps its metadata, and a damaged one is named") {
  const auto path = std::filesystem::temp_directory_path() / "levin-safetensors-named.safetensors";
  interop::save_safetensors(path, {{"x", from_data<float>({1}, {1})}}, {{"format", "pt"}, {"quote", "a \"b\"\n"}});
  const auto metadata = interop::load_safetensors(path).metadata;
  CHECK(metadata == std::map<std::string, std::string>{{"format", "pt"}, {"quote", "a \"b\"\n"}});
  io::write_file(path, std::string("too few"));
  std::string said;
  try {
    interop::load_safetensors(path);
  } catch (const IoError& e) {
    said = e.what();
  }
  CHECK(said.starts_with("[safetensors] " + path.string() + " is damaged"));
  std::filesystem::remove(path);
}
