// The TypeScript SDK's high-level server, used as its documentation shows it. `workload.py` says what it serves.
// typescript_setup.py copies this file next to node_modules, in the cache, since imports resolve from the file's folder.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const [transport, toolCount] = [process.argv[2], Number(process.argv[3])];

const symbol = z.string().describe('Instrument, such as BTC/USD.');
const limit = z.number().int().min(1).max(1000).describe('How many rows at most.');
const query = z.object({ symbol, limit });
const noopOutput = z.object({ ok: z.boolean(), symbol: z.string() });
const row = z.object({
    time: z.number().int(), open: z.number(), high: z.number(), low: z.number(), close: z.number(),
    volume: z.number(), trades: z.number().int(), venue: z.string()
});
const rowsOutput = z.object({ symbol: z.string(), rows: z.array(row) });
const fillerInput = z.object({
    symbol,
    start: z.string().describe('First moment, ISO 8601 with an offset.'),
    end: z.string().describe('Moment after the last one, ISO 8601 with an offset.'),
    interval: z.enum(['1m', '5m', '1h', '1d']).default('1h').describe('Width of one bar.'),
    limit: limit.default(100)
});
const fillerOutput = z.object({ symbol: z.string(), count: z.number().int(), mean: z.number(), deviation: z.number() });

const ROWS = Array.from({ length: 400 }, (_, i) => {
    const cents = 6_500_000 + (i * 37) % 10_007;
    return {
        time: 1_763_424_000 + 60 * i, open: cents / 100, high: (cents + 1_250) / 100, low: (cents - 1_175) / 100,
        close: (cents + 325) / 100, volume: ((i * 7_919) % 100_000) / 1_000, trades: (i * 31) % 997, venue: 'exchange'
    };
});

const answer = data => ({ content: [{ type: 'text', text: JSON.stringify(data) }], structuredContent: data });

function build() {
    const server = new McpServer({ name: 'bench', version: '0' });
    const noop = { description: 'Do nothing.', inputSchema: query, outputSchema: noopOutput };
    server.registerTool('noop', noop, async args => answer({ ok: true, symbol: args.symbol }));
    const rows = { description: 'Bars of one instrument.', inputSchema: query, outputSchema: rowsOutput };
    server.registerTool('rows', rows, async args => answer({ symbol: args.symbol, rows: ROWS }));
    for (let i = 0; i < toolCount - 2; i++) {
        const name = `summary_${String(i).padStart(2, '0')}`;
        const description = `Summarise the bars of one instrument over a period (${name}). Times are UTC; the end is exclusive.`;
        server.registerTool(name, { description, inputSchema: fillerInput, outputSchema: fillerOutput },
            async args => answer({ symbol: args.symbol, count: args.limit, mean: 0, deviation: 0 }));
    }
    return server;
}

const sessions = new Map();

async function openSession() {
    const opened = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => { sessions.set(id, opened); }
    });
    await build().connect(opened);
    return opened;
}

function serveHttp() {
    // The modern entry makes a server per request: that is its design, not a choice made here.
    const modern = toNodeHandler(createMcpHandler(build, { legacy: 'reject' }));
    const [hostIsLocal, originIsLocal] = [localhostHostValidation(), localhostOriginValidation()];
    const http = createServer(async (req, res) => {
        if (!hostIsLocal(req, res) || !originIsLocal(req, res)) return;
        // By header: cheaper than the SDK's isLegacyRequest, which reads each body once more.
        if (req.headers['mcp-protocol-version'] === '2026-07-28') return modern(req, res);
        const session = sessions.get(req.headers['mcp-session-id']) ?? (await openSession());
        await session.handleRequest(req, res);
    });
    http.listen(0, '127.0.0.1', 256, () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}

if (transport === 'http') serveHttp();
else serveStdio(build);
