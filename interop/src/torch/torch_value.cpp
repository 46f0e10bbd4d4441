#include <levin/core/error.h>
#include <levin/interop/torch_file.h>

#include "pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <unordered_set>

namespace levin::interop {

using detail::DictNode;
using detail::key_text;
using detail::ListNode;
using detail::Node;
using detail::NodeId;
using detail::PickleDocument;

namespace {

constexpr std::size_t kLongestName = 1000;  // bytes of a tensor's dotted name
constexpr std::size_t kShown = 10;          // keys in an error, items of a list in to_string

struct KindOf {
  TorchValue::Kind operator()(std::monostate) const { return TorchValue::Kind::none; }
  TorchValue::Kind operator()(bool) const { return TorchValue::Kind::boolean; }
  TorchValue::Kind operator()(std::int64_t) const { return TorchValue::Kind::integer; }
  TorchValue::Kind operator()(double) const { return TorchValue::Kind::floating; }
  TorchValue::Kind operator()(const std::string&) const { return TorchValue::Kind::text; }
  TorchValue::Kind operator()(const Tensor&) const { return TorchValue::Kind::tensor; }
  TorchValue::Kind operator()(const ListNode&) const { return TorchValue::Kind::list; }
  TorchValue::Kind operator()(const DictNode&) const { return TorchValue::Kind::dict; }
  template <class Other>
  TorchValue::Kind operator()(const Other&) const { return TorchValue::Kind::none; }  // check_values refuses them
};

TorchValue::Kind kind_of(const Node& node) { return std::visit(KindOf(), node); }

constexpr const char* kKindNames[] = {"None", "a bool", "an integer", "a float", "a text", "a tensor", "a list",
                                      "a dictionary"};

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

/// Calls f(path, node) for all values that are neither lists nor dictionaries; where `enter` is false, for those too.
template <class F, class Enter>
void visit_values(const PickleDocument& document, NodeId id, const std::string& path, const Enter& enter, const F& f) {
  const Node& node = document.nodes[id];
  if (!enter(node)) return f(path, node);
  if (const ListNode* list = std::get_if<ListNode>(&node)) {
    for (std::size_t i = 0; i < list->items.size(); ++i)
      visit_values(document, list->items[i], joined(path, std::to_string(i)), enter, f);
  } else if (const DictNode* dict = std::get_if<DictNode>(&node)) {
    for (std::size_t i = 0; i < dict->items.size(); i += 2)
      visit_values(document, dict->items[i + 1], joined(path, *key_text(document.nodes[dict->items[i]])), enter, f);
  } else {
    f(path, node);
  }
}

std::string scalar_text(const Node& node) {
  if (const bool* flag = std::get_if<bool>(&node)) return *flag ? "True" : "False";
  if (const std::int64_t* number = std::get_if<std::int64_t>(&node)) return std::to_string(*number);
  if (const double* number = std::get_if<double>(&node)) return fmt::format("{}", *number);
  if (const std::string* text = std::get_if<std::string>(&node)) return '"' + detail::printable(*text) + '"';
  if (const Tensor* t = std::get_if<Tensor>(&node))
    return fmt::format("{} {}", name_of(t->dtype()), to_string(t->sizes()));
  if (std::holds_alternative<ListNode>(node)) return "[]";
  return std::holds_alternative<DictNode>(node) ? "{}" : "None";
}

}  // namespace

TorchValue::TorchValue(std::shared_ptr<const PickleDocument> document, std::uint32_t node, std::string path)
    : document_(std::move(document)), node_(node), path_(std::move(path)) {}

TorchValue::Kind TorchValue::kind() const { return kind_of(document_->nodes[node_]); }

std::string TorchValue::place() const {
  return path_.empty() ? document_->what : fmt::format("{}: \"{}\"", document_->what, detail::printable(path_));
}

void TorchValue::refuse(const char* wanted) const {
  const char* found = kKindNames[static_cast<int>(kind())];
  throw StateError(fmt::format("[load_torch] {} is {}, not {}.", place(), found, wanted));
}

const Tensor& TorchValue::tensor() const {
  const Tensor* t = std::get_if<Tensor>(&document_->nodes[node_]);
  if (!t) refuse("a tensor");
  return *t;
}

StateDict TorchValue::state_dict() const {
  if (kind() != Kind::dict && kind() != Kind::list) refuse("a dictionary of tensors");
  StateDict out;
  std::unordered_set<std::string> names;
  const auto enter = [](const Node& node) { return kind_of(node) == Kind::dict || kind_of(node) == Kind::list; };
  visit_values(*document_, node_, {}, enter, [&](const std::string& name, const Node& node) {
    const Tensor* t = std::get_if<Tensor>(&node);
    if (!t) return;
    if (name.size() > kLongestName)
      throw StateError(fmt::format("[load_torch] {} has a tensor's name of {} bytes; {} are read.", place(),
                                   name.size(), kLongestName));
    if (!names.insert(name).second)
      throw StateError(fmt::format("[load_torch] {} has two tensors \"{}\". Read its parts one by one.", place(),
                                   detail::printable(name)));
    out.merge("", {{name, *t}});  // names are known to be unique, so no search is needed
  });
  return out;
}

TorchValue TorchValue::operator[](std::string_view key) const {
  const DictNode* dict = std::get_if<DictNode>(&document_->nodes[node_]);
  if (!dict) refuse("a dictionary");
  for (std::size_t i = 0; i < dict->items.size(); i += 2)
    if (*key_text(document_->nodes[dict->items[i]]) == key) return {document_, dict->items[i + 1], joined(path_, key)};
  std::string known;
  const auto all = keys();
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i)
    known += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", detail::printable(all[i]));
  if (all.size() > kShown) known += fmt::format(" and {} more", all.size() - kShown);
  throw StateError(fmt::format("[load_torch] {} has no key \"{}\". Its keys: {}.", place(), detail::printable(key),
                               known.empty() ? "none" : known));
}

TorchValue TorchValue::operator[](std::size_t index) const {
  if (index >= list_size())
    throw IndexError(fmt::format("[load_torch] {} has {} items, so there is no item {}.", place(), list_size(), index));
  const NodeId item = std::get<ListNode>(document_->nodes[node_]).items[index];
  return {document_, item, joined(path_, std::to_string(index))};
}

bool TorchValue::contains(std::string_view key) const {
  const DictNode* dict = std::get_if<DictNode>(&document_->nodes[node_]);
  for (std::size_t i = 0; dict && i < dict->items.size(); i += 2)
    if (*key_text(document_->nodes[dict->items[i]]) == key) return true;
  return false;
}

std::vector<std::string> TorchValue::keys() const {
  const DictNode* dict = std::get_if<DictNode>(&document_->nodes[node_]);
  if (!dict) refuse("a dictionary");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < dict->items.size(); i += 2) out.push_back(*key_text(document_->nodes[dict->items[i]]));
  return out;
}

std::size_t TorchValue::size() const {
  const DictNode* dict = std::get_if<DictNode>(&document_->nodes[node_]);
  return dict ? dict->items.size() / 2 : list_size();
}

std::size_t TorchValue::list_size() const {
  const ListNode* list = std::get_if<ListNode>(&document_->nodes[node_]);
  if (!list) refuse("a list");
  return list->items.size();
}

bool TorchValue::boolean() const {
  const bool* flag = std::get_if<bool>(&document_->nodes[node_]);
  if (!flag) refuse("a bool");
  return *flag;
}

std::int64_t TorchValue::integer(std::int64_t least, std::uint64_t most) const {
  const std::int64_t* number = std::get_if<std::int64_t>(&document_->nodes[node_]);
  if (!number) refuse("an integer");
  if (*number < least || (*number > 0 && static_cast<std::uint64_t>(*number) > most))
    throw StateError(fmt::format("[load_torch] {} is {}, beyond the type that was asked for.", place(), *number));
  return *number;
}

double TorchValue::floating() const {
  const Node& node = document_->nodes[node_];
  if (const std::int64_t* number = std::get_if<std::int64_t>(&node)) return static_cast<double>(*number);
  const double* number = std::get_if<double>(&node);
  if (!number) refuse("a number");
  return *number;
}

const std::string& TorchValue::text() const {
  const std::string* value = std::get_if<std::string>(&document_->nodes[node_]);
  if (!value) refuse("a text");
  return *value;
}

std::string to_string(const TorchValue& value) {
  const PickleDocument& document = *value.document_;
  const auto enter = [&](const Node& node) {  // a list of plain values is one line
    const ListNode* list = std::get_if<ListNode>(&node);
    if (!list) return std::holds_alternative<DictNode>(node) && !std::get<DictNode>(node).items.empty();
    return std::any_of(list->items.begin(), list->items.end(),
                       [&](NodeId id) { return kind_of(document.nodes[id]) >= TorchValue::Kind::tensor; });
  };
  std::string out;
  visit_values(document, value.node_, {}, enter, [&](const std::string& path, const Node& node) {
    std::string text = scalar_text(node);
    if (const ListNode* list = std::get_if<ListNode>(&node)) {
      text = "[";
      for (std::size_t i = 0; i < std::min(list->items.size(), kShown); ++i)
        text += (i == 0 ? "" : ", ") + scalar_text(document.nodes[list->items[i]]);
      text += list->items.size() > kShown ? fmt::format(", ... {} items]", list->items.size()) : "]";
    }
    out += path.empty() ? text + '\n' : fmt::format("{}: {}\n", detail::printable(path, kLongestName), text);
  });
  return out;
}

std::ostream& operator<<(std::ostream& out, const TorchValue& value) { return out << to_string(value); }

}  // namespace levin::interop
