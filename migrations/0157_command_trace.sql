-- The trace that a command was written in: carrying it out, and its result, go on with it (W3C Trace Context).
alter table command
  add column traceparent text,
  add column tracestate text;
