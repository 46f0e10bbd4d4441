#pragma once
// Checkpoint names from templates such as "{epoch:02d}-{val_loss:.2f}".

#include <levin/trainer/callback.h>

namespace levin {

class NameTemplate {
 public:
  /// A field is {name} or {name:spec} with Python's and fmt's format specifications. With `auto_insert` the name
  /// precedes the value, as in "val_loss=0.32". Throws UsageError if the template does not yield a valid folder name.
  NameTemplate(const std::string& pattern, bool auto_insert);

  /// Formats the name; an unknown metric counts as 0.
  std::string operator()(const RunContext& run) const;

 private:
  struct Part {
    std::string literal;
    std::string field{}, spec{};  // after the literal; empty for the last part
  };
  std::string pattern_;
  std::vector<Part> parts_;
  bool auto_insert_;
};

}  // namespace levin
