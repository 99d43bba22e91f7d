// What an engine with every permission tries: run in the cage, on Deno with -A. Each by its name, and how it ended.

const [server, canary, port] = Deno.args;
const folder = canary.slice(0, canary.lastIndexOf("/"));
const say = (name, how) => Deno.stdout.writeSync(new TextEncoder().encode(`${how} ${name}\n`));

const attempts = {
  "read a file": () => Deno.readTextFileSync(canary),
  "read /etc/passwd": () => Deno.readTextFileSync("/etc/passwd"),
  "read its own environment": () => Deno.readTextFileSync("/proc/self/environ"),
  "read the server's environment": () => Deno.readTextFileSync(`/proc/${server}/environ`),
  "read the server's memory": () => Deno.openSync(`/proc/${server}/mem`),
  "list the root": () => [...Deno.readDirSync("/")],
  "list its folder": () => [...Deno.readDirSync(folder)],
  "write a file": () => Deno.writeTextFileSync(`${folder}/written`, "x"),
  "write over a file": () => Deno.writeTextFileSync(canary, "x"),
  "make a folder": () => Deno.mkdirSync(`${folder}/made`),
  "make a temporary file": () => Deno.makeTempFileSync(),
  "write into its cache": () => Deno.mkdirSync("/proc/none/.cache", { recursive: true }),
  "connect": () => Deno.connect({ hostname: "127.0.0.1", port: Number(port) }),
  "listen": () => Deno.listen({ hostname: "127.0.0.1", port: 0 }),
  "send a datagram": () => Deno.listenDatagram({ hostname: "127.0.0.1", port: 0, transport: "udp" }),
  "connect to a Unix socket": () => Deno.connect({ transport: "unix", path: `${folder}/socket` }),
  "listen on a Unix socket": () => Deno.listen({ transport: "unix", path: `${folder}/socket2` }),
  "ask for a name": () => Deno.resolveDns("localhost", "A"),
  "fetch": () => fetch(`http://127.0.0.1:${port}/`),
  "fetch a file": () => fetch(`file://${canary}`).then((told) => told.text()),
  "open a WebSocket": () =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
      socket.onopen = resolve;
      socket.onerror = reject;
    }),
  "run a shell": () => new Deno.Command("/bin/sh", { args: ["-c", "true"] }).outputSync(),
  "run itself": () => new Deno.Command(Deno.execPath(), { args: ["--version"] }).outputSync(),
  "signal the server": () => Deno.kill(Number(server), "SIGCONT"),
  "import a file": () => import(`file://${canary}`),
  "import from node": async () => (await import("node:fs")).readFileSync(canary),
  "run a program from node": async () => {
    const told = (await import("node:child_process")).spawnSync("/bin/sh", ["-c", "true"]);
    if (told.error || told.status !== 0) throw new Error("refused");
  },
  "keep something": () => localStorage.setItem("a", "b"),
  "have another environment": () => {
    const names = Object.keys(Deno.env.toObject()).filter((name) => !["HOME", "NO_COLOR", "TZ"].includes(name));
    if (!names.length) throw new Error("no other");
  },
};

for (const [name, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    say(name, "possible");
  } catch {
    say(name, "refused");
  }
}

// The system itself, by a foreign function.
try {
  const libc = Deno.dlopen("libc.so.6", {
    fork: { parameters: [], result: "i32" },
    socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
    kill: { parameters: ["i32", "i32"], result: "i32" },
    ptrace: { parameters: ["i64", "i64", "i64", "i64"], result: "i64" },
    memfd_create: { parameters: ["buffer", "u32"], result: "i32" },
    unshare: { parameters: ["i32"], result: "i32" },
    system: { parameters: ["buffer"], result: "i32" },
    open: { parameters: ["buffer", "i32"], result: "i32" },
  });
  const text = (words) => new TextEncoder().encode(`${words}\0`);
  const calls = {
    fork: () => libc.symbols.fork(),
    socket: () => libc.symbols.socket(2, 1, 0),
    kill: () => libc.symbols.kill(Number(server), 0),
    ptrace: () => Number(libc.symbols.ptrace(16n, BigInt(server), 0n, 0n)),
    memfd_create: () => libc.symbols.memfd_create(text("x"), 0),
    unshare: () => libc.symbols.unshare(0x10000000),
    system: () => (libc.symbols.system(text("true")) === 0 ? 0 : -1),
    open: () => libc.symbols.open(text(canary), 0),
  };
  for (const [name, call] of Object.entries(calls)) say(`${name} by a foreign function`, call() < 0 ? "refused" : "possible");
} catch {
  say("a foreign function", "refused");
}
say("", "done");
Deno.exit(0);
