#include "pickle.h"

#include <fmt/format.h>

#include <unordered_set>

namespace levin::interop::detail {

namespace {

constexpr std::size_t kMostDepth = 100;
constexpr std::size_t kLongestKey = 1000;  // bytes
constexpr std::uint64_t kMostCopies = 1'000'000;  // visits of shared values beyond one visit of each value

const NodeIds* items_of(const Node& node) {
  if (const ListNode* list = std::get_if<ListNode>(&node)) return &list->items;
  if (const DictNode* dict = std::get_if<DictNode>(&node)) return &dict->items;
  return nullptr;
}

/// Walks the values depth first, each once, and adds up how many there would be if shared ones were copied.
class Walk {
 public:
  explicit Walk(const PickleDocument& document) : document_(document), seen_(document.nodes.size()) {}

  void run() {
    enter(document_.root);
    while (!path_.empty()) {
      Level& level = path_.back();
      const NodeIds& items = *items_of(document_.nodes[level.node]);
      if (level.next == items.size()) {
        leave();
      } else {
        enter(items[level.next++]);
      }
    }
  }

 private:
  struct Level {
    NodeId node;
    std::size_t next = 0;
  };
  enum class State : std::uint8_t { fresh, open, done };
  struct Seen {
    State state = State::fresh;
    std::uint64_t visits = 1;  ///< of the value and all below it
  };

  void enter(NodeId id) {
    const Node& node = document_.nodes[id];
    Seen& seen = seen_[id];
    if (seen.state == State::open) refuse_file(document_.what, "has a list that contains itself. Save a plain tree.");
    if (seen.state == State::done) return count(seen.visits);
    if (!items_of(node)) {
      check_leaf(node);
      seen.state = State::done;
      return count(1);
    }
    if (const DictNode* dict = std::get_if<DictNode>(&node)) check_keys(*dict);
    if (path_.size() == kMostDepth)
      refuse_file(document_.what, fmt::format("nests lists more than {} deep. Save a flat one.", kMostDepth));
    seen.state = State::open;
    path_.push_back({id});
  }

  void leave() {
    const NodeId id = path_.back().node;
    path_.pop_back();
    seen_[id].state = State::done;
    count(seen_[id].visits);
  }

  void count(std::uint64_t visits) {
    if (path_.empty()) return;
    std::uint64_t& sum = seen_[path_.back().node].visits;
    sum += visits;
    if (sum > document_.nodes.size() + kMostCopies)
      refuse_file(document_.what, "shares lists within lists so often that it holds millions of values. Save fewer.");
  }

  void check_leaf(const Node& node) const {
    if (std::holds_alternative<StorageNode>(node))
      refuse_file(document_.what, "holds a storage outside of a tensor. Save a tensor instead.");
    if (const GlobalNode* global = std::get_if<GlobalNode>(&node))
      refuse_file(document_.what, fmt::format("holds the class {}. Save its name instead.", printable(global->name)));
  }

  void check_keys(const DictNode& dict) const {
    std::unordered_set<std::string> keys;
    for (std::size_t i = 0; i < dict.items.size(); i += 2) {
      const auto key = key_text(document_.nodes[dict.items[i]]);
      if (!key) refuse_file(document_.what, "has a key that is neither text nor a number. Save texts as keys.");
      if (key->size() > kLongestKey)
        refuse_file(document_.what, fmt::format("has a key of {} bytes; {} are read.", key->size(), kLongestKey));
      if (!keys.insert(*key).second)
        refuse_damage(document_.what, fmt::format("the key \"{}\" occurs twice", printable(*key)));
    }
  }

  const PickleDocument& document_;
  std::vector<Seen> seen_;
  std::vector<Level> path_;
};

}  // namespace

std::optional<std::string> key_text(const Node& key) {
  if (const std::string* text = std::get_if<std::string>(&key)) return *text;
  if (const std::int64_t* number = std::get_if<std::int64_t>(&key)) return std::to_string(*number);
  if (const bool* flag = std::get_if<bool>(&key)) return *flag ? "True" : "False";
  if (const double* number = std::get_if<double>(&key)) return fmt::format("{}", *number);
  if (std::holds_alternative<std::monostate>(key)) return "None";
  return std::nullopt;
}

void check_values(const PickleDocument& document) { Walk(document).run(); }

}  // namespace levin::interop::detail
