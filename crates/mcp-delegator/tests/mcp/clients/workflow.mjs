// The whole workflow with the TypeScript SDK: workflow.mjs SDKS PROGRAM MODE, where MODE is v1 (the older package), legacy,
// or a version of the protocol.
import { createRequire } from 'node:module';

const [sdks, program, mode] = process.argv.slice(2);
const from = createRequire(`${sdks}/`);
const { Client, StdioClientTransport } =
  mode === 'v1'
    ? { ...from('@modelcontextprotocol/sdk/client/index.js'), ...from('@modelcontextprotocol/sdk/client/stdio.js') }
    : { ...from('@modelcontextprotocol/client'), ...from('@modelcontextprotocol/client/stdio') };

const negotiation = { v1: {}, legacy: { versionNegotiation: { mode: 'legacy' } } };
const options = negotiation[mode] ?? { versionNegotiation: { mode: { pin: mode } } };
const client = new Client({ name: 'workflow', version: '1' }, options);
const transport = new StdioClientTransport({ command: program, args: ['serve'], env: process.env });
let version = null;
// The older package passes the negotiated version only to the transport.
transport.setProtocolVersion = (negotiated) => { version = negotiated; };
await client.connect(transport);

let notifications = 0;
const onprogress = () => { notifications += 1; };
const call = (name, args, more) =>
  mode === 'v1'
    ? client.callTool({ name, arguments: args }, undefined, more)
    : client.callTool({ name, arguments: args }, more);

const { tools } = await client.listTools();
const accepted = await call('_codex_local_exec', { task: 'mend it', format: 'json' });
const task = { task_id: accepted.structuredContent.data.task_id };
const waited = await call('_codex_local_wait', task, { onprogress });
const results = await call('_codex_local_results', { ...task, format: 'json' });
const refused = await call('_codex_local_status', { limit: -1 });
const { resources } = await client.listResources();
const { prompts } = await client.listPrompts();
console.log(JSON.stringify({
  version: client.getNegotiatedProtocolVersion?.() ?? version,
  tools: tools.length,
  waited: waited.content[0].text,
  final_message: results.structuredContent.data.final_message,
  refused: refused.isError,
  progress: notifications,
  resources: resources.length,
  prompts: prompts.length,
}));
await client.close();
