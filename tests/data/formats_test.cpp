#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/cifar.h>
#include <levin/data/csv.h>
#include <levin/data/text.h>

#include "damage.h"
#include "support/files.h"

#include <cmath>
#include <string>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;
namespace fs = std::filesystem;

namespace {

/// `n` rows with `labels` in front of each; pixel i of image k is (i + k) mod 256.
std::string cifar_rows(int n, const std::string& labels) {
  std::string out;
  for (int k = 0; k < n; ++k) {
    out += labels;
    for (int i = 0; i < 3072; ++i) out += static_cast<char>((i + k) % 256);
  }
  return out;
}

}  // namespace

TEST_CASE("CIFAR-10's binary files") {
  const TempDir dir;
  for (int i = 1; i <= 5; ++i) {
    io::write_file(dir.path / ("data_batch_" + std::to_string(i) + ".bin"),
                   cifar_rows(2, std::string(1, static_cast<char>(i))));
  }
  io::write_file(dir.path / "test_batch.bin", cifar_rows(3, std::string(1, '\x09')));
  const Cifar10 train("train", dir.path), test("test", dir.path);
  CHECK(train.size() == 10);
  CHECK(train.labels().to_vector<int>() == std::vector<int>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  const auto [x, y] = test.all();
  CHECK(x.sizes() == Shape{3, 3, 32, 32});
  CHECK(y.to_vector<int>() == std::vector<int>{9, 9, 9});
  const float expected = (static_cast<float>((2048 + 5 + 1) % 256) / 255.f - 0.4465f) / 0.2616f;
  CHECK(x.data<float>()[3072 + 2048 + 5] == expected);

  const fs::path file = dir.path / "test_batch.bin";
  io::write_file(file, cifar_rows(1, std::string(1, '\x0a')));
  CHECK(message_of([&] { Cifar10("test", dir.path); }) ==
        "[cifar10] " + file.string() + ": label 10 of image 0 is out of range; the classes are 0 to 9.");
  io::write_file(file, cifar_rows(1, "x").substr(1));
  CHECK(message_of([&] { Cifar10("test", dir.path); }).find("3072 bytes do not divide into rows of 3073") !=
        std::string::npos);
  io::write_file(file, std::string());
  CHECK_THROWS_AS(Cifar10("test", dir.path), IoError);
  fs::remove(file);
  CHECK(message_of([&] { Cifar10("test", dir.path); }).find("test_batch.bin was not found. Unpack") !=
        std::string::npos);
  CHECK_THROWS_AS(Cifar10("val", dir.path), ValueError);
}

TEST_CASE("CIFAR-100 has two labels, and may lie in its own folder") {
  const TempDir dir;
  fs::create_directory(dir.path / "cifar-100-binary");
  io::write_file(dir.path / "cifar-100-binary" / "train.bin", cifar_rows(2, std::string("\x13\x63", 2)));
  CHECK(Cifar100("train", dir.path).labels().to_vector<int>() == std::vector<int>{99, 99});
  CHECK(Cifar100("train", dir.path, {}, true).labels().to_vector<int>() == std::vector<int>{19, 19});
  io::write_file(dir.path / "cifar-100-binary" / "train.bin", cifar_rows(2, std::string("\x14\x63", 2)));
  CHECK_THROWS_AS(Cifar100("train", dir.path, {}, true), IoError);
}

TEST_CASE("CSV tables with quotes, comments and any line ends") {
  const CsvTable t = parse_csv(
      "\xef\xbb\xbf"
      "name, age ,note\r\nAnn,3,\"a, \"\"b\"\"\nc\"\r\n\r\nBob,+4.5,\nCy, 1e2 ,x");
  CHECK(t.columns() == std::vector<std::string>{"name", "age", "note"});
  CHECK(t.rows() == 3);
  CHECK(t.text("note") == std::vector<std::string>{"a, \"b\"\nc", "", "x"});
  CHECK(t.numbers("age").to_vector<double>() == std::vector<double>{3, 4.5, 100});
  std::vector<std::string> classes;
  const CsvTable words = parse_csv("#c\nred;1\ngreen;2\nred;\n", {.delimiter = ';', .header = false, .comment = '#'});
  CHECK(words.classes("0", &classes).to_vector<int>() == std::vector<int>{1, 0, 1});
  CHECK(classes == std::vector<std::string>{"green", "red"});
  CHECK(std::isnan(words.numbers("1").to_vector<double>()[2]));
  CHECK(words.matrix({"1", "1"}).sizes() == Shape{3, 2});
  CHECK(parse_csv("a\n9007199254740993\n").numbers("a", kInt64).item<int64_t>() == 9007199254740993);
}

TEST_CASE("malformed CSV is refused with its line") {
  const auto error = [](std::string_view text) { return message_of([&] { parse_csv(text, {}, "t.csv"); }); };
  CHECK(error("") == "[csv] t.csv: it has no rows.");
  CHECK(error("a,b\n1,2\n\"x\ny\",3\n4\n") == "[csv] t.csv, line 5: it has 1 cells, the table has 2 columns.");
  CHECK(error("a,b\n1,\"2\n") == "[csv] t.csv, line 2: a quote is opened and never closed.");
  CHECK(error("a\n\"1\"2\n").find("line 2: text follows a closing quote") != std::string::npos);
  CHECK(error("a,a\n") == "[csv] t.csv, line 1: the column \"a\" comes twice.");
  const CsvTable t = parse_csv("a,b\n1,x\n,2\n", {}, "t.csv");
  CHECK(message_of([&] { t.numbers("b"); }) == "[csv] t.csv, line 2, column \"b\": \"x\" is not a finite number.");
  CHECK(message_of([&] { t.numbers("a", kInt64); }) ==
        "[csv] t.csv, line 3, column \"a\": \"\" is not a whole number.");
  CHECK(message_of([&] { t.numbers("c"); }) == "[csv] t.csv has no column \"c\"; it has a, b.");
  CHECK_THROWS_AS(t.numbers("a", kInt32), DTypeError);
  damage("a,b\n1,\"2\"\n3,4\n", [](const std::string& text) { parse_csv(text).numbers("a"); });
}

TEST_CASE("a CSV file as a dataset") {
  const TempDir dir;
  const fs::path file = dir.path / "iris.csv";
  io::write_file(file, std::string("w,h,kind\n1,2,b\n3,4,a\n"));
  const TensorDataset data = csv_dataset(file);
  const Batch all = data.all();
  CHECK(all[0].sizes() == Shape{2, 2});
  CHECK(all[0].dtype() == kFloat32);
  CHECK(all[1].to_vector<int>() == std::vector<int>{1, 0});
  const TensorDataset height = csv_dataset(file, {.target = "h", .features = {"w"}, .regression = true});
  CHECK(height.all()[1].to_vector<float>() == std::vector<float>{2, 4});
  io::write_file(file, std::string("w,h,kind\n"));
  CHECK_THROWS_AS(csv_dataset(file), IoError);
  CHECK_THROWS_AS(csv_dataset(dir.path / "none.csv"), IoError);
}

TEST_CASE("tokens: characters, words, bytes") {
  CHECK(tokenize_characters("aé€\U0001F600\xff") == Tokens{"a", "é", "€", "\U0001F600", "\xff"});
  CHECK(tokenize_characters("\xe2\x82") == Tokens{"\xe2", "\x82"});
  CHECK(tokenize_words("It's 5, YES…no\n") == Tokens{"it's", "5", ",", "yes…no"});
  CHECK(tokenize_words("  ").empty());
  CHECK(tokenize_bytes("é") == Tokens{"\xc3", "\xa9"});
}

TEST_CASE("a vocabulary counts tokens, numbers them and is saved") {
  const std::vector<std::string> texts{"b a a", "c a b <pad>", "line\\ \n"};
  const auto by_space = [](std::string_view text) {
    Tokens out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      out.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  };
  const Vocabulary v = build_vocab(texts, by_space);
  CHECK(v.tokens() == Tokens{"<pad>", "<unk>", "<bos>", "<eos>", "a", "b", "\n", "c", "line\\"});
  CHECK(v["a"] == 4);
  CHECK(v["zebra"] == 1);
  CHECK(v.decode(v.encode({"b", "c"})) == Tokens{"b", "c"});
  CHECK_THROWS_AS(v.token(9), IndexError);
  CHECK(build_vocab(texts, by_space, {.min_freq = 2}).size() == 6);
  CHECK(build_vocab(texts, by_space, {.specials = {}, .max_tokens = 1}).tokens() == Tokens{"a"});
  CHECK_THROWS_AS(Vocabulary({"a", "a"}), ValueError);
  CHECK_THROWS_AS(Vocabulary({"a"})["b"], ValueError);

  const TempDir dir;
  const fs::path file = dir.path / "vocab.txt";
  v.save(file);
  CHECK(Vocabulary::load(file).tokens() == v.tokens());
  io::write_file(file, std::string("a\nb\na\n"));
  CHECK(message_of([&] { Vocabulary::load(file); }).find("\"a\" comes twice") != std::string::npos);
  io::write_file(file, std::string("a\\x\n"));
  CHECK_THROWS_AS(Vocabulary::load(file), IoError);
}

TEST_CASE("texts as samples, and one long text as blocks") {
  const Vocabulary v(Tokens{"<pad>", "<unk>", "<bos>", "<eos>", "a", "b"});
  const std::vector<std::string> texts{"ab", "", "baab"};
  const std::vector<int64_t> labels{1, 0, 1};
  const TextDataset data(texts, labels, tokenize_characters, v, {.add_bos = true, .add_eos = true, .max_length = 5});
  Generator rng;
  CHECK(data.size() == 3);
  CHECK(data.get(0, rng)[0].to_vector<int>() == std::vector<int>{2, 4, 5, 3});
  CHECK(data.get(1, rng)[0].to_vector<int>() == std::vector<int>{2, 3});
  CHECK(data.get(2, rng)[0].to_vector<int>() == std::vector<int>{2, 5, 4, 4, 5});
  CHECK(data.get(2, rng)[1].item<int>() == 1);
  CHECK_THROWS_AS(data.get(3, rng), IndexError);
  CHECK_THROWS_AS(TextDataset(texts, std::vector<int64_t>{1}, tokenize_characters, v), ValueError);
  CHECK(TextDataset(texts, {}, tokenize_characters, v).get(1, rng)[0].numel() == 0);

  const TokenBlockDataset blocks(from_data<int64_t>({0, 1, 2, 3, 4, 5, 6}, {7}), 3);
  CHECK(blocks.size() == 2);
  CHECK(blocks.get(1, rng)[0].to_vector<int>() == std::vector<int>{3, 4, 5});
  CHECK(blocks.get(1, rng)[1].to_vector<int>() == std::vector<int>{4, 5, 6});
  CHECK(TokenBlockDataset(from_data<int64_t>({0, 1, 2, 3, 4, 5, 6}, {7}), 3, 1).size() == 4);
  CHECK_THROWS_AS(TokenBlockDataset(from_data<int64_t>({0, 1, 2}, {3}), 3), ValueError);
  CHECK_THROWS_AS(TokenBlockDataset(empty({9}), 3), ShapeError);
}

TEST_CASE("a vocabulary with line ends and backslashes is restored from its file") {
  const Vocabulary v(Tokens{"a", "b\r", "\r", "\n", "c\nd", "\\", "\\n", "e\\"});
  const auto file = std::filesystem::temp_directory_path() / "levin-vocabulary-of-line-ends.txt";
  v.save(file);
  CHECK(Vocabulary::load(file).tokens() == v.tokens());
  CHECK(read_lines(file).size() == 8);
  std::filesystem::remove(file);
}
