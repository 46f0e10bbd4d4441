#pragma once
// Metrics of texts: translation and recognition of speech or writing. Texts are split into words at white space.

#include <levin/trainer/metrics/metric.h>

#include <span>
#include <string>
#include <vector>

namespace levin::metrics {

/// Options of BLEUScore, with torchmetrics' names.
struct BLEUScoreOptions {
  std::int64_t n_gram = 4;        ///< longest sequence of words that is compared
  bool smooth = false;            ///< add 1 to the counts of sequences of two or more (Lin and Och, 2004)
  std::vector<double> weights{};  ///< one for each length; empty: equal weights
};

/// BLEU of a corpus (Papineni et al., "BLEU: a method for automatic evaluation of machine translation", 2002), from 0
/// to 1, with torchmetrics' results. Each prediction has one or more references.
class BLEUScore : public Metric {
 public:
  /// Throws ValueError for n_gram below 1 or another number of weights.
  explicit BLEUScore(const BLEUScoreOptions& options = {});
  /// Throws ValueError unless there are references for each prediction.
  void update(std::span<const std::string> preds, std::span<const std::vector<std::string>> target);
  /// Adds one text.
  void update(const std::string& pred, const std::vector<std::string>& target);

 private:
  void add(const Tensor& counts, const Tensor& lengths) override;
  Tensor result() const override;
  BLEUScoreOptions options_;
};

/// Edits (insertions, deletions, substitutions) that lead from the predictions to the targets over the number of units
/// in the targets.
class EditRate : public Metric {
 public:
  /// Throws ValueError for different numbers of texts.
  void update(std::span<const std::string> preds, std::span<const std::string> target);
  /// Adds one text.
  void update(const std::string& pred, const std::string& target);

 protected:
  /// `name` is the prefix of error messages.
  explicit EditRate(const char* name);

 private:
  /// The units of a text that edits change.
  virtual std::vector<std::string> split(const std::string& text) const = 0;
  void add(const Tensor& errors, const Tensor& total) override;
  Tensor result() const override;
};

/// Edits of words over words. (torchmetrics.WordErrorRate)
class WordErrorRate : public EditRate {
 public:
  WordErrorRate() : EditRate("WordErrorRate") {}

 private:
  std::vector<std::string> split(const std::string& text) const override;
};

/// Edits of UTF-8 characters over characters. (torchmetrics.CharErrorRate)
class CharErrorRate : public EditRate {
 public:
  CharErrorRate() : EditRate("CharErrorRate") {}

 private:
  std::vector<std::string> split(const std::string& text) const override;
};

}  // namespace levin::metrics
