#include <levin/trainer/loggers/tensorboard_logger.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/loggers/event_file.h"

namespace levin {
namespace {

// Field numbers are those of TensorFlow's event.proto, summary.proto, graph.proto, node_def.proto and of TensorBoard's
// plugins/hparams/*.proto.
constexpr int kTypeString = 7;  // DataType.DT_STRING

ProtoMessage summary_event(std::int64_t step, const ProtoMessage& value) {
  return make_event(step).message(5, ProtoMessage().message(1, value));
}

ProtoMessage plugin_metadata(std::string_view plugin, const ProtoMessage& content) {
  return ProtoMessage().message(1, ProtoMessage().bytes(1, plugin).message(2, content));
}

/// Creates a record of the HParams tab, which is stored in a summary with a fixed name.
ProtoMessage hparams_event(std::string_view tag, int field, const ProtoMessage& content) {
  const auto data = ProtoMessage().varint(1, 0).message(field, content);
  return summary_event(0, ProtoMessage().bytes(1, tag).message(9, plugin_metadata("hparams", data)));
}

/// google.protobuf.Value
ProtoMessage proto_value(const Hyperparameter& value) {
  ProtoMessage out;
  if (const auto* b = std::get_if<bool>(&value))
    out.varint(4, *b ? 1 : 0);
  else if (const auto* i = std::get_if<std::int64_t>(&value))
    out.fixed64(2, static_cast<double>(*i));
  else if (const auto* d = std::get_if<double>(&value))
    out.fixed64(2, *d);
  else
    out.bytes(3, std::get<std::string>(value));
  return out;
}

/// Upper bounds of the buckets: powers of 1.1 from 1e-12 to 1e20, their negatives, 0 and the largest number.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(std::numeric_limits<double>::max());
    std::vector<double> all(positive.rbegin(), positive.rend());
    for (double& v : all) v = -v;
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

ProtoMessage histogram_of(const std::vector<double>& values) {
  const auto& limits = bucket_limits();
  std::vector<double> counts(limits.size());
  double low = 0, high = 0, sum = 0, squares = 0;
  std::int64_t n = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = n == 0 ? v : std::min(low, v);
    high = n == 0 ? v : std::max(high, v);
    sum += v;
    squares += v * v;
    ++n;
    counts[static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end() - 1, v) - limits.begin())] += 1;
  }
  // Drop empty buckets outside the range, except one before it, which gives the first bucket its lower bound.
  auto first = std::find_if(counts.begin(), counts.end(), [](double c) { return c > 0; }) - counts.begin();
  auto last = std::find_if(counts.rbegin(), counts.rend(), [](double c) { return c > 0; }).base() - counts.begin();
  first = std::max<std::ptrdiff_t>(0, first - 1);
  if (n == 0) first = 0, last = 1;
  const auto part = [&](const std::vector<double>& v) { return std::vector(v.begin() + first, v.begin() + last); };
  ProtoMessage out;
  out.fixed64(1, low).fixed64(2, high).fixed64(3, static_cast<double>(n)).fixed64(4, sum).fixed64(5, squares);
  return out.packed(6, part(limits)).packed(7, part(counts));
}

ProtoMessage graph_of(const ModelGraph& graph) {
  ProtoMessage out;
  for (const auto& n : graph.nodes) {
    std::string name = n.name;
    std::replace(name.begin(), name.end(), '.', '/');  // modules become scopes
    ProtoMessage node;
    node.bytes(1, name).bytes(2, n.op);
    for (std::string input : n.inputs) {
      std::replace(input.begin(), input.end(), '.', '/');
      node.bytes(3, input);
    }
    ProtoMessage shape;
    for (const auto size : n.shape) shape.message(2, ProtoMessage().varint(1, static_cast<std::uint64_t>(size)));
    const auto shapes = ProtoMessage().message(1, ProtoMessage().message(7, shape));  // AttrValue{list{shape}}
    node.message(5, ProtoMessage().bytes(1, "_output_shapes").message(2, shapes));
    out.message(1, node);
  }
  return out.message(4, ProtoMessage().varint(1, 22));  // VersionDef.producer, as in PyTorch's writer
}

/// Draws counts as squares of 16 pixels, darker for a larger share of the row.
Tensor image_of_matrix(const Tensor& counts) {
  const Tensor m = counts.cpu().to(kFloat32);
  const Tensor most = amax(m, {1}, true).clamp(1e-9);
  const std::int64_t c = m.size(0);
  return (1 - m / most).reshape({c, 1, c, 1}).expand({c, 16, c, 16}).reshape({c * 16, c * 16});
}

}  // namespace

struct TensorBoardLogger::Events {
  EventFile file;
};

TensorBoardLogger::TensorBoardLogger(TensorBoardOptions options) : options_(std::move(options)) {}
TensorBoardLogger::~TensorBoardLogger() = default;

std::string TensorBoardLogger::version() const {
  log_dir();
  return fmt::format("version_{}", *options_.folder.version);
}

std::string TensorBoardLogger::log_dir() const { return options_.folder.settle(); }

TensorBoardLogger::Events& TensorBoardLogger::events() {
  if (!events_) {
    auto made = std::make_unique<Events>();
    made->file.open(log_dir());
    events_ = std::move(made);
  }
  return *events_;
}

std::string TensorBoardLogger::full_name(const std::string& name) const {
  return options_.prefix.empty() ? name : options_.prefix + "-" + name;
}

void TensorBoardLogger::log_metrics(const LogRecord& record) {
  const auto scalar = [&](const std::string& name, double value) {
    const auto field = ProtoMessage().bytes(1, name).fixed32(2, static_cast<float>(value));
    events().file.write(summary_event(record.step, field));
  };
  for (const auto& [name, value] : record.values) scalar(full_name(name), value);
  scalar(full_name("epoch"), static_cast<double>(record.epoch));
}

void TensorBoardLogger::log_hyperparams(const Hyperparameters& parameters) {
  ProtoMessage experiment, start;
  experiment.fixed64(3, 0);
  for (const auto& [name, value] : parameters) {
    const int type = value.index() == 0 ? 2 : value.index() == 3 ? 1 : 3;  // DATA_TYPE_BOOL, _STRING, _FLOAT64
    experiment.message(4, ProtoMessage().bytes(1, name).varint(4, static_cast<std::uint64_t>(type)));
    start.message(1, ProtoMessage().bytes(1, name).message(2, proto_value(value)));
  }
  if (options_.default_hp_metric)
    experiment.message(5, ProtoMessage().message(1, ProtoMessage().bytes(2, "hp_metric")));
  auto& file = events().file;
  file.write(hparams_event("_hparams_/experiment", 2, experiment));
  file.write(hparams_event("_hparams_/session_start_info", 3, start));
  if (options_.default_hp_metric) file.write(summary_event(0, ProtoMessage().bytes(1, "hp_metric").fixed32(2, -1.0F)));
  has_hyperparams_ = true;
}

void TensorBoardLogger::log_graph(const ModelGraph& graph) {
  events().file.write(make_event(0).message(4, graph_of(graph)));
}

void TensorBoardLogger::log_image(const std::string& name, const Tensor& images, std::int64_t step) {
  const Tensor grid = data::to_uint8(data::make_grid(images.cpu(), options_.grid));
  ProtoMessage image;
  image.varint(1, static_cast<std::uint64_t>(grid.size(1))).varint(2, static_cast<std::uint64_t>(grid.size(2)));
  image.varint(3, 3).bytes(4, data::encode_png(grid));
  events().file.write(summary_event(step, ProtoMessage().bytes(1, full_name(name)).message(4, image)));
}

void TensorBoardLogger::log_histogram(const std::string& name, const Tensor& values, std::int64_t step) {
  const auto histogram = histogram_of(values.detach().to_vector<double>());
  events().file.write(summary_event(step, ProtoMessage().bytes(1, full_name(name)).message(5, histogram)));
}

void TensorBoardLogger::log_text(const std::string& name, const std::string& text, std::int64_t step) {
  ProtoMessage tensor;
  tensor.varint(1, kTypeString).message(2, ProtoMessage().message(2, ProtoMessage().varint(1, 1))).bytes(8, text);
  const auto metadata = plugin_metadata("text", ProtoMessage());
  events().file.write(summary_event(
      step, ProtoMessage().bytes(1, full_name(name) + "/text_summary").message(9, metadata).message(8, tensor)));
}

void TensorBoardLogger::log_confusion_matrix(const std::string& name, const Tensor& counts,
                                             const std::vector<std::string>&, std::int64_t step) {
  const no_grad guard;
  log_image(name, image_of_matrix(counts), step);
}

void TensorBoardLogger::resume(std::int64_t step) {
  events().file.write(make_event(step + 1).message(7, ProtoMessage().varint(1, 1)));  // SessionLog.START
}

void TensorBoardLogger::save() {
  if (events_) events_->file.flush();
}

void TensorBoardLogger::finalize(RunStatus status) {
  if (has_hyperparams_) {  // Status: 1 success, 2 failure
    const auto end = ProtoMessage().varint(1, status == RunStatus::success ? 1 : 2);
    events().file.write(hparams_event("_hparams_/session_end_info", 4, end));
  }
  save();
}

}  // namespace levin
