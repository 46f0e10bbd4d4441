#pragma once
// The library's exceptions. Each message is one sentence that says what is wrong, with which values, and what to do.

#include <memory>
#include <stdexcept>
#include <string>

namespace levin {

/// Base of all of Levin's exceptions.
class Error : public std::runtime_error {
 public:
  /// Where an error arose, as seen from the outermost module whose forward it has left.
  struct Origin {
    const void* outermost;  ///< that module
    std::string path;       ///< "layers.3.conv1", or empty for the outermost module itself
    std::string type;       ///< the class of the module at the path: "Conv2d"
    std::string message;    ///< returned by what()
  };

  using std::runtime_error::runtime_error;
  /// Returns the message, after the path and the class of the module where the error arose, if that is not the module
  /// that the program called: "in layers.3.conv1 (Conv2d): [conv2d] ...".
  const char* what() const noexcept override;
  /// Returns null for an error that has not left a module.
  const Origin* origin() const { return origin_.get(); }
  /// Called by the modules that the error leaves, from the innermost to the outermost.
  void set_origin(const void* outermost, std::string path, std::string type);

 private:
  std::shared_ptr<const Origin> origin_;  // shared, since copies of an exception must not throw
};

/// Sizes, ranks or strides do not fit the operation.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A data type is not accepted, or two data types that must agree differ.
class DTypeError : public Error {
 public:
  using Error::Error;
};

/// A device is missing or not part of this build, or two tensors are on different devices.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// An index or axis is out of range.
class IndexError : public Error {
 public:
  using Error::Error;
};

/// An argument has an invalid value.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// The gradient graph was misused: backward ran twice, a saved tensor was modified in place, or a backward is missing.
class GradError : public Error {
 public:
  using Error::Error;
};

/// Training diverged: loss scaling skipped too many steps in a row.
class LossDiverged : public Error {
 public:
  using Error::Error;
};

/// A file could not be read or written, or its contents are not as expected.
class IoError : public Error {
 public:
  using Error::Error;
};

/// Memory ran out, or the allocator's cap was reached. The allocator remains usable.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A state dictionary or checkpoint does not fit what it is loaded into.
class StateError : public Error {
 public:
  using Error::Error;
};

/// A command line, flag or configuration is invalid. Programs exit with status 2 on this error.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace levin
