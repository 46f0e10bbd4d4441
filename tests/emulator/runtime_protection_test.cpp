// Device memory is inaccessible to host code.

#include "runtime_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace levin::emulator {
namespace {

/// Runs `code` in a child process and returns what it writes to standard error before it dies; empty if it lives.
template <class F>
std::string last_words(F&& code) {
  int ends[2];
  REQUIRE_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    std::signal(SIGSEGV, SIG_DFL);  // instead of the test framework's
    memory_openings();
    code();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const bool lived = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return lived ? std::string() : text;
}

TEST_CASE("runtime protection: host code that accesses device memory is reported and killed") {
  const FreshDevices fresh;
  const DeviceInts a(16, 3);
  volatile int* const p = a.data;
  const std::string words = last_words([&] {
    cudaMemset(a.data, 0, 4);
    cudaDeviceSynchronize();  // the handler is reinstalled after work has run
    p[2] = 1;
  });
  CHECK_NE(words.find("levin emulator: host code touched device memory at 0x"), std::string::npos);
  CHECK_NE(words.find("byte 8 of an allocation of 64 bytes on device 0. Copy it with cudaMemcpy"), std::string::npos);
  CHECK_EQ(words.find("host code"), words.rfind("host code"));
}

TEST_CASE("runtime protection: a stream's host function is host code") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts a(16, 3);
  const std::string words = last_words([&] {
    cudaMemsetAsync(a.data, 0, 4, stream);
    cudaLaunchHostFunc(
        stream, [](void* q) { *static_cast<volatile int*>(q) = 1; }, a.data);
    cudaStreamSynchronize(stream);
  });
  CHECK_NE(words.find("byte 0 of an allocation of 64 bytes"), std::string::npos);
}

TEST_CASE("runtime protection: it can be switched off, and a wait opens memory once for all its work") {
  {
    const FreshDevices fresh;
    const TestStream stream;
    const DeviceInts a(16);
    const std::size_t before = memory_openings();
    for (int i = 0; i < 50; ++i) CHECK_OK(cudaMemsetAsync(a.data, i, 64, stream));
    CHECK_OK(cudaStreamSynchronize(stream));
    CHECK_EQ(memory_openings(), before + 1);
  }
  setenv("LEVIN_EMULATOR_PROTECT", "0", 1);
  {
    const FreshDevices fresh;
    const DeviceInts a(1, 3);
    CHECK_EQ(*a.data, 3);
  }
  unsetenv("LEVIN_EMULATOR_PROTECT");
  reset_devices(1, 16);
}

}  // namespace
}  // namespace levin::emulator
