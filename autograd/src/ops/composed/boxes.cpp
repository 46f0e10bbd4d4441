// Boxes of detectors.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/image.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <array>
#include <cmath>
#include <vector>

namespace levin {

using namespace ops;

namespace {

void require_boxes(const char* op, const Tensor& boxes) {
  if (boxes.dim() != 2 || boxes.size(1) != 4)
    fail<ShapeError>("[{}] boxes are {}, expected is (N, 4).", op, boxes.sizes());
}

/// Area of the boxes from `low` to `high`, (..., 2) each; 0 where they are empty.
Tensor area_between(const Tensor& low, const Tensor& high) { return prod(clamp(sub(high, low), 0), -1); }

struct Overlaps {
  Tensor intersection, together;  ///< (N, M)

  Overlaps(const Tensor& a, const Tensor& b) {
    const Tensor x = unsqueeze(a, 1);  // (N, 1, 4)
    const Tensor low = maximum(narrow(x, -1, 0, 2), narrow(b, -1, 0, 2));
    const Tensor high = minimum(narrow(x, -1, 2, 2), narrow(b, -1, 2, 2));
    intersection = area_between(low, high);
    together = sub(add(unsqueeze(box_area(a), 1), box_area(b)), intersection);
  }
};

}  // namespace

Tensor box_area(const Tensor& boxes) {
  require_boxes("box_area", boxes);
  return prod(sub(narrow(boxes, 1, 2, 2), narrow(boxes, 1, 0, 2)), 1);
}

Tensor box_iou(const Tensor& a, const Tensor& b) {
  require_boxes("box_iou", a);
  require_boxes("box_iou", b);
  const Overlaps o(a, b);
  return div(o.intersection, o.together);
}

Tensor generalized_box_iou(const Tensor& a, const Tensor& b) {
  require_boxes("generalized_box_iou", a);
  require_boxes("generalized_box_iou", b);
  const Overlaps o(a, b);
  const Tensor x = unsqueeze(a, 1);
  const Tensor low = minimum(narrow(x, -1, 0, 2), narrow(b, -1, 0, 2));
  const Tensor high = maximum(narrow(x, -1, 2, 2), narrow(b, -1, 2, 2));
  const Tensor enclosing = area_between(low, high);
  return sub(div(o.intersection, o.together), div(sub(enclosing, o.together), enclosing));
}

Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold) {
  require_boxes("nms", boxes);
  if (scores.sizes() != Shape{boxes.size(0)})
    fail<ShapeError>("[nms] scores is {}, expected is ({},).", scores.sizes(), boxes.size(0));
  no_grad guard;
  const Tensor order = argsort(scores, 0, true);
  const Tensor sorted = index_select(boxes, 0, order);
  const std::vector<uint8_t> covers =
      gt(box_iou(sorted, sorted), iou_threshold).to(kUInt8).to(kCpu).to_vector<uint8_t>();
  const auto n = static_cast<std::size_t>(boxes.size(0));
  std::vector<bool> removed(n, false);
  std::vector<int64_t> kept;
  for (std::size_t i = 0; i < n; ++i) {
    if (removed[i]) continue;
    kept.push_back(static_cast<int64_t>(i));
    for (std::size_t j = i + 1; j < n; ++j) removed[j] = removed[j] || covers[i * n + j] != 0;
  }
  return index_select(order, 0, from_data(kept, {static_cast<int64_t>(kept.size())}).to(boxes.device()));
}

Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes, double iou_threshold) {
  require_boxes("batched_nms", boxes);
  if (boxes.numel() == 0) return nms(boxes, scores, iou_threshold);
  // Boxes of one class are moved away from those of others.
  const Tensor offsets = mul(to(classes, boxes.dtype()), add(sub(amax(boxes.detach()), amin(boxes.detach())), 1));
  return nms(add(boxes.detach(), unsqueeze(offsets, 1)), scores, iou_threshold);
}

Tensor box_convert(const Tensor& boxes, BoxFormat from, BoxFormat to) {
  require_boxes("box_convert", boxes);
  if (from == to) return boxes;
  const Tensor first = narrow(boxes, 1, 0, 2), second = narrow(boxes, 1, 2, 2);
  if (to == BoxFormat::xyxy) {
    const Tensor low = from == BoxFormat::xywh ? first : sub(first, mul(second, 0.5));
    return cat({low, add(low, second)}, 1);
  }
  if (from != BoxFormat::xyxy) return box_convert(box_convert(boxes, from, BoxFormat::xyxy), BoxFormat::xyxy, to);
  const Tensor size = sub(second, first);
  return cat({to == BoxFormat::xywh ? first : add(first, mul(size, 0.5)), size}, 1);
}

namespace {

/// Centers and sizes of boxes (..., 4), and the weights of both; (..., 2) each.
struct Coding {
  Tensor center, size, center_weight, size_weight;

  Coding(const char* op, const Tensor& x, const Tensor& anchors, const std::array<double, 4>& weights) {
    require_boxes(op, anchors);
    if (x.dim() == 0 || x.size(-1) != 4) fail<ShapeError>("[{}] the last axis of {} is not 4.", op, x.sizes());
    const Tensor low = narrow(anchors, -1, 0, 2);
    size = sub(narrow(anchors, -1, 2, 2), low);
    center = add(low, mul(size, 0.5));
    const Tensor all = from_data(std::vector<double>(weights.begin(), weights.end()), {4}).to(x.device(), x.dtype());
    center_weight = narrow(all, 0, 0, 2);
    size_weight = narrow(all, 0, 2, 2);
  }
};

}  // namespace

Tensor encode_boxes(const Tensor& boxes, const Tensor& anchors, const std::array<double, 4>& weights) {
  const Coding c("encode_boxes", boxes, anchors, weights);
  const Tensor low = narrow(boxes, -1, 0, 2), size = sub(narrow(boxes, -1, 2, 2), low);
  const Tensor moved = div(sub(add(low, mul(size, 0.5)), c.center), c.size);
  return cat({mul(moved, c.center_weight), mul(log(div(size, c.size)), c.size_weight)}, -1);
}

Tensor decode_boxes(const Tensor& offsets, const Tensor& anchors, const std::array<double, 4>& weights) {
  const Coding c("decode_boxes", offsets, anchors, weights);
  const Tensor moved = div(narrow(offsets, -1, 0, 2), c.center_weight);
  const Tensor grown = clamp_max(div(narrow(offsets, -1, 2, 2), c.size_weight), std::log(62.5));
  const Tensor center = add(c.center, mul(moved, c.size)), half = mul(mul(exp(grown), c.size), 0.5);
  return cat({sub(center, half), add(center, half)}, -1);
}

}  // namespace levin
