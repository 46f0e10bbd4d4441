#pragma once
// The state that parts of a training run, and data loaders, save to a checkpoint: plain values by name.

#include <levin/core/error.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace levin {

using StateValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                                std::vector<std::string>>;

class StateMap {
 public:
  StateMap();
  ~StateMap();
  StateMap(const StateMap&);
  StateMap(StateMap&&) noexcept;
  StateMap& operator=(const StateMap&);
  StateMap& operator=(StateMap&&) noexcept;
  /// `StateMap{{"hidden", 64}, {"lr", 1e-3}, {"name", "cnn"}}`
  StateMap(std::initializer_list<std::pair<const std::string, StateValue>> values);

  void set(const std::string& key, StateValue value);
  bool has(const std::string& key) const;
  bool empty() const { return values_.empty(); }

  /// The value under `key`; throws StateError when it is missing or of another type.
  template <class T>
  T get(const std::string& key) const {
    const StateValue& v = at(key);
    if (const T* p = std::get_if<T>(&v)) return *p;
    if (is_empty_list(v)) return T();  // the type of a list without elements is not kept
    wrong_type(key);
  }

  /// Copies all of `other` under "<prefix>/<key>"; and takes such a part out again.
  void put(const std::string& prefix, const StateMap& other);
  StateMap part(const std::string& prefix) const;

  const std::map<std::string, StateValue>& values() const { return values_; }
  friend bool operator==(const StateMap& a, const StateMap& b);

 private:
  const StateValue& at(const std::string& key) const;
  static bool is_empty_list(const StateValue& v);
  [[noreturn]] static void wrong_type(const std::string& key);
  std::map<std::string, StateValue> values_;
};

}  // namespace levin
