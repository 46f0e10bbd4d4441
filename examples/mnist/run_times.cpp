#include "run_times.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace {

double boot_ms() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

/// Returns field 22 of /proc/self/stat, converted from ticks to milliseconds: the time from the machine's boot to the
/// start of the process. ./run first builds and then becomes the program within the same process; LEVIN_STARTED holds
/// the time of that exec, in seconds since boot.
double process_start_ms() {
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));  // the program's name may hold spaces
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  const double start = std::stod(field) * 1e3 / static_cast<double>(sysconf(_SC_CLK_TCK));
  const char* became = std::getenv("LEVIN_STARTED");
  return became == nullptr ? start : std::max(start, std::strtod(became, nullptr) * 1e3);
}

}  // namespace

double ms_since_process_start() { return boot_ms() - process_start_ms(); }
