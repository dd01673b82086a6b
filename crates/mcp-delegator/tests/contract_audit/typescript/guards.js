// Written by crates/mcp-delegator/tests/contract_audit from the published schemas: `just update-generated`.

const version = "VERSION";

/** The required keys of a complete answer and the types of their values, by category. */
const required = REQUIRED_TYPES;

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
