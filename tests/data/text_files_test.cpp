// Byte-pair encoding and token files.
#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/byte_pair.h>
#include <levin/data/dataloader.h>

#include "damage.h"
#include "support/files.h"
#include "support/small_cases.h"

#include <string>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

using Numbers = std::vector<int64_t>;

const std::vector<std::string> kTexts = {"the cat sat on the mat, the cat's hat",
                                         "It's 1234 cats -- they'll sit there!",
                                         "naïve café, “quoted” text — über 第一 数字１２ ½",
                                         "tabs\tand  double  spaces\n\n new line ", "aaaa aaaaa aaa banana bandana"};

BytePairTokenizer trained() {
  return BytePairTokenizer::train(kTexts, {.vocab_size = 300, .special_tokens = {"<|endoftext|>"}});
}

}  // namespace

// The merges and numbers are those of Hugging Face's tokenizers 0.23 (ByteLevelBPETokenizer) for the same texts.
TEST_CASE("a byte-pair tokenizer learns the merges that Hugging Face's learns, and encodes alike") {
  const BytePairTokenizer t = trained();
  CHECK(t.vocab_size() == 276);
  CHECK(t.encode("the cats' hats") == Numbers{261, 266, 83, 7, 221, 72, 258, 83});
  CHECK(t.encode("It's naïve, they'll café!") ==
        Numbers{41, 84, 267, 221, 78, 65, 128, 108, 86, 69, 12, 263, 89, 7, 76, 76, 262, 65, 70, 128, 103, 1});
  CHECK(t.encode("  12 ½ 第一") == Numbers{221, 221, 17, 18, 221, 127, 122, 221, 164, 106, 106, 161, 117, 223});
  CHECK(t.encode("a\n\nb ") == Numbers{65, 199, 199, 66, 221});
  CHECK(t.encode("aaaaaaa") == Numbers{257, 257, 257, 65});
  const TempDir dir;
  t.save(dir.path / "tokenizer");
  CHECK(io::read_text(dir.path / "tokenizer" / "merges.txt") ==
        "#version: 0.2\na a\na t\na n\nh e\nt he\nĠ c\nĠ the\nâ Ģ\nĠ s\nĠc at\n' s\nb an\nn e\nt e\nï ¼\nĠ aa\nĠ âĢ\n"
        "Ġ ban\nan a\n");
}

TEST_CASE("every text decodes to itself, also after the tokenizer was saved and loaded") {
  const TempDir dir;
  const BytePairTokenizer t = trained();
  t.save(dir.path);
  const BytePairTokenizer loaded = BytePairTokenizer::load(dir.path / "vocab.json", dir.path / "merges.txt");
  std::vector<std::string> texts = kTexts;
  texts.insert(texts.end(), {"", " ", "\xff\xfe broken \xe2\x82", std::string("a\0b", 3), "<|endoftext|>"});
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(t.decode(t.encode(text)) == text);
    CHECK(t.decode(t.encode_ordinary(text)) == text);
    CHECK(loaded.encode(text) == t.encode(text));
    CHECK(loaded.decode(t.encode(text)) == text);
  }
}

TEST_CASE("special tokens are one number each, or ordinary text") {
  const BytePairTokenizer t =
      BytePairTokenizer::train(kTexts, {.vocab_size = 300, .special_tokens = {"<|end|>", "<|end|>2"}});
  CHECK(t.special_token("<|end|>2") == 1);
  CHECK(t.encode("a<|end|>b<|end|>2") == Numbers{t.encode("a")[0], 0, t.encode("b")[0], 1});
  CHECK(t.encode_ordinary("<|end|>").size() > 1);
  CHECK(t.decode(t.encode_ordinary("<|end|>")) == "<|end|>");
  CHECK(message_of([&] { t.special_token("<|pad|>"); }) == "[byte_pair] \"<|pad|>\" is none of the 2 special tokens.");
}

TEST_CASE("a word of a million bytes is encoded in reasonable time") {
  const BytePairTokenizer t = trained();
  const std::string text(small_cases() ? 100'000 : 1'000'000, 'a');
  CHECK(t.encode(text).size() == text.size() / 2);
}

TEST_CASE("wrong options and files of a byte-pair tokenizer are refused") {
  CHECK(message_of([] { BytePairTokenizer::train(kTexts, {.vocab_size = 256, .special_tokens = {"<s>"}}); }) ==
        "[byte_pair] vocab_size is 256; 1 special tokens and the 256 bytes need 257.");
  CHECK(message_of([] {
          BytePairTokenizer::train(kTexts, {.special_tokens = {"<s>", "<s>"}});
        }) == "[byte_pair] the special token \"<s>\" is empty or comes twice.");
  const BytePairTokenizer t = trained();
  CHECK(message_of([&] { t.decode(Numbers{276}); }) ==
        "[byte_pair] token 276 does not exist: there are 276, counted from 0.");
  const TempDir dir;
  const auto vocab = dir.path / "vocab.json", merges = dir.path / "merges.txt";
  const auto load = [&] { return message_of([&] { BytePairTokenizer::load(vocab, merges); }); };
  t.save(dir.path);
  io::write_file(merges, std::string("#version: 0.2\na a b\n"));
  CHECK(load() == "[byte_pair] " + merges.string() + ", line 2: \"a a b\" is not two tokens.");
  io::write_file(merges, std::string("q q\n"));
  CHECK(load() == "[byte_pair] " + vocab.string() + " lacks the token \"qq\".");
  io::write_file(vocab, std::string("[1, 2]"));
  CHECK(load() == "[byte_pair] " + vocab.string() + " is not a JSON object of tokens.");
  io::write_file(vocab, std::string("{\"a\": 0, \"b\": 0}"));
  CHECK(load().find("\"b\" has the number 0; 2 tokens are numbered from 0, each once.") != std::string::npos);
}

TEST_CASE("a token file gives the samples of the tokens in memory") {
  const TempDir dir;
  const auto path = dir.path / "tokens.bin";
  Numbers tokens;
  for (int64_t i = 0; i < 103; ++i) tokens.push_back(i * 577 % 65536);
  Generator rng;
  for (const TokenType type : {TokenType::uint16, TokenType::uint32}) {
    write_tokens(path, tokens, type);
    CHECK(std::filesystem::file_size(path) == 103 * (type == TokenType::uint16 ? 2 : 4));
    for (const int64_t stride : {0, 1, 5}) {
      const TokenFileDataset mapped(path, 8, stride, type);
      const TokenBlockDataset memory(from_data(tokens, {103}), 8, stride);
      REQUIRE(mapped.size() == memory.size());
      CHECK(mapped.tokens() == 103);
      for (int64_t i = 0; i < mapped.size(); ++i) {
        const Sample a = mapped.get(i, rng), b = memory.get(i, rng);
        CHECK(a[0].to_vector<int64_t>() == b[0].to_vector<int64_t>());
        CHECK(a[1].to_vector<int64_t>() == b[1].to_vector<int64_t>());
      }
    }
  }
  write_tokens(path, tokens);
  const auto message = message_of([&] { write_tokens(path, Numbers{65536}); });
  CHECK(message == "[write_tokens] token 65536 does not fit: the type holds 0 to 65535. Use TokenType::uint32.");
  DataLoader loader(TokenFileDataset(path, 8), {.batch_size = 3});
  for (const Batch& batch : loader) CHECK(batch[0].sizes() == Shape{3, 8});
}

TEST_CASE("wrong token files are refused") {
  const TempDir dir;
  const auto path = dir.path / "tokens.bin";
  io::write_file(path, std::string("abc"));
  CHECK(message_of([&] { TokenFileDataset(path, 1); }) ==
        "[token_file] " + path.string() + " has 3 bytes, which do not divide into tokens of 2 bytes.");
  write_tokens(path, Numbers{1, 2, 3});
  CHECK(message_of([&] { TokenFileDataset(path, 3); }) ==
        "[token_blocks] 3 tokens make no block of 3 and its successor (stride 3). Use shorter blocks.");
  Generator rng;
  CHECK_THROWS_AS(TokenFileDataset(path, 1).get(2, rng), IndexError);
}
