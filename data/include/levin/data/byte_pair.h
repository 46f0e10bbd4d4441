#pragma once
// Byte-pair encoding of text, with GPT-2's rules and files.

#include <levin/data/text.h>

#include <array>
#include <memory>
#include <span>

namespace levin::data {

/// Options of BytePairTokenizer::train, with the names and defaults of Hugging Face's ByteLevelBPETokenizer.
struct BytePairOptions {
  int64_t vocab_size = 30000;  ///< special tokens and the 256 bytes included
  int64_t min_frequency = 2;   ///< a pair that occurs less often is not merged
  Tokens special_tokens{};     ///< numbered first
};

/// Splits text into words, and words into tokens of bytes, by joining the pair of neighbours that was learned first
/// until no known pair is left (Sennrich et al., "Neural machine translation of rare words with subword units", 2016;
/// on bytes as in Radford et al., "Language models are unsupervised multitask learners", 2019). Every text can be
/// encoded and decodes to itself, invalid UTF-8 included.
class BytePairTokenizer {
 public:
  /// Learns the merges from texts. Of pairs that are equally frequent, the one with the lower numbers is merged first.
  /// Throws ValueError if vocab_size is less than the special tokens and 256.
  static BytePairTokenizer train(std::span<const std::string> texts, const BytePairOptions& options = {});
  /// Reads GPT-2's two files, which Hugging Face's tokenizers write as well. A token of vocab.json that is neither a
  /// byte nor the result of a merge is special. Throws IoError for files that do not fit together.
  static BytePairTokenizer load(const std::string& vocab_json, const std::string& merges_txt);
  /// Writes vocab.json and merges.txt into a folder, which is created if necessary.
  void save(const std::string& folder) const;

  /// Returns the numbers of a text's tokens. A special token that occurs in the text becomes its own number.
  std::vector<int64_t> encode(std::string_view text) const;
  /// The same, but special tokens are text like any other, as in texts of unknown origin.
  std::vector<int64_t> encode_ordinary(std::string_view text) const;
  /// Returns the bytes of tokens. Throws IndexError for a number that is not in use.
  std::string decode(std::span<const int64_t> numbers) const;

  /// Number of tokens, special ones included.
  int64_t vocab_size() const { return static_cast<int64_t>(tokens_.size()); }
  /// Returns the bytes of a token. Throws IndexError for a number that is not in use.
  const std::string& token(int64_t number) const;
  /// Returns the number of a special token. Throws ValueError for a text that is none.
  int64_t special_token(std::string_view token) const;

 private:
  struct Merges;  // an unordered_map, of which one type costs the headers 2 MB of the compiler's memory
  struct Merge {
    int64_t rank, result;  // order of learning; number of the joined token
  };
  static std::uint64_t pair_of(int64_t left, int64_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
  }
  bool learn(int64_t left, int64_t right, int64_t result);  // false if the pair is known
  const Merge* merge_of(std::uint64_t pair) const;          // null for a pair that is not merged
  void encode_word(std::string_view word, std::vector<int64_t>& out) const;

  std::vector<std::string> tokens_;  // the bytes of each token
  std::array<int64_t, 256> byte_numbers_{};
  std::shared_ptr<Merges> merges_;  // not changed once the tokenizer is complete
  std::vector<std::pair<int64_t, int64_t>> merge_order_;
  std::vector<int64_t> specials_;
};

}  // namespace levin::data
