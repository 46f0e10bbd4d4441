#include <levin/trainer/metrics.h>

#include "support/comparison.h"
#include "trainer/toy.h"

#include <string>
#include <vector>

using namespace levin;
using namespace levin::test;

namespace {

using Texts = std::vector<std::string>;

const Texts kPreds = {"the cat is on the mat now", "there is a big tree near the old house", "hello"};
const std::vector<Texts> kReferences = {
    {"there is a cat on the mat", "a cat is on the mat"},
    {"there is one big tree near the house", "a big tree is near the old house here"},
    {"hello world", "hello"},
};

double bleu(const metrics::BLEUScoreOptions& options) {
  metrics::BLEUScore m(options);
  m.update(kPreds, kReferences);
  return m.value();
}

}  // namespace

// Values of torchmetrics 1.9, in single precision.
TEST_CASE("BLEU equals torchmetrics'") {
  CHECK(bleu({}) == approx(0.655720770, {.relative = 1e-7}));
  CHECK(bleu({.smooth = true}) == approx(0.686518431, {.relative = 1e-7}));
  CHECK(bleu({.n_gram = 2}) == approx(0.832632780, {.relative = 1e-7}));
  CHECK(bleu({.n_gram = 3, .weights = {0.5, 0.3, 0.2}}) == approx(0.805716574, {.relative = 1e-7}));
  metrics::BLEUScore brief;
  brief.update("a b c d e", {"a b c d e f g"});
  CHECK(brief.value() == approx(0.670320034, {.relative = 1e-7}));
  metrics::BLEUScore wrong;
  wrong.update("x y z", {"a b c"});
  CHECK(wrong.value() == 0);
}

TEST_CASE("error rates of words and characters equal torchmetrics'") {
  metrics::WordErrorRate words;
  words.update(Texts{"this is the prediction", "there is an other sample"},
               Texts{"this is the reference", "there is another one"});
  CHECK(words.value() == 0.5);
  metrics::CharErrorRate characters;
  characters.update("this is the prediction", "this is the reference");
  characters.update("über", "uber");
  CHECK(characters.value() == 0.36);
}

TEST_CASE("metrics of texts add up over batches, shards and checkpoints") {
  metrics::BLEUScore whole, first, second;
  whole.update(kPreds, kReferences);
  first.update(kPreds[0], kReferences[0]);
  for (std::size_t i = 1; i < 3; ++i) second.update(kPreds[i], kReferences[i]);
  first.merge(second);
  CHECK(first.value() == whole.value());
  metrics::BLEUScore loaded;
  loaded.load_state_dict(whole.state_dict());
  CHECK(loaded.value() == whole.value());
}

TEST_CASE("wrong texts are refused") {
  metrics::BLEUScore m;
  CHECK(contains(message_of<ValueError>([&] { m.update("a", Texts{}); }), "prediction 0 has no reference. Give one."));
  CHECK(contains(message_of<ValueError>([&] { m.update(kPreds, std::span(kReferences).first(2)); }),
                 "there are 3 predictions and 2 targets. Give as many."));
  CHECK(contains(message_of<ValueError>([] { metrics::BLEUScore({.n_gram = 0}); }), "n_gram is 0. Give 1 or more."));
  CHECK(contains(message_of<ValueError>([] { metrics::BLEUScore({.weights = {1.0}}); }),
                 "there are 1 weights for 4 lengths. Give one for each."));
}
