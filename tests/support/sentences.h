#pragma once
// The sentences with which functions answer wrong arguments. tests/house/argument_checks_test.cpp finds the checks that
// no test asks for.
#include <levin/core/error.h>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace levin::test {

struct Sentence {
  std::string part;  ///< of the message
  std::function<void()> run;
};

/// Checks that each call throws an Error whose message has the sentence's part.
inline void check_sentences(const std::vector<Sentence>& sentences) {
  for (const Sentence& s : sentences) {
    std::string message = "nothing is thrown";
    try {
      s.run();
    } catch (const Error& e) {
      message = e.what();
    }
    CHECK_MESSAGE(message.find(s.part) != std::string::npos, s.part, " is not in: ", message);
  }
}

}  // namespace levin::test
