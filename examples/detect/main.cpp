// Finds clothes in images by a single-shot detector: ./run detect --help
// Liu et al., "SSD: Single shot multibox detector", 2016.
#include <levin/levin.h>

#include <fmt/format.h>

#include <filesystem>

#include "first_steps.h"
#include "scenes.h"

using namespace levin;

namespace {

constexpr std::int64_t kPriors = 4, kOutputs = kPriors * (4 + kNames);  // at each place of a map

struct Options {
  std::string data = data::kFashionMnistDir, record{};
  std::int64_t scenes = 20000, held_out = 1000, width = 32, batch_size = 32;
  double lr = 0.02;
  TrainerConfig trainer{
      .max_epochs = 10, .num_sanity_val_steps = 0, .default_root_dir = "runs/detect", .logger = "csv,html", .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a single-shot detector on images composed of clothes.");
  line.add_path("data", o.data, "Folder of the IDX files of Fashion-MNIST, plain or .gz");
  line.add("scenes", o.scenes, "Images in an epoch", 1);
  line.add("held-out", o.held_out, "Images of other clothes to test on", 1);
  line.add("width", o.width, "Channels of the first stage; each further stage has twice as many", 1);
  line.add("batch-size", o.batch_size, "Images per batch", 1);
  line.add("lr", o.lr, "Highest learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// Centers and sizes of the prior boxes, (P, 4) of x, y, w, h: at each place of the maps of 8 x 8 and 4 x 4 a square, a
/// larger one, a wide and a high box.
Tensor prior_boxes() {
  struct Map {
    std::int64_t side;
    double scale, larger;
  };
  std::vector<double> out;
  for (const auto& [side, scale, larger] : {Map{8, 0.28, 0.38}, Map{4, 0.5, 0.63}})
    for (std::int64_t place = 0; place < side * side; ++place)
      for (const auto& [w, h] :
           {std::pair{scale, scale}, {larger, larger}, {1.4 * scale, 0.7 * scale}, {0.7 * scale, 1.4 * scale}})
        out.insert(out.end(), {(0.5 + static_cast<double>(place % side)) / static_cast<double>(side),
                               (0.5 + static_cast<double>(place / side)) / static_cast<double>(side), w, h});
  return tensor(out).to(kFloat32).view({-1, 4});
}

struct Stage : nn::Sequential {
  Stage(std::int64_t inputs, std::int64_t outputs)
      : Sequential(nn::Conv2d(inputs, outputs, 3, {.stride = 2, .padding = 1, .bias = false}), nn::BatchNorm2d(outputs),
                   nn::ReLU(), nn::Conv2d(outputs, outputs, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(outputs),
                   nn::ReLU()) {}
};

struct Detector : LevinModule {
  const Options o;
  explicit Detector(const Options& options) : o(options) {}
  const Tensor centers = register_buffer("centers", prior_boxes()(Slice(), Slice(0, 2)).clone()),
               sizes = register_buffer("sizes", prior_boxes()(Slice(), Slice(2, nil)).clone());  // (P, 2)
  nn::Sequential& body = add<nn::Sequential>("body", Stage(1, o.width), Stage(o.width, 2 * o.width),
                                             Stage(2 * o.width, 4 * o.width));              // (B, 4 width, 8, 8)
  nn::Sequential& coarse = add<nn::Sequential>("coarse", Stage(4 * o.width, 4 * o.width));  // (B, 4 width, 4, 4)
  nn::Conv2d& head1 = add<nn::Conv2d>("head1", 4 * o.width, kOutputs, 3, {.padding = 1});
  nn::Conv2d& head2 = add<nn::Conv2d>("head2", 4 * o.width, kOutputs, 3, {.padding = 1});
  metrics::MeanAveragePrecision& map =
      add_metric<metrics::MeanAveragePrecision>("map", metrics::MeanAveragePrecisionOptions{.iou_thresholds = {0.5}});

  /// Images (B, 1, 64, 64) to the offsets (B, P, 4) and the logits of the classes (B, P, 11) of the prior boxes.
  std::pair<Tensor, Tensor> outputs(const Tensor& x) {
    const Tensor fine = body(x);
    const auto rows = [](const Tensor& y) { return y.permute({0, 2, 3, 1}).reshape({y.size(0), -1, 4 + kNames}); };
    const Tensor y = cat({rows(head1(fine)), rows(head2(coarse(fine)))}, 1);
    return {y(Ellipsis, Slice(0, 4)), y(Ellipsis, Slice(4, nil))};
  }
  /// Boxes (..., P, 4) of corners as offsets from the prior boxes.
  Tensor encode(const Tensor& boxes) const {
    const Tensor low = boxes(Ellipsis, Slice(0, 2)), high = boxes(Ellipsis, Slice(2, nil));
    return cat({((low + high) / 2 - centers) / (0.1 * sizes), log((high - low) / sizes) / 0.2}, -1);
  }
  Tensor decode(const Tensor& offsets) const {
    const Tensor middle = centers + 0.1 * sizes * offsets(Ellipsis, Slice(0, 2)),
                 half = sizes / 2 * exp(0.2 * offsets(Ellipsis, Slice(2, nil)));
    return cat({middle - half, middle + half}, -1);
  }
  /// The box (B, P, 4) and the class (B, P) that each prior box has to predict: those of the box that it overlaps most,
  /// if by more than half or as much as any prior box does (but for rounding), else the background.
  std::pair<Tensor, Tensor> match(const Tensor& boxes, const Tensor& classes) const {
    const Tensor iou = box_iou(boxes.flatten(0, 1), decode(zeros_like(cat({centers, sizes}, 1))))
                           .view({boxes.size(0), boxes.size(1), -1});  // (B, M, P)
    const Tensor best = logical_and(iou > iou.amax({2}, true) - 1e-3, iou > 0);
    const auto [overlap, which] = max(iou + 2 * best.to(iou.dtype()), 1);
    return {boxes.gather(1, which.unsqueeze(-1).expand({-1, -1, 4})),
            where(overlap > 0.5, classes.gather(1, which), 0)};
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, boxes, classes] = batch.as<3>();
    const auto [offsets, logits] = outputs(x);
    const auto [matched, wanted] = match(boxes, classes);
    const Tensor positive = wanted > 0, count = positive.sum();
    const auto box_loss = smooth_l1_loss(offsets(positive), encode(matched)(positive), Reduction::sum) / count;
    // Of the background, three prior boxes for each positive one count: those with the largest losses.
    const Tensor losses = cross_entropy(logits.transpose(1, 2), wanted, {.reduction = Reduction::none});
    const Tensor place = losses.detach().masked_fill(positive, 0).argsort(1, true).argsort(1);
    const Tensor counts = logical_or(positive, place < 3 * positive.sum(1, true));
    const auto class_loss = losses(counts).sum() / count;
    log_dict({{"train_boxes", box_loss}, {"train_classes", class_loss}});
    log("train_loss", box_loss + class_loss, {.prog_bar = true});
    return box_loss + class_loss;
  }
  /// Boxes (N, 4), scores (N) and classes (N) that are found in an image, from its offsets (P, 4) and logits (P, 11).
  std::array<Tensor, 3> found(const Tensor& offsets, const Tensor& logits) const {
    const auto [scores, places] = topk(softmax(logits.to(kFloat32), 1)(Slice(), Slice(1, nil)).flatten(), 200);
    const Tensor boxes = decode(offsets.to(kFloat32))[floor_divide(places, kNames - 1)],
                 classes = 1 + places % (kNames - 1);
    const Tensor kept = batched_nms(boxes, scores, classes, 0.45);
    return {boxes[kept], scores[kept], classes[kept]};
  }
  void validation_step(const Batch& batch, int) override {
    auto [x, boxes, classes] = batch.as<3>();
    const auto [offsets, logits] = outputs(x);
    for (std::int64_t i = 0; i < x.size(0); ++i) {
      const auto [own, scores, names] = found(offsets[i], logits[i]);
      const Tensor real = classes[i] > 0;
      map.update(own, scores, names, boxes[i][real], classes[i][real]);
    }
    log("val_map", map, {.prog_bar = true});
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::SGD(parameters(), {.lr = o.lr, .momentum = 0.9, .weight_decay = 5e-4}))
        .schedule(
            [this](auto& sgd) {
              return optim::OneCycleLR(sgd, {.max_lr = o.lr,
                                             .total_steps = estimated_stepping_batches(),
                                             .cycle_momentum = false,
                                             .div_factor = 1000});
            },
            {.interval = Interval::step});
  }
};

/// Draws the boxes that are found in some scenes after each validation.
struct Drawing : Callback {
  explicit Drawing(const Tensor& x) : scenes(x) {}
  Tensor scenes;

  void on_validation_epoch_end(RunContext& run) override {
    auto& model = static_cast<Detector&>(run.module);
    const auto [offsets, logits] = model.outputs(scenes.to(model.centers));
    std::vector<Tensor> images;
    for (std::int64_t i = 0; i < scenes.size(0); ++i) {
      const auto [boxes, scores, classes] = model.found(offsets[i], logits[i]);
      images.push_back(draw(scenes[i], boxes[scores > 0.5]));
    }
    for (const auto& logger : run.loggers) logger->log_image("found", stack(images), run.state.global_step);
    std::filesystem::create_directories(run.root_dir);
    data::save_image(stack(images), run.root_dir + "/found.png", {.nrow = 4});
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  data::DataLoader train_loader(Scenes(o.data, "train", o.scenes),
                                {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader val_loader(Scenes(o.data, "test", o.held_out), {.batch_size = 100});

  Detector model(o);
  o.trainer.callbacks = {LearningRateMonitor(), Drawing(Scenes(o.data, "test", 12).all()[0]), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(model, train_loader, val_loader);
  const double map = trainer.validate(model, val_loader)[0]["val_map"];
  if (trainer.is_global_zero())
    fmt::print("images: {}\nresult: map={:.4f} held_out={} steps={}\n",
               (std::filesystem::path(o.trainer.default_root_dir) / "found.png").string(), map, o.held_out,
               trainer.global_step());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
