#include "src/loggers/event_file.h"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <levin/core/error.h>

namespace levin {
namespace {

constexpr std::array<std::uint32_t, 256> crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? (c >> 1) ^ 0x82F63B78U : c >> 1;
    table[i] = c;
  }
  return table;
}

std::string little_endian(std::uint64_t v, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i));
  return out;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "localhost";
  if (gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  return name;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view data) {
  static constexpr auto kTable = crc32c_table();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : data) crc = kTable[(crc ^ static_cast<std::uint8_t>(c)) & 0xFFU] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

ProtoMessage make_event(std::int64_t step) {
  ProtoMessage event;
  event.fixed64(1, seconds_now());
  if (step != 0) event.varint(2, static_cast<std::uint64_t>(step));
  return event;
}

void EventFile::open(const std::filesystem::path& folder) {
  static std::atomic<int> count{0};
  std::filesystem::create_directories(folder);
  path_ = folder / fmt::format("events.out.tfevents.{:010d}.{}.{}.{}", static_cast<std::int64_t>(seconds_now()),
                               host_name(), getpid(), count++);
  file_ = std::fopen(path_.c_str(), "wb");
  if (!file_) failed();
  write(make_event(0).bytes(3, "brain.Event:2"));
}

void EventFile::write(const ProtoMessage& event) {
  const std::string& data = event.text();
  const std::string length = little_endian(data.size(), 8);
  const std::string record =
      length + little_endian(masked_crc32c(length), 4) + data + little_endian(masked_crc32c(data), 4);
  if (std::fwrite(record.data(), 1, record.size(), file_) != record.size()) failed();
}

void EventFile::flush() {
  if (file_ && std::fflush(file_) != 0) failed();
}

void EventFile::close() {
  if (file_) std::fclose(file_);
  file_ = nullptr;
}

void EventFile::failed() const {
  throw IoError(fmt::format("[tensorboard] {} could not be written: {}.", path_.string(), std::strerror(errno)));
}

}  // namespace levin
