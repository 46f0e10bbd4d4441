#include "words.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace levin::data::detail {

namespace {

#include "unicode_runs.inc"

/// Returns the codes at which a class of characters begins and ends, in turn, from the lengths in between.
template <std::size_t N>
consteval std::array<std::uint32_t, N> edges_of(const std::uint16_t (&runs)[N]) {
  std::array<std::uint32_t, N> edges{};
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < N; ++i) edges[i] = code += runs[i];
  return edges;
}

constexpr auto kLetterEdges = edges_of(kLetterRuns);
constexpr auto kNumberEdges = edges_of(kNumberRuns);

constexpr std::uint32_t kInvalid = 0xffffffff;

enum class Kind { letter, number, space, other };

struct Character {
  std::size_t length;
  Kind kind;
};

bool contains(std::span<const std::uint32_t> edges, std::uint32_t code) {
  return (std::ranges::upper_bound(edges, code) - edges.begin()) % 2 == 1;
}

/// The characters with Unicode's property White_Space.
bool is_white_space(std::uint32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

Character character_at(std::string_view text) {
  const std::size_t length = character_length(text);
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  constexpr std::array<std::uint32_t, 5> bits_of_first{0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = length == 1 && byte(0) >= 0x80 ? kInvalid : byte(0) & bits_of_first[length];
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3f);
  if (is_white_space(code)) return {length, Kind::space};
  if (contains(kLetterEdges, code)) return {length, Kind::letter};
  return {length, contains(kNumberEdges, code) ? Kind::number : Kind::other};
}

/// Length of the run of characters of one kind at the front.
std::size_t run_length(std::string_view text, Kind kind) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Character c = character_at(text.substr(at));
    if (c.kind != kind) break;
    at += c.length;
  }
  return at;
}

std::size_t contraction_length(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  return 0;
}

/// White space up to the last of its characters, which belongs to the word that follows.
std::size_t space_length(std::string_view text) {
  std::size_t at = 0, last = 0;
  while (at < text.size()) {
    const Character c = character_at(text.substr(at));
    if (c.kind != Kind::space) return last > 0 ? last : at;
    last = at;
    at += c.length;
  }
  return at;
}

std::size_t word_length(std::string_view text) {
  if (const std::size_t length = contraction_length(text)) return length;
  const std::size_t space = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Kind kind = character_at(text.substr(space)).kind;
  return kind == Kind::space ? space_length(text) : space + run_length(text.substr(space), kind);
}

}  // namespace

std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first >= 0xf0 && first < 0xf8   ? 4
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xc2 && first < 0xe0 ? 2
                                                             : 1;
  if (length > text.size()) return 1;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 1;
  }
  return length;
}

void split_words(std::string_view text, const std::function<void(std::string_view word)>& take) {
  while (!text.empty()) {
    const std::size_t length = word_length(text);
    take(text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace levin::data::detail
