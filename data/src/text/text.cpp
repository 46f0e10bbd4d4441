#include <levin/core/io.h>
#include <levin/data/text.h>

#include "../datasets/check_index.h"
#include "words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace levin::data {

namespace {

bool is_letter(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || u == '\'';
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string escaped(const std::string& token) {
  std::string out;
  for (const char c : token) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

std::string unescaped(std::string_view line, const std::string& where) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    const char next = ++i < line.size() ? line[i] : ' ';
    if (next != 'n' && next != 'r' && next != '\\') {
      throw IoError(
          fmt::format("[vocabulary] {}: a backslash is followed by '{}'. It is not a saved vocabulary.", where, next));
    }
    out += next == 'n' ? '\n' : next == 'r' ? '\r' : '\\';
  }
  return out;
}

}  // namespace

Tokens tokenize_characters(std::string_view text) {
  Tokens tokens;
  while (!text.empty()) {
    const std::size_t length = detail::character_length(text);
    tokens.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return tokens;
}

Tokens tokenize_words(std::string_view text) {
  Tokens tokens;
  bool in_word = false;
  for (const char c : text) {
    const bool letter = is_letter(c);
    if (!is_space(c)) {
      if (!letter || !in_word) tokens.emplace_back();
      tokens.back() += lower(c);
    }
    in_word = letter;
  }
  return tokens;
}

Tokens tokenize_bytes(std::string_view text) {
  Tokens tokens;
  for (const char c : text) tokens.emplace_back(1, c);
  return tokens;
}

bool Vocabulary::contains(std::string_view token) const { return numbers_.contains(std::string(token)); }

Vocabulary::Vocabulary(Tokens tokens) : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!numbers_.emplace(tokens_[i], static_cast<int64_t>(i)).second) {
      throw ValueError(fmt::format("[vocabulary] the token \"{}\" comes twice.", escaped(tokens_[i])));
    }
  }
}

int64_t Vocabulary::operator[](std::string_view token) const {
  auto found = numbers_.find(std::string(token));
  if (found == numbers_.end()) found = numbers_.find("<unk>");
  if (found == numbers_.end()) {
    throw ValueError(fmt::format("[vocabulary] the token \"{}\" is none of the {}, and there is no \"<unk>\" for it.",
                                 escaped(std::string(token)), size()));
  }
  return found->second;
}

const std::string& Vocabulary::token(int64_t number) const {
  if (number < 0 || number >= size()) {
    throw IndexError(
        fmt::format("[vocabulary] token {} does not exist: there are {}, counted from 0.", number, size()));
  }
  return tokens_[static_cast<std::size_t>(number)];
}

std::vector<int64_t> Vocabulary::encode(const Tokens& tokens) const {
  std::vector<int64_t> numbers;
  for (const std::string& t : tokens) numbers.push_back((*this)[t]);
  return numbers;
}

Tokens Vocabulary::decode(std::span<const int64_t> numbers) const {
  Tokens tokens;
  for (const int64_t n : numbers) tokens.push_back(token(n));
  return tokens;
}

void Vocabulary::save(const std::string& path) const {
  std::string out;
  for (const std::string& t : tokens_) out += escaped(t) + '\n';
  io::write_file(path, out);
}

Vocabulary Vocabulary::load(const std::string& path) {
  Tokens tokens;
  for (const std::string& line : read_lines(path)) tokens.push_back(unescaped(line, path));
  try {
    return Vocabulary(std::move(tokens));
  } catch (const ValueError& e) {
    throw IoError(fmt::format("[vocabulary] {} is not a saved vocabulary: {}", path, e.what()));
  }
}

Vocabulary build_vocab(std::span<const std::string> texts, const Tokenizer& tokenizer, const VocabularyOptions& o) {
  std::map<std::string, int64_t> counts;
  for (const std::string& text : texts) {
    for (std::string& t : tokenizer(text)) ++counts[std::move(t)];
  }
  for (const std::string& special : o.specials) counts.erase(special);
  std::vector<std::pair<std::string, int64_t>> ranked(counts.begin(), counts.end());
  std::erase_if(ranked, [&](const auto& entry) { return entry.second < o.min_freq; });
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Tokens tokens = o.specials;
  for (auto& [token, count] : ranked) {
    if (o.max_tokens >= 0 && static_cast<int64_t>(tokens.size()) >= o.max_tokens) break;
    tokens.push_back(std::move(token));
  }
  return Vocabulary(std::move(tokens));
}

TextDataset::TextDataset(std::span<const std::string> texts, std::span<const int64_t> labels,
                         const Tokenizer& tokenizer, const Vocabulary& vocabulary, const TextOptions& o)
    : labels_(labels.begin(), labels.end()) {
  if (!labels.empty() && labels.size() != texts.size()) {
    throw ValueError(fmt::format("[text_dataset] there are {} labels for {} texts; give one for each, or none.",
                                 labels.size(), texts.size()));
  }
  for (const std::string& text : texts) {
    std::vector<int64_t> numbers = vocabulary.encode(tokenizer(text));
    if (o.add_bos) numbers.insert(numbers.begin(), vocabulary["<bos>"]);
    if (o.add_eos) numbers.push_back(vocabulary["<eos>"]);
    if (o.max_length >= 0) numbers.resize(std::min(numbers.size(), static_cast<std::size_t>(o.max_length)));
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    begins_.push_back(static_cast<int64_t>(numbers_.size()));
  }
}

Sample TextDataset::get(int64_t index, Generator&) const {
  detail::check_index(index, size());
  const auto i = static_cast<std::size_t>(index);
  const std::span<const int64_t> all(numbers_);
  const auto own =
      all.subspan(static_cast<std::size_t>(begins_[i]), static_cast<std::size_t>(begins_[i + 1] - begins_[i]));
  Sample sample{from_data(own, {static_cast<int64_t>(own.size())})};
  if (!labels_.empty()) sample.tensors.push_back(from_data<int64_t>({labels_[i]}, {}));
  return sample;
}

std::vector<std::string> read_lines(const std::string& path) {
  const std::string text = io::read_text(path);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t next = end + 1;
    if (end > at && text[end - 1] == '\r') --end;
    lines.push_back(text.substr(at, end - at));
    at = next;
  }
  return lines;
}

}  // namespace levin::data
