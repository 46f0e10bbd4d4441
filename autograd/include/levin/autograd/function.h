#pragma once
// Custom operations with their own backward:
//
//   struct Cube : Function<Cube> {
//     static Tensor forward(Context& c, const Tensor& x) { c.save(x); return x * x * x; }
//     static Tensor backward(Context& c, const Tensor& g) { return g * 3.f * square(c.saved(0)); }
//   };
//   Tensor y = Cube::apply(x);
//
// backward is recorded under create_graph, so gradients of gradients work when it uses public operations. If it does
// not, declare `static constexpr bool once_differentiable = true;` in the struct, and a second backward throws
// GradError.
//
// forward may edit inputs in place and return them after c.mark_dirty({x}), and name results without a gradient by
// c.mark_non_differentiable({indices}). An input that is returned unchanged is returned as a view.

#include <levin/autograd/node.h>

#include <utility>

namespace levin {

namespace detail {
/// Adds the outputs to the graph through `node`. Called after forward.
void attach_custom(const NodePtr& node, std::span<const Tensor> inputs, std::span<Tensor> outputs);
/// Replaces undefined gradients by zeros, so that backward functions always get defined tensors, unless
/// set_materialize_grads(false) was called.
std::vector<Tensor> materialize(const Node& node, std::span<const Tensor> grads);

/// Lets a second backward through these gradients, computed without recording, throw.
void refuse_second(std::span<const Tensor> incoming, Grads& gradients);
template <class Derived>
concept OnceDifferentiable = requires { requires Derived::once_differentiable; };

void append_tensors(std::vector<Tensor>& list, const Tensor& t);
void append_tensors(std::vector<Tensor>& list, const std::vector<Tensor>& t);
template <class T>
void append_tensors(std::vector<Tensor>&, const T&) {}
}  // namespace detail

/// Base class of a custom operation (CRTP). `forward(Context&, args...)` returns a Tensor or a vector<Tensor>; the
/// tensors among the arguments, in order, are the inputs. `backward(Context&, const Tensor& g)` or `backward(Context&,
/// const std::vector<Tensor>& gs)` returns a Tensor or a vector<Tensor>, with one gradient per input.
template <class Derived>
class Function {
 public:
  /// Runs forward without recording, adds the operation to the graph if one of the input tensors requires grad, and
  /// returns forward's result.
  template <class... Args>
  static auto apply(const Args&... args) {
    auto node = make_intrusive<Node>("Function");
    std::vector<Tensor> inputs;
    (detail::append_tensors(inputs, args), ...);
    bool recorded = false;
    for (const Tensor& t : inputs) {
      Edge edge = grad_enabled() && t.defined() ? gradient_edge(t) : Edge{};
      recorded = recorded || edge;
      node->edges.push_back(std::move(edge));
    }
    if (!recorded) node->save_nothing();
    auto result = [&] {
      no_grad guard;
      return Derived::forward(static_cast<Context&>(*node), args...);
    }();
    node->multi_backward = [](Context& c, std::span<const Tensor> grads) -> Grads {
      const auto full = detail::materialize(static_cast<Node&>(c), grads);
      Grads list;
      const auto run = [&] {
        if constexpr (requires { Derived::backward(c, full); }) {
          append(list, Derived::backward(c, full));
        } else {
          append(list, Derived::backward(c, full[0]));
        }
      };
      if constexpr (detail::OnceDifferentiable<Derived>) {
        {
          no_grad guard;
          run();
        }
        detail::refuse_second(full, list);
      } else {
        run();
      }
      return list;
    };
    std::vector<Tensor> outputs;
    detail::append_tensors(outputs, result);
    detail::attach_custom(node, inputs, outputs);
    if constexpr (std::is_same_v<decltype(result), Tensor>)
      result = outputs[0];
    else
      result = outputs;
    return result;
  }

 private:
  static void append(Grads& list, Tensor t) { list.push_back(std::move(t)); }
  static void append(Grads& list, std::vector<Tensor> ts) {
    for (Tensor& t : ts) list.push_back(std::move(t));
  }
};

}  // namespace levin
