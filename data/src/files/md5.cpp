// MD5 as RFC 1321 defines it.

#include <levin/data/fetch.h>

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace levin::data {

namespace {

using Words = std::array<std::uint32_t, 4>;

/// floor(2^32 |sin(i + 1)|)
const std::array<std::uint32_t, 64>& sines() {
  static const auto table = [] {
    std::array<std::uint32_t, 64> t{};
    for (std::size_t i = 0; i < t.size(); ++i) {
      t[i] = static_cast<std::uint32_t>(std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 0x1p32));
    }
    return t;
  }();
  return table;
}

void digest_block(Words& state, const char* block) {
  constexpr int shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::array<std::uint32_t, 16> m{};
  for (std::size_t i = 0; i < 64; ++i) {
    m[i / 4] |= static_cast<std::uint32_t>(static_cast<unsigned char>(block[i])) << (8 * (i % 4));
  }
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t f = 0;
    std::size_t word = 0;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d);
        word = i;
        break;
      case 1:
        f = (d & b) | (~d & c);
        word = (5 * i + 1) % 16;
        break;
      case 2:
        f = b ^ c ^ d;
        word = (3 * i + 5) % 16;
        break;
      default:
        f = c ^ (b | ~d);
        word = (7 * i) % 16;
        break;
    }
    const std::uint32_t turned = std::rotl(a + f + sines()[i] + m[word], shifts[i / 16][i % 4]);
    a = d;
    d = c;
    c = b;
    b += turned;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::string md5(std::string_view bytes) {
  Words state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::size_t whole = bytes.size() / 64 * 64;
  for (std::size_t at = 0; at < whole; at += 64) digest_block(state, bytes.data() + at);
  std::string tail(bytes.substr(whole));
  tail += '\x80';
  tail.resize((tail.size() + 8 + 63) / 64 * 64 - 8, '\0');
  const std::uint64_t bits = static_cast<std::uint64_t>(bytes.size()) * 8;
  for (int shift = 0; shift < 64; shift += 8) tail += static_cast<char>((bits >> shift) & 0xff);
  for (std::size_t at = 0; at < tail.size(); at += 64) digest_block(state, tail.data() + at);
  std::string out;
  for (const std::uint32_t word : state) {
    for (int shift = 0; shift < 32; shift += 8) out += fmt::format("{:02x}", (word >> shift) & 0xff);
  }
  return out;
}

}  // namespace levin::data
