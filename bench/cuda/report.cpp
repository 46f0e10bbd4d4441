#include "bench/cuda/report.h"

#include "bench/cuda/check.h"

#include <levin/kernels/cuda.h>

#include <cmath>
#include <functional>

namespace levin::bench {

namespace {

/// Number of rows that are checked at each end of a result that is too large to be checked as a whole.
constexpr int64_t kJudgedRows = 2;
/// Returns the number of rows to check; the rows of a one-dimensional result are its elements.
int64_t judged_rows(const Problem& p) { return p.outputs.at(0).dim() == 1 ? 4096 : kJudgedRows; }

Json judged(double error, double tolerance) {
  return {{"error", std::isfinite(error) ? Json(error) : Json("not finite")},
          {"tolerance", tolerance},
          {"ok", error <= tolerance}};
}

/// Peers may choose algorithms that round worse than a plain sum, such as Winograd convolutions.
constexpr double kPeerTolerance = 10;

/// Returns the peer's row with the additions of `measured`. A peer that fails is reported as missing and does not fail
/// the rung.
Json peer_row(const Problem& p, const Rung& rung, const Peer& peer, int64_t rows,
              const std::function<void(Json&)>& measured) {
  if (!peer.run) return {{"missing", peer.missing}};
  try {
    Json row = Json::object();
    if (peer.computes) row = judged(error_of(p, peer.run, rows), kPeerTolerance * rung.tolerance);
    measured(row);
    return row;
  } catch (const Error& e) {
    return {{"missing", e.what()}};
  }
}

void add_duel(Json& row, const Duel& duel) {
  row["seconds"] = duel.peer.median;
  row["ratio"] = duel.ratio;
  row["lower_ratio"] = duel.lower_ratio;
  row["upper_ratio"] = duel.upper_ratio;
}

void add_times(Json& row, const Problem& p, const Rung& rung, const Times& times, const Ceilings& ceilings) {
  const auto floor = floor_of(p, rung, ceilings);
  row["unit"] = rung.unit.empty() ? "memory" : rung.unit;
  row["seconds"] = times.median;
  row["least_seconds"] = times.least;
  row["calls"] = times.calls;
  row["cache"] = "cold";
  row["bytes"] = p.bytes;
  row["flops"] = p.flops;
  row["floor_seconds"] = floor ? Json(*floor) : Json();
  row["share"] = floor ? Json(*floor / times.median) : Json();
}

/// Returns the rung's row: its correctness, then what `add` appends. If the rung throws, the row is not ok.
Json row_of_rung(const Problem& p, const Rung& rung, int64_t rows, const std::function<void(Json&)>& add) {
  Json row = head_of(p, rung);
  row["peers"] = Json::object();
  try {
    row.update(judged(error_of(p, rung.run, rows), rung.tolerance));
    add(row);
  } catch (const Error& e) {
    return failed_row(row, e.what());
  }
  return row;
}

}  // namespace

Json head_of(const Problem& p, const Rung& rung) {
  Json sizes = Json::object();
  for (const auto& [name, size] : p.sizes) sizes[name] = size;
  return {{"name", p.family + "/" + rung.name},
          {"family", p.family},
          {"rung", rung.name},
          {"shape", p.shape()},
          {"dtype", p.dtype},
          {"sizes", sizes}};
}

Json failed_row(Json head, const std::string& reason) {
  head["error"] = reason;
  head["ok"] = false;
  if (!head.contains("peers")) head["peers"] = Json::object();
  return head;
}

Json check_rung(const Problem& p, const Rung& rung, Meter& meter) {
  return row_of_rung(p, rung, p.rows(), [&](Json& row) {
    for (const Peer& peer : rung.peers) {
      row["peers"][peer.name] =
          peer_row(p, rung, peer, p.rows(), [&](Json&) { (void)meter.measure(rung.run, peer.run); });
    }
  });
}

Json check_problem(const Problem& problem, Meter& meter) {
  const Problem p = with_kept_rows(problem);
  Json list = Json::array();
  for (const Rung& rung : p.rungs) list.push_back(check_rung(p, rung, meter));
  return list;
}

Json measure_problem(const Problem& problem, Meter& meter, const Ceilings& ceilings) {
  const Problem p = with_kept_rows(problem);
  Json list = Json::array();
  for (const Rung& rung : p.rungs) list.push_back(measure_rung(p, rung, meter, ceilings));
  return list;
}

Json measure_rung(const Problem& p, const Rung& rung, Meter& meter, const Ceilings& ceilings) {
  const int64_t rows = judged_rows(p);
  return row_of_rung(p, rung, rows, [&](Json& row) {
    Times own;
    Json peers = Json::object();
    for (const Peer& peer : rung.peers) {
      peers[peer.name] = peer_row(p, rung, peer, rows, [&](Json& peer_json) {
        const Duel duel = meter.measure(rung.run, peer.run);
        add_duel(peer_json, duel);
        if (own.calls == 0) own = duel.own;
      });
    }
    if (own.calls == 0) own = meter.measure(rung.run);
    add_times(row, p, rung, own, ceilings);
    row["peers"] = peers;
  });
}

Json describe_machine(const Ceilings& ceilings) {
  const auto device = cuda::get_device_properties();
  Json flops = Json::object();
  for (const auto& [unit, rate] : ceilings.flops) flops[unit] = rate;
  return {{"device", device.name},
          {"compute_capability", std::to_string(device.major) + "." + std::to_string(device.minor)},
          {"multiprocessors", device.multi_processor_count},
          {"l2_bytes", device.l2_cache_size},
          {"memory_bytes", device.total_memory},
          {"copy_bytes_a_second", ceilings.copy},
          {"copy_noise", ceilings.noise},
          {"library_flops_a_second", flops},
          {"library_missing", ceilings.missing}};
}

}  // namespace levin::bench
