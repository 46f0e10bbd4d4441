#include "page.h"

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

const char* const kBody = R"html(
<a class="skip" href="#curves">Skip to the curves</a>
<header class="top">
  <div class="wrap">
    <p class="eyebrow">Levin training report</p>
    <div class="headline"><h1 id="title"></h1><span id="status" class="pill"></span></div>
    <p id="facts" class="facts"></p>
  </div>
</header>
<nav class="bar" aria-label="Sections"><div class="wrap" id="nav"></div></nav>
<main class="wrap">
  <section id="summary" hidden><h2 class="quiet">Latest values</h2><div class="tiles" id="tiles"></div></section>
  <section id="curves"><div class="section-head"><h2>Curves</h2><div class="tools" id="tools" hidden>
    <label class="tool">Smoothing <input id="smooth" type="range" min="0" max="0.98" step="0.02" value="0">
      <output id="smooth-value">off</output></label>
    <div class="segments" role="group" aria-label="Horizontal axis">
      <button type="button" data-axis="step" aria-pressed="true">Step</button>
      <button type="button" data-axis="time" aria-pressed="false">Time</button></div></div></div>
    <p class="hint" id="chart-hint" hidden>Drag across a chart to zoom, double-click to see all again; on the keyboard
      arrows move along it, + and &minus; zoom, Esc resets.</p>
    <div class="charts" id="charts"></div></section>
  <section id="images" hidden><h2>Images</h2><div class="pictures" id="pictures"></div></section>
  <section id="confusion" hidden><h2>Confusion</h2><div id="matrices"></div></section>
  <section id="model" hidden><h2>Model</h2><div class="card scroll"><table class="rows" id="modules"></table></div>
  </section>
  <section id="texts" hidden><h2>Notes</h2><div id="notes"></div></section>
  <section id="configuration" hidden><h2>Configuration</h2><dl class="card pairs" id="hparams"></dl></section>
  <section id="environment" hidden><h2>Environment</h2><dl class="card pairs" id="env"></dl></section>
</main>
<footer class="wrap"><p id="written"></p></footer>
)html";

std::string page(const std::string& title, const std::string& data) {
  std::string json;  // in which no tag may end the script; "<" stands in texts only
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
