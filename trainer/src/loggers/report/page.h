#pragma once
// The parts of the report's one file. What follows is HTML, CSS and JavaScript without any outside resource.

#include <string>
#include <string_view>

namespace levin::report {

extern const char* const kStyle;
extern const char* const kBody;
extern const char* const kScript;       ///< reads the data, fills the page
extern const char* const kChartScript;  ///< class Chart: curves on SVG

/// The whole page round `data`, a JSON text.
std::string page(const std::string& title, const std::string& data);

/// The JSON text of such a page; empty where there is none.
std::string data_of(std::string_view page);

}  // namespace levin::report
