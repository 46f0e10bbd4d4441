// Learns the merges of a byte-pair tokenizer. The counts of pairs are kept up to date word by word; only the words that
// hold the merged pair change.

#include <levin/data/byte_pair.h>

#include "words.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace levin::data {

namespace {

using Pair = std::pair<int64_t, int64_t>;

struct Word {
  std::vector<int64_t> tokens;
  int64_t count;
};

struct PairHash {
  std::size_t operator()(const Pair& p) const {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(p.first) * 0x9e3779b97f4a7c15u +
                                    static_cast<std::uint64_t>(p.second));
  }
};

/// The pairs of neighbours in all words: how often they occur, and in which words they may.
class PairTable {
 public:
  struct Ranked {
    int64_t count;
    Pair pair;
    bool operator<(const Ranked& o) const { return count != o.count ? count < o.count : pair > o.pair; }
  };

  void add(const Word& word, std::size_t index, int64_t sign) {
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const Pair pair{word.tokens[i], word.tokens[i + 1]};
      counts_[pair] += sign * word.count;
      if (sign > 0 && words_[pair].insert(index).second) touched_.push_back(pair);
    }
  }
  /// Puts the pairs that were added since the last call among those that best() chooses from.
  void rank_added() {
    for (const Pair& p : touched_) ranked_.push({counts_[p], p});
    touched_.clear();
  }
  /// Returns the most frequent pair; of equally frequent ones that with the lowest numbers. Its count is 0 if none is
  /// left.
  Ranked best() {
    while (!ranked_.empty()) {
      const Ranked top = ranked_.top();
      const int64_t count = counts_[top.pair];
      if (count == top.count) return top;
      ranked_.pop();
      if (count > 0) ranked_.push({count, top.pair});
    }
    return {0, {}};
  }
  std::vector<std::size_t> take_words(const Pair& pair) {
    const auto node = words_.extract(pair);
    return {node.mapped().begin(), node.mapped().end()};
  }

 private:
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  std::unordered_map<Pair, std::unordered_set<std::size_t>, PairHash> words_;
  std::vector<Pair> touched_;
  std::priority_queue<Ranked> ranked_;
};

void join(std::vector<int64_t>& tokens, const Pair& pair, int64_t result) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tokens.size(); ++kept) {
    const bool here = i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second;
    tokens[kept] = here ? result : tokens[i];
    i += here ? 2 : 1;
  }
  tokens.resize(kept);
}

/// The different words of all texts, as bytes.
std::unordered_map<std::string, int64_t> count_words(std::span<const std::string> texts) {
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string& text : texts)
    detail::split_words(text, [&](std::string_view word) { ++counts[std::string(word)]; });
  return counts;
}

}  // namespace

BytePairTokenizer BytePairTokenizer::train(std::span<const std::string> texts, const BytePairOptions& o) {
  BytePairTokenizer out;
  if (o.vocab_size < static_cast<int64_t>(o.special_tokens.size()) + 256) {
    throw ValueError(fmt::format("[byte_pair] vocab_size is {}; {} special tokens and the 256 bytes need {}.",
                                 o.vocab_size, o.special_tokens.size(), o.special_tokens.size() + 256));
  }
  for (const std::string& special : o.special_tokens) {
    if (special.empty() || std::ranges::count(o.special_tokens, special) > 1)
      throw ValueError(fmt::format("[byte_pair] the special token \"{}\" is empty or comes twice.", special));
    out.specials_.push_back(out.vocab_size());
    out.tokens_.push_back(special);
  }
  // The bytes in the order of the characters that stand for them in the files: printable ones first.
  const auto printable = [](unsigned b) { return (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad); };
  for (const bool first : {true, false}) {
    for (unsigned b = 0; b < 256; ++b) {
      if (printable(b) != first) continue;
      out.byte_numbers_[b] = out.vocab_size();
      out.tokens_.emplace_back(1, static_cast<char>(b));
    }
  }
  std::vector<Word> words;
  PairTable pairs;
  for (const auto& [text, count] : count_words(texts)) {
    words.push_back({{}, count});
    for (const char c : text) words.back().tokens.push_back(out.byte_numbers_[static_cast<unsigned char>(c)]);
    pairs.add(words.back(), words.size() - 1, 1);
  }
  pairs.rank_added();
  std::unordered_map<std::string, int64_t> joined;  // two pairs may make the same token
  while (out.vocab_size() < o.vocab_size) {
    const auto best = pairs.best();
    if (best.count < std::max<int64_t>(o.min_frequency, 1)) break;
    const auto& [left, right] = best.pair;
    std::string bytes = out.token(left) + out.token(right);
    const int64_t result = joined.try_emplace(bytes, out.vocab_size()).first->second;
    if (result == out.vocab_size()) out.tokens_.push_back(std::move(bytes));
    if (out.learn(left, right, result)) out.merge_order_.push_back(best.pair);
    for (const std::size_t w : pairs.take_words(best.pair)) {
      pairs.add(words[w], w, -1);
      join(words[w].tokens, best.pair, result);
      pairs.add(words[w], w, 1);
    }
    pairs.rank_added();
  }
  return out;
}

}  // namespace levin::data
