#include <levin/nn/module.h>

#include <cxxabi.h>

#include <cstdlib>
#include <ostream>

namespace levin::nn {

namespace {

std::string with_thousands(int64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

void print(std::string& out, const Module& m, const std::string& indent) {
  const auto children = m.named_children();
  const std::string arguments = m.extra_repr();
  const int64_t count = m.parameter_count();
  const std::string note = count ? "  # " + with_thousands(count) : "";
  out += m.type_name() + "(" + arguments;
  if (children.empty()) {
    out += ")" + note;
    return;
  }
  out += note + "\n";
  for (const auto& [name, child] : children) {
    out += indent + "  (" + name + "): ";
    print(out, *child, indent + "  ");
    out += "\n";
  }
  out += indent + ")";
}

}  // namespace

std::string Module::type_name() const {
  int status = 0;
  char* text = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : typeid(*this).name();
  std::free(text);
  const std::size_t arguments = name.find('<');
  const std::size_t colon = name.rfind("::", arguments);
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 2;
  return name.substr(begin, arguments == std::string::npos ? arguments : arguments - begin);
}

std::string to_string(const Module& module) {
  std::string out;
  print(out, module, "");
  return out;
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << to_string(module); }

}  // namespace levin::nn
