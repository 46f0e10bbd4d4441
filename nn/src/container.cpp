#include <levin/autograd/record.h>
#include <levin/nn/container.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::nn {

Module& Sequential::operator[](std::size_t i) const {
  if (i >= size()) throw IndexError(fmt::format("[Sequential] index {} is outside of {} modules.", i, size()));
  return child(i);
}

void Sequential::append(std::unique_ptr<Module> module) {
  passes_lists_ |= !module->takes_one_tensor();
  adopt(std::to_string(size()), std::move(module));
}

Tensor Sequential::forward(const Tensor& x) {
  if (!passes_lists_) {
    Tensor y = x;
    for (std::size_t i = 0; i < size(); ++i) {
      Module& module = child(i);
      if (i > 0 && !module.has_hooks() && y.is_floating() && is_spare(y) && module.forward_in_place(y)) continue;
      y = module(y);
    }
    return y;
  }
  const auto results = call_range(0, size(), {x});
  if (results.size() == 1) return results[0];
  throw ValueError(
      fmt::format("[Sequential] its last module, \"{}\" ({}), returns {} tensors, and a Sequential returns "
                  "one. Append a module that selects or combines them.",
                  size() - 1, child(size() - 1).type_name(), results.size()));
}

std::vector<Tensor> Sequential::call_range(std::size_t first, std::size_t last, std::vector<Tensor> tensors) const {
  for (std::size_t i = first; i < last; ++i) {
    Module& module = child(i);
    if (!module.takes_one_tensor())
      tensors = module.call(tensors);
    else if (tensors.size() == 1)
      tensors[0] = module(tensors[0]);
    else
      throw ValueError(
          fmt::format("[Sequential] \"{}\" ({}) takes one tensor, and \"{}\" ({}) before it returned {}. "
                      "Put a module between them that selects or combines them.",
                      i, module.type_name(), i - 1, child(i - 1).type_name(), tensors.size()));
  }
  return tensors;
}

std::unique_ptr<Module> Sequential::fresh() const {
  auto copy = std::make_unique<Sequential>();
  for (std::size_t i = 0; i < size(); ++i) {
    auto one = child(i).fresh();
    if (!one) return nullptr;
    copy->append(std::move(one));
  }
  return copy;
}

Lambda::Lambda(std::function<Tensor(const Tensor&)> f) : function_(std::move(f)) {
  if (!function_) throw ValueError("[Lambda] the function is empty.");
}

Parameter& ParameterDict::append(const std::string& name, const Tensor& value) {
  Parameter& place = register_parameter(name, value);
  names_.push_back(name);
  places_.push_back(&place);
  return place;
}

bool ParameterDict::contains(const std::string& name) const { return std::ranges::count(names_, name) > 0; }

Parameter& ParameterDict::operator[](const std::string& name) const {
  for (std::size_t i = 0; i < size(); ++i)
    if (names_[i] == name) return *places_[i];
  throw ValueError(
      fmt::format("[ParameterDict] there is no parameter \"{}\"; there are: {}.", name, fmt::join(names_, ", ")));
}

std::unique_ptr<Module> ParameterDict::fresh() const {
  auto copy = std::make_unique<ParameterDict>();
  for (std::size_t i = 0; i < size(); ++i)
    copy->append(names_[i], places_[i]->defined() ? places_[i]->detach().clone() : Tensor());
  return copy;
}

ParameterList::ParameterList(const std::vector<Tensor>& values) {
  for (const Tensor& v : values) append(v);
}

Parameter& ParameterList::append(const Tensor& value) {
  Parameter& place = register_parameter(std::to_string(size()), value);
  places_.push_back(&place);
  return place;
}

Parameter& ParameterList::operator[](std::size_t i) const {
  if (i >= size()) throw IndexError(fmt::format("[ParameterList] index {} is outside of {} parameters.", i, size()));
  return *places_[i];
}

std::unique_ptr<Module> ParameterList::fresh() const {
  auto copy = std::make_unique<ParameterList>();
  for (const Parameter* p : places_) copy->append(p->defined() ? p->detach().clone() : Tensor());
  return copy;
}

}  // namespace levin::nn
