#pragma once
// Whether a module has a step of its own: loops whose step nobody wrote are left out, as Lightning does.

#include <levin/trainer/module.h>

#include <cstddef>
#include <cstring>

namespace levin {

/// The function that `object` runs for the virtual function `member` of LevinModule. C++ has no word for it; by the
/// ABI of g++ and clang on Linux a pointer to a virtual member holds its place in the table of functions (plus one,
/// where the machine's function addresses may be odd), and an object begins with the address of that table.
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

/// Whether the class of `module`, or one between it and LevinModule, overrides `member`.
template <class Member>
bool overrides(const LevinModule& module, Member LevinModule::*member) {
  static const LevinModule plain;
  return final_function(module, member) != final_function(plain, member);
}

}  // namespace levin
