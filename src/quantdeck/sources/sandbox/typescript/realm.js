// What the submitted code finds in its realm beside the language. This function is compiled there, so that all it makes
// belongs there; it takes what it needs of the language before the code can change it.

export function realm(send, figures) {
  "use strict";
  const MOST_CALLS = 100;
  const LONGEST_ARGUMENTS = 65_536;
  const LONGEST_RESULT = 262_144;
  const MOST_CONSOLE = 65_536;
  const MOST_LINES = 1_000;

  const { parse, stringify } = JSON;
  const { freeze, defineProperty, create, keys, getPrototypeOf } = Object;
  const [isArray, isFinite, text, number, error, typeError, rangeError, promise] =
    [Array.isArray, Number.isFinite, String, Number, Error, TypeError, RangeError, Promise];
  const [map, set, bytes, date, now] = [Map, Set, getPrototypeOf(Uint8Array), Date, Date.now];
  const unbound = Function.prototype.call.bind.bind(Function.prototype.call);
  const [slice, wellFormed, then, mapEntries, setValues, arrayFrom, join] = [
    String.prototype.slice, String.prototype.toWellFormed, Promise.prototype.then, Map.prototype.entries,
    Set.prototype.values, Array.from.bind(Array), Array.prototype.join,
  ].map((one) => (one.name.startsWith("bound") ? one : unbound(one)));
  const reflectApply = Reflect.apply;
  const reflectConstruct = Reflect.construct;
  const fromEntries = Object.fromEntries;

  for (const name of ["WebAssembly", "SharedArrayBuffer", "Atomics", "queueMicrotask", "console"]) {
    delete globalThis[name];
  }

  // What goes out must never throw an error of the other realm into this one.
  const post = (kind, first, second, third) => {
    try {
      send(kind, first, second, third);
    } catch {
      throw new rangeError("Maximum call stack size exceeded");
    }
  };

  // Calls to the server.

  const waiting = create(null);
  let calls = 0;

  class PythError extends error {
    constructor(message) {
      super(message);
      this.code = "";
    }
  }
  defineProperty(PythError.prototype, "name", { value: "PythError", enumerable: false });

  const refused = (message, code) => {
    const told = new PythError(message);
    told.code = code;
    return told;
  };

  const call = (method, given, most) => {
    const told = new PythError("");
    return new promise((resolve, reject) => {
      if (given.length > most) {
        reject(new typeError(`pyth.${method} takes ${most} arguments at most, not ${given.length}`));
        return;
      }
      if (calls >= MOST_CALLS) {
        reject(refused(`An analysis may make ${MOST_CALLS} calls; ask for more in each.`, "limit"));
        return;
      }
      const said = stringify(given);
      if (said.length > LONGEST_ARGUMENTS) {
        reject(refused(`The arguments are longer than ${LONGEST_ARGUMENTS} characters; ask for less.`, "limit"));
        return;
      }
      calls += 1;
      const id = calls;
      waiting[id] = { resolve, reject, told };
      post("call", id, method, said);
    });
  };

  const deliver = (id, ok, said) => {
    const held = waiting[id];
    delete waiting[id];
    const value = parse(said);
    if (ok) {
      held.resolve(value);
      return;
    }
    const { told } = held;
    defineProperty(told, "message", { value: value.message, configurable: true, writable: true });
    told.code = value.code;
    const { stack } = told;
    if (typeof stack === "string") {
      const rest = slice(stack, "PythError".length);
      defineProperty(told, "stack", { value: `PythError: ${value.message}${rest}`, configurable: true });
    }
    held.reject(told);
  };

  const pyth = freeze({
    getSymbols: (...given) => call("getSymbols", given, 2),
    getCandlestickData: (...given) => call("getCandlestickData", given, 4),
    getHistoricalPrice: (...given) => call("getHistoricalPrice", given, 2),
    getLatestPrice: (...given) => call("getLatestPrice", given, 2),
  });

  // The console.

  let written = 0;
  let lines = 0;

  const shown = (value) => {
    try {
      if (typeof value === "string") return value;
      if (value instanceof error) return text(value.stack || value);
      if (typeof value === "object" && value !== null) return stringify(value, plain) ?? text(value);
      return text(value);
    } catch {
      return "[cannot be shown]";
    }
  };

  const write = (level) => (...given) => {
    if (written >= MOST_CONSOLE || lines >= MOST_LINES) return;
    let line = level;
    for (let place = 0; place < given.length && line.length < MOST_CONSOLE; place += 1) {
      line += (place ? " " : "") + slice(shown(given[place]), 0, MOST_CONSOLE);
    }
    line = slice(line, 0, MOST_CONSOLE - written);
    written += line.length + 1;
    lines += 1;
    post("log", wellFormed(line));
    if (written >= MOST_CONSOLE || lines >= MOST_LINES) post("log", "[the console is full; the rest is left out]");
  };

  const console = {};
  for (const level of ["log", "info", "debug", "warn", "error", "trace"]) {
    console[level] = write(level === "warn" || level === "error" ? `${level}: ` : "");
  }
  console.table = console.dir = console.log;
  console.assert = (held, ...given) => {
    if (!held) console.error("Assertion failed", ...given);
  };
  for (const level of ["count", "group", "groupCollapsed", "groupEnd", "time", "timeLog", "timeEnd", "clear"]) {
    console[level] = () => {};
  }
  freeze(console);

  // The result.

  let lost = 0;

  function plain(key, value) {
    if (typeof value === "number") {
      if (!isFinite(value)) lost += 1;
      return value;
    }
    if (typeof value === "bigint") return text(value);
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof map) return fromEntries(arrayFrom(mapEntries(value), ([name, held]) => [text(name), held]));
    if (value instanceof set) return arrayFrom(setValues(value));
    if (value instanceof bytes) return arrayFrom(value);
    return value;
  }

  const finish = (value) => {
    lost = 0;
    const said = stringify(value, plain) ?? "null";
    if (said.length > LONGEST_RESULT) {
      const most = `${LONGEST_RESULT} characters`;
      throw new rangeError(`The result is ${said.length} characters of JSON; at most ${most} are returned`);
    }
    post("result", `[${lost},${said}]`);
  };

  const fail = (thrown) => {
    let [name, message, stack] = ["Error", "", ""];
    try {
      if (typeof thrown === "object" && thrown !== null) {
        name = "stack" in thrown ? text(thrown.name) : "Error";
        message = "stack" in thrown ? text(thrown.message) : shown(thrown);
        stack = "stack" in thrown ? text(thrown.stack) : "";
      } else {
        message = `${typeof thrown === "string" ? "" : `${typeof thrown} `}${text(thrown)}`;
      }
    } catch {
      message = "An error that cannot be read";
    }
    const told = [slice(name, 0, 100), slice(message, 0, 4_000), slice(stack, 0, 8_000)];
    post("failed", "runtime", stringify([wellFormed(told[0]), wellFormed(told[1]), wellFormed(told[2])]));
  };

  // The world's time, where it stands still.

  const stand = (instant) => {
    const Standing = function Date(...given) {
      if (new.target === undefined) return text(new date(instant));
      return reflectConstruct(date, given.length ? given : [instant], new.target);
    };
    Standing.prototype = date.prototype;
    Standing.prototype.constructor = Standing;
    Standing.now = () => instant;
    Standing.parse = date.parse;
    Standing.UTC = date.UTC;
    globalThis.Date = Standing;
  };

  const begin = (code, instant) => {
    if (instant !== null) stand(instant);
    // Begun by a microtask, so that nothing of the other realm is on the code's stack.
    (async () => {
      await undefined;
      try {
        finish(await code());
      } catch (thrown) {
        fail(thrown);
      }
    })();
  };

  defineProperty(globalThis, "pyth", { value: pyth, enumerable: true });
  defineProperty(globalThis, "indicators", { value: freeze(figures()), enumerable: true });
  defineProperty(globalThis, "console", { value: console, enumerable: false });
  return freeze({ __proto__: null, begin, deliver });
}
