// Streams, events, host functions, and the calls that wait.

#include "state.h"

#include <chrono>

using namespace levin::emulator;

namespace {

cudaError_t no_stream(Runtime& rt, const char* call) {
  return rt.refuse(cudaErrorInvalidResourceHandle, std::string(call) + ": no such stream. It was destroyed before.");
}
cudaError_t no_event(Runtime& rt, const char* call) {
  return rt.refuse(cudaErrorInvalidResourceHandle, std::string(call) + ": no such event. It was destroyed before.");
}

Work marker(const char* name) {
  Work work;
  work.name = name;
  return work;
}

/// Checks that the event is not captured: the host cannot wait for a captured event.
cudaError_t check_not_captured(Runtime& rt, CUevent_st& event, const char* call) {
  if (!event.capture) return cudaSuccess;
  event.capture->invalid = true;
  return rt.refuse(cudaErrorCapturedEvent,
                   std::string(call) + ": the event was recorded in a capture; only captured streams can wait for it");
}

bool is_done(const OpRef& op) { return !op || op->done; }

/// Makes the stream wait for a captured event, which adds the stream to the capture.
cudaError_t wait_for_captured(Runtime& rt, CUstream_st& stream, const CUevent_st& event) {
  const CaptureRef& c = event.capture;
  if (c->ended) {
    return rt.refuse(cudaErrorCapturedEvent, "cudaStreamWaitEvent: the event was recorded in a capture that has ended");
  }
  if (c->invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture && stream.capture != c) {
    stream.capture->invalid = c->invalid = true;
    return rt.refuse(cudaErrorStreamCaptureMerge, "cudaStreamWaitEvent: the event belongs to another capture");
  }
  if (stream.legacy) {
    c->invalid = true;
    return rt.refuse(cudaErrorStreamCaptureImplicit, "cudaStreamWaitEvent: the default stream cannot be captured");
  }
  if (!stream.capture) {
    stream.capture = c;
    stream.tails.clear();
    c->streams.push_back(&stream);
  }
  stream.tails.insert(stream.tails.end(), event.tails.begin(), event.tails.end());
  return cudaSuccess;
}

}  // namespace

namespace levin::emulator {

CUstream_st* Runtime::find(cudaStream_t handle) {
  Device& device = devices[static_cast<std::size_t>(this_thread().device)];
  if (!handle || handle == cudaStreamLegacy) return device.legacy.get();
  if (handle == cudaStreamPerThread) {
    auto& stream = device.per_thread[std::this_thread::get_id()];
    if (!stream) {
      stream = std::make_unique<CUstream_st>();
      stream->device = this_thread().device;
    }
    return stream.get();
  }
  return streams.count(handle) ? handle : nullptr;
}

void Runtime::destroy(CUstream_st* stream) {
  if (stream->capture) {
    stream->capture->invalid = true;
    std::erase(stream->capture->streams, stream);
    if (stream->capture->origin == stream) end_capture(CaptureRef(stream->capture));
  }
  if (!is_done(stream->last) && !(stream->flags & cudaStreamNonBlocking)) {
    devices[static_cast<std::size_t>(stream->device)].orphans.push_back(stream->last);
  }
  streams.erase(stream);
  delete stream;
}

}  // namespace levin::emulator

// ---- streams

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    auto* const s = new CUstream_st;
    s->device = this_thread().device;
    s->flags = flags;
    s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    rt.streams.insert(s);
    *stream = s;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!rt.streams.count(stream)) return no_stream(rt, "cudaStreamDestroy");
    rt.destroy(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaStreamQuery");
    cudaError_t e = rt.check_not_captured(*s, "cudaStreamQuery");
    if (e == cudaSuccess && s->legacy) e = rt.submit(lock, *s, marker("cudaStreamQuery"));
    if (e != cudaSuccess) return e;
    if (s->legacy && s->last->waits_for == 0) rt.complete(lock, {s->last});  // only the marker is pending
    if (!is_done(s->last)) {
      rt.nudge(lock, OpRef(s->last), s->impatience);
      return cudaErrorNotReady;
    }
    s->impatience = 0;
    return rt.health(s->device);
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaStreamSynchronize");
    cudaError_t e = rt.check_not_captured(*s, "cudaStreamSynchronize");
    if (e == cudaSuccess) e = rt.check_no_capture("cudaStreamSynchronize");
    if (e == cudaSuccess && s->legacy) e = rt.submit(lock, *s, marker("cudaStreamSynchronize"));
    if (e != cudaSuccess) return e;
    const int device = s->device;
    rt.host_wait(lock, {s->last});
    return rt.health(device);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call(Needs::health, [](Runtime& rt, Lock& lock) {
    const int device = this_thread().device;
    for (const CaptureRef& c : rt.captures) {
      if (c->origin->device != device) continue;
      c->invalid = true;
      return rt.refuse(cudaErrorStreamCaptureUnsupported, "cudaDeviceSynchronize: a stream is being captured");
    }
    ++rt.host_waits;
    rt.complete_device(lock, device);
    return rt.health(device);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaStreamWaitEvent");
    if (!rt.events.count(event)) return no_event(rt, "cudaStreamWaitEvent");
    if (s->capture && s->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (event->capture) return wait_for_captured(rt, *s, *event);
    if (!event->op) return cudaSuccess;
    if (s->capture) {
      s->capture->invalid = true;
      return rt.refuse(cudaErrorStreamCaptureIsolation,
                       "cudaStreamWaitEvent: a captured stream waits for an event that is not captured");
    }
    return is_done(event->op) ? cudaSuccess : rt.submit(lock, *s, marker("cudaStreamWaitEvent"), event->op);
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    const CUstream_st* s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaStreamGetPriority");
    if (!priority) return cudaErrorInvalidValue;
    *priority = s->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    const CUstream_st* s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaStreamGetFlags");
    if (!flags) return cudaErrorInvalidValue;
    *flags = s->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    const CUstream_st* s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaStreamGetDevice");
    if (!device) return cudaErrorInvalidValue;
    *device = s->device;
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaLaunchHostFunc");
    if (!fn) return cudaErrorInvalidValue;
    Work work;
    work.kind = Work::Kind::host;
    work.name = "cudaLaunchHostFunc";
    work.run = [fn, userData] {
      fn(userData);
      return std::string();
    };
    return rt.submit(lock, *s, std::move(work));
  });
}

// ---- events

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    const bool shares = flags & cudaEventInterprocess;
    if (!event || flags > 7 || (shares && !(flags & cudaEventDisableTiming))) return cudaErrorInvalidValue;
    auto* const e = new CUevent_st;
    e->device = this_thread().device;
    e->flags = flags;
    rt.events.insert(e);
    *event = e;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!rt.events.erase(event)) return no_event(rt, "cudaEventDestroy");
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const s = rt.find(stream);
    if (!s) return no_stream(rt, "cudaEventRecord");
    if (!rt.events.count(event)) return no_event(rt, "cudaEventRecord");
    if (s->device != event->device) {
      return rt.refuse(cudaErrorInvalidResourceHandle, "cudaEventRecord: the event belongs to device " +
                                                           std::to_string(event->device) + ", the stream to device " +
                                                           std::to_string(s->device));
    }
    if (s->capture) {
      if (s->capture->invalid) return cudaErrorStreamCaptureInvalidated;
      event->capture = s->capture;
      event->tails = s->tails;
      return cudaSuccess;
    }
    const cudaError_t e = rt.submit(lock, *s, marker("cudaEventRecord"));
    if (e != cudaSuccess) return e;
    event->op = s->last;
    event->capture.reset();
    event->tails.clear();
    event->impatience = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    if (!rt.events.count(event)) return no_event(rt, "cudaEventQuery");
    cudaError_t e = check_not_captured(rt, *event, "cudaEventQuery");
    if (e == cudaSuccess) e = rt.check_no_capture("cudaEventQuery");
    if (e != cudaSuccess) return e;
    if (is_done(event->op)) return rt.health(event->device);
    rt.nudge(lock, OpRef(event->op), event->impatience);
    return cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    if (!rt.events.count(event)) return no_event(rt, "cudaEventSynchronize");
    cudaError_t e = check_not_captured(rt, *event, "cudaEventSynchronize");
    if (e == cudaSuccess) e = rt.check_no_capture("cudaEventSynchronize");
    if (e != cudaSuccess) return e;
    const int device = event->device;
    rt.host_wait(lock, {event->op});
    return rt.health(device);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!milliseconds) return cudaErrorInvalidValue;
    if (!rt.events.count(start) || !rt.events.count(end)) return no_event(rt, "cudaEventElapsedTime");
    if (start->capture || end->capture) return cudaErrorCapturedEvent;
    if ((start->flags | end->flags) & cudaEventDisableTiming || !start->op || !end->op) {
      return rt.refuse(cudaErrorInvalidResourceHandle,
                       "cudaEventElapsedTime: an event was not recorded, or made with cudaEventDisableTiming");
    }
    if (!start->op->done || !end->op->done) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end->op->finished - start->op->finished).count();
    return cudaSuccess;
  });
}
