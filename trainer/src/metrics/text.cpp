#include <levin/trainer/metrics/text.h>

#include <levin/autograd/ops.h>
#include <levin/data/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

namespace levin::metrics {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// How often each sequence of `n` words occurs.
std::map<Words, std::int64_t> count_sequences(const Words& words, std::size_t n) {
  std::map<Words, std::int64_t> counts;
  for (auto first = words.begin(); words.end() - first >= static_cast<std::ptrdiff_t>(n); ++first)
    ++counts[Words(first, first + static_cast<std::ptrdiff_t>(n))];
  return counts;
}

/// Number of a prediction's sequences that occur in a reference as well, each at most as often as in one reference.
std::int64_t count_matches(const Words& pred, const std::vector<Words>& references, std::size_t n) {
  std::map<Words, std::int64_t> most;
  for (const Words& reference : references)
    for (const auto& [sequence, count] : count_sequences(reference, n))
      most[sequence] = std::max(most[sequence], count);
  std::int64_t matches = 0;
  for (const auto& [sequence, count] : count_sequences(pred, n))
    if (const auto found = most.find(sequence); found != most.end()) matches += std::min(count, found->second);
  return matches;
}

/// Levenshtein's distance.
std::int64_t edits_between(const Words& a, const Words& b) {
  std::vector<std::int64_t> row(b.size() + 1);  // distances of a's first i units to b's first 0, 1, ... units
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t diagonal = std::exchange(row[0], row[0] + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

Tensor zero_count(const Shape& sizes) { return zeros(sizes, {.dtype = kInt64}); }

void check_counts(const char* name, std::size_t preds, std::size_t targets) {
  if (preds != targets)
    throw ValueError(fmt::format("[{}] there are {} predictions and {} targets. Give as many.", name, preds, targets));
}

}  // namespace

BLEUScore::BLEUScore(const BLEUScoreOptions& options) : Metric("BLEUScore"), options_(options) {
  if (options.n_gram < 1) throw ValueError(fmt::format("[BLEUScore] n_gram is {}. Give 1 or more.", options.n_gram));
  if (options_.weights.empty())
    options_.weights.assign(static_cast<std::size_t>(options.n_gram), 1.0 / static_cast<double>(options.n_gram));
  if (static_cast<std::int64_t>(options_.weights.size()) != options.n_gram)
    throw ValueError(fmt::format("[BLEUScore] there are {} weights for {} lengths. Give one for each.",
                                 options_.weights.size(), options.n_gram));
  add_state("matches", zero_count({options.n_gram}));
  add_state("possible", zero_count({options.n_gram}));
  add_state("preds_len", zero_count({}));
  add_state("target_len", zero_count({}));
}

void BLEUScore::update(std::span<const std::string> preds, std::span<const std::vector<std::string>> target) {
  check_counts(name(), preds.size(), target.size());
  std::vector<std::int64_t> counts(2 * options_.weights.size()), lengths(2);
  for (std::size_t i = 0; i < preds.size(); ++i) {
    if (target[i].empty()) throw ValueError(fmt::format("[BLEUScore] prediction {} has no reference. Give one.", i));
    const Words pred = words_of(preds[i]);
    std::vector<Words> references;
    for (const std::string& text : target[i]) references.push_back(words_of(text));
    const auto length = std::ssize(pred);
    const auto distance = [&](const Words& w) { return std::abs(std::ssize(w) - length); };
    lengths[0] += length;
    lengths[1] += std::ssize(*std::ranges::min_element(references, {}, distance));
    for (std::size_t n = 1; n <= options_.weights.size(); ++n) {
      counts[n - 1] += count_matches(pred, references, n);
      counts[options_.weights.size() + n - 1] += std::max<std::int64_t>(0, length - static_cast<std::int64_t>(n) + 1);
    }
  }
  Metric::update(from_data(counts, {2, options_.n_gram}), from_data(lengths, {2}));
}

void BLEUScore::update(const std::string& pred, const std::vector<std::string>& target) {
  update(std::span(&pred, 1), std::span(&target, 1));
}

void BLEUScore::add(const Tensor& counts, const Tensor& lengths) {
  gather("matches", counts.select(0, 0));
  gather("possible", counts.select(0, 1));
  gather("preds_len", lengths.select(0, 0));
  gather("target_len", lengths.select(0, 1));
}

Tensor BLEUScore::result() const {
  const auto matches = state("matches").to_vector<double>(), possible = state("possible").to_vector<double>();
  const double length = state("preds_len").item<double>(), wanted = state("target_len").item<double>();
  double score = 0;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] == 0) return tensor(0.0, {.dtype = kFloat64});
    const double extra = options_.smooth && i > 0 ? 1 : 0;
    score += options_.weights[i] * std::log((matches[i] + extra) / (possible[i] + extra));
  }
  const double brevity = length > wanted ? 0 : 1 - wanted / length;
  return tensor(std::exp(score + brevity), {.dtype = kFloat64});
}

EditRate::EditRate(const char* name) : Metric(name) {
  add_state("errors", zero_count({}));
  add_state("total", zero_count({}));
}

void EditRate::update(std::span<const std::string> preds, std::span<const std::string> target) {
  check_counts(name(), preds.size(), target.size());
  std::int64_t errors = 0, total = 0;
  for (std::size_t i = 0; i < preds.size(); ++i) {
    const Words wanted = split(target[i]);
    errors += edits_between(split(preds[i]), wanted);
    total += std::ssize(wanted);
  }
  Metric::update(tensor(errors), tensor(total));
}

void EditRate::update(const std::string& pred, const std::string& target) {
  update(std::span(&pred, 1), std::span(&target, 1));
}

void EditRate::add(const Tensor& errors, const Tensor& total) {
  gather("errors", errors);
  gather("total", total);
}

Tensor EditRate::result() const { return state("errors").to(kFloat64) / state("total").to(kFloat64); }

Words WordErrorRate::split(const std::string& text) const { return words_of(text); }
Words CharErrorRate::split(const std::string& text) const { return data::tokenize_characters(text); }

}  // namespace levin::metrics
