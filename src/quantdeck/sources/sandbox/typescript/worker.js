// The worker's own realm: it reads frames, sends frames, and holds what the submitted code must not.
//
// Frames are lines of JSON. In: ["run", code, now_ms | null], ["reply", id, ok, text]. Out: ["ready", 0], ["call", id,
// method, text], ["log", text], ["result", text], ["failed", kind, text]. Only strings and numbers cross into the realm
// of the code and back.

import { stripTypeScriptTypes } from "node:module";
import vm from "node:vm";

import { indicators } from "./indicators.js";
import { realm } from "./realm.js";

const { stringify, parse } = JSON;
const encoder = new TextEncoder();
const BEFORE = '(async()=>{"use strict";';
const AFTER = "\n})";

function send(...frame) {
  let bytes = encoder.encode(stringify(frame) + "\n");
  while (bytes.length) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
}

const context = vm.createContext(vm.constants.DONT_CONTEXTIFY, { codeGeneration: { strings: false, wasm: false } });
const made = new vm.Script(`(${realm})`, { filename: "realm" }).runInContext(context);
const figures = new vm.Script(`(${indicators})`, { filename: "realm" }).runInContext(context);
const { begin, deliver } = made(
  (kind, first, second, third) => {
    if (kind === "call") send("call", first, second, third);
    else if (kind === "failed") send("failed", first, second);
    else send(kind, first);
  },
  figures,
);

// Stripping says where an unsupported piece is, but not what is wrong with code that cannot be parsed: transforming does.
function explained(error, code) {
  if (!error.message.startsWith("[InvalidSyntax]")) return error.message;
  try {
    stripTypeScriptTypes(BEFORE + code + AFTER, { mode: "transform", sourceMap: false });
  } catch (told) {
    return told.message;
  }
  return error.message;
}

function run(code, now) {
  let script;
  try {
    const stripped = stripTypeScriptTypes(BEFORE + code + AFTER, { mode: "strip" });
    script = new vm.Script(stripped, { filename: "user.ts", columnOffset: -BEFORE.length });
  } catch (error) {
    send("failed", "syntax", stringify(["SyntaxError", explained(error, code).slice(0, 4000), ""]));
    return;
  }
  begin(script.runInContext(context), now);
}

function giveUp(why) {
  Deno.stderr.writeSync(encoder.encode(`engine: ${why}\n`));
  Deno.exit(70);
}

// A flag that the engine did not take protects nothing: what it should do is tried before any code is heard of.
function protect() {
  const made = [() => (0, eval)("1"), () => new vm.Script("(0, eval)('1')").runInContext(context)];
  for (const make of made) {
    try {
      make();
    } catch {
      continue;
    }
    giveUp("code can be made of strings");
  }
  for (const name of ["read", "write", "net", "env", "run", "sys", "ffi", "import"]) {
    if (Deno.permissions.querySync({ name }).state !== "denied") giveUp(`${name} is permitted`);
  }
}

protect();
globalThis.addEventListener("unhandledrejection", (event) => event.preventDefault());
const decoder = new TextDecoder();
let rest = "";
send("ready", 0);
for await (const chunk of Deno.stdin.readable) {
  rest += decoder.decode(chunk, { stream: true });
  for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
    const [kind, ...said] = parse(rest.slice(0, end));
    rest = rest.slice(end + 1);
    if (kind === "run") run(...said);
    else deliver(...said);
  }
}
