#include <levin/core/error.h>
#include <levin/core/io.h>
#include <levin/data/fetch.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

extern char** environ;

namespace levin::data {

namespace fs = std::filesystem;

namespace {

/// Exit status and error output of a program.
struct Outcome {
  int status = -1;  ///< exit status; 127: not found
  std::string said;
};

/// Runs a program without a shell and collects its standard error.
Outcome run(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw IoError(fmt::format("[fetch] no pipe: {}.", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = -1;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome;
  char buffer[512];
  for (ssize_t n = 0; error == 0 && (n = read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (n > 0)
      outcome.said.append(buffer, static_cast<std::size_t>(n));
    else if (errno != EINTR)
      break;
  }
  close(ends[0]);
  if (error != 0) return {127, std::strerror(error)};
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  while (!outcome.said.empty() && outcome.said.back() == '\n') outcome.said.pop_back();
  return outcome;
}

/// Describes an exit status of curl.
std::string reason(const Outcome& o) {
  switch (o.status) {
    case 127:
      return "the program curl is missing (apt-get install curl)";
    case 5:
    case 6:
      return "there is no network, or the host's name is unknown";
    case 7:
      return "there is no connection to the host";
    case 22:
      return "the server does not have it";
    case 28:
      return "the server did not answer in time";
    case 37:
      return "there is no such file";
    default:
      return "curl failed";
  }
}

bool is_good(const fs::path& path, const RemoteFile& file) {
  return fs::is_regular_file(path) && md5(io::read_text(path)) == file.md5;
}

/// Returns an empty text after success, else the reason for the failure.
std::string try_mirror(const std::string& url, const RemoteFile& file, const fs::path& part, const fs::path& path) {
  const Outcome o = run({"curl", "--fail", "--location", "--silent", "--show-error", "--connect-timeout", "20",
                         "--speed-limit", "1", "--speed-time", "60", "--output", part.string(), "--", url});
  if (o.status != 0) return fmt::format("{}: {}{}{}", url, reason(o), o.said.empty() ? "" : ": ", o.said);
  if (!fs::exists(part)) return fmt::format("{}: curl wrote nothing", url);
  const std::string content = io::read_text(part), found = md5(content);
  if (found != file.md5) {
    return fmt::format("{}: its {} bytes have the MD5 {}, not {}", url, content.size(), found, file.md5);
  }
  io::write_file(path, content);
  return {};
}

void fetch_one(const fs::path& dir, const RemoteFile& file, const std::vector<std::string>& mirrors) {
  const fs::path path = dir / file.name;
  if (is_good(path, file)) return;
  const fs::path part = dir / fmt::format(".{}.{}.part", file.name, getpid());
  std::vector<std::string> failures;
  for (const std::string& mirror : mirrors) {
    std::string failure;
    try {
      failure = try_mirror(mirror + file.name, file, part, path);
    } catch (...) {
      fs::remove(part);
      throw;
    }
    fs::remove(part);
    if (failure.empty()) return;
    failures.push_back(std::move(failure));
  }
  throw IoError(fmt::format("[fetch] {} could not be fetched: {}. Copy the file there by hand, or try again later.",
                            path.string(), fmt::join(failures, "; ")));
}

}  // namespace

void fetch(const std::string& dir, const std::vector<RemoteFile>& files, const std::vector<std::string>& mirrors) {
  if (mirrors.empty()) throw ValueError("[fetch] no mirror was given; name one address or more.");
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) {
    throw IoError(
        fmt::format("[fetch] {} could not be made: {}. Choose a folder that you may write to.", dir, error.message()));
  }
  for (const RemoteFile& file : files) fetch_one(dir, file, mirrors);
}

void fetch_mnist(const std::string& dir, const std::vector<std::string>& mirrors) {
  const std::vector<std::string> usual{"https://ossci-datasets.s3.amazonaws.com/mnist/",
                                       "https://storage.googleapis.com/cvdf-datasets/mnist/"};
  fetch(dir,
        {{"train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
         {"train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"},
         {"t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"},
         {"t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"}},
        mirrors.empty() ? usual : mirrors);
}

void fetch_fashion_mnist(const std::string& dir, const std::vector<std::string>& mirrors) {
  const std::vector<std::string> usual{
      "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
      "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"};
  fetch(dir,
        {{"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
         {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"},
         {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"},
         {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"}},
        mirrors.empty() ? usual : mirrors);
}

}  // namespace levin::data
