#include "pickle.h"

#include <levin/core/io/bytes.h>
#include <levin/core/error.h>

#include <fmt/format.h>

#include <bit>
#include <unordered_map>
#include <unordered_set>

namespace levin::interop::detail {

void refuse_file(const std::string& what, const std::string& how) {
  throw IoError(fmt::format("[load_torch] {} {}", what, how));
}

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty() && out.size() < most) {
    const auto first = static_cast<unsigned char>(text.front());
    std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    bool valid = first >= ' ' && first != 0x7f && length > 0 && length <= text.size();
    for (std::size_t i = 1; i < length && valid; ++i) valid = (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80;
    if (!valid) length = 1;
    out += valid ? text.substr(0, length) : "?";
    text.remove_prefix(length);
  }
  return text.empty() ? out : out + "...";
}

void refuse_damage(const std::string& what, const std::string& how) {
  refuse_file(what, fmt::format("is damaged: {}. Use another copy of the file.", how));
}

namespace {

constexpr std::size_t kMostWork = 16'000'000;  // instructions, and items that they copy
constexpr std::size_t kMostIntegerBytes = 255;

/// Returns an integer in two's complement, little-endian; one of more than 64 bits as text in base 16.
Node integer_of(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  if (bytes.size() <= 8) {
    for (std::size_t i = 0; i < 8; ++i)
      value |= (i < bytes.size() ? std::to_integer<std::uint64_t>(bytes[i]) : negative ? 0xff : 0) << (8 * i);
    return std::bit_cast<std::int64_t>(value);
  }
  std::string digits;
  unsigned carry = negative ? 1 : 0;  // the magnitude of a negative number is its complement plus one
  for (const std::byte b : bytes) {
    const unsigned byte = (negative ? ~std::to_integer<unsigned>(b) & 0xffU : std::to_integer<unsigned>(b)) + carry;
    carry = byte >> 8;
    digits = fmt::format("{:02x}", byte & 0xffU) + digits;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return (negative ? "-0x" : "0x") + digits;
}

class Machine {
 public:
  Machine(std::span<const std::byte> pickle, const std::string& what, PickleObjects& objects)
      : rest_(pickle), objects_(objects) {
    document_.what = what;
  }

  PickleDocument run() {
    while (step(byte())) {
    }
    if (stack_.size() != 1 || !marks_.empty()) damaged(fmt::format("it ends with {} values, not 1", stack_.size()));
    if (!rest_.empty()) damaged(fmt::format("{} bytes follow its end", rest_.size()));
    document_.root = stack_.back();
    return std::move(document_);
  }

 private:
  [[noreturn]] void damaged(const std::string& how) const { refuse_damage(document_.what, "in its pickle " + how); }

  // The bytes
  std::span<const std::byte> take(std::uint64_t n) {
    if (n > rest_.size()) damaged(fmt::format("{} bytes are missing", n - rest_.size()));
    const auto taken = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <class T>
  T number() {
    return io::little_endian<T>(take(sizeof(T)));
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  std::string text(std::uint64_t n) {
    const auto bytes = take(n);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string line() {
    std::size_t n = 0;
    while (n < rest_.size() && rest_[n] != std::byte{'\n'}) ++n;
    std::string out = text(n);
    take(1);
    return out;
  }

  /// Bounds the memory and the time that a small file can take.
  void spend(std::size_t n) {
    if (n > kMostWork - work_)
      refuse_file(document_.what, fmt::format("holds more than {} values. Save tensors, not lists.", kMostWork));
    work_ += n;
  }

  // The stack: values above the last mark are free to be taken.
  void push(NodeId id) { stack_.push_back(id); }
  void push(Node node) {
    stack_.push_back(static_cast<NodeId>(document_.nodes.size()));
    document_.nodes.push_back(std::move(node));
  }
  NodeId top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) damaged("a value is missing on the stack");
    return stack_.back();
  }
  NodeId pop() {
    const NodeId id = top();
    stack_.pop_back();
    return id;
  }
  NodeIds pop_to_mark() {
    if (marks_.empty()) damaged("a mark is missing on the stack");
    NodeIds items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  NodeIds pop_several(std::size_t n) {
    NodeIds items(n);
    while (n-- > 0) items[n] = pop();
    return items;
  }
  template <class T>
  const T& as(NodeId id, const char* name) const {
    const T* value = std::get_if<T>(&document_.nodes[id]);
    if (!value) damaged(fmt::format("there is no {} where one is needed", name));
    return *value;
  }

  void remember(std::uint32_t index) { memo_[index] = top(); }
  void recall(std::uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) damaged(fmt::format("value {} was not stored", index));
    push(found->second);
  }

  // Changes of lists and dictionaries
  void append(const NodeIds& items) {
    Node& target = document_.nodes[top()];
    if (ListNode* list = std::get_if<ListNode>(&target)) {
      list->items.insert(list->items.end(), items.begin(), items.end());
    } else if (!std::holds_alternative<DictNode>(target) || !objects_.any_class()) {  // a list class as attributes
      damaged("items are added to what is no list");
    }
  }
  void set_items(const NodeIds& items) {
    DictNode* dict = std::get_if<DictNode>(&document_.nodes[top()]);
    if (!dict) damaged("items are set in what is no dictionary");
    if (items.size() % 2 != 0) damaged("a key has no value");
    dict->items.insert(dict->items.end(), items.begin(), items.end());
  }
  /// Sets attributes. Those of a dictionary, such as the _metadata of a state dict, are left out.
  void build() {
    const NodeId state = pop();
    if (!std::holds_alternative<DictNode>(document_.nodes[top()])) damaged("attributes are set of what is no object");
    if (!attributed_.contains(top())) return;
    const auto add = [&](NodeId from) {
      const DictNode* attributes = std::get_if<DictNode>(&document_.nodes[from]);
      if (!attributes || from == top()) return;
      spend(attributes->items.size());
      set_items(attributes->items);
    };
    if (const ListNode* parts = std::get_if<ListNode>(&document_.nodes[state])) {  // a dictionary, and one of slots
      spend(parts->items.size());
      for (const NodeId part : parts->items) add(part);
    } else {
      add(state);
    }
  }

  void call(NodeId function, const NodeIds& arguments) {
    Node result = objects_.call(as<GlobalNode>(function, "function").name, arguments, document_);
    if (std::holds_alternative<GlobalNode>(result)) {  // an object of an unknown class
      attributed_.insert(static_cast<NodeId>(document_.nodes.size()));
      result = DictNode{};
    }
    if (const ListNode* list = std::get_if<ListNode>(&result)) spend(list->items.size());
    if (const DictNode* dict = std::get_if<DictNode>(&result)) spend(dict->items.size());
    if (const std::string* text = std::get_if<std::string>(&result)) spend(text->size() / 16);
    push(std::move(result));
  }
  void reduce() {
    const NodeId arguments = pop(), function = pop();
    call(function, as<ListNode>(arguments, "tuple of arguments").items);
  }

  bool step(std::uint8_t op);
  bool step_number(std::uint8_t op);
  bool step_text(std::uint8_t op);
  bool step_container(std::uint8_t op);
  bool step_stack(std::uint8_t op);
  bool step_object(std::uint8_t op);

  std::span<const std::byte> rest_;
  PickleObjects& objects_;
  PickleDocument document_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, NodeId> memo_;
  std::unordered_set<NodeId> attributed_;  // objects of unknown classes
  std::size_t work_ = 0;
};

/// Runs one instruction; returns false at the end.
bool Machine::step(std::uint8_t op) {
  if (op == '.') return false;
  spend(1);
  if (step_number(op) || step_text(op) || step_container(op) || step_stack(op) || step_object(op)) return true;
  damaged(fmt::format("instruction {:#04x} is none of those that torch.save writes", op));
}

bool Machine::step_number(std::uint8_t op) {
  switch (op) {
    case 'N': push(Node()); break;
    case 0x88: push(Node(true)); break;
    case 0x89: push(Node(false)); break;
    case 'K': push(Node(std::int64_t{byte()})); break;
    case 'M': push(Node(std::int64_t{number<std::uint16_t>()})); break;
    case 'J': push(Node(std::int64_t{static_cast<std::int32_t>(number<std::uint32_t>())})); break;
    case 0x8a: push(integer_of(take(byte()))); break;
    case 0x8b: {
      const auto size = number<std::uint32_t>();
      if (size > kMostIntegerBytes) damaged(fmt::format("an integer has {} bytes", size));
      push(integer_of(take(size)));
      break;
    }
    case 'G': {  // big-endian
      std::uint64_t bits = 0;
      for (const std::byte b : take(8)) bits = bits << 8 | std::to_integer<std::uint64_t>(b);
      push(Node(std::bit_cast<double>(bits)));
      break;
    }
    default: return false;
  }
  return true;
}

bool Machine::step_text(std::uint8_t op) {
  switch (op) {
    case 'U': case 'C': case 0x8c: push(Node(text(byte()))); break;
    case 'T': case 'B': case 'X': push(Node(text(number<std::uint32_t>()))); break;
    case 0x8d: case 0x8e: case 0x96: push(Node(text(number<std::uint64_t>()))); break;
    default: return false;
  }
  return true;
}

bool Machine::step_container(std::uint8_t op) {
  switch (op) {
    case ']': case ')': case 0x8f: push(Node(ListNode{})); break;
    case '}': push(Node(DictNode{})); break;
    case 't': case 0x91: push(Node(ListNode{pop_to_mark()})); break;
    case 0x85: case 0x86: case 0x87: push(Node(ListNode{pop_several(op - 0x84U)})); break;
    case 'a': append({pop()}); break;
    case 'e': case 0x90: append(pop_to_mark()); break;
    case 's': set_items(pop_several(2)); break;
    case 'u': set_items(pop_to_mark()); break;
    default: return false;
  }
  return true;
}

bool Machine::step_stack(std::uint8_t op) {
  switch (op) {
    case 0x80:
      if (const int protocol = byte(); protocol < 2 || protocol > 5)
        damaged(fmt::format("protocol {} is not one of 2 to 5", protocol));
      break;
    case 0x95: take(8); break;  // the length of a frame, which only serves readers of streams
    case '(': marks_.push_back(stack_.size()); break;
    case '0': pop(); break;
    case '1': pop_to_mark(); break;
    case 'q': remember(byte()); break;
    case 'r': remember(number<std::uint32_t>()); break;
    case 0x94: remember(static_cast<std::uint32_t>(memo_.size())); break;
    case 'h': recall(byte()); break;
    case 'j': recall(number<std::uint32_t>()); break;
    default: return false;
  }
  return true;
}

bool Machine::step_object(std::uint8_t op) {
  switch (op) {
    case 'c': {
      const std::string module = line();
      push(objects_.global(module + "." + line()));
      break;
    }
    case 0x93: {
      const NodeId name = pop(), module = pop();
      push(objects_.global(as<std::string>(module, "name") + "." + as<std::string>(name, "name")));
      break;
    }
    case 'R': case 0x81: reduce(); break;
    case 0x92:  // with keyword arguments, which only unknown classes have
      pop();
      reduce();
      break;
    case 'b': build(); break;
    case 'Q': push(objects_.persistent(document_.nodes[pop()], document_)); break;
    default: return false;
  }
  return true;
}

}  // namespace

PickleDocument read_pickle(std::span<const std::byte> pickle, const std::string& what, PickleObjects& objects) {
  PickleDocument document = Machine(pickle, what, objects).run();
  check_values(document);
  return document;
}

}  // namespace levin::interop::detail
