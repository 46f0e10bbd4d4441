#pragma once

#include <functional>
#include <string_view>

namespace levin::data::detail {

/// Number of bytes of the UTF-8 character at the front of a text that is not empty; 1 if there is no valid one.
std::size_t character_length(std::string_view text);

/// Splits text as GPT-2 does: contractions ('s, 't, 're, 've, 'm, 'll, 'd), runs of letters, of numbers and of other
/// characters, each with one space before it, and runs of white space. The pieces together are the text.
void split_words(std::string_view text, const std::function<void(std::string_view word)>& take);

}  // namespace levin::data::detail
