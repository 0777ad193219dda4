-- The trace that an event happened in, so that its deliveries go on with it (W3C Trace Context).

alter table event
  add column traceparent text,
  add column tracestate text;
