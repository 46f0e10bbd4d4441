#pragma once
// The parts of the report's single file: HTML, CSS and JavaScript without external resources.

#include <string>
#include <string_view>

namespace levin::report {

extern const char* const kStyle;
extern const char* const kBody;
extern const char* const kScript;       ///< reads the data and fills the page
extern const char* const kChartScript;  ///< class Chart: curves on SVG

/// Returns the complete page with `data`, a JSON text.
std::string page(const std::string& title, const std::string& data);

/// Extracts the JSON text from such a page; empty if there is none.
std::string data_of(std::string_view page);

}  // namespace levin::report
