// Backward: gradients flow from the outputs to the leaves; each node runs once, when all of its gradients have arrived.
// Ready nodes run latest first, so the order, and with it every sum, is the same in every run.

#include "autograd_meta.h"
#include "errors.h"
#include "ops/autocast.h"
#include "row_gradients.h"
#include "task_table.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops/complex.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>

#include <algorithm>

namespace levin {

namespace {

/// The state of a node in one backward pass.
struct Task {
  Node* node;
  int waiting = 0;        ///< number of gradients still to come
  bool wanted = true;     ///< true if it leads to a requested gradient
  bool captured = false;  ///< true if its own gradient is requested
  InlineVector<Tensor, 1> grads;
  InlineVector<bool, 1> owned;  ///< true if the sum was created here and may be added to in place
};

/// An input of grad() or of backward(inputs), where the gradient is captured.
struct Capture {
  Edge edge;
  Tensor grad;
};

/// Callbacks that hooks register for the end of the pass; belongs to the outermost pass of a thread.
class EndCalls {
 public:
  EndCalls() {
    if (current_ == nullptr) current_ = this;
  }
  ~EndCalls() {
    if (current_ == this) current_ = nullptr;
    for (const Call& c : calls_) c.failed();
  }
  EndCalls(const EndCalls&) = delete;
  EndCalls& operator=(const EndCalls&) = delete;

  void finish() {
    if (current_ == this) current_ = nullptr;
    const auto calls = std::exchange(calls_, {});
    for (const Call& c : calls) c.done();
  }
  static void add(std::function<void()> done, std::function<void()> failed) {
    if (current_ == nullptr) throw GradError("[on_backward_end] no backward pass runs in this thread.");
    current_->calls_.push_back({std::move(done), std::move(failed)});
  }

 private:
  struct Call {
    std::function<void()> done, failed;
  };
  std::vector<Call> calls_;
  static inline thread_local EndCalls* current_ = nullptr;
};

class Pass {
 public:
  Pass(bool keep_graph, bool create_graph, bool accumulate, std::vector<Capture>* captures)
      : keep_graph_(keep_graph), create_graph_(create_graph), accumulate_(accumulate), captures_(captures) {}

  void run(std::span<const Edge> roots, std::span<const Tensor> gradients) {
    const ops::AutocastOff off;  // gradients have the types that forward chose
    EndCalls end;
    discover(roots);
    if (captures_) mark_wanted();
    GradMode mode(create_graph_);
    for (std::size_t i = 0; i < roots.size(); ++i) deliver(roots[i], gradients[i]);
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), Later{this});
      const int t = ready_.back();
      ready_.pop_back();
      execute(tasks_[static_cast<std::size_t>(t)]);
    }
    end.finish();
  }

 private:
  struct Later {
    Pass* pass;
    bool operator()(int a, int b) const { return pass->priority(a) < pass->priority(b); }
  };
  // Accumulators run first: their hooks start communication, and memory is freed early.
  std::uint64_t priority(int t) const {
    const Node* n = tasks_[static_cast<std::size_t>(t)].node;
    return n->accumulates ? ~std::uint64_t{0} - n->sequence() : n->sequence();
  }

  int task_of(const NodePtr& node) {
    int& t = table_.at(node.get());
    if (t < 0) {
      t = static_cast<int>(tasks_.size());
      tasks_.push_back({node.get(), 0, true, false, {}, {}});
      keep_alive_.push_back(node);
    }
    return t;
  }

  void discover(std::span<const Edge> roots) {
    for (const Edge& e : roots) ++tasks_[static_cast<std::size_t>(task_of(e.node))].waiting;
    for (std::size_t i = 0; i < tasks_.size(); ++i)  // the list grows during the loop: breadth first, each node once
      for (const Edge& e : tasks_[i].node->edges)
        if (e) {
          const int t = task_of(e.node);
          ++tasks_[static_cast<std::size_t>(t)].waiting;
        }
  }

  /// Marks the nodes from which a capture can be reached; only these have to run.
  void mark_wanted() {
    std::vector<std::vector<int>> consumers(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i].wanted = false;
      for (const Edge& e : tasks_[i].node->edges)
        if (e) consumers[static_cast<std::size_t>(table_.at(e.node.get()))].push_back(static_cast<int>(i));
    }
    std::vector<int> frontier;
    for (const Capture& c : *captures_)
      if (const int t = table_.at(c.edge.node.get()); t >= 0) {
        tasks_[static_cast<std::size_t>(t)].captured = true;
        const auto& above = consumers[static_cast<std::size_t>(t)];
        frontier.insert(frontier.end(), above.begin(), above.end());
      }
    while (!frontier.empty()) {
      const auto t = static_cast<std::size_t>(frontier.back());
      frontier.pop_back();
      if (std::exchange(tasks_[t].wanted, true)) continue;
      frontier.insert(frontier.end(), consumers[t].begin(), consumers[t].end());
    }
  }

  void deliver(const Edge& edge, const Tensor& grad) {
    const int t = table_.at(edge.node.get());
    Task& task = tasks_[static_cast<std::size_t>(t)];
    if (grad.defined()) add(task, static_cast<int>(edge.output), grad);
    if (--task.waiting == 0) {
      ready_.push_back(t);
      std::push_heap(ready_.begin(), ready_.end(), Later{this});
    }
  }

  void add(Task& task, int output, const Tensor& grad) {
    if (task.grads.size() <= output) {
      task.grads.resize(output + 1);
      task.owned.resize(output + 1);
    }
    Tensor& sum = task.grads[output];
    if (!sum.defined()) {
      sum = grad;
    } else if (carried_rows(sum) || carried_rows(grad)) {
      sum = sum_with_rows(sum, grad);
      task.owned[output] = true;
    } else if (task.owned[output] && !create_graph_) {
      sum.add_(grad);
    } else {
      sum = levin::add(sum, grad);
      task.owned[output] = true;
    }
  }

  void execute(Task& task) {
    Node& node = *task.node;
    InlineVector<Tensor, 1> grads = std::move(task.grads);
    grads.resize(std::max(grads.size(), std::max(1, node.outputs.size())));
    if (node.hooks) run_output_hooks(node, grads);
    if (captures_)
      for (Capture& c : *captures_)
        if (c.edge.node.get() == &node) c.grad = without_rows(grads[static_cast<int>(c.edge.output)]);
    if (!task.wanted) return pass_nothing(node);
    if (node.accumulates) {
      if (accumulate_) accumulate(node, grads[0]);
      return;
    }
    const bool watched = node.hooks && !node.hooks->after.empty();
    // The gradients that post-hooks see are held, so that nothing writes over them.
    const InlineVector<Tensor, 1> shown = watched ? grads : InlineVector<Tensor, 1>();
    Grads results = compute(node, grads);
    if (watched) run_after_hooks(node, results, shown);
    for (int i = 0; i < node.edges.size(); ++i)
      if (const Edge& e = node.edges[i]) deliver(e, i < results.size() ? fit(node, i, results[i]) : Tensor());
  }

  void pass_nothing(Node& node) {
    for (const Edge& e : node.edges)
      if (e) deliver(e, {});
  }

  /// Returns, as bits, the inputs whose gradients lead to no request: the weight, if only the gradient of x is wanted.
  std::uint64_t unused_inputs(const Node& node) {
    std::uint64_t bits = 0;
    if (!captures_) return bits;
    for (int i = 0; i < std::min(64, node.edges.size()); ++i) {
      const Edge& e = node.edges[i];
      if (!e) continue;
      const Task& task = tasks_[static_cast<std::size_t>(table_.at(e.node.get()))];
      if (!task.wanted && !task.captured) bits |= std::uint64_t{1} << i;
    }
    return bits;
  }

  Grads compute(Node& node, InlineVector<Tensor, 1>& grads) {
    bool any = false;
    for (const Tensor& g : grads) any = any || g.defined();
    Grads results;
    if (any) {
      node.skip(unused_inputs(node));
      if (node.backward) {
        results = node.backward(node, grads[0]);
      } else if (node.multi_backward) {
        results = node.multi_backward(node, {grads.data(), static_cast<std::size_t>(grads.size())});
      } else {
        fail<GradError>("[{}] this operation has no backward; use detach() or no_grad if none is wanted.", node.name());
      }
      if (anomaly_enabled()) check_nan(node, results);
    }
    if (!keep_graph_) node.release();
    return results;
  }

  static void check_nan(const Node& node, const Grads& results) {
    no_grad guard;
    for (int i = 0; i < results.size(); ++i)
      if (results[i].defined() && any_nan(results[i]))
        fail<GradError>(
            "[backward] the gradient of input {} of the forward operation \"{}\" (number {} recorded, input of shape "
            "{}) has NaN.",
            i, node.name(), node.sequence(), i < node.inputs.size() ? to_string(node.inputs[i].sizes) : "?");
  }
  static bool any_nan(const Tensor& t) {
    if (const RowGradient* g = carried_rows(t)) return any_nan(g->rows);
    if (t.is_complex()) return any_nan(view_as_real(t));
    return t.is_floating() && levin::any(isnan(t)).item<bool>();
  }

  /// Undoes broadcasting and restores the type, once for all operations.
  static Tensor fit(const Node& node, int i, const Tensor& grad) {
    if (!grad.defined() || i >= node.inputs.size()) return grad;
    const TensorMeta& meta = node.inputs[i];
    Tensor g = grad.sizes() == meta.sizes ? grad : sum_to_size(grad, meta.sizes);
    return g.dtype() == meta.dtype ? g : to(g, meta.dtype);
  }

  static void run_output_hooks(Node& node, InlineVector<Tensor, 1>& grads) {
    if (carried_rows(grads[0]) && !(node.hooks->tensor.empty() && node.hooks->before.empty()))
      throw GradError(
          "[register_hook] a hook cannot see the row-wise gradient of embedding() with sparse = true; register it by "
          "register_post_accumulate_grad_hook and read row_grad(x), or use sparse = false.");
    for (std::size_t i = 0; i < node.hooks->tensor.size(); ++i) {
      const auto hook = node.hooks->tensor[i];
      Tensor& g = grads[static_cast<int>(hook.output)];
      if (!g.defined()) continue;
      if (const Tensor replaced = hook.call(g); replaced.defined()) g = replaced;
    }
    for (const auto& [output, impl] : node.hooks->retained)
      if (const Tensor& g = grads[static_cast<int>(output)]; g.defined())
        static_cast<AutogradMeta*>(impl->autograd.get())->grad = g;
    if (node.hooks->before.empty()) return;
    std::vector<Tensor> list(grads.begin(), grads.end());
    for (const auto& hook : node.hooks->before) hook.call(list);
    for (int i = 0; i < grads.size(); ++i) grads[i] = list[static_cast<std::size_t>(i)];
  }

  static void run_after_hooks(Node& node, Grads& results, const InlineVector<Tensor, 1>& grads) {
    std::vector<Tensor> inputs(results.begin(), results.end());
    const std::vector<Tensor> outputs(grads.begin(), grads.end());
    for (const auto& hook : node.hooks->after) hook.call(inputs, outputs);
    for (int i = 0; i < results.size(); ++i) results[i] = inputs[static_cast<std::size_t>(i)];
  }

  void accumulate(Node& node, const Tensor& grad) {
    if (!grad.defined() || !node.leaf) return;
    const Tensor leaf{TensorImplPtr(node.leaf)};
    AutogradMeta& meta = make_meta(leaf);
    Tensor& slot = meta.grad;
    if (meta.rows || carried_rows(grad)) {
      accumulate_rows(leaf, grad);
    } else if (!slot.defined()) {
      // A gradient that is shared, or that is a view, is copied: grad() belongs to the leaf alone.
      slot = create_graph_ || (is_sole_owner(grad) && grad.is_contiguous()) ? grad : clone(grad);
    } else if (create_graph_) {
      slot = levin::add(slot, grad);
    } else {
      slot.add_(grad);
    }
    if (node.hooks)
      for (std::size_t i = 0; i < node.hooks->accumulated.size(); ++i) {
        const auto hook = node.hooks->accumulated[i];
        hook.call(leaf);
      }
  }

  bool keep_graph_, create_graph_, accumulate_;
  std::vector<Capture>* captures_;
  std::vector<Task> tasks_;
  std::vector<NodePtr> keep_alive_;
  TaskTable table_;
  std::vector<int> ready_;
};

/// Checks the outputs and fills in missing gradients.
std::vector<Tensor> starting_gradients(const char* op, std::span<const Tensor> outputs, std::span<const Tensor> given) {
  if (!given.empty() && given.size() != outputs.size())
    fail<ValueError>("[{}] {} outputs but {} gradients.", op, outputs.size(), given.size());
  std::vector<Tensor> gradients;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.requires_grad())
      fail<GradError>(
          "[{}] the output does not require grad: nothing it was computed from does, or it was made under no_grad.",
          op);
    if (!given.empty() && given[i].defined()) {
      if (given[i].sizes() != y.sizes())
        fail<ShapeError>("[{}] the output has shape {}, its gradient {}.", op, y.sizes(), given[i].sizes());
      gradients.push_back(given[i].dtype() == y.dtype() ? given[i] : to(given[i], y.dtype()));
    } else if (y.is_complex()) {
      fail<GradError>("[{}] the output is {}; give its gradient, or make the output real, e.g. by abs.", op, y.dtype());
    } else if (y.numel() == 1) {
      gradients.push_back(ones(y.sizes(), like(y)));
    } else {
      fail<GradError>(
          "[{}] the output has shape {}; without a gradient for it only a single element will do. Reduce it first, or "
          "pass the gradient.",
          op, y.sizes());
    }
  }
  return gradients;
}

std::vector<Capture> captures_of(const char* op, std::span<const Tensor> inputs) {
  std::vector<Capture> captures;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Edge edge = gradient_edge(inputs[i]);
    if (!edge) fail<GradError>("[{}] input {} does not require grad.", op, i);
    captures.push_back({std::move(edge), {}});
  }
  return captures;
}

std::vector<Edge> roots_of(std::span<const Tensor> outputs) {
  std::vector<Edge> roots;
  for (const Tensor& y : outputs) roots.push_back(gradient_edge(y));
  return roots;
}

}  // namespace

void on_backward_end(std::function<void()> done, std::function<void()> failed) {
  EndCalls::add(std::move(done), std::move(failed));
}

void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients, const BackwardOptions& options,
              std::span<const Tensor> inputs) {
  const std::vector<Tensor> start = starting_gradients("backward", outputs, gradients);
  std::vector<Capture> captures = captures_of("backward", inputs);
  const bool keep = options.retain_graph || options.create_graph;
  Pass(keep, options.create_graph, /*accumulate=*/inputs.empty(), inputs.empty() ? nullptr : &captures)
      .run(roots_of(outputs), start);
  GradMode mode(options.create_graph);
  for (std::size_t i = 0; i < captures.size(); ++i)
    if (const Tensor& g = captures[i].grad; g.defined())
      inputs[i].set_grad(inputs[i].grad().defined() ? add(inputs[i].grad(), g) : g);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs, const GradOptions& options,
                         std::span<const Tensor> gradients) {
  const std::vector<Tensor> start = starting_gradients("grad", outputs, gradients);
  std::vector<Capture> captures = captures_of("grad", inputs);
  const bool keep = options.retain_graph || options.create_graph;
  Pass(keep, options.create_graph, /*accumulate=*/false, &captures).run(roots_of(outputs), start);
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < captures.size(); ++i) {
    if (!captures[i].grad.defined() && !options.allow_unused)
      fail<GradError>(
          "[grad] the outputs do not depend on input {}; pass allow_unused = true to get an undefined gradient for it.",
          i);
    result.push_back(captures[i].grad);
  }
  return result;
}

std::vector<Tensor> grad(std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> inputs,
                         const GradOptions& options, std::initializer_list<Tensor> gradients) {
  return grad(std::span(outputs.begin(), outputs.size()), std::span(inputs.begin(), inputs.size()), options,
              std::span(gradients.begin(), gradients.size()));
}

}  // namespace levin
