// Written by crates/mcp-delegator/tests/contract_audit from the published schemas: `just update-generated`.

const version = "3.6";

/** The required keys of a complete answer and the types of their values, by category. */
const required = {
  execution_ack: {"meta":{},"data":{"task_id":["string"],"accepted":["boolean"],"capability":["string"],"started_at":["string"]}},
  wait_result: {"meta":{"started_ts":["string"],"completed_ts":["string"],"duration_ms":["integer"]},"data":{"task_id":["string"],"state":["string"],"summary":["string"],"metadata":["object"],"output":["object"]}},
  status_snapshot: {"meta":{"snapshot_ts":["string"],"total":["integer","null"]},"data":{"summary":["object"]}},
  result_set: {"meta":{"count":["integer"]},"data":{"task_id":["string"],"state":["string"],"summary":["string"],"metadata":["object"],"output":["object"],"duration_seconds":["integer"],"completed_ts":["string"]}},
  registry_info: {"meta":{},"data":{}},
};

const typeOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

const isObject = (value) => typeOf(value) === "object";

const hasType = (value, type) => (type === "integer" ? Number.isInteger(value) : typeOf(value) === type);

const hasKeys = (value, keys) =>
  isObject(value) && Object.entries(keys).every(([key, types]) => types.some((type) => hasType(value[key], type)));

const isEnvelope = (answer, status) =>
  isObject(answer) &&
  answer.version === version &&
  Object.hasOwn(required, answer.tool_category) &&
  answer.schema_id === `codex/v${version}/${answer.tool_category}/v1` &&
  ["tool", "request_id", "ts"].every((key) => typeof answer[key] === "string") &&
  answer.status === status &&
  isObject(answer.meta);

const isComplete = (answer, category) =>
  isEnvelope(answer, "ok") &&
  answer.tool_category === category &&
  hasKeys(answer.meta, required[category].meta) &&
  hasKeys(answer.data, required[category].data);

const errorTypes = { code: ["string"], message: ["string"], details: ["object"], retryable: ["boolean"], duration_ms: ["integer"] };

export const isToolFailure = (answer) => isEnvelope(answer, "error") && hasKeys(answer.error, errorTypes);

export const isExecutionAck = (answer) => isComplete(answer, "execution_ack");

export const isWaitResult = (answer) => isComplete(answer, "wait_result");

export const isStatusSnapshot = (answer) => isComplete(answer, "status_snapshot");

export const isResultSet = (answer) => isComplete(answer, "result_set");

export const isRegistryInfo = (answer) => isComplete(answer, "registry_info");
