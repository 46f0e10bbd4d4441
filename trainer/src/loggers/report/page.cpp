#include "src/loggers/report/page.h"

namespace levin::report {
namespace {

constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"levin-data\">";
constexpr std::string_view kClose = "</script>";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string page(const std::string& title, const std::string& data) {
  std::string json;  // "<" is escaped, so that no tag in a text ends the script
  for (const char c : data) c == '<' ? json += "\\u003c" : json += c;
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
         escaped(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>" + kBody + std::string(kOpen) +
         json + std::string(kClose) + "\n<script>" + kChartScript + kScript + "</script>\n</body>\n</html>\n";
}

std::string data_of(std::string_view page) {
  const auto open = page.find(kOpen);
  if (open == std::string_view::npos) return {};
  const auto start = open + kOpen.size(), end = page.find(kClose, start);
  return end == std::string_view::npos ? std::string() : std::string(page.substr(start, end - start));
}

}  // namespace levin::report
