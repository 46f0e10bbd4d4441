#pragma once
// Downloads by the program curl, verified before they are used.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace levin::data {

/// The expected content of a URL, verified by the MD5 that the authors of the dataset publish. It detects accidents,
/// not attacks.
struct RemoteFile {
  std::string name;  ///< of the file; the end of its URL
  std::string md5;   ///< 32 hexadecimal digits
};

/// Downloads the files that are missing or damaged in `dir` from the first of `mirrors` that serves them; a URL is
/// mirror + name. A file gets its name only after its checksum matched. Throws IoError with the URLs tried and the
/// cause: no network, no such file, a wrong checksum, or no curl; ValueError without mirrors.
void fetch(const std::string& dir, const std::vector<RemoteFile>& files, const std::vector<std::string>& mirrors);

/// Download the four files that Mnist and FashionMnist read, from the usual addresses unless mirrors are given.
void fetch_mnist(const std::string& dir, const std::vector<std::string>& mirrors = {});
void fetch_fashion_mnist(const std::string& dir, const std::vector<std::string>& mirrors = {});

/// Returns the MD5 (RFC 1321) as 32 hexadecimal digits.
std::string md5(std::string_view bytes);

}  // namespace levin::data
