// levin_film KERNEL FILE: runs a kernel in the emulator and writes the film of its first block as an HTML page.
#include "film/scenes.h"
#include "support/paths.h"

#include <levin/core/io.h>

#include <cstdio>
#include <exception>
#include <string>

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: levin_film KERNEL FILE, where KERNEL is one of:\n");
    for (const std::string& name : levin::film::scenes()) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  try {
    const auto root = levin::test::source_dir();
    const auto film = levin::film::shoot(words[1], root);
    levin::io::write_file(words[2], levin::emulator::film::page_of(film, root));
    const auto t = levin::emulator::film::totals(film);
    std::printf("%s: %d steps, %d barriers; shared memory: %d passes of banks where %d would do; global memory: %d "
                "sectors where %d would do; %s\n",
                words[1], film.frames, t.barriers, t.passes, t.least_passes, t.sectors, t.least_sectors, words[2]);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
