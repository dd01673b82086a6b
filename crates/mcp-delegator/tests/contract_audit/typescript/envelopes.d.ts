/** The JSON answer of an MCP tool. */
export interface JsonEnvelope<T = unknown> {
  version: "VERSION";
  schema_id: string;
  tool: string;
  tool_category: ToolCategory;
  request_id: string;
  /** When the answer was written, in UTC. */
  ts: string;
  status: "ok" | "error";
  meta: Record<string, any>;
  data?: T;
  error?: JsonError;
}

export interface ToolSuccess<C extends ToolCategory, M extends Record<string, any>, D> extends JsonEnvelope<D> {
  schema_id: `codex/vVERSION/${C}/v1`;
  tool_category: C;
  status: "ok";
  meta: M;
  data: D;
  error?: never;
}

export interface ToolFailure<C extends ToolCategory = ToolCategory, M extends Record<string, any> = Record<string, any>>
  extends JsonEnvelope<never> {
  schema_id: `codex/vVERSION/${C}/v1`;
  tool_category: C;
  status: "error";
  meta: Partial<M>;
  data?: never;
  error: JsonError;
}

export type ToolAnswer<C extends ToolCategory, M extends Record<string, any>, D> =
  | ToolSuccess<C, Partial<M>, Partial<D>>
  | ToolFailure<C, M>;

/** Whether it is the answer of a tool with an error. */
export function isToolFailure(answer: unknown): answer is ToolFailure;
