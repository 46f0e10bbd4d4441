#pragma once
// Named plain values: the state that callbacks, data loaders and other parts of a training run save to a checkpoint.

#include <levin/core/error.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace levin {

/// A value of a StateMap: a number, a text, or a list of either. bool and other integers are stored as int64.
using StateValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                                std::vector<std::string>>;

/// An ordered map from names to plain values.
class StateMap {
 public:
  StateMap();
  ~StateMap();
  StateMap(const StateMap&);
  StateMap(StateMap&&) noexcept;
  StateMap& operator=(const StateMap&);
  StateMap& operator=(StateMap&&) noexcept;
  /// Constructs from pairs: `StateMap{{"hidden", 64}, {"lr", 1e-3}, {"name", "cnn"}}`.
  StateMap(std::initializer_list<std::pair<const std::string, StateValue>> values);

  /// Adds or replaces a value.
  void set(const std::string& key, StateValue value);
  /// True if the key has a value.
  bool has(const std::string& key) const;
  /// True if there are no values.
  bool empty() const { return values_.empty(); }

  /// Returns the value of `key`. Numbers are stored as int64 and double; get<int> and get<float> convert them.
  /// Throws StateError if it is missing, has another type, or is out of T's range.
  template <class T>
  T get(const std::string& key) const {
    const StateValue& v = at(key);
    if constexpr (std::is_integral_v<T>) {
      const std::int64_t* p = std::get_if<std::int64_t>(&v);
      if (p && static_cast<std::int64_t>(static_cast<T>(*p)) == *p) return static_cast<T>(*p);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (const double* p = std::get_if<double>(&v)) return static_cast<T>(*p);
    } else {
      if (const T* p = std::get_if<T>(&v)) return *p;
      if (is_empty_list(v)) return T();  // the element type of an empty list is not stored
    }
    wrong_type(key);
  }

  /// Copies all entries of `other` to "<prefix>/<key>"; part() returns such entries without the prefix.
  void put(const std::string& prefix, const StateMap& other);
  StateMap part(const std::string& prefix) const;

  /// Returns all values by their keys, in alphabetical order.
  const std::map<std::string, StateValue>& values() const { return values_; }

  friend bool operator==(const StateMap& a, const StateMap& b);

 private:
  const StateValue& at(const std::string& key) const;
  static bool is_empty_list(const StateValue& v);
  [[noreturn]] static void wrong_type(const std::string& key);
  std::map<std::string, StateValue> values_;
};

}  // namespace levin
