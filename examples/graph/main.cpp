// Classifies the nodes of a graph from a few labels, with and without the edges: ./run graph --help
// Kipf & Welling, "Semi-supervised classification with graph convolutional networks", 2017.
#include <levin/levin.h>

#include <fmt/format.h>

#include <filesystem>

#include "first_steps.h"

using namespace levin;

namespace {

struct Options {
  std::int64_t nodes = 3000, classes = 6, features = 64, degree = 8, labels = 20, hidden = 64;
  double homophily = 0.6, noise = 4, lr = 1e-2;
  std::string record{};
  TrainerConfig trainer{.max_epochs = 200,
                        .check_val_every_n_epoch = 20,
                        .num_sanity_val_steps = 0,
                        .default_root_dir = "runs/graph",
                        .log_every_n_steps = 10,
                        .logger = "csv,html",
                        .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Classifies the nodes of a random graph, most of whose edges join nodes of one class.");
  line.add("nodes", o.nodes, "Nodes of the graph", 1);
  line.add("classes", o.classes, "Classes of nodes", 2);
  line.add("features", o.features, "Features of a node", 1);
  line.add("degree", o.degree, "Edges per node", 1);
  line.add("labels", o.labels, "Known labels per class", 1);
  line.add("hidden", o.hidden, "Features of the hidden layer", 1);
  line.add("homophily", o.homophily, "Share of edges that join nodes of one class");
  line.add("noise", o.noise, "Standard deviation of the features around their class's mean");
  line.add("lr", o.lr, "Learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

struct Graph {
  Tensor x, label;          // (N, features), (N)
  Tensor from, to, weight;  // (E): both directions of each edge, and a loop at each node

  explicit Graph(const Options& o) {
    label = arange(o.nodes) % o.classes;
    x = randn({o.classes, o.features})(label) + o.noise * randn({o.nodes, o.features});
    const Tensor a = arange(o.nodes).repeat_interleave(o.degree / 2);
    const Tensor other = randint(0, o.nodes, {a.size(0)});
    const Tensor same = other - other % o.classes + label(a);  // a node near `other` of the same class as a
    const Tensor b = where(rand({a.size(0)}) < o.homophily, clamp(same, 0, o.nodes - 1), other);
    from = cat({a, b, arange(o.nodes)});
    to = cat({b, a, arange(o.nodes)});
    const Tensor degree = bincount(to).to(kFloat32);
    weight = rsqrt(degree(from) * degree(to));
  }
};

/// A graph convolution: each node sums its neighbours' features.
struct GraphConv : nn::Layer<GraphConv> {
  const std::int64_t inputs, outputs;
  GraphConv(std::int64_t i, std::int64_t o) : inputs(i), outputs(o) {}
  nn::Linear& linear = add<nn::Linear>("linear", inputs, outputs);

  Tensor forward(const Tensor& x, const Tensor& from, const Tensor& to, const Tensor& weight) {
    const Tensor messages = linear(x).index_select(0, from) * weight.unsqueeze(1);  // (E, outputs)
    return zeros({x.size(0), outputs}, like(messages)).index_add(0, to, messages);
  }
};

struct NodeClassifier : LevinModule {
  const Options o;
  Tensor x, label, from, to, weight;
  GraphConv& conv1 = add<GraphConv>("conv1", o.features, o.hidden);
  GraphConv& conv2 = add<GraphConv>("conv2", o.hidden, o.classes);

  NodeClassifier(const Options& options, const Graph& g)
      : o(options),
        x(register_buffer("x", g.x)),
        label(register_buffer("label", g.label)),
        from(register_buffer("from", g.from)),
        to(register_buffer("to_", g.to)),
        weight(register_buffer("weight", g.weight)) {}

  Tensor logits() { return conv2(relu(conv1(x, from, to, weight)), from, to, weight); }  // (N, classes)
  StepOutput training_step(const Batch& batch, int) override {                           // (labels) numbers of nodes
    const Tensor nodes = batch[0], loss = cross_entropy(logits()(nodes), label(nodes));
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const Batch& batch, int) override {
    const Tensor nodes = batch[0];
    log("val_acc", accuracy(logits()(nodes), label(nodes)), {.prog_bar = true});
  }
  Optimizers configure_optimizers() override { return optim::Adam(parameters(), {.lr = o.lr, .weight_decay = 5e-4}); }
};

struct Result {
  double accuracy;  // on the nodes whose labels are not known
  bool reports;     // true in one process
};

/// Trains on the first labels.
Result train(const Options& o, const Graph& graph, const std::string& name) {
  NodeClassifier model(o, graph);
  const std::int64_t known = o.labels * o.classes;
  const data::TensorDataset labelled({arange(known)}), rest({arange(known, o.nodes)});
  data::DataLoader train_loader(labelled, {.batch_size = known}), val_loader(rest, {.batch_size = o.nodes});
  TrainerConfig config = o.trainer;
  config.default_root_dir = std::filesystem::path(config.default_root_dir) / name;
  config.callbacks = {FirstSteps(o.record)};
  Trainer trainer(config);
  trainer.fit(model, train_loader, val_loader);
  return {trainer.validate(model, val_loader)[0]["val_acc"], trainer.is_global_zero()};
}

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  Graph graph(o);
  const Result with = train(o, graph, "edges");
  if (!o.record.empty()) return 0;
  const Tensor loops = arange(o.nodes);
  graph.from = graph.to = loops;
  graph.weight = ones({o.nodes});
  const Result without = train(o, graph, "no_edges");
  if (with.reports)
    fmt::print("result: accuracy={:.4f} without_edges={:.4f} nodes={} labels={}\n", with.accuracy, without.accuracy,
               o.nodes, o.labels * o.classes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
