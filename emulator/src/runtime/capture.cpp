// Stream capture and graphs.

#include "state.h"

#include <algorithm>

using namespace levin::emulator;

namespace {

/// Returns which nodes are among `from` or are dependencies of them.
std::vector<bool> reach(const Nodes& nodes, const std::vector<std::size_t>& from) {
  std::vector<bool> reached(nodes.size());
  for (const std::size_t i : from) reached[i] = true;
  for (std::size_t i = nodes.size(); i-- > 0;) {  // a node comes after its dependencies
    if (!reached[i]) continue;
    for (const std::size_t b : nodes[i].before) reached[b] = true;
  }
  return reached;
}

bool all_joined(const Capture& c) {
  const std::vector<bool> reached = reach(c.graph->nodes, c.origin->tails);
  for (const CUstream_st* s : c.streams) {
    for (const std::size_t t : s->tails) {
      if (!reached[t]) return false;
    }
  }
  return true;
}

cudaGraphNodeType type_of(Work::Kind kind) {
  switch (kind) {
    case Work::Kind::collective:
    case Work::Kind::kernel:
      return cudaGraphNodeTypeKernel;
    case Work::Kind::copy:
      return cudaGraphNodeTypeMemcpy;
    case Work::Kind::fill:
      return cudaGraphNodeTypeMemset;
    case Work::Kind::host:
      return cudaGraphNodeTypeHost;
    case Work::Kind::marker:
    case Work::Kind::release:
      break;
  }
  return cudaGraphNodeTypeEmpty;
}

cudaError_t no_graph(Runtime& rt, const char* call) {
  return rt.refuse(cudaErrorInvalidValue, std::string(call) + ": no such graph. It was destroyed before.");
}

}  // namespace

namespace levin::emulator {

cudaError_t Runtime::capture(CUstream_st& stream, Work work) {
  Capture& c = *stream.capture;
  if (c.invalid) return cudaErrorStreamCaptureInvalidated;
  Nodes& nodes = c.graph->nodes;
  nodes.push_back({stream.device, std::move(work), std::move(stream.tails)});
  stream.tails = {nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t Runtime::check_no_capture(const char* call) {
  const cudaStreamCaptureMode mode = this_thread().mode;
  bool refused = false;
  for (const CaptureRef& c : captures) {
    const bool own = c->owner == std::this_thread::get_id() && c->mode != cudaStreamCaptureModeRelaxed;
    const bool global = mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
    if (mode == cudaStreamCaptureModeRelaxed || !(own || global)) continue;
    c->invalid = refused = true;
  }
  if (!refused) return cudaSuccess;
  return refuse(cudaErrorStreamCaptureUnsupported,
                std::string(call) + " was called while a stream is being captured; that ends the capture");
}

cudaError_t Runtime::check_not_captured(CUstream_st& stream, const char* call) {
  if (stream.capture) {
    stream.capture->invalid = true;
    return refuse(cudaErrorStreamCaptureUnsupported,
                  std::string(call) + " was called on a stream that is being captured; that ends the capture");
  }
  return cudaSuccess;
}

void Runtime::end_capture(const CaptureRef& capture) {
  capture->ended = true;
  for (CUstream_st* s : capture->streams) {
    s->tails.clear();
    s->capture.reset();
  }
  capture->streams.clear();
  std::erase(captures, capture);
}

}  // namespace levin::emulator

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return rt.refuse(cudaErrorInvalidResourceHandle, "cudaStreamBeginCapture: no such stream");
    if (s->legacy) {
      return rt.refuse(cudaErrorStreamCaptureUnsupported,
                       "cudaStreamBeginCapture: the default stream cannot be captured. Make another one.");
    }
    if (s->capture) return rt.refuse(cudaErrorIllegalState, "cudaStreamBeginCapture: the stream is being captured");
    static std::uint64_t next_id = 1;
    auto c = std::make_shared<Capture>();
    c->id = next_id++;
    c->graph = std::make_unique<CUgraph_st>();
    c->mode = mode;
    c->origin = s;
    c->owner = std::this_thread::get_id();
    c->streams = {s};
    s->tails.clear();
    s->capture = c;
    rt.captures.push_back(std::move(c));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return rt.refuse(cudaErrorInvalidResourceHandle, "cudaStreamEndCapture: no such stream");
    if (!graph) return cudaErrorInvalidValue;
    *graph = nullptr;
    const CaptureRef c = s->capture;
    if (!c) return rt.refuse(cudaErrorIllegalState, "cudaStreamEndCapture: the stream is not being captured");
    if (c->mode != cudaStreamCaptureModeRelaxed && c->owner != std::this_thread::get_id()) {
      return rt.refuse(cudaErrorStreamCaptureWrongThread, "cudaStreamEndCapture: another thread began the capture");
    }
    if (c->origin != s) {
      c->invalid = true;
      return rt.refuse(cudaErrorStreamCaptureUnmatched, "cudaStreamEndCapture: the capture began on another stream");
    }
    const bool joined = all_joined(*c);
    rt.end_capture(c);
    if (c->invalid) return cudaErrorStreamCaptureInvalidated;
    if (!joined) {
      return rt.refuse(cudaErrorStreamCaptureUnjoined,
                       "cudaStreamEndCapture: the first stream waits not for all work of the streams that joined it");
    }
    *graph = c->graph.release();
    for (const Node& n : (*graph)->nodes) {
      (*graph)->handles.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{type_of(n.work.kind)}));
    }
    rt.graphs.insert(*graph);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    const CUstream_st* s = rt.find(stream);
    if (!s) return rt.refuse(cudaErrorInvalidResourceHandle, "cudaStreamGetCaptureInfo: no such stream");
    if (!status) return cudaErrorInvalidValue;
    *status = cudaStreamCaptureStatusNone;
    if (!s->capture) return cudaSuccess;
    *status = s->capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    if (id) *id = s->capture->id;
    if (graph) *graph = s->capture->graph.get();
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (!mode) return note(cudaErrorInvalidValue);
  std::swap(*mode, this_thread().mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!exec) return cudaErrorInvalidValue;
    if (!rt.graphs.count(graph)) return no_graph(rt, "cudaGraphInstantiate");
    *exec = new CUgraphExec_st{std::make_shared<const Nodes>(graph->nodes), nullptr};
    rt.executables.insert(*exec);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return rt.refuse(cudaErrorInvalidResourceHandle, "cudaGraphLaunch: no such stream");
    if (!rt.executables.count(exec)) return no_graph(rt, "cudaGraphLaunch");
    if (s->capture) return rt.refuse(cudaErrorNotSupported, "cudaGraphLaunch: the emulator does not capture graphs");
    Work begin;
    begin.name = "cudaGraphLaunch";
    const Work end = begin;
    const cudaError_t e = rt.submit(lock, *s, std::move(begin), exec->last);  // launches of one graph run one at a time
    if (e != cudaSuccess) return e;
    const OpRef root = s->last;
    std::vector<OpRef> ops;
    for (const Node& n : *exec->nodes) {
      std::vector<OpRef> before{root};
      for (const std::size_t b : n.before) before.push_back(ops[b]);
      ops.push_back(rt.add(n.device, n.work, before));
    }
    ops.push_back(root);
    s->last = exec->last = rt.add(s->device, end, ops);
    rt.relieve(lock);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!rt.graphs.erase(graph)) return no_graph(rt, "cudaGraphDestroy");
    delete graph;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!rt.executables.erase(exec)) return no_graph(rt, "cudaGraphExecDestroy");
    delete exec;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!count) return cudaErrorInvalidValue;
    if (!rt.graphs.count(graph)) return no_graph(rt, "cudaGraphGetNodes");
    const std::size_t all = graph->handles.size();
    for (std::size_t i = 0; nodes && i < *count; ++i) nodes[i] = i < all ? graph->handles[i].get() : nullptr;
    *count = nodes ? std::min(*count, all) : all;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (!node || !type) return note(cudaErrorInvalidValue);
  *type = node->type;
  return cudaSuccess;
}
