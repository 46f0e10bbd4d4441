// TensorBoard's event files as a reader parses them: frames, checksums, fields of each message.
#include <levin/trainer/loggers/tensorboard_logger.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// CRC-32C bit by bit, masked as TFRecord wants it.
std::uint32_t masked_checksum(std::string_view data) {
  std::uint32_t crc = ~0U;
  for (const char c : data) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <class T>
T read_as(std::string_view bytes) {
  REQUIRE(bytes.size() >= sizeof(T));
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// One field of a message in the wire format of protocol buffers.
struct Field {
  int number = 0;
  std::uint64_t varint = 0;  ///< of kind 0
  std::string bytes;         ///< of the other kinds
};

std::vector<Field> fields_of(std::string_view text) {
  std::vector<Field> out;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at < text.size());
      const auto byte = static_cast<std::uint8_t>(text[at++]);
      v |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
  };
  while (at < text.size()) {
    const std::uint64_t tag = varint();
    Field f;
    f.number = static_cast<int>(tag >> 3);
    const std::uint64_t kind = tag & 7;
    if (kind == 0) {
      f.varint = varint();
    } else {
      const std::uint64_t size = kind == 1 ? 8 : kind == 5 ? 4 : varint();
      REQUIRE(at + size <= text.size());
      f.bytes = text.substr(at, size);
      at += size;
    }
    out.push_back(f);
  }
  return out;
}

/// The only field of this number.
Field field(const std::string& message, int number) {
  std::vector<Field> found;
  for (const Field& f : fields_of(message))
    if (f.number == number) found.push_back(f);
  REQUIRE(found.size() == 1);
  return found[0];
}

/// The events of the only file in a folder, whose frames and checksums are right.
std::vector<std::string> events_in(const std::filesystem::path& folder) {
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) file = entry.path();
  const std::string data = io::read_text(file);
  std::vector<std::string> events;
  for (std::size_t at = 0; at < data.size();) {
    const std::string length = data.substr(at, 8);
    const auto size = read_as<std::uint64_t>(length);
    REQUIRE(at + 16 + size <= data.size());
    events.push_back(data.substr(at + 12, size));
    CHECK(read_as<std::uint32_t>(data.substr(at + 8, 4)) == masked_checksum(length));
    CHECK(read_as<std::uint32_t>(data.substr(at + 12 + size, 4)) == masked_checksum(events.back()));
    at += 16 + size;
  }
  return events;
}

/// Summary.Value of an event.
std::string value_of(const std::string& event) { return field(field(event, 5).bytes, 1).bytes; }

}  // namespace

TEST_CASE("event files: every record has the checksums of its length and of its data, and every step is its own") {
  const TempDir f;
  TensorBoardLogger log({.folder = {.save_dir = f.path}});
  const std::vector<std::int64_t> steps = {1, 127, 128, 129, 255, 256, 16383, 16384, std::int64_t{1} << 40};
  for (const std::int64_t step : steps) log.log_metrics({0, step, {{"loss", 0.5}}});
  log.save();
  const auto events = events_in(log.log_dir());
  REQUIRE(events.size() == 1 + 2 * steps.size());  // the version, then a value and the epoch of each
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(static_cast<std::int64_t>(field(events[1 + 2 * i], 2).varint) == steps[i]);
    CHECK(field(value_of(events[1 + 2 * i]), 1).bytes == "loss");
    CHECK(read_as<float>(field(value_of(events[1 + 2 * i]), 2).bytes) == 0.5F);
    CHECK(field(value_of(events[2 + 2 * i]), 1).bytes == "epoch");
  }
}

TEST_CASE("event files: a prefix stands before every name") {
  const TempDir f;
  TensorBoardLogger log({.folder = {.save_dir = f.path}, .prefix = "run-a"});
  log.log_metrics({2, 1, {{"loss", 1.0}}});
  log.log_histogram("weights", ones({2}), 1);
  log.log_text("note", "text", 1);
  log.save();
  const auto events = events_in(log.log_dir());
  std::vector<std::string> tags;
  for (std::size_t i = 1; i < events.size(); ++i) tags.push_back(field(value_of(events[i]), 1).bytes);
  CHECK(tags ==
        std::vector<std::string>{"run-a-loss", "run-a-epoch", "run-a-weights", "run-a-note/text_summary"});
}

TEST_CASE("event files: a histogram has the moments of its values and counts each once") {
  const TempDir f;
  TensorBoardLogger log({.folder = {.save_dir = f.path}});
  const double infinity = std::numeric_limits<double>::infinity();
  log.log_histogram("w", tensor({-2.0, 0.0, 0.5, 0.5, 3.0, infinity, std::nan("")}), 7);
  log.save();
  const std::string histogram = field(value_of(events_in(log.log_dir()).at(1)), 5).bytes;
  const auto number = [&](int n) { return read_as<double>(field(histogram, n).bytes); };
  CHECK(number(1) == -2);
  CHECK(number(2) == 3);
  CHECK(number(3) == 5);
  CHECK(number(4) == 2);
  CHECK(number(5) == 4 + 0.25 + 0.25 + 9);
  const std::string limits = field(histogram, 6).bytes, counts = field(histogram, 7).bytes;
  REQUIRE(limits.size() == counts.size());
  double low = -infinity;
  for (std::size_t i = 0; i < limits.size(); i += 8) {
    const double high = read_as<double>(limits.substr(i, 8));
    double wanted = 0;
    for (const double v : {-2.0, 0.0, 0.5, 0.5, 3.0}) wanted += v >= low && v < high ? 1 : 0;
    CHECK(read_as<double>(counts.substr(i, 8)) == wanted);
    CHECK(high > low);
    low = high;
  }
}

TEST_CASE("event files: how a run ended stands in the record of its hyper-parameters") {
  for (const auto& [status, wanted] : {std::pair(RunStatus::success, std::uint64_t{1}),
                                       std::pair(RunStatus::interrupted, std::uint64_t{2}),
                                       std::pair(RunStatus::failed, std::uint64_t{2})}) {
    const TempDir f;
    TensorBoardLogger log({.folder = {.save_dir = f.path}});
    log.log_hyperparams({{"lr", 0.1}});
    log.finalize(status);
    const std::string end = value_of(events_in(log.log_dir()).back());
    CHECK(field(end, 1).bytes == "_hparams_/session_end_info");
    const std::string plugin = field(field(end, 9).bytes, 1).bytes;
    CHECK(field(plugin, 1).bytes == "hparams");
    CHECK(field(field(field(plugin, 2).bytes, 4).bytes, 1).varint == wanted);
  }
}

TEST_CASE("event files: a continued run tells readers to forget the steps behind its checkpoint, and no more") {
  const TempDir f;
  TensorBoardLogger log({.folder = {.save_dir = f.path}});
  log.resume(40);
  log.save();
  const std::string event = events_in(log.log_dir()).back();
  CHECK(field(event, 2).varint == 41);  // readers drop this step and all after it
  CHECK(field(field(event, 7).bytes, 1).varint == 1);
}

TEST_CASE("logs: a new version follows the highest there is, whatever the order of the folders") {
  const TempDir f;
  for (int i = 0; i < 40; ++i)
    std::filesystem::create_directories(f.path / "tb" / ("version_" + std::to_string(i * 3 % 40)));
  std::filesystem::create_directories(f.path / "tb/version_12b");
  CHECK(TensorBoardLogger({.folder = {.save_dir = f.path, .name = "tb"}}).version() == "version_40");
}
