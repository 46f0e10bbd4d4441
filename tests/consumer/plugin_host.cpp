// Loads a plugin, uses its threads and unloads it, several times: plugin_host PLUGIN.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace {

bool mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(path) != std::string::npos) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int i = 0; i < 5; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
      std::printf("FAILED: %s\n", dlerror());
      return 1;
    }
    const auto use = reinterpret_cast<int (*)()>(dlsym(plugin, "threads_that_meet"));
    if (use() != 3 || use() != 3) {
      std::printf("FAILED: the plugin has no threads\n");
      return 1;
    }
    if (i % 2 == 1) usleep(10'000);  // the workers sleep
    dlclose(plugin);
    if (mapped(argv[1])) {
      std::printf("FAILED: the plugin was not unloaded\n");
      return 1;
    }
  }
  usleep(50'000);  // a thread that is left would run code that is gone
  std::printf("plugin: ok\n");
}
