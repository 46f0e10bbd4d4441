#include <levin/core/io.h>
#include <levin/data/byte_pair.h>

#include "words.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

namespace levin::data {

namespace fs = std::filesystem;

namespace {

/// The characters by which GPT-2's files write the 256 bytes: printable ones stand for themselves, the others follow
/// from U+0100 on.
const std::array<std::string, 256>& byte_characters() {
  static const auto characters = [] {
    std::array<std::string, 256> out;
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
      const unsigned code = printable ? b : next++;
      out[b] = code < 0x80 ? std::string(1, static_cast<char>(code))
                           : std::string{static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    }
    return out;
  }();
  return characters;
}

std::string written(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += byte_characters()[static_cast<unsigned char>(c)];
  return out;
}

/// The bytes of a written token; nothing if it has a character that stands for no byte.
std::optional<std::string> bytes_of(std::string_view token) {
  static const auto bytes = [] {
    std::unordered_map<std::string, char> out;
    for (unsigned b = 0; b < 256; ++b) out.emplace(byte_characters()[b], static_cast<char>(b));
    return out;
  }();
  std::string out;
  while (!token.empty()) {
    const std::size_t length = detail::character_length(token);
    const auto found = bytes.find(std::string(token.substr(0, length)));
    if (found == bytes.end()) return std::nullopt;
    out += found->second;
    token.remove_prefix(length);
  }
  return out;
}

/// vocab.json as written tokens, in the order of their numbers.
std::vector<std::string> read_vocabulary(const std::string& path) {
  const auto json = nlohmann::json::parse(io::read_text(path), nullptr, false);
  if (!json.is_object()) throw IoError(fmt::format("[byte_pair] {} is not a JSON object of tokens.", path));
  std::vector<std::string> tokens(json.size());
  std::vector<bool> taken(json.size());
  for (const auto& [token, number] : json.items()) {
    const bool fits =
        number.is_number_unsigned() && number.get<std::uint64_t>() < tokens.size() && !taken[number.get<std::size_t>()];
    if (!fits)
      throw IoError(fmt::format("[byte_pair] {}: \"{}\" has the number {}; {} tokens are numbered from 0, each once.",
                                path, token, number.dump(), tokens.size()));
    tokens[number.get<std::size_t>()] = token;
    taken[number.get<std::size_t>()] = true;
  }
  return tokens;
}

}  // namespace

struct BytePairTokenizer::Merges : std::unordered_map<std::uint64_t, Merge> {};

bool BytePairTokenizer::learn(int64_t left, int64_t right, int64_t result) {
  if (!merges_) merges_ = std::make_shared<Merges>();
  const Merge merge{static_cast<int64_t>(merge_order_.size()), result};
  return merges_->emplace(pair_of(left, right), merge).second;
}

const BytePairTokenizer::Merge* BytePairTokenizer::merge_of(std::uint64_t pair) const {
  if (!merges_) return nullptr;
  const auto found = merges_->find(pair);
  return found == merges_->end() ? nullptr : &found->second;
}

BytePairTokenizer BytePairTokenizer::load(const std::string& vocab_json, const std::string& merges_txt) {
  BytePairTokenizer out;
  const std::vector<std::string> vocabulary = read_vocabulary(vocab_json);
  std::unordered_map<std::string, int64_t> numbers;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) numbers.emplace(vocabulary[i], static_cast<int64_t>(i));
  const auto number_of = [&](const std::string& token) {
    const auto found = numbers.find(token);
    if (found == numbers.end()) throw IoError(fmt::format("[byte_pair] {} lacks the token \"{}\".", vocab_json, token));
    return found->second;
  };
  std::vector<bool> ordinary(vocabulary.size());
  for (std::size_t b = 0; b < 256; ++b) {
    out.byte_numbers_[b] = number_of(byte_characters()[b]);
    ordinary[static_cast<std::size_t>(out.byte_numbers_[b])] = true;
  }
  const auto lines = read_lines(merges_txt);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.empty() || (i == 0 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      throw IoError(fmt::format("[byte_pair] {}, line {}: \"{}\" is not two tokens.", merges_txt, i + 1, line));
    const std::string left = line.substr(0, space), right = line.substr(space + 1);
    const int64_t l = number_of(left), r = number_of(right), result = number_of(left + right);
    out.learn(l, r, result);
    out.merge_order_.emplace_back(l, r);
    ordinary[static_cast<std::size_t>(result)] = true;
  }
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    if (!ordinary[i]) out.specials_.push_back(static_cast<int64_t>(i));
    const std::optional<std::string> bytes = bytes_of(vocabulary[i]);
    out.tokens_.push_back(ordinary[i] && bytes ? *bytes : vocabulary[i]);
  }
  return out;
}

void BytePairTokenizer::save(const std::string& folder_name) const {
  const std::set<int64_t> special(specials_.begin(), specials_.end());
  const auto as_written = [&](int64_t n) {
    const std::string& bytes = tokens_[static_cast<std::size_t>(n)];
    return special.contains(n) ? bytes : written(bytes);
  };
  std::string vocabulary;  // in the order of numbers, which a JSON object does not keep
  for (int64_t n = 0; n < vocab_size(); ++n) {
    const nlohmann::json token = as_written(n);
    vocabulary += n == 0 ? "{" : ",";
    vocabulary += token.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ":" + std::to_string(n);
  }
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : merge_order_) merges += as_written(left) + " " + as_written(right) + "\n";
  const fs::path folder(folder_name);
  fs::create_directories(folder);
  io::write_file(folder / "vocab.json", vocabulary + "}");
  io::write_file(folder / "merges.txt", merges);
}

void BytePairTokenizer::encode_word(std::string_view word, std::vector<int64_t>& out) const {
  // A list of tokens linked by position, and its known pairs by rank; a pair whose tokens have changed since is stale.
  struct Part {
    int64_t token;
    std::size_t previous, next;
  };
  struct Candidate {
    int64_t rank;
    std::size_t at;
    std::uint64_t pair;
    bool operator>(const Candidate& o) const { return std::tie(rank, at) > std::tie(o.rank, o.at); }
  };
  const std::size_t end = word.size();
  std::vector<Part> parts(end);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  for (std::size_t i = 0; i < end; ++i)
    parts[i] = {byte_numbers_[static_cast<unsigned char>(word[i])], i == 0 ? end : i - 1, i + 1};
  const auto consider = [&](std::size_t at) {
    if (at == end || parts[at].next == end) return;
    const std::uint64_t pair = pair_of(parts[at].token, parts[parts[at].next].token);
    if (const Merge* merge = merge_of(pair)) candidates.push({merge->rank, at, pair});
  };
  constexpr int64_t joined = -1;  // the token of a part that was joined to the one before it
  for (std::size_t i = 0; i < end; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Part& left = parts[best.at];
    if (left.token == joined || left.next == end || pair_of(left.token, parts[left.next].token) != best.pair) continue;
    left.token = merge_of(best.pair)->result;
    Part& right = parts[left.next];
    right.token = joined;
    left.next = right.next;
    if (left.next != end) parts[left.next].previous = best.at;
    consider(left.previous);
    consider(best.at);
  }
  for (std::size_t i = 0; i < end; i = parts[i].next) out.push_back(parts[i].token);
}

std::vector<int64_t> BytePairTokenizer::encode_ordinary(std::string_view text) const {
  std::vector<int64_t> out;
  detail::split_words(text, [&](std::string_view word) { encode_word(word, out); });
  return out;
}

std::vector<int64_t> BytePairTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> out;
  while (!text.empty()) {
    // The first special token; the longest of those that begin there.
    std::size_t at = text.size(), length = 0;
    int64_t number = -1;
    for (const int64_t s : specials_) {
      const std::string& special = token(s);
      const std::size_t found = text.find(special);
      if (found < at || (found == at && number >= 0 && special.size() > length))
        at = found, length = special.size(), number = s;
    }
    const auto before = encode_ordinary(text.substr(0, at));
    out.insert(out.end(), before.begin(), before.end());
    if (number >= 0) out.push_back(number);
    text.remove_prefix(at + length);
  }
  return out;
}

std::string BytePairTokenizer::decode(std::span<const int64_t> numbers) const {
  std::string out;
  for (const int64_t n : numbers) out += token(n);
  return out;
}

const std::string& BytePairTokenizer::token(int64_t number) const {
  if (number < 0 || number >= vocab_size()) {
    throw IndexError(
        fmt::format("[byte_pair] token {} does not exist: there are {}, counted from 0.", number, vocab_size()));
  }
  return tokens_[static_cast<std::size_t>(number)];
}

int64_t BytePairTokenizer::special_token(std::string_view token) const {
  for (const int64_t s : specials_)
    if (tokens_[static_cast<std::size_t>(s)] == token) return s;
  throw ValueError(fmt::format("[byte_pair] \"{}\" is none of the {} special tokens.", token, specials_.size()));
}

}  // namespace levin::data
