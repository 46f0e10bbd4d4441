#pragma once
// Text as numbers: tokens, a vocabulary, samples of token numbers.

#include <levin/data/dataset.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace levin::data {

using Tokens = std::vector<std::string>;
using Tokenizer = std::function<Tokens(std::string_view)>;

/// UTF-8 characters. A byte that is no part of one stands for itself.
Tokens tokenize_characters(std::string_view text);
/// Runs of letters, digits and apostrophes, and every other character that is no white space, in lower case (ASCII):
/// "It's 5, yes" gives "it's", "5", ",", "yes". Bytes from 0x80 on count as letters.
Tokens tokenize_words(std::string_view text);
/// Bytes.
Tokens tokenize_bytes(std::string_view text);

/// How build_vocab chooses; torchtext's names and defaults.
struct VocabularyOptions {
  int64_t min_freq = 1;
  Tokens specials{"<pad>", "<unk>", "<bos>", "<eos>"};  ///< numbered first, whether they occur or not
  int64_t max_tokens = -1;                              ///< specials included; -1: no limit
};

/// Tokens and their numbers.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Numbers them in this order. Throws ValueError when one comes twice.
  explicit Vocabulary(Tokens tokens);
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  bool contains(std::string_view token) const;
  /// The token's number; that of "<unk>" for one that is unknown. Throws ValueError when there is no "<unk>" either.
  int64_t operator[](std::string_view token) const;
  /// Throws IndexError.
  const std::string& token(int64_t number) const;
  const Tokens& tokens() const { return tokens_; }
  std::vector<int64_t> encode(const Tokens& tokens) const;
  Tokens decode(std::span<const int64_t> numbers) const;

  /// One token a line; line ends and backslashes in tokens are written as \n, \r and \\.
  void save(const std::filesystem::path& path) const;
  /// Throws IoError for a file that holds a token twice or another backslash.
  static Vocabulary load(const std::filesystem::path& path);

 private:
  Tokens tokens_;
  std::unordered_map<std::string, int64_t> numbers_;
};

/// The tokens of all texts, the most frequent first, those of one frequency in alphabetic order.
Vocabulary build_vocab(std::span<const std::string> texts, const Tokenizer& tokenizer,
                       const VocabularyOptions& options = {});

struct TextOptions {
  bool add_bos = false;     ///< begin each text with "<bos>"
  bool add_eos = false;     ///< and end it with "<eos>"
  int64_t max_length = -1;  ///< cut after so many tokens, the added ones included; -1: no limit
};

/// Texts as token numbers int64 (T), each with its label int64 () if there are labels. Batch them with pad_collate,
/// which gives (B, T) and lengths.
class TextDataset final : public Dataset {
 public:
  /// Throws ValueError when there are labels, but not one for each text.
  TextDataset(std::span<const std::string> texts, std::span<const int64_t> labels, const Tokenizer& tokenizer,
              const Vocabulary& vocabulary, const TextOptions& options = {});
  int64_t size() const override { return static_cast<int64_t>(begins_.size()) - 1; }
  Sample get(int64_t index, Generator& rng) const override;

 private:
  std::vector<int64_t> numbers_, begins_{0}, labels_;
};

/// For language models: sample i is tokens [i * stride, i * stride + block_size) of one long text, and the same shifted
/// by one as target, both int64 (block_size).
class TokenBlockDataset final : public Dataset {
 public:
  /// `tokens` is int64 (N), possibly mapped; stride 0 means block_size. Throws ValueError when N is block_size or less.
  TokenBlockDataset(Tensor tokens, int64_t block_size, int64_t stride = 0);
  int64_t size() const override { return (tokens_.size(0) - block_ - 1) / stride_ + 1; }
  Sample get(int64_t index, Generator& rng) const override;

 private:
  Tensor tokens_;
  int64_t block_, stride_;
};

/// The lines of a text file, without their ends. Throws IoError.
std::vector<std::string> read_lines(const std::filesystem::path& path);

}  // namespace levin::data
