// The TypeScript SDK's server with the same functions: `typescript_server.mjs WHAT …`, as serve.py has it.
import { McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';

const ITEMS = Array.from({ length: 1000 }, (_, i) => ({
  id: i, name: `item-${i}`, price: i * 1.25, in_stock: i % 2 === 0, note: 'a "quoted" note é',
}));
const makeRow = (section, row) => ({
  id: row, label: `row ${section}/${row}`, values: Array.from({ length: 10 }, (_, k) => row * 0.5 + k), note: 'x'.repeat(80),
});
const REPORT = {
  title: 'report',
  sections: Array.from({ length: 50 }, (_, section) => ({
    name: `section-${section}`, rows: Array.from({ length: 100 }, (_, row) => makeRow(section, row)),
  })),
};

const integer = z.number().int();
const user = z.object({ id: integer, name: z.string(), score: z.number() });
const item = z.object({ id: integer, name: z.string(), price: z.number(), in_stock: z.boolean(), note: z.string() });
const row = z.object({ id: integer, label: z.string(), values: z.array(z.number()), note: z.string() });
const report = z.object({ title: z.string(), sections: z.array(z.object({ name: z.string(), rows: z.array(row) })) });
const two = z.object({ x: integer, y: integer });
const sum = z.object({ result: integer });
const query = z.object({ query: z.string(), limit: integer.default(10), tag: z.string().nullable().default(null) });

const result = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value });
const SEARCH = { description: 'Search things by query and return the best user.', inputSchema: query, outputSchema: user };

function makeServer(count) {
  const server = new McpServer({ name: 'bench', version: '1' });
  for (let i = 0; i < count; i++)
    server.registerTool(`tool_${i}`, SEARCH, async ({ query }) => result({ id: 1, name: query, score: 0.5 }));
  if (count) return server;
  const add = (name, description, inputSchema, outputSchema, run) =>
    server.registerTool(name, { description, inputSchema, outputSchema }, run);
  const one = z.object({ n: integer });
  add('integer', 'Add two numbers.', two, sum, async ({ x, y }) => result({ result: x + y }));
  add('model', 'Get a user.', z.object({ id: integer }), user, async ({ id }) => result({ id, name: 'Ada Lovelace', score: 0.5 }));
  add('models', 'List items.', one, z.object({ result: z.array(item) }), async () => result({ result: ITEMS }));
  add('large', 'Get a report of 0.9 MB.', one, report, async () => result(REPORT));
  add('sync', 'Add two numbers, not in a thread: JavaScript has none.', two, sum, ({ x, y }) => result({ result: x + y }));
  return server;
}

async function serveHttp(port) {
  const { createServer } = await import('node:http');
  const { createMcpHandler } = await import('@modelcontextprotocol/server');
  const { toNodeHandler, localhostHostValidation, localhostOriginValidation } = await import('@modelcontextprotocol/node');
  const handle = toNodeHandler(createMcpHandler(() => makeServer(0)));
  const isHost = localhostHostValidation(), isOrigin = localhostOriginValidation();
  createServer((request, response) => {
    if (isHost(request, response) && isOrigin(request, response)) void handle(request, response);
  }).listen(port, '127.0.0.1');
}

const [what, ...rest] = process.argv.slice(2);
if (what === 'http') await serveHttp(Number(rest[1]));
else {
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  serveStdio(() => makeServer(what === 'tools' ? Number(rest[0]) : 0));
}
