#pragma once
// Damages small files by every truncation and every change of one byte.

#include "allocations.h"

#include <doctest/doctest.h>
#include <levin/core/allocator.h>
#include <levin/core/error.h>
#include <levin/core/io.h>

#include <filesystem>
#include <functional>
#include <string>

namespace levin::test {

/// Returns the message of the Levin error that `f` throws.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// Calls `read` with a file's bytes truncated at every length and with every byte changed. `read` must either throw a
/// Levin error or return, and never allocate more than `limit` bytes at once. Returns how often it threw.
inline int damage(const std::string& good, const std::function<void(const std::string&)>& read,
                  std::size_t limit = std::size_t{1} << 24) {
  int refused = 0;
  forget_allocations();
  cpu_allocator::set_cap(limit + cpu_allocator::stats().allocated);
  const auto attempt = [&](const std::string& bytes) {
    try {
      read(bytes);
    } catch (const OutOfMemory& e) {
      FAIL("a damaged file asked for too much memory: " << e.what());
    } catch (const Error&) {
      ++refused;
    }
  };
  for (std::size_t length = 0; length < good.size(); ++length) attempt(good.substr(0, length));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      attempt(bytes);
    }
  }
  cpu_allocator::set_cap(0);
  CHECK(largest_allocation() <= limit);
  return refused;
}

}  // namespace levin::test
