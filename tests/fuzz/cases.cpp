#include "fuzz/cases.h"

#include "fuzz/edits.h"
#include "support/ops/op_runs.h"

#include <array>

namespace levin::fuzz {

std::string run_case(Draw& d, const Suite& suite, const std::function<void(const std::string&)>& show) {
  enum Kind { single, graph, edits };
  const Kind drawn = d.of(std::array{single, single, single, graph, edits});
  const Kind kind = suite.family.empty()       ? drawn
                    : suite.family == "single" ? single
                    : suite.family == "graphs" ? graph
                                               : edits;
  if (kind == edits) return run_edits(d, show);
  return test::guarded([&]() -> std::string {
    Program p = draw_program(d, suite.cases, kind == graph ? Family::graph : Family::single);
    draw_cotangents(d, p);
    if (show) show(to_code(p));
    return check(p, suite.peer);
  });
}

}  // namespace levin::fuzz
