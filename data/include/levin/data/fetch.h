#pragma once
// Files from the network, by the program curl, checked before they are used.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace levin::data {

/// The expected content of a URL, checked by its MD5, which the data sets' authors publish. (It finds accidents, not
/// attacks.)
struct RemoteFile {
  std::string name;
  std::string md5;  ///< 32 hexadecimal digits
};

/// Fetches the files that `dir` lacks, or holds damaged, from the first of `mirrors` that gives them; each URL is
/// mirror
/// + name. A file takes its name only after its checksum matched. Throws IoError that says what was tried, and whether
/// there is no network, no such file, a wrong checksum, or no curl.
void fetch(const std::filesystem::path& dir, const std::vector<RemoteFile>& files,
           const std::vector<std::string>& mirrors);

/// The four files of MNIST or Fashion-MNIST, as Mnist and FashionMnist read them.
void fetch_mnist(const std::filesystem::path& dir, const std::vector<std::string>& mirrors = {});
void fetch_fashion_mnist(const std::filesystem::path& dir, const std::vector<std::string>& mirrors = {});

/// MD5 (RFC 1321) as 32 hexadecimal digits.
std::string md5(std::string_view bytes);

}  // namespace levin::data
