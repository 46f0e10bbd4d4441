#pragma once
// Names of checkpoints from templates such as "{epoch:02d}-{val_loss:.2f}".

#include <levin/trainer/callback.h>

namespace levin {

class NameTemplate {
 public:
  /// A field is {name} or {name:spec}, spec as Python's and fmt's; the name comes before the value, as in
  /// "val_loss=0.32", where `auto_insert` is on. Throws UsageError for a template that makes no folder's name.
  NameTemplate(const std::string& pattern, bool auto_insert);

  /// A metric that is not known counts as 0.
  std::string operator()(const RunContext& run) const;

 private:
  struct Part {
    std::string literal;
    std::string field{}, spec{};  // behind the literal; the field is empty at the end
  };
  std::string pattern_;
  std::vector<Part> parts_;
  bool auto_insert_;
};

}  // namespace levin
