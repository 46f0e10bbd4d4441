// Writes a film as JSON into the page of emulator/film/page.
#include "emulator/film/film.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace levin::emulator::film {

namespace {

using nlohmann::json;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("film: " + path.string() + " cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

json value_of(Element element, std::uint64_t bits) {
  const auto word = static_cast<std::uint32_t>(bits);
  if (element == Element::u32) return word;
  const float value = std::bit_cast<float>(word);
  return std::isfinite(value) ? json(value) : json(nullptr);
}

json json_of(const Access& a, std::uint32_t active, Element element) {
  json out{{a.memory == Memory::shared ? "s" : "g", a.array}, {"w", a.write ? 1 : 0}, {"b", a.bytes}, {"c", a.cost},
           {"n", a.least}, {"r", a.races}, {"o", json::array()}};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (!(active >> lane & 1)) continue;
    out["o"].push_back(a.offsets[lane]);
    if (a.bytes == 4 && a.write) out["v"].push_back(value_of(element, a.bits[lane]));
  }
  return out;
}

json json_of(const Step& s, Element element) {
  json out{{"f", s.frame}, {"l", s.line}, {"m", s.active}, {"e", s.ended}};
  if (s.kind == Step::Kind::barrier) out["k"] = "barrier";
  if (s.kind == Step::Kind::warp_function) out["k"] = "warp";
  if (s.access.memory != Memory::none) out["a"] = json_of(s.access, s.active, element);
  return out;
}

json json_of(const Film& film) {
  json out{{"title", film.title}, {"kernel", film.kernel}, {"caption", film.caption}, {"threads", film.threads},
           {"frames", film.frames}, {"arrays", json::array()}, {"buffers", json::array()}};
  for (const Array& a : film.arrays) {
    out["arrays"].push_back({{"name", a.name}, {"bytes", a.bytes}, {"columns", a.columns}});
  }
  for (const Buffer& b : film.buffers) {
    out["buffers"].push_back({{"name", b.name}, {"bytes", b.bytes}, {"columns", b.columns}});
  }
  for (const Line& l : film.lines) out["lines"].push_back({{"file", l.file}, {"n", l.number}, {"t", l.text}});
  for (const auto& warp : film.warps) {
    json steps = json::array();
    for (const Step& s : warp) steps.push_back(json_of(s, film.element));
    out["warps"].push_back(std::move(steps));
  }
  return out;
}

void replace(std::string& text, const std::string& mark, const std::string& by) {
  const auto at = text.find(mark);
  if (at == std::string::npos) throw std::runtime_error("film: the page has no " + mark);
  text.replace(at, mark.size(), by);
}

/// Escapes what would end the page's script.
std::string without_tags(std::string text) {
  for (auto at = text.find('<'); at != std::string::npos; at = text.find('<', at)) text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

std::string page_of(const Film& film, const std::filesystem::path& root) {
  const auto folder = root / "emulator/film/page";
  std::string page = read_file(folder / "film.html");
  replace(page, "@TITLE@", film.title);
  replace(page, "@STYLE@", read_file(folder / "film.css"));
  replace(page, "@SCRIPT@", read_file(folder / "film.js"));
  replace(page, "@FILM@", without_tags(json_of(film).dump()));
  return page;
}

}  // namespace levin::emulator::film
