#include <levin/trainer/loggers/html_report.h>

#include <levin/core/config.h>
#include <levin/core/parallel.h>
#include <levin/kernels/kernel.h>

#include <fmt/format.h>

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace levin {
namespace {

/// Returns the value of a line "key : value" in a system file.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

std::vector<std::pair<std::string, std::string>> environment_rows() {
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("Levin", LEVIN_VERSION);
#ifdef NDEBUG
  rows.emplace_back("Compiler", compiler());
#else
  rows.emplace_back("Compiler", compiler() + ", with assertions");
#endif
  if (const auto cpu = value_in("/proc/cpuinfo", "model name"); !cpu.empty()) rows.emplace_back("Processor", cpu);
  rows.emplace_back("SIMD target", kernels::cpu::simd_target());
  rows.emplace_back("Threads", fmt::format("{} of {} cores, LEVIN_THREADS={}", num_threads(),
                                           std::thread::hardware_concurrency(), LEVIN_THREADS));
  const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  rows.emplace_back("Memory", fmt::format("{:.1f} GiB", pages / (1 << 30)));
  utsname system{};
  if (uname(&system) == 0) {
    rows.emplace_back("System", fmt::format("{} {}", system.sysname, system.release));
    rows.emplace_back("Host", system.nodename);
  }
  rows.emplace_back("Process", std::to_string(getpid()));
  return rows;
}

}  // namespace levin
