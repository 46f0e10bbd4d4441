#pragma once
// Detects whether a module overrides a step: loops skip steps that are not overridden, as in Lightning.

#include <levin/trainer/module.h>

#include <cstddef>
#include <cstring>

namespace levin {

/// Returns the function that `object` runs for the virtual function `member` of LevinModule. C++ has no standard way to
/// ask. In the ABI of g++ and clang on Linux a pointer to a virtual member holds its offset in the vtable (plus one, on
/// machines whose function addresses may be odd), and an object begins with its vtable pointer.
template <class Member>
const void* final_function(const LevinModule& object, Member LevinModule::*member) {
  struct {
    std::ptrdiff_t place, adjustment;
  } pointer;
  static_assert(sizeof(pointer) == sizeof(member));
  std::memcpy(&pointer, &member, sizeof(member));
  const char* table = nullptr;
  std::memcpy(&table, static_cast<const void*>(&object), sizeof(table));
  const void* function = nullptr;
  std::memcpy(&function, table + (pointer.place & ~std::ptrdiff_t{1}), sizeof(function));
  return function;
}

/// True if the class of `module`, or a class between it and LevinModule, overrides `member`.
template <class Member>
bool overrides(const LevinModule& module, Member LevinModule::*member) {
  static const LevinModule plain;
  return final_function(module, member) != final_function(plain, member);
}

}  // namespace levin
