#pragma once
// Text datasets: tokenizers, vocabularies and samples of token numbers.

#include <levin/data/dataset.h>

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace levin::data {

/// Tokens of a text, in order.
using Tokens = std::vector<std::string>;
/// Splits a text into tokens.
using Tokenizer = std::function<Tokens(std::string_view)>;

/// Splits text into UTF-8 characters. A byte outside of a valid character is a token of its own.
Tokens tokenize_characters(std::string_view text);
/// Splits text into runs of letters, digits and apostrophes and into single other characters without white space, and
/// lowers ASCII: "It's 5, yes" gives "it's", "5", ",", "yes". Bytes from 0x80 on count as letters.
Tokens tokenize_words(std::string_view text);
/// Splits text into bytes.
Tokens tokenize_bytes(std::string_view text);

/// Options of build_vocab, with torchtext's names and defaults.
struct VocabularyOptions {
  int64_t min_freq = 1;                                 ///< a token that occurs less often is left out
  Tokens specials{"<pad>", "<unk>", "<bos>", "<eos>"};  ///< numbered first, whether they occur or not
  int64_t max_tokens = -1;                              ///< specials included; -1: no limit
};

/// Maps tokens to numbers and back.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Numbers the tokens in this order. Throws ValueError if one occurs twice.
  explicit Vocabulary(Tokens tokens);
  /// Number of tokens.
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  /// True if the token has a number.
  bool contains(std::string_view token) const;
  /// Returns the number of a token, or that of "<unk>" if it is unknown. Throws ValueError if there is no "<unk>".
  int64_t operator[](std::string_view token) const;
  /// Returns the token of a number. Throws IndexError for one that is not in use, as does decode().
  const std::string& token(int64_t number) const;
  /// Returns all tokens in the order of their numbers.
  const Tokens& tokens() const { return tokens_; }
  /// Returns the numbers of tokens, as operator[].
  std::vector<int64_t> encode(const Tokens& tokens) const;
  /// Returns the tokens of numbers.
  Tokens decode(std::span<const int64_t> numbers) const;

  /// Writes one token per line, atomically; line ends and backslashes in tokens are written as `\n`, `\r` and `\\`.
  void save(const std::string& path) const;
  /// Reads a file that save() wrote. Throws IoError if it is missing, or has a repeated token or an unknown escape.
  static Vocabulary load(const std::string& path);

 private:
  Tokens tokens_;
  std::unordered_map<std::string, int64_t> numbers_;
};

/// Returns the special tokens, then the tokens of all texts, the most frequent first, equally frequent ones in the
/// order of their bytes.
Vocabulary build_vocab(std::span<const std::string> texts, const Tokenizer& tokenizer,
                       const VocabularyOptions& options = {});

/// Options of TextDataset.
struct TextOptions {
  bool add_bos = false;     ///< begin each text with "<bos>"
  bool add_eos = false;     ///< and end it with "<eos>"
  int64_t max_length = -1;  ///< truncate to this many tokens, the added ones included; -1: no limit
};

/// Texts as token numbers, int64 (T), each with its label, int64 (), if there are labels. Batch them with pad_collate,
/// which returns (B, T) and lengths.
class TextDataset final : public Dataset {
 public:
  /// Throws ValueError if there are labels, but not one for each text.
  TextDataset(std::span<const std::string> texts, std::span<const int64_t> labels, const Tokenizer& tokenizer,
              const Vocabulary& vocabulary, const TextOptions& options = {});
  int64_t size() const override { return static_cast<int64_t>(begins_.size()) - 1; }
  Sample get(int64_t index, Generator& rng) const override;

 private:
  std::vector<int64_t> numbers_, begins_{0}, labels_;
};

/// Samples for language models: sample i is tokens [i * stride, i * stride + block_size) of one long text; its
/// target is the same shifted by one. Both are int64 (block_size).
class TokenBlockDataset final : public Dataset {
 public:
  /// `tokens` is int64 (N), possibly mapped; stride 0 means block_size. Throws ShapeError for another tensor, and
  /// ValueError when N is block_size or less.
  TokenBlockDataset(Tensor tokens, int64_t block_size, int64_t stride = 0);
  int64_t size() const override { return (tokens_.size(0) - block_ - 1) / stride_ + 1; }
  Sample get(int64_t index, Generator& rng) const override;

 private:
  Tensor tokens_;
  int64_t block_, stride_;
};

/// Integer type of the tokens in a file.
enum class TokenType { uint16, uint32 };

/// Writes tokens as raw little-endian integers without a header, as many language-model programs keep them. Throws
/// ValueError for a token that the type cannot hold.
void write_tokens(const std::string& path, std::span<const int64_t> tokens, TokenType type = TokenType::uint16);

/// The samples of TokenBlockDataset from such a file, which is mapped into memory: pages are read on first use, and
/// processes share them. The file must not be shortened while the dataset lives.
class TokenFileDataset final : public Dataset {
 public:
  /// `stride` 0 means block_size. Throws IoError for a file that is missing or holds a part of a token, ValueError when
  /// it has block_size tokens or less.
  TokenFileDataset(const std::string& path, int64_t block_size, int64_t stride = 0, TokenType type = TokenType::uint16);
  int64_t size() const override { return (tokens_ - block_ - 1) / stride_ + 1; }
  Sample get(int64_t index, Generator& rng) const override;
  /// Number of tokens in the file.
  int64_t tokens() const { return tokens_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<void> keeper_;
  int64_t tokens_ = 0, block_, stride_;
  TokenType type_;
};

/// Reads the lines of a text file, without line ends. Throws IoError.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace levin::data
