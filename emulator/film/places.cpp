#include "emulator/film/places.h"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <stdexcept>

namespace levin::emulator::film {

namespace {

/// File and line, the innermost of inlined functions first.
using Frames = std::vector<std::pair<std::string, int>>;

std::uintptr_t program_base() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {  // the program itself comes first
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;
      },
      &base);
  return base;
}

/// Asks addr2line (binutils) for the lines of the calls that return to these addresses.
std::map<std::uintptr_t, Frames> ask(const std::set<std::uintptr_t>& returns) {
  const std::uintptr_t base = program_base();
  std::string command = "addr2line -a -i -e '" + std::filesystem::read_symlink("/proc/self/exe").string() + "'";
  char text[1024];
  for (const std::uintptr_t pc : returns) {
    std::snprintf(text, sizeof text, " 0x%zx", static_cast<std::size_t>(pc - 1 - base));
    command += text;
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::map<std::uintptr_t, Frames> found;
  auto at = returns.begin();
  Frames* frames = nullptr;
  while (pipe && std::fgets(text, sizeof text, pipe.get())) {
    const std::string line(text);
    const auto colon = line.rfind(':');
    if (line.starts_with("0x") && at != returns.end()) {
      frames = &found[*at++];
    } else if (frames && colon != std::string::npos) {
      frames->emplace_back(line.substr(0, colon), std::atoi(line.c_str() + colon + 1));
    }
  }
  if (at != returns.end()) throw std::runtime_error("film: addr2line gave no lines. Install binutils.");
  return found;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("film: the source " + path.string() + " cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool ends_function(const std::string& line) { return line.empty() || line.starts_with("```"); }

/// Collects the functions round the lines that ran: everything up to the next empty lines.
void add_functions(const std::string& file, const std::vector<std::string>& text, const std::set<int>& ran, Lines& out,
                   std::map<std::pair<std::string, int>, int>& index) {
  std::set<int> shown;
  const int count = static_cast<int>(text.size());
  const auto plain = [&](int n) {
    return n >= 1 && n <= count && !ends_function(text[static_cast<std::size_t>(n - 1)]);
  };
  for (const int line : ran) {
    for (int n = line; plain(n); --n) shown.insert(n);
    for (int n = line; plain(n); ++n) shown.insert(n);
  }
  for (const int n : shown) {
    index[{file, n}] = static_cast<int>(out.lines.size());
    out.lines.push_back({file, n, text[static_cast<std::size_t>(n - 1)]});
  }
}

}  // namespace

Lines find_lines(const Recording& recording, const Scene& scene) {
  std::set<std::uintptr_t> returns;
  for (const Place& place : recording.places) {
    for (const std::uintptr_t pc : place) {
      if (pc != 0) returns.insert(pc);
    }
  }
  if (returns.empty()) {
    throw std::runtime_error("film: nothing was recorded. Compile the kernel as levin_filmed in CMakeLists.txt does.");
  }
  const auto frames = ask(returns);
  const auto source_of = [&](const std::string& path) {
    const auto shown = [&](const std::string& s) { return path == s || path.ends_with("/" + s); };
    return std::find_if(scene.sources.begin(), scene.sources.end(), shown);
  };
  std::vector<std::pair<std::string, int>> where(recording.places.size());
  std::map<std::string, std::set<int>> ran;
  for (std::size_t i = 0; i < where.size(); ++i) {
    const Place& place = recording.places[i];
    if (const auto site = recording.sites.find(static_cast<int>(i)); site != recording.sites.end()) {
      if (const auto source = source_of(site->second.first); source != scene.sources.end()) {
        where[i] = {*source, site->second.second};
        ran[*source].insert(site->second.second);
      }
    }
    for (auto pc = place.rbegin(); pc != place.rend() && where[i].second == 0; ++pc) {
      if (*pc == 0) continue;
      for (const auto& [path, line] : frames.at(*pc)) {
        const auto source = source_of(path);
        if (source == scene.sources.end() || where[i].second != 0) continue;
        where[i] = {*source, line};
        ran[*source].insert(line);
      }
    }
  }
  Lines out;
  std::map<std::pair<std::string, int>, int> index;
  for (const std::string& file : scene.sources) {
    if (ran.contains(file)) add_functions(file, read_lines(scene.root / file), ran[file], out, index);
  }
  for (const auto& place : where) {
    const auto at = index.find(place);
    out.of_place.push_back(at == index.end() ? -1 : at->second);
  }
  return out;
}

std::vector<Array> name_arrays(const Recording& recording, std::size_t columns) {
  static const std::regex declaration(R"(LEVIN_SHARED\([^,]+, *(\w+))");
  std::vector<Array> arrays;
  for (const RecordedArray& a : recording.arrays) {
    const auto text = read_lines(a.file);
    std::smatch match;
    Array array{.name = "shared", .bytes = a.bytes, .columns = columns};
    if (a.line >= 1 && a.line <= text.size() && std::regex_search(text[a.line - 1], match, declaration)) {
      array.name = match[1];
    }
    arrays.push_back(array);
  }
  return arrays;
}

}  // namespace levin::emulator::film
