#pragma once
// Every failure of the library is one of these. The text is one sentence: what is wrong, the values, the remedy.

#include <stdexcept>
#include <string>

namespace levin {

/// Base of all of Levin's exceptions.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sizes, ranks or strides do not fit the operation.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A data type is not accepted here, or two that must agree differ.
class DTypeError : public Error {
 public:
  using Error::Error;
};

/// A device is missing, not built in, or two tensors live on different ones.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// An index or axis is out of range.
class IndexError : public Error {
 public:
  using Error::Error;
};

/// An argument has a value that makes no sense.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// The gradient graph was misused: backward twice, an edited saved tensor, a missing backward.
class GradError : public Error {
 public:
  using Error::Error;
};

/// Training went wrong for good: loss scaling skipped too many steps in a row.
class LossDiverged : public Error {
 public:
  using Error::Error;
};

/// A file could not be read or written, or holds something else than expected.
class IoError : public Error {
 public:
  using Error::Error;
};

/// Memory ran out, or the allocator's cap was reached. The allocator is left usable.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A state dictionary or checkpoint does not fit what it is loaded into.
class StateError : public Error {
 public:
  using Error::Error;
};

/// A command line, flag or configuration cannot be used. Programs exit with status 2 on it.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace levin
