// Batches that are dictionaries and nested structures.
#include <levin/data/data.h>

#include <doctest/doctest.h>

#include <filesystem>

using namespace levin;
using namespace levin::data;

namespace {

Tensor numbers(std::vector<std::int64_t> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return from_data(values, {n});
}
Tensor number(std::int64_t value) { return from_data<std::int64_t>({value}, {}); }

/// Sample i is a dictionary of a tensor, a list of two and a dictionary; odd samples give the keys in another order.
struct Records : Dataset {
  std::int64_t size() const override { return 5; }
  Sample get(std::int64_t i, Generator&) const override {
    const Sample meta = i % 2 == 0 ? Sample::dict({{"id", number(i)}, {"weight", numbers({i, i})}})
                                   : Sample::dict({{"weight", numbers({i, i})}, {"id", number(i)}});
    if (i % 2 == 1)
      return Sample::dict({{"meta", meta}, {"views", {number(10 * i), number(20 * i)}}, {"x", numbers({i})}});
    return Sample::dict({{"x", numbers({i})}, {"views", {number(10 * i), number(20 * i)}}, {"meta", meta}});
  }
};

std::vector<std::int64_t> values(const Tensor& t) { return t.to_vector<std::int64_t>(); }

template <class E, class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void check_first(const Batch& batch) {
  CHECK(batch.keys() == std::vector<std::string>{"x", "views", "meta"});
  CHECK(batch["x"].sizes() == Shape{3, 1});
  CHECK(values(batch["x"]) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(values(batch.part("views")[1]) == std::vector<std::int64_t>{0, 20, 40});
  CHECK(values(batch.part("meta")["id"]) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(batch.part("meta")["weight"].sizes() == Shape{3, 2});
  CHECK(batch.size() == 3);
}

}  // namespace

TEST_CASE("a batch of three unpacks by as<3>, and two names for it are an error") {
  Batch batch{numbers({1}), numbers({2}), numbers({3})};
  const auto [x, y, z] = batch.as<3>();
  CHECK(x.is_same(batch[0]));
  CHECK(z.is_same(batch[2]));
  const std::string said =
      "[batch] the batch holds 3 tensors, and 2 are asked for. Unpack all by batch.as<3>(), or read batch[i].";
  CHECK(message<ValueError>([&] { [[maybe_unused]] auto& [a, b] = batch; }) == said);
  CHECK(message<ValueError>([&] { [[maybe_unused]] const auto& [a, b] = std::as_const(batch); }) == said);
  CHECK(message<ValueError>([&] { [[maybe_unused]] auto [a, b] = Batch(batch); }) == said);
  CHECK_THROWS_AS(batch.as<2>(), ValueError);
  const Batch one{numbers({1})};
  CHECK(message<ValueError>([&] { [[maybe_unused]] const auto& [a, b] = one; }).find("holds 1 tensor, and 2") !=
        std::string::npos);
}

TEST_CASE("a dictionary is read by key") {
  Batch batch = Batch::dict({{"image", numbers({1, 2})}, {"label", numbers({3, 4})}});
  CHECK(values(batch["label"]) == std::vector<std::int64_t>{3, 4});
  batch["label"] = numbers({5, 6});
  CHECK(values(batch[1]) == std::vector<std::int64_t>{5, 6});
  CHECK(batch.contains("image"));
  CHECK_FALSE(batch.contains("mask"));
  CHECK(batch.keys() == std::vector<std::string>{"image", "label"});
  CHECK(batch.size() == 2);
  CHECK(message<IndexError>([&] { batch["imgae"]; }) == "[batch] there is no \"imgae\"; the keys are image, label.");
  CHECK(message<ValueError>([&] { [[maybe_unused]] auto& [a, b] = batch; }) ==
        "[batch] a dictionary does not unpack; its keys are image, label. Read batch[\"image\"].");
  CHECK_THROWS_AS(batch.as<2>(), ValueError);
  const Batch plain{numbers({1}), numbers({2})};
  CHECK(message<IndexError>([&] { plain["image"]; }) ==
        "[batch] \"image\" was asked for, but the batch is a list of 2 tensors without keys. Read batch[i], or let the "
        "dataset return Sample::dict.");
  CHECK(plain.keys().empty());
  CHECK_THROWS_AS(Batch::dict({{"a", numbers({1})}, {"a", numbers({2})}}), ValueError);
  CHECK_THROWS_AS(Batch::dict({{"", numbers({1})}}), ValueError);
}

TEST_CASE("samples of nested dictionaries and lists are collated into batches of the same structure") {
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    DataLoader loader(Records(), {.batch_size = 3, .num_workers = workers, .pin_memory = true});
    std::vector<Batch> batches;
    for (Batch& b : loader) batches.push_back(std::move(b));
    REQUIRE(batches.size() == 2);
    check_first(batches[0]);
    check_first(batches[0].to(kCpu));
    CHECK(values(batches[1].part("views")[0]) == std::vector<std::int64_t>{30, 40});
    CHECK(values(batches[1]["x"]) == std::vector<std::int64_t>{3, 4});
  }
  const Batch batch = Records().all();
  CHECK(batch.parts() == 3);
  CHECK(batch.part(1).parts() == 1);
  CHECK(message<ValueError>([&] { batch["meta"]; }) ==
        "[batch] \"meta\" is not one tensor, but a dictionary of 2 tensors. Read it by part(\"meta\").");
  CHECK(message<ValueError>([&] { batch["views"]; }) ==
        "[batch] \"views\" is not one tensor, but a list of 2 tensors. Read it by part(\"views\").");
}

TEST_CASE("lists of lists keep their structure, and a list of tensors is a plain batch") {
  const auto sample = [](std::int64_t i) {
    return Sample::list({number(i), Sample::dict({{"a", number(10 * i)}}), {number(2 * i), number(3 * i)}});
  };
  const Batch batch = default_collate(std::vector<Sample>{sample(1), sample(2)});
  CHECK(batch.parts() == 3);
  CHECK(values(batch.part(0)[0]) == std::vector<std::int64_t>{1, 2});
  CHECK(values(batch.part(1)["a"]) == std::vector<std::int64_t>{10, 20});
  const auto [x, y] = batch.part(2);
  CHECK(values(y) == std::vector<std::int64_t>{3, 6});
  const auto [a, b] = Sample::list({number(1), number(2)});
  CHECK(b.item<std::int64_t>() == 2);
}

TEST_CASE("samples of different structures, shapes and types are refused with their names") {
  const auto said = [](const Sample& first, const Sample& second) {
    return message<Error>([&] { default_collate(std::vector<Sample>{first, second}); });
  };
  const Sample first = Sample::dict({{"x", numbers({1})}, {"meta", Sample::dict({{"id", number(1)}})}});
  CHECK(said(first, Sample::dict({{"x", numbers({1})}})) ==
        "[collate] sample 1 is {x}, sample 0 is {x, meta: {id}}. Give all samples the same keys and lists.");
  CHECK(said(first, Sample{numbers({1}), number(1)}) ==
        "[collate] sample 1 is [2 tensors], sample 0 is {x, meta: {id}}. Give all samples the same keys and lists.");
  CHECK(said(first, Sample::dict({{"x", numbers({1})}, {"meta", number(1)}})) ==
        "[collate] sample 1 is {x, meta}, sample 0 is {x, meta: {id}}. Give all samples the same keys and lists.");
  CHECK(
      said(Sample::dict({{"v", {number(1), number(2)}}}), Sample::dict({{"v", {number(1)}}})) ==
      "[collate] sample 1 is {v: [1 tensor]}, sample 0 is {v: [2 tensors]}. Give all samples the same keys and lists.");
  CHECK(said(first, Sample::dict({{"x", numbers({1})}, {"meta", Sample::dict({{"id", numbers({1, 2})}})}})) ==
        "[collate] \"meta\"/\"id\" of sample 1 is (2,), that of sample 0 is (). Give all samples one shape, or pass a "
        "collate function.");
  CHECK(
      said(Sample::dict({{"v", {number(1), number(2)}}}), Sample::dict({{"v", {number(1), number(2).to(kFloat32)}}})) ==
      "[collate] \"v\"/1 of sample 1 is float32, that of sample 0 is int64. Give all samples one type.");
}

TEST_CASE("lists of the samples' tensors keep the keys; padding by place refuses dictionaries") {
  const std::vector<Sample> samples{
      Sample::dict({{"image", numbers({1})}, {"boxes", {numbers({1, 2}), number(0)}}}),
      Sample::dict({{"image", numbers({1, 2, 3})}, {"boxes", {numbers({3}), number(1)}}})};
  const Batch batch = list_collate()(samples);
  CHECK(batch.size() == 2);
  CHECK(batch.part("image")[1].sizes() == Shape{3});
  CHECK(batch.part("boxes").parts() == 2);
  CHECK(batch.part("boxes").part(0)[1].sizes() == Shape{1});
  CHECK(values(batch.part("boxes").part(1)[1]) == std::vector<std::int64_t>{1});
  CHECK(message<ValueError>([&] { pad_collate()(samples); }).find("Write a collate function") != std::string::npos);
}

TEST_CASE("loaders of dictionaries combine, and their parts keep the keys") {
  const auto loader = [](std::int64_t size) {
    return std::make_shared<DataLoader>(Records(), DataLoaderOptions{.batch_size = size});
  };
  CombinedLoader both({loader(3), loader(2)});
  const Batch batch = *both.begin();
  check_first(batch.part(0));
  CHECK(values(batch.part(1).part("meta")["id"]) == std::vector<std::int64_t>{0, 1});
  CHECK(batch.size() == 5);
  check_first(batch.to(kCpu).part(0));
}

TEST_CASE("a dataset kept in memory keeps the keys, and one in mapped files refuses them") {
  const DatasetPtr records = share(Records());
  const InMemoryDataset kept(records, 2);
  REQUIRE(kept.rows());
  Generator rng;
  CHECK(values(kept.get(3, rng).part("meta")["id"]) == std::vector<std::int64_t>{3});
  CHECK(values(kept.get(3, rng)["x"]) == std::vector<std::int64_t>{3});
  check_first(*DataLoader(kept, {.batch_size = 3}).begin());
  const auto folder = std::filesystem::temp_directory_path() / "levin-mapped-dictionaries";
  CHECK(message<ValueError>([&] { MmapDataset::write(folder, records); }).find("by InMemoryDataset") !=
        std::string::npos);
}
