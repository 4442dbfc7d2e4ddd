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

  // What a function is given whose input has other names besides (as in Python): the names are inherited, so that they can be read and
  // nothing that is made of the input has them. An input that is no object has no other place than the names.
  const { create, defineProperty, setPrototypeOf, hasOwn, keys, prototype } = Object, isArray = Array.isArray;
  const hidden = (object, name, value) => defineProperty(object, name, { value, writable: true, configurable: true });
  function given(whole, aliases) {
    const names = aliases.split(","), inherited = create(prototype);
    if (typeof whole === "object" && whole !== null && !isArray(whole)) {
      const copy = { ...whole };
      for (const name of names) if (!hasOwn(whole, name)) hidden(inherited, name, copy);
      return setPrototypeOf(whole, inherited);
    }
    hidden(inherited, "toJSON", function () {
      for (const name of names) if (!hasOwn(this, name) || this[name] !== whole) return this;
      return keys(this).length === names.length ? whole : this;
    });
    const argument = create(inherited);
    for (const name of names) argument[name] = whole;
    return argument;
  }

  const Real = Date;
  Real.now = function () { return now(); };
  globalThis.Date = new Proxy(Real, {
    construct(target, args, origin) { return Reflect.construct(target, args.length === 0 ? [now()] : args, origin); },
    apply() { return new Real(now()).toString(); },
  });
  Real.prototype.constructor = globalThis.Date;
  return given;
})
