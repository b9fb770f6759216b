// SPDX-License-Identifier: Apache-2.0
// Events: a ticket that can be taken anew. And the table of the group `async`.
#include "async.hpp"

struct tenon_event_s {
  std::mutex mutex;
  reference::Ticket ticket;  // never recorded: an empty one, which has passed
};

namespace reference {
namespace {

Ticket ticket_in(tenon_event event) {
  std::lock_guard lock(event->mutex);
  return event->ticket;
}

tenon_status event_create(tenon_device, uint32_t flags, tenon_event* out, tenon_err* err) {
  if (flags != 0)
    return tenon::fail(err, TENON_UNSUPPORTED,
                       "reference: event_create: expected flags 0; none is defined");
  *out = new tenon_event_s;
  return TENON_OK;
}

void event_destroy(tenon_device, tenon_event event) { delete event; }

tenon_status event_record(tenon_device, tenon_event event, tenon_stream stream, tenon_err* err) {
  if (stream && stream->recording)
    return tenon::fail(
        err, TENON_UNSUPPORTED,
        "reference: an event cannot become part of a graph; record it after graph_launch");
  std::lock_guard lock(event->mutex);
  event->ticket = ticket_of(stream);
  return TENON_OK;
}

// The ticket is taken now: recording the event again does not move what waits already.
tenon_status stream_wait(tenon_device device, tenon_stream stream, tenon_event event,
                         tenon_err* err) {
  return enqueue(device, stream,
                 {.work =
                      [ticket = ticket_in(event)] {
                        ticket.wait();
                        return Result{};
                      }},
                 err);
}

tenon_status event_query(tenon_device, tenon_event event, int32_t* done, tenon_err*) {
  *done = ticket_in(event).passed();
  return TENON_OK;
}

tenon_status event_sync(tenon_device, tenon_event event, tenon_err*) {
  ticket_in(event).wait();
  return TENON_OK;
}

}  // namespace

const tenon_async_api kAsync = {
    .struct_size = sizeof(tenon_async_api),
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .event_query = event_query,
    .event_sync = event_sync,
};

}  // namespace reference
