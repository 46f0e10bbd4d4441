#include "support/files.h"

#include "support/paths.h"

#include <levin/core/io.h>

#include <zlib.h>

#include <cstdlib>

namespace levin::test {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "levin-test-XXXXXX").string();
  path = mkdtemp(name.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string gzip(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  const std::size_t from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

std::string program_of_page(const std::string& page) {
  return between(io::read_text(source_dir() / page), "```cpp\n", "```");
}

std::string marked_program(const std::string& file) {
  return between(io::read_text(source_dir() / file), "// begin of the page's program\n",
                 "// end of the page's program");
}

}  // namespace levin::test
