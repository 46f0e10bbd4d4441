// Operations stand in rows and contracts; no other file of the library lists them.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "house/source_tree.h"
#include "support/text/pattern.h"

using levin::test::Pattern;
using levin::test::read_sources;
using levin::test::SourceFile;

namespace {

constexpr std::size_t kMostNamed = 10;

/// Returns the names of the rows of elementwise_rows.h.
std::set<std::string> row_names(const SourceFile& rows) {
  static const Pattern row(R"(^LEVIN_\w+_ROW\((\w+),.*)");
  std::set<std::string> names;
  for (const auto& line : rows.lines)
    if (const auto m = row.match(line)) names.insert(m->at(1));
  return names;
}

/// Returns the operations that a file names as kernels or in quotes.
std::set<std::string> named(const SourceFile& file, const std::set<std::string>& names) {
  static const Pattern use(R"((?:kernels::|k::|")(\w+)\b)");
  std::set<std::string> found;
  for (const auto& line : file.lines)
    for (const auto& m : use.find_all(line))
      if (names.contains(m[1])) found.insert(m[1]);
  return found;
}

}  // namespace

TEST_CASE("no file of the library is a second list of operations") {
  const auto sources = read_sources({"core", "kernels", "autograd", "nn", "optim", "data", "distributed", "trainer"});
  std::set<std::string> names;
  for (const auto& file : sources)
    if (file.path.filename() == "elementwise_rows.h") names = row_names(file);
  CHECK(names.size() > 35);
  for (const auto& file : sources) {
    if (file.path.string().starts_with("autograd/src/ops/")) continue;  // which defines them
    const std::size_t count = named(file, names).size();
    CHECK_MESSAGE(count <= kMostNamed, file.path.string() << " names " << count << " operations of elementwise_rows.h");
  }
  // The check sees a planted list.
  const SourceFile list{"trainer/src/list.cpp",
                        {"{\"neg\", \"abs\", \"sign\", \"square\", \"exp\", \"log\",", "&kernels::sin, &kernels::cos,",
                         "k::tan, k::erf, k::relu, k::silu"}};
  CHECK(named(list, names).size() == 12);
}
