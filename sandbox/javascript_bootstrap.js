// Runs once, before the engine's memory is copied; every call starts from that copy. It receives what the host offers,
// write(stream, text) and now(), and gives the program a console and a clock. There is nothing else to reach.
(function (write, now) {
  "use strict";
  const stringify = JSON.stringify, text = String;
  function show(value) {
    if (typeof value === "string") return value;
    if (value instanceof Error) return text(value);
    if (typeof value === "object" && value !== null) {
      try { return stringify(value); } catch { return text(value); }
    }
    return text(value);
  }
  const printer = (stream) => (...values) => { write(stream, values.map(show).join(" ") + "\n"); };
  const out = printer(1), err = printer(2);
  globalThis.console = { log: out, info: out, debug: out, warn: err, error: err };
  globalThis.print = out;

  const Real = Date;
  Real.now = function () { return now(); };
  globalThis.Date = new Proxy(Real, {
    construct(target, args, origin) { return Reflect.construct(target, args.length === 0 ? [now()] : args, origin); },
    apply() { return new Real(now()).toString(); },
  });
  Real.prototype.constructor = globalThis.Date;
})
