// Written by crates/mcp-delegator/tests/contract_audit from the published schemas: `just update-generated`.

/** The JSON answer of an MCP tool. */
export interface JsonEnvelope<T = unknown> {
  version: "3.6";
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
  schema_id: `codex/v3.6/${C}/v1`;
  tool_category: C;
  status: "ok";
  meta: M;
  data: D;
  error?: never;
}

export interface ToolFailure<C extends ToolCategory = ToolCategory, M extends Record<string, any> = Record<string, any>>
  extends JsonEnvelope<never> {
  schema_id: `codex/v3.6/${C}/v1`;
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

/** An answer of the category `execution_ack`. It may lack keys: with selected fields, after an expired wait, or truncated. */
export type ExecutionAckAnswer = ToolAnswer<"execution_ack", ExecutionAckMeta, ExecutionAckData>;
/** An answer of the category `execution_ack` without an error and with all keys. */
export type CompleteExecutionAck = ToolSuccess<"execution_ack", ExecutionAckMeta, ExecutionAckData>;
/** Checks the envelope, and that each required key of `meta` and `data` has a value of its type. */
export function isExecutionAck(answer: unknown): answer is CompleteExecutionAck;

/** An answer of the category `wait_result`. It may lack keys: with selected fields, after an expired wait, or truncated. */
export type WaitResultAnswer = ToolAnswer<"wait_result", WaitResultMeta, WaitResultData>;
/** An answer of the category `wait_result` without an error and with all keys. */
export type CompleteWaitResult = ToolSuccess<"wait_result", WaitResultMeta, WaitResultData>;
/** Checks the envelope, and that each required key of `meta` and `data` has a value of its type. */
export function isWaitResult(answer: unknown): answer is CompleteWaitResult;

/** An answer of the category `status_snapshot`. It may lack keys: with selected fields, after an expired wait, or truncated. */
export type StatusSnapshotAnswer = ToolAnswer<"status_snapshot", StatusSnapshotMeta, StatusSnapshotData>;
/** An answer of the category `status_snapshot` without an error and with all keys. */
export type CompleteStatusSnapshot = ToolSuccess<"status_snapshot", StatusSnapshotMeta, StatusSnapshotData>;
/** Checks the envelope, and that each required key of `meta` and `data` has a value of its type. */
export function isStatusSnapshot(answer: unknown): answer is CompleteStatusSnapshot;

/** An answer of the category `result_set`. It may lack keys: with selected fields, after an expired wait, or truncated. */
export type ResultSetAnswer = ToolAnswer<"result_set", ResultSetMeta, ResultSetData>;
/** An answer of the category `result_set` without an error and with all keys. */
export type CompleteResultSet = ToolSuccess<"result_set", ResultSetMeta, ResultSetData>;
/** Checks the envelope, and that each required key of `meta` and `data` has a value of its type. */
export function isResultSet(answer: unknown): answer is CompleteResultSet;

/** An answer of the category `registry_info`. It may lack keys: with selected fields, after an expired wait, or truncated. */
export type RegistryInfoAnswer = ToolAnswer<"registry_info", RegistryInfoMeta, RegistryInfoData>;
/** An answer of the category `registry_info` without an error and with all keys. */
export type CompleteRegistryInfo = ToolSuccess<"registry_info", RegistryInfoMeta, RegistryInfoData>;
/** Checks the envelope, and that each required key of `meta` and `data` has a value of its type. */
export function isRegistryInfo(answer: unknown): answer is CompleteRegistryInfo;

export type ToolCategory = "execution_ack" | "wait_result" | "status_snapshot" | "result_set" | "registry_info";

/** Why a call failed. */
export interface JsonError {
  code: "INTERNAL" | "NOT_FOUND" | "TIMEOUT" | "TOOL_ERROR" | "UNSUPPORTED" | "VALIDATION";
  message: string;
  /** The known keys of an error's context; each error has those that apply to it, and may have others. */
  details: {
    timeout_type?: "wall" | "idle" | "hard";
    elapsed_seconds?: number;
    idle_seconds?: number;
    limit_seconds?: number | null;
    /** What a timed-out task printed last. */
    partial_results?: PartialResults;
    failure_kind?: string;
    agent_message?: string;
    retry_at?: string;
    exit_code?: number | null;
    stderr_tail?: string;
    file?: string;
    line?: number;
    column?: number;
    task_id?: string;
    /** The tasks, if the call was about several. */
    task_ids?: string[];
    /** The task that uses the work tree. */
    busy_task_id?: string;
    /** Processes of the task that could not be killed. */
    survivors?: number[];
    thread_id?: string;
    /** The known thread with the most similar id. */
    nearest_thread_id?: string;
    /** The state of the task. */
    state?: string;
    /** Task ids that match an abbreviated one. */
    candidates?: string[];
    /** The tasks whose worktrees take too much disk space, the oldest first. */
    worktrees?: string[];
    agent?: string;
    env_id?: string;
    /** The provider that runs the task. */
    provider?: string;
    /** What the provider or its program printed. */
    provider_message?: string;
    /** The page of the task. */
    url?: string;
    /** The command that is not available. */
    command?: string;
    /** The unknown words of the command line. */
    typed?: string;
    /** The input or flag with the problem. */
    field?: string;
    /** The stored input that could not be read. */
    input?: Record<string, unknown>;
    /** The unknown setting. */
    key?: string;
    /** The unknown name. */
    name?: string;
    uri?: string;
    path?: string;
    /** An example of a valid file. */
    sample?: string;
    /** The name of the system's error. */
    errno?: string;
    /** The user declined to confirm the call. */
    is_declined?: boolean;
    /** The question of the agent that the call was about. */
    question_number?: number;
    question_state?: string;
    /** The numbers of the open questions. */
    question_numbers?: number[];
    /** The answer that was given first. */
    answer_option?: string;
    answer_text?: string;
    /** A run of the verify command. */
    verification?: Verification;
    /** How far the clock jumped. */
    jumped_by_hours?: number;
    /** Changes that would be restored, but were changed again. */
    overlaps?: Overlap[];
    /** Files that a diff cannot change as it demands. */
    conflicts?: Conflict[];
    /** The restore point that undoes an incomplete restore. */
    undo_point?: string;
    kind?: "agent_failed" | "all_items_failed" | "auth" | "cancelled" | "config" | "confirmation_required" | "conflict" | "dependency" | "incomplete" | "internal" | "lock_held" | "not_found" | "partial_failure" | "payload" | "payment" | "permission" | "permission_policy" | "rate_limited" | "redirected" | "strict_warnings" | "supervisor_unavailable" | "timeout" | "unavailable" | "unsupported" | "usage" | "wrong_state";
    code?: string;
    cli_exit_code?: number;
    problems?: DetailsProblem[];
    suggestion?: string;
    detail?: string;
    /** The command to run instead. */
    redirect?: DetailsRedirect;
    retry_after_ms?: number;
    total_operations?: number;
    successful?: number;
    failed?: number;
    /** Some items failed, and some succeeded. */
    partial_success?: boolean;
    results?: DetailsResult[];
  };
  retryable: boolean;
  duration_ms: number;
}

/** `meta` of the category `execution_ack`. */
export interface ExecutionAckMeta {
  /** 0: the task has a slot. */
  queue_position?: number;
  estimated_start_ms?: number;
  /** The task was submitted before, with the same idempotency key. */
  replayed?: boolean;
  /** The task that a queued task waits for, besides a free slot. */
  waiting_for?: WaitingFor;
  is_queue_paused?: boolean;
  /** Set while the agent of a queued task is paused. */
  agent_pause?: AgentPause;
  warnings?: Warning[];
  next_cursor?: string;
  total?: number;
  not_modified?: boolean;
  partial?: boolean;
  wait_expired?: boolean;
  truncated?: boolean;
  max_bytes?: number;
  max_characters?: number;
  original_size?: number;
  exit_code?: number | null;
  /** The fields that the call selected; the data has no others. */
  fields?: string[];
  [key: string]: unknown;
}

/** `data` of the category `execution_ack`. */
export interface ExecutionAckData {
  task_id: string;
  thread_id?: string;
  accepted: boolean;
  capability: "background" | "foreground";
  started_at: string;
  /** The absolute directory in which the agent works; paths of files are relative to it. */
  working_dir?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  state?: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  expected_duration?: string;
  /** The result in one sentence, if the task has ended. */
  summary?: string;
  /** The known progress, if the call ended before the task. */
  progress?: Progress | null;
  /** Since the start of the task, if the call ended before it. */
  elapsed_seconds?: number;
  /** Questions of the agent that wait for an answer, if the call ended before the task. */
  waiting_for_answer?: WaitingForAnswer[];
  /** The tasks that follow it, directly or not. */
  followers?: Follower[];
  group_id?: string;
  attempts?: Attempt[];
  /** Which attempt to take; absent if none completed, or while one has not ended. */
  recommended_attempt?: number;
  /** Why this attempt, or why none. */
  recommendation_reason?: string;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata?: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** What became of the messages to the agent, if there were any. */
  messages?: Record<string, unknown>;
}

export interface EnhancedMetadata {
  /** In seconds. */
  duration: number;
  file_operations: FileOperations;
  thread_info?: ThreadInfo;
  error_context?: ErrorContext | null;
  /** Flags are included only if they are set. */
  test_results?: TestResults;
  containment?: string;
  task_status?: "completed" | "failed" | "cancelled" | "timeout";
}

/** `meta` of the category `wait_result`. */
export interface WaitResultMeta {
  started_ts: string;
  completed_ts: string;
  duration_ms: number;
  warnings?: Warning[];
  next_cursor?: string;
  total?: number;
  not_modified?: boolean;
  partial?: boolean;
  wait_expired?: boolean;
  truncated?: boolean;
  max_bytes?: number;
  max_characters?: number;
  original_size?: number;
  exit_code?: number | null;
  /** The fields that the call selected; the data has no others. */
  fields?: string[];
  [key: string]: unknown;
}

/** `data` of the category `wait_result`. */
export interface WaitResultData {
  task_id: string;
  state: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** The result in one sentence. */
  summary: string;
  working_dir?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  /** The changes of a task that a provider ran, as a unified diff. */
  diff?: Diff;
  /** The task that it follows in a chain. */
  follows?: Follows;
  /** The tasks that directly follow it. */
  followers?: Record<string, unknown>[];
  group_id?: string;
  attempt?: number;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** The messages to the agent of a task. */
  messages?: Messages;
  output: Output;
  /** What the agent has done so far. */
  progress?: Progress | null;
  /** Since the start of the task. */
  elapsed_seconds?: number;
  thread_id?: string;
  /** Absent while the task is queued. */
  started_ts?: string;
  /** Questions of the agent that wait for an answer. */
  waiting_for_answer?: WaitingForAnswer[];
  tasks?: (Task | WaitResultDataTask)[];
  total_operations?: number;
  successful?: number;
  failed?: number;
  /** Some items failed, and some succeeded. */
  partial_success?: boolean;
  results?: DetailsResult[];
}

/** `meta` of the category `status_snapshot`. */
export interface StatusSnapshotMeta {
  snapshot_ts: string;
  total: number | null;
  warnings?: Warning[];
  next_cursor?: string;
  not_modified?: boolean;
  partial?: boolean;
  wait_expired?: boolean;
  truncated?: boolean;
  max_bytes?: number;
  max_characters?: number;
  original_size?: number;
  exit_code?: number | null;
  /** The fields that the call selected; the data has no others. */
  fields?: string[];
  [key: string]: unknown;
}

/** `data` of the category `status_snapshot`. */
export interface StatusSnapshotData {
  summary: Summary;
  tasks?: StatusSnapshotDataTask[];
  queue?: Queue[];
  recently_completed?: RecentlyCompleted[];
  /** The groups of the listed tasks, each with all of its attempts. */
  groups?: Record<string, unknown>[];
  /** The directory in which the task works, in the status of one isolated task. */
  worktree?: string;
  /** The notifications about the task, in the status of one task. */
  notifications?: StatusSnapshotDataNotification[];
  /** The tasks of the three lists, in this order and in one shape. Only on the command line. */
  all_tasks?: AllTask[];
  /** Set by [`StatusSnapshot::follow_lists`]. */
  not_listed?: NotListed;
  usage?: StatusSnapshotDataUsage;
  is_queue_paused?: boolean;
  /** Agents of which no queued task starts for now. */
  agent_pauses?: AgentPause[];
  /** Ended tasks whose results were not read. */
  unread?: Unread;
  /** Cloud tasks, which only `cloud status` lists; in the status of this machine, if there are any. */
  cloud?: Cloud;
}

/** `meta` of the category `result_set`. */
export interface ResultSetMeta {
  count: number;
  warnings?: Warning[];
  next_cursor?: string;
  total?: number;
  not_modified?: boolean;
  partial?: boolean;
  wait_expired?: boolean;
  truncated?: boolean;
  max_bytes?: number;
  max_characters?: number;
  original_size?: number;
  exit_code?: number | null;
  /** The fields that the call selected; the data has no others. */
  fields?: string[];
  [key: string]: unknown;
}

/** `data` of the category `result_set`. */
export interface ResultSetData {
  task_id: string;
  state: "completed" | "failed" | "cancelled" | "timeout";
  /** The result in one sentence. */
  summary: string;
  /** The absolute directory in which the agent works; paths of files are relative to it. */
  working_dir?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  /** The changes of a task that a provider ran, as a unified diff. */
  diff?: Diff;
  /** The task that it follows in a chain. */
  follows?: Follows;
  /** The tasks that directly follow it. */
  followers?: Record<string, unknown>[];
  group_id?: string;
  attempt?: number;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** What became of the messages to the agent, if there were any. */
  messages?: Record<string, unknown>;
  output: Output;
  duration_seconds: number;
  completed_ts: string;
  events?: Events;
  attempts?: Attempt[];
  /** Which attempt to take; absent if none completed, or while one has not ended. */
  recommended_attempt?: number;
  /** Why this attempt, or why none. */
  recommendation_reason?: string;
}

/** `meta` of the category `registry_info`. */
export interface RegistryInfoMeta {
  count?: number;
  source?: string;
  dry_run?: boolean;
  ack_ts?: string;
  warnings?: Warning[];
  next_cursor?: string;
  total?: number;
  not_modified?: boolean;
  partial?: boolean;
  wait_expired?: boolean;
  truncated?: boolean;
  max_bytes?: number;
  max_characters?: number;
  original_size?: number;
  exit_code?: number | null;
  /** The fields that the call selected; the data has no others. */
  fields?: string[];
  [key: string]: unknown;
}

/** `data` of the category `registry_info`. */
export interface RegistryInfoData {
  environments?: Environment[];
  /** All steps as Markdown. */
  guide?: string;
  steps?: Step[];
  token_permissions?: TokenPermissions;
  verification_task?: string;
  stuck_tasks?: StuckTasks;
  old_tasks?: OldTasks;
  operation?: string;
  task_id?: string;
  state?: string;
  previous_state?: string;
  /** Processes that could not be killed. */
  survivors?: number[];
  /** The tasks that followed it in a chain and were cancelled with it. */
  cancelled_followers?: string[];
  /** Signals that were sent to the agent, in order. */
  signals?: string[];
  /** Processes that outlived the agent. */
  swept?: Swept;
  total_operations?: number;
  successful?: number;
  failed?: number;
  /** Some items failed, and some succeeded. */
  partial_success?: boolean;
  results?: DetailsResult[];
  [key: string]: unknown;
}

/** `meta` of the CLI envelope. */
export interface ResponseMeta {
  /** Wall-clock time in milliseconds from command entry to final byte of output. */
  duration_ms: number;
  /** Opaque identifier for correlating logs, traces, and audit entries. */
  request_id: string;
  /** Semantic version of the response envelope schema. Allows agents to detect breaking changes. */
  schema_version: string;
  /** True when an etag matched and data is intentionally null (cache hit). */
  not_modified?: boolean;
  /** True when the output was capped by the framework's size limit. Agents should paginate or narrow the query. */
  truncated?: boolean;
  /** Opaque pagination token. Pass as --cursor on the next call to retrieve the next page. */
  cursor?: string;
  command: string;
  timestamp: string;
  exit_code: number;
  tool_version: string;
  max_bytes?: number;
  max_characters?: number;
  original_size?: number;
  pagination?: Pagination;
  warning_details?: Warning[];
  error_context?: {
    timeout_type?: "wall" | "idle" | "hard";
    elapsed_seconds?: number;
    idle_seconds?: number;
    limit_seconds?: number | null;
    /** What a timed-out task printed last. */
    partial_results?: PartialResults;
    failure_kind?: string;
    agent_message?: string;
    retry_at?: string;
    exit_code?: number | null;
    stderr_tail?: string;
    file?: string;
    line?: number;
    column?: number;
    task_id?: string;
    /** The tasks, if the call was about several. */
    task_ids?: string[];
    /** The task that uses the work tree. */
    busy_task_id?: string;
    /** Processes of the task that could not be killed. */
    survivors?: number[];
    thread_id?: string;
    /** The known thread with the most similar id. */
    nearest_thread_id?: string;
    /** The state of the task. */
    state?: string;
    /** Task ids that match an abbreviated one. */
    candidates?: string[];
    /** The tasks whose worktrees take too much disk space, the oldest first. */
    worktrees?: string[];
    agent?: string;
    env_id?: string;
    /** The provider that runs the task. */
    provider?: string;
    /** What the provider or its program printed. */
    provider_message?: string;
    /** The page of the task. */
    url?: string;
    /** The command that is not available. */
    command?: string;
    /** The unknown words of the command line. */
    typed?: string;
    /** The input or flag with the problem. */
    field?: string;
    /** The stored input that could not be read. */
    input?: Record<string, unknown>;
    /** The unknown setting. */
    key?: string;
    /** The unknown name. */
    name?: string;
    uri?: string;
    path?: string;
    /** An example of a valid file. */
    sample?: string;
    /** The name of the system's error. */
    errno?: string;
    /** The user declined to confirm the call. */
    is_declined?: boolean;
    /** The question of the agent that the call was about. */
    question_number?: number;
    question_state?: string;
    /** The numbers of the open questions. */
    question_numbers?: number[];
    /** The answer that was given first. */
    answer_option?: string;
    answer_text?: string;
    /** A run of the verify command. */
    verification?: Verification;
    /** How far the clock jumped. */
    jumped_by_hours?: number;
    /** Changes that would be restored, but were changed again. */
    overlaps?: Overlap[];
    /** Files that a diff cannot change as it demands. */
    conflicts?: Conflict[];
    /** The restore point that undoes an incomplete restore. */
    undo_point?: string;
    kind: "agent_failed" | "all_items_failed" | "auth" | "cancelled" | "config" | "confirmation_required" | "conflict" | "dependency" | "incomplete" | "internal" | "lock_held" | "not_found" | "partial_failure" | "payload" | "payment" | "permission" | "permission_policy" | "rate_limited" | "redirected" | "strict_warnings" | "supervisor_unavailable" | "timeout" | "unavailable" | "unsupported" | "usage" | "wrong_state";
    problems?: DetailsProblem[];
  };
  fix_command?: string;
  retry_after_ms?: number;
  failure_data?: Record<string, unknown>;
  fields?: string[];
  [key: string]: unknown;
}

export interface ErrorDetail {
  /** Stable, machine-readable error identifier. Must not change between versions. Used by agents to branch on error type. */
  code: string;
  /** Human-readable summary. May be localized. Agents should not parse this — use 'code' instead. */
  message: string;
  /** Extended explanation, stack context, or raw upstream error. Optional. */
  detail?: string;
  /** Whether the agent may safely retry. Should mirror the ExitCodeEntry.retryable for the emitted code. */
  retryable?: boolean;
  /** Seconds the agent should wait before retrying. Present only when retryable is true and a specific back-off is known. */
  retry_after?: number;
  /** Pipeline phase in which the error occurred. 'validation' guarantees zero side effects. */
  phase?: "validation" | "execution" | "cleanup";
  /** Actionable next step phrased for an agent. Optional. */
  suggestion?: string;
  /** Present only when exit code is REDIRECTED (13). Contains the replacement command. */
  redirect?: Redirect;
}

export interface Redirect {
  /** Exact replacement invocation the agent MUST use verbatim on retry. */
  command: string;
  /** True if the mapping is permanent — agent should memorize and never call the old form again. False if temporary — use the replacement only for this request. */
  permanent: boolean;
  /** Why the redirect exists. Informs whether the agent should update its schema knowledge. */
  reason?: "renamed" | "restructured" | "deprecated" | "typo_corrected";
}

/** What a command prints in a pipe. `data` of a success is null if the caller has it already (`meta.not_modified`). */
export type ResponseEnvelope<T = unknown> =
  | {
      ok: true;
      /** Primary command output. Present on success; null on failure. Never absent. Shape is command-specific and declared in that command's output schema (REQ-C-015). */
      data: T | null;
      error: null;
      /** Non-fatal diagnostic messages. May be empty. Never null. */
      warnings: string[];
      meta: ResponseMeta;
    }
  | {
      ok: false;
      data: null;
      /** Null on success. Structured error object on any non-zero exit. */
      error: ErrorDetail;
      /** Non-fatal diagnostic messages. May be empty. Never null. */
      warnings: string[];
      meta: ResponseMeta;
    };

/** `metadata` of the standard envelope. */
export interface StandardMetadata {
  version: string;
  /** In seconds. */
  execution_time: number;
  warnings: Warning[];
  request_id: string;
  exit_code: number;
  not_modified?: boolean;
  truncated?: boolean;
  max_bytes?: number;
  max_characters?: number;
  original_size?: number;
  /** Which part of a list the output contains. */
  pagination?: Pagination;
  cursor?: string;
  retry_after_ms?: number;
  /** The fields that the call selected; the data has no others. */
  fields?: string[];
  [key: string]: unknown;
}

/** What a command writes into a file. */
export type StandardEnvelope<T = unknown> =
  | {
      success: true;
      timestamp: string;
      command: string;
      data: T | null;
      error: null;
      metadata: StandardMetadata;
    }
  | {
      success: false;
      timestamp: string;
      command: string;
      data: null;
      error: {
        type: "ConfigurationError" | "ConflictError" | "DependencyError" | "InternalError" | "NotFoundError" | "PermissionError" | "TimeoutError" | "ValidationError";
        message: string;
        /** The known keys of an error's context; each error has those that apply to it, and may have others. */
        details: {
          timeout_type?: "wall" | "idle" | "hard";
          elapsed_seconds?: number;
          idle_seconds?: number;
          limit_seconds?: number | null;
          /** What a timed-out task printed last. */
          partial_results?: PartialResults;
          failure_kind?: string;
          agent_message?: string;
          retry_at?: string;
          exit_code?: number | null;
          stderr_tail?: string;
          file?: string;
          line?: number;
          column?: number;
          task_id?: string;
          /** The tasks, if the call was about several. */
          task_ids?: string[];
          /** The task that uses the work tree. */
          busy_task_id?: string;
          /** Processes of the task that could not be killed. */
          survivors?: number[];
          thread_id?: string;
          /** The known thread with the most similar id. */
          nearest_thread_id?: string;
          /** The state of the task. */
          state?: string;
          /** Task ids that match an abbreviated one. */
          candidates?: string[];
          /** The tasks whose worktrees take too much disk space, the oldest first. */
          worktrees?: string[];
          agent?: string;
          env_id?: string;
          /** The provider that runs the task. */
          provider?: string;
          /** What the provider or its program printed. */
          provider_message?: string;
          /** The page of the task. */
          url?: string;
          /** The command that is not available. */
          command?: string;
          /** The unknown words of the command line. */
          typed?: string;
          /** The first invalid input. */
          field?: string;
          /** The stored input that could not be read. */
          input?: Record<string, unknown>;
          /** The unknown setting. */
          key?: string;
          /** The unknown name. */
          name?: string;
          uri?: string;
          path?: string;
          /** An example of a valid file. */
          sample?: string;
          /** The name of the system's error. */
          errno?: string;
          /** The user declined to confirm the call. */
          is_declined?: boolean;
          /** The question of the agent that the call was about. */
          question_number?: number;
          question_state?: string;
          /** The numbers of the open questions. */
          question_numbers?: number[];
          /** The answer that was given first. */
          answer_option?: string;
          answer_text?: string;
          /** A run of the verify command. */
          verification?: Verification;
          /** How far the clock jumped. */
          jumped_by_hours?: number;
          /** Changes that would be restored, but were changed again. */
          overlaps?: Overlap[];
          /** Files that a diff cannot change as it demands. */
          conflicts?: Conflict[];
          /** The restore point that undoes an incomplete restore. */
          undo_point?: string;
          kind: "agent_failed" | "all_items_failed" | "auth" | "cancelled" | "config" | "confirmation_required" | "conflict" | "dependency" | "incomplete" | "internal" | "lock_held" | "not_found" | "partial_failure" | "payload" | "payment" | "permission" | "permission_policy" | "rate_limited" | "redirected" | "strict_warnings" | "supervisor_unavailable" | "timeout" | "unavailable" | "unsupported" | "usage" | "wrong_state";
          /** Its value. */
          value?: unknown;
          problems?: DetailsProblem[];
          suggestion?: string;
          detail?: string;
          /** The command to run instead. */
          redirect?: DetailsRedirect;
          /** The data that accompanies the error. */
          failure_data?: Record<string, unknown>;
        };
        code: string;
      };
      metadata: StandardMetadata;
    };

/** A line of `codex exec --json`, and of `mcp-delegator events normalize --strict`. */
export type ThreadEvent = {
  type: "thread.started";
  thread_id: string;
} | {
  type: "turn.started";
} | {
  type: "turn.completed";
  usage: Usage;
} | {
  type: "turn.failed";
  error: ThreadError;
} | {
  type: "item.started" | "item.updated" | "item.completed";
  item: ThreadItem;
} | {
  type: "error";
  message: string;
};

/** The id is `item_N`, unique within the stream. */
export type ThreadItem = {
  id: string;
  type: "agent_message" | "reasoning";
  text: string;
} | {
  id: string;
  type: "command_execution";
  command: string;
  aggregated_output: string;
  /** Absent while the command runs. */
  exit_code?: number;
  status: CallStatus;
} | {
  id: string;
  type: "file_change";
  changes: FileUpdateChange[];
  status: "completed" | "failed";
} | {
  id: string;
  type: "mcp_tool_call";
  server: string;
  tool: string;
  status: CallStatus;
} | {
  id: string;
  type: "web_search";
  query: string;
} | {
  id: string;
  type: "todo_list";
  items: TodoItem[];
} | {
  id: string;
  type: "error";
  message: string;
};

export type CallStatus = "in_progress" | "completed" | "failed";

export interface FileUpdateChange {
  path: string;
  kind: "add" | "delete" | "update";
}

export interface ThreadError {
  message: string;
}

export interface TodoItem {
  text: string;
  completed: boolean;
}

/** Token counts of the thread so far. */
export interface Usage {
  input_tokens: number;
  /** The part of `input_tokens` that was read from the cache. */
  cached_input_tokens: number;
  output_tokens: number;
}

/** The `data` of each command in the CLI envelope: `ResponseEnvelope<CommandData["local.status"]>`. */
export interface CommandData {
  agents: {
    agents: Agent[];
  };
  "agents.use": AgentsUse;
  answer: CommandDataAnswer;
  apply: Apply;
  cancel: {
    operation: string;
    dry_run: boolean;
    /** Tasks that were cancelled by this call, or would be. */
    count: number;
    /** The result in one sentence. */
    summary: string;
    tasks: CancelTask[];
    total_operations: number;
    successful: number;
    failed: number;
    /** Some items failed, and some succeeded. */
    partial_success: boolean;
    results: DetailsResult[];
  };
  "cleanup-registry": {
    /** Nothing was changed; the other fields state what would be done. */
    dry_run: boolean;
    stuck_tasks: StuckTasks;
    old_tasks: OldTasks;
    /** Files that crashes left behind. */
    leftovers: {
      found: number;
      removed_count: number;
    };
    /** Task directories with results that are not in the registry; they are retained. */
    unclaimed: string[];
    restore_points: {
      retained_count: number;
      dropped_count: number;
      items: RestorePointsItem[];
      dropped_items: RestorePointsItem[];
    };
    summary: string;
    total_operations?: number;
    successful?: number;
    failed?: number;
    /** Some items failed, and some succeeded. */
    partial_success?: boolean;
    results?: DetailsResult[];
  };
  "cloud.apply": Apply;
  "cloud.cancel": CloudCancel;
  "cloud.github-setup": {
    /** All steps as Markdown. */
    guide: string;
    steps: Step[];
    token_permissions: TokenPermissions;
    verification_task: string;
  };
  "cloud.list-environments": {
    environments: Environment[];
  };
  "cloud.results": CloudResults;
  "cloud.status": CloudStatus;
  "cloud.submit": CloudSubmit;
  "cloud.wait": CloudWait;
  completions: {
    text: string;
  };
  "config.edit": {
    file: string;
    is_changed: boolean;
  };
  "config.get": {
    key: string;
    /** Null if there is none. */
    value: unknown;
    /** default, user_config, project, environment or flag. */
    source: string;
    /** The file and line, variable or flag that set it. */
    origin: string | null;
  };
  "config.path": {
    path: string;
    is_present: boolean;
  };
  "config.set": AgentsUse;
  "config.show": {
    settings: ({
      key: string;
      value: unknown;
      default: unknown;
      /** default, user_config, project, environment or flag. */
      source: string;
      /** The file and line, variable or flag that set it. */
      origin: string | null;
      variable: string | null;
      description: string;
    })[];
    /** Path of the user's configuration file, if it exists. */
    user_file: string | null;
    /** Path of the project file, if it exists. */
    project_file: string | null;
    state_dir: string | null;
  };
  "config.unset": AgentsUse;
  dashboard: {
    url: string;
    /** Signs one browser in, once. */
    link: string;
    scope: string;
    /** When the link expires. */
    expires_at: string;
    /** Whether a browser was started with it. */
    is_opened: boolean;
  };
  "dashboard.sessions": {
    /** The one that was used last comes first. */
    sessions: {
      session_id: string;
      /** read, answer or write */
      scope: string;
      /** How the browser names itself. */
      device: string;
      created_at: string;
      last_used_at: string;
      /** When it ends unless it is used. */
      expires_at: string;
    }[];
    /** How many this call ended. */
    revoked_count: number;
  };
  demo: {
    repository: string;
    /** The state directory of its task. Both are deleted unless they are retained. */
    state_dir: string;
    is_retained: boolean;
    task: string;
    /** Data of the task itself. */
    result: unknown;
    /** Output of `git diff`. */
    diff: string;
  };
  diff: CommandDataDiff;
  discard: Discard;
  doctor: {
    checks: ({
      name: string;
      status: "ok" | "warning" | "problem";
      message: string;
      /** How to fix it. */
      suggestion: string | null;
    })[];
    /** The agents that tasks can name, installed or not, and what they can do. */
    agents: Agent[];
    /** Whether no check has the status problem. */
    is_healthy: boolean;
    /** Path of the file for a bug report. */
    bundle?: string;
  };
  "env.add": {
    environment: Environment;
  };
  "env.check": {
    environments: Environment[];
  };
  "env.remove": {
    environment: Environment;
  };
  "events.follow": EventsFollow;
  "events.normalize": {
    /** thread, idle, protocol or rollout; null if no line was recognised. */
    dialect: unknown;
    read_line_count: number;
    written_line_count: number;
    /** Lines of a dialect other than that of the stream. */
    mixed_dialect_line_count: number;
    /** Lines that were too long and were truncated to their beginning and end. */
    shortened_line_count: number;
    is_last_line_unterminated: boolean;
    /** Lines that could not be converted, by reason. */
    no_place: unknown;
    /** The events, if they are not printed line by line. */
    events?: unknown[];
  };
  "events.summarize": EventsFollow;
  "fleet.cancel": {
    /** The id on the machine that submitted the task, if that is known. */
    task_id: string | null;
    /** The fleet's own id. */
    remote_id: string;
    /** The state now; running until the worker has stopped the task. */
    state: string;
    /** Who runs it, or ran it last. */
    worker: string | null;
    /** Whether this call changed it; false if the task had ended or was being cancelled already. */
    is_changed: boolean;
  };
  "fleet.drain": {
    worker: string;
    /** Whether this call changed it; false if it was draining already. */
    is_changed: boolean;
  };
  "fleet.grant": {
    text: string;
  };
  "fleet.migrate": {
    /** Version of the tables before; 0 if there were none. */
    from_version: string;
    to_version: string;
    is_changed: boolean;
  };
  "fleet.pause": FleetPause;
  "fleet.resume": FleetPause;
  "fleet.status": FleetStatus;
  "fleet.tasks": {
    /** Running tasks, then queued ones in the order of their claims, then ended ones, the last first. */
    tasks: ({
      /** The id on the machine that submitted the task, if that is known. */
      task_id: string | null;
      /** The fleet's own id. */
      remote_id: string;
      environment: string;
      /** queued, claimed, running, completed, failed, timeout or cancelled. */
      state: string;
      /** Whether its worker was requested to stop it. */
      is_cancel_requested: boolean;
      /** Who runs it, or ran it last; null for a queued task. */
      worker: string | null;
      created_at: string;
      /** Since its submission. */
      age_ms: number;
      /** The first line of the task. */
      title: string;
    })[];
    /** Whether there are more than the limit. */
    has_more: boolean;
  };
  help: {
    usage: string;
    commands: {
      name: string;
      summary: string;
    }[];
    text: string;
  };
  history: {
    tasks: HistoryTask[];
  };
  import: {
    task_id?: string;
    thread_id?: string;
    state?: string;
    summary?: string;
    /** The session was imported before. */
    replayed?: boolean;
    /** The newest first. */
    sessions?: {
      /** The session's id. */
      thread_id: string;
      started_ts?: string;
      age_seconds?: number;
      working_dir?: string;
      /** The first line of the user's first message. */
      title?: string;
      /** The task that the session was imported as, or that ran in it; absent if there is none. */
      task_id?: string;
      path: string;
    }[];
    /** Older sessions, which are not listed. */
    more_count?: number;
  };
  init: {
    dry_run: boolean;
    steps: ({
      name: string;
      status: "done" | "failed" | "skipped" | "planned";
      message: string;
      /** What to do next. */
      next: string | null;
    })[];
    /** Data of the first task, if it was run. */
    task: unknown;
  };
  "local.cancel": CloudCancel;
  "local.exec": CloudSubmit;
  "local.results": CloudResults;
  "local.resume": CloudSubmit;
  "local.run": CloudSubmit;
  "local.status": CloudStatus;
  "local.wait": CloudWait;
  logs: {
    task_id: string;
    state: string;
    /** Of a failed task. */
    failure_kind?: string;
    /** Why the task did not complete. */
    reason?: string;
    stdout: string;
    stderr: string;
    /** Output of the environment's setup script, of a fleet task that has ended */
    setup?: string;
    /** Output of the verify command, if one was run */
    verify?: string;
    /** When an agent that takes messages was idle or done, as JSON lines */
    supervisor_log?: string;
    /** The lines were printed while they arrived; the streams are empty */
    is_printed?: boolean;
    /** The agent has written nothing */
    is_empty?: boolean;
  };
  man: {
    text: string;
  };
  manifest: {
    name: string;
    version: string;
    envelope_version: string;
    schema_version: string;
    /** Exit codes of a call that names no known command. */
    exit_codes: Record<string, ExitCode>;
    commands: ({
      /** Dotted path, as in `meta.command`. */
      name: string;
      /** Path on the command line. */
      path: string[];
      /** The shorter path that some commands also have, without `local`. */
      short_path?: string[];
      summary: string;
      description: string;
      /** Name of the MCP tool; null for commands that no server offers as a tool. */
      tool: string | null;
      toolset: string | null;
      category: string;
      danger_level: string;
      is_idempotent: boolean;
      has_network_access: boolean;
      is_person_required: boolean;
      has_raw_output: boolean;
      introduced: string;
      /** The inputs, for calls of the surface on which the manifest is read. */
      input_schema: unknown;
      /** Inputs of which a call has exactly one; empty for most commands. */
      exactly_one_of: string[];
      /** Inputs that may be given by position, in order. */
      positional: string[];
      /** Name of the schema of the answers, for the command `schema`. */
      output_schema: string;
      /** The definition in the MCP tool list. */
      mcp?: unknown;
      exit_codes: Record<string, ExitCode>;
      examples: Example[];
      /** Names that redirect to this command. */
      former_names: string[];
    })[];
  };
  "mcp-delegator": Record<string, unknown>;
  notify: {
    /** Notifications that are sent again because of this call. */
    retried_count?: number;
    /** The configured channels. */
    channels: {
      /** `command`, `webhook` or `desktop` */
      channel: string;
      /** Whether the test notification was delivered. */
      is_delivered?: boolean;
      /** Why it was not. */
      error?: string;
    }[];
    /** Notifications that are to be sent, the next one first. */
    pending_notifications: StatusSnapshotDataNotification[];
    /** Notifications that were given up, the newest first. */
    failed_notifications: StatusSnapshotDataNotification[];
    /** The last ones that were delivered or dropped, the newest first. */
    recent_notifications: StatusSnapshotDataNotification[];
  };
  "queue.pause": QueuePause;
  "queue.resume": QueuePause;
  read: {
    /** Results that were not read before. */
    count: number;
  };
  restore: Restore;
  retry: CloudSubmit;
  review: CloudSubmit;
  schema: {
    schemas?: {
      name: string;
      describes: string;
    }[];
    [key: string]: unknown;
  };
  send: Send;
  serve: Record<string, unknown>;
  setup: {
    host?: "claude-code" | "codex" | "cursor" | "vscode" | "claude-desktop";
    /** A configuration file of the client */
    file?: string;
    /** The file was changed */
    is_changed?: boolean;
    /** Backup of the previous content */
    backup?: string;
    /** The entry, as a complete file */
    entry?: string;
    /** The client calls the tools without asking; only of clients that have such a setting */
    has_tool_approval?: boolean;
    /** The permission to do so, and its file, if the call concerns it and it is not part of the entry */
    permission?: {
      /** A configuration file of the client */
      file: string;
      /** The file was changed */
      is_changed: boolean;
      /** Backup of the previous content */
      backup?: string;
      /** The permission, as a complete file */
      entry: string;
    };
    /** What to do next */
    next?: string[];
    /** All clients, if it names none */
    clients?: ({
      host: "claude-code" | "codex" | "cursor" | "vscode" | "claude-desktop";
      /** Name of the program */
      title: string;
      state: "not-found" | "not-registered" | "registered" | "registered-by-url" | "unreadable";
      /** Configuration file of the client */
      file: string;
      /** Program that the client starts as this server */
      command: string | null;
      /** The client calls the tools without asking; null without such a setting, or if it cannot be read */
      has_tool_approval: boolean | null;
      problem: string | null;
    })[];
  };
  show: Show;
  undo: Restore;
  usage: CommandDataUsage;
  version: {
    name: string;
    version: string;
    envelope_version: string;
  };
  watch: Record<string, unknown>;
  worker: {
    worker: string;
  };
  worktrees: CommandDataWorktrees;
  "worktrees.prune": {
    dry_run: boolean;
    /** Those that were removed, or would be. */
    removed: WorktreesWorktree[];
    retained: WorktreesWorktree[];
    removed_size_bytes: number;
  };
}

/** Why a request failed. `type`, `title`, `status` and `detail` as RFC 9457 defines them. */
export interface Problem {
  type: string;
  /** What the code means in general. */
  title: string;
  status: number;
  /** What is wrong with this request. */
  detail: string;
  /** As in `error.code` of the CLI envelope. */
  code: string;
  suggestion?: string;
  problems?: DetailsProblem[];
  /** What the command found nevertheless, such as the conflicts of a check. */
  data?: Record<string, unknown>;
  request_id?: string;
}

export interface Snapshot {
  /** Running ones, queued ones, then ended ones: the unread and those of the last day. */
  tasks: SnapshotTask[];
  /** What concerns no single task. */
  overall: Overall;
}

/** The data of `change`: one of them. */
export type Change = {
  /** A task in any state. Fields that its state does not have are null. */
  task: SnapshotTask;
} | {
  removed: string;
} | {
  /** What concerns no single task. */
  overall: Overall;
};

/** The data of `task_event`. */
export interface TaskEvent {
  task_id: string;
  /** 1, 2, … per task. */
  number: number;
  /** As the agent wrote it; a text if it is not JSON. */
  event: unknown;
}

/** The inputs of each request of the HTTP API, and the `data` of its answer: `ResponseEnvelope<Api["GET /api/v1/tasks"]["data"]>`. A failure is a `Problem`. */
export interface Api {
  /** List the tasks that a person looks at */
  "GET /api/v1/tasks": {
    query: {
      /** Only tasks that a person looks for there; a task of a group or chain is where that is */
      section?: "needs_you" | "working" | "waiting" | "finished_unread" | "finished";
      /** Only tasks in or below this directory */
      repo?: string;
      /** Only tasks of this agent */
      agent?: string;
      label?: string[];
      /** Only tasks with this text in their id, title, question or activity */
      q?: string;
      /** Items per page (default: 1000) */
      limit?: number;
      /** From the previous page */
      cursor?: string;
    };
    data: Snapshot;
  };
  /** Start a coding task in the background */
  "POST /api/v1/tasks": {
    body: {
      /** Task text */
      task: string;
      /** Repeating a call with the same key and input returns the first task instead of starting another */
      idempotency_key?: string;
      /** Labels, for display and filters */
      labels?: Record<string, string>;
      /** Accept a task text that asks to rewrite git history */
      allow_destructive_git?: boolean;
      /** Sandbox mode; CLI: without it, default_mode of the configuration */
      mode?: "read-only" | "workspace-write";
      /** Directory (default: current or thread's) */
      working_dir?: string;
      /** Model (default: the agent's) */
      model?: string;
      /** Idle limit in s */
      idle_timeout_sec?: number;
      /** Hard limit in s */
      hard_timeout_sec?: number;
      /** Agent (default: the thread's, or default_agent, or codex if installed); the next of a list runs if one cannot start or is out of usage */
      agent?: unknown;
      /** Where the agent works: in the directory itself, or in a git worktree of its own (a resumed task: in that of its thread) */
      isolation?: "none" | "worktree";
      /** Branch, tag or commit that the worktree starts from (default: HEAD) */
      base?: string;
      /** Check: sh line or words */
      verify?: unknown;
      /** JSON Schema of the agent's final message */
      output_schema?: Record<string, unknown>;
      /** Profile in the agent's own configuration */
      profile?: string;
      /** Reasoning effort, passed to the agent unchanged */
      reasoning_effort?: string;
      /** Images to attach */
      images?: string[];
      /** Additional directories the agent may write to */
      add_dirs?: string[];
      /** Run in parallel with another writing task in the same work tree */
      allow_parallel_writes?: boolean;
      /** Allow running outside a git repository */
      skip_git_repo_check?: boolean;
      /** Create no restore point, and run where none can be created */
      no_restore_point?: boolean;
      /** Ask the user for each permission that the agent requests, instead of deciding by mode */
      ask?: boolean;
      /** Environment variables visible to the commands that the agent runs */
      env_policy?: "inherit-none" | "inherit-all" | "allow-list";
      /** Names of the visible variables for env_policy allow-list */
      env_allow_list?: string[];
      /** Copy uncommitted and untracked changes into the worktree */
      carry_dirty?: boolean;
      /** Token limit of the task, input and output together */
      budget?: number;
      /** Turn limit of the task, for agents that take messages */
      max_turns?: number;
      /** Cost limit of the task in US cents, for agents that report it */
      max_cost_cents?: number;
      /** Let the agent report what it has done if a limit ends its work */
      salvage?: boolean;
      /** Run the agent so that it takes messages and asks questions while it works: codex as codex-app-server */
      live?: boolean;
      /** Task to start if this one succeeds: its text, or an object with task (or review: true), mode, agent, model, verify */
      on_success?: unknown;
      /** Task to start if this one fails or is not verified, in the same forms */
      on_failure?: unknown;
      /** Number of attempts at the task, each in a worktree of its own; results compares them, apply takes one */
      attempts?: number;
      /** Agents of the attempts; a shorter list is used in turn */
      agents?: string[];
      /** Models of the attempts; a shorter list is used in turn */
      models?: string[];
      confirm?: boolean;
    };
    data: ExecutionAckData;
  };
  /** Show everything about one task */
  "GET /api/v1/tasks/{id}": {
    data: Show;
  };
  /** Read a range of the events of a task */
  "GET /api/v1/tasks/{id}/events": {
    query: {
      /** Number of the first event */
      from?: number;
      /** Events or entries of an answer */
      limit?: number;
    };
    data: {
      task_id: string;
      events: {
        /** 1, 2, … per task. */
        number: number;
        /** As the agent wrote it; a text if it is not JSON. */
        event: unknown;
      }[];
      /** More events are stored after these. */
      has_more: boolean;
      /** `from` of the next request. */
      next_from: number;
    };
  };
  /** Read or search the log of a task */
  "GET /api/v1/tasks/{id}/log": GetApiV1TasksIdLog;
  /** Read the first line of each entry of the log of a task */
  "GET /api/v1/tasks/{id}/timeline": GetApiV1TasksIdLog;
  /** Show the messages to the agent of a task, and its questions */
  "GET /api/v1/tasks/{id}/messages": {
    data: {
      task_id: string;
      /** Questions of the agent that wait for an answer. */
      waiting_for_answer?: WaitingForAnswer[];
      /** The messages to the agent of a task. */
      messages?: Messages;
    };
  };
  /** Show what a task changed, as a diff */
  "GET /api/v1/tasks/{id}/diff": {
    query: {
      /** Only the changed lines per file */
      stat?: boolean;
      /** Only the paths of the changed files */
      name_only?: boolean;
      /** Only this file or directory, as the diff names it; repeatable */
      path?: string[];
      /** Attempt, if there are several (default: the first of a cloud task, the recommended one of a group) */
      attempt?: number;
      /** Show what differs from the result of this task, for example another attempt; review: of the one that it continued */
      against?: string;
    };
    data: CommandDataDiff;
  };
  /** Cancel a task and kill all its processes */
  "POST /api/v1/tasks/{id}/cancel": PostApiV1TasksIdCancel;
  /** Queue a message for a running agent */
  "POST /api/v1/tasks/{id}/send": {
    body: {
      /** Message text */
      text: string;
      /** Deliver it into the running turn; not every agent can do that */
      now?: boolean;
      /** Deliver it as the next turn, when the running one has ended; the default */
      next?: boolean;
    };
    data: Send;
  };
  /** Answer a question of a running agent */
  "POST /api/v1/tasks/{id}/answer": {
    body: {
      /** An option of the question, by its id or label; or a text, if the question accepts one */
      answer?: string;
      /** Number of the question; needed only if several are open */
      question?: number;
      /** Id of an option */
      option?: string;
      /** A text */
      text?: string;
    };
    data: CommandDataAnswer;
  };
  /** Mark results as read */
  "POST /api/v1/tasks/{id}/read": {
    body: {
      /** All results */
      all?: boolean;
    };
    data: {
      /** Results that were not read before. */
      count: number;
    };
  };
  /** Apply the changes of an isolated task to your work tree */
  "POST /api/v1/tasks/{id}/apply": PostApiV1TasksIdApply;
  /** Remove the worktree of a task with its changes */
  "POST /api/v1/tasks/{id}/discard": PostApiV1TasksIdDiscard;
  /** Revert what a task changed, or its last undo */
  "POST /api/v1/tasks/{id}/undo": {
    query: {
      /** Report what would happen; change nothing */
      check?: boolean;
    };
    body: {
      /** Revert without a question */
      confirm_destructive?: boolean;
      /** Also move HEAD and its branch back; newer commits stay reachable through the undo point */
      force?: boolean;
    };
    data: Restore;
  };
  /** Start an ended task again as a new task */
  "POST /api/v1/tasks/{id}/retry": {
    body: {
      /** New task text (default: the same) */
      task?: string;
      /** Sandbox mode (default: the same) */
      mode?: "read-only" | "workspace-write";
      confirm?: boolean;
    };
    data: ExecutionAckData;
  };
  /** Continue an earlier thread */
  "POST /api/v1/tasks/{id}/resume": {
    body: {
      /** Task text */
      task: string;
      /** Repeating a call with the same key and input returns the first task instead of starting another */
      idempotency_key?: string;
      /** Labels, for display and filters */
      labels?: Record<string, string>;
      /** Accept a task text that asks to rewrite git history */
      allow_destructive_git?: boolean;
      /** Thread id */
      thread_id?: string;
      /** Sandbox mode; CLI: without it, default_mode of the configuration */
      mode?: "read-only" | "workspace-write";
      /** Directory (default: current or thread's) */
      working_dir?: string;
      /** Model (default: the agent's) */
      model?: string;
      /** Idle limit in s */
      idle_timeout_sec?: number;
      /** Hard limit in s */
      hard_timeout_sec?: number;
      /** Agent (default: the thread's, or default_agent, or codex if installed); the next of a list runs if one cannot start or is out of usage */
      agent?: unknown;
      /** Where the agent works: in the directory itself, or in a git worktree of its own (a resumed task: in that of its thread) */
      isolation?: "none" | "worktree";
      /** Branch, tag or commit that the worktree starts from (default: HEAD) */
      base?: string;
      /** Check: sh line or words */
      verify?: unknown;
      /** JSON Schema of the agent's final message */
      output_schema?: Record<string, unknown>;
      /** Profile in the agent's own configuration */
      profile?: string;
      /** Reasoning effort, passed to the agent unchanged */
      reasoning_effort?: string;
      /** Images to attach */
      images?: string[];
      /** Additional directories the agent may write to */
      add_dirs?: string[];
      /** Run in parallel with another writing task in the same work tree */
      allow_parallel_writes?: boolean;
      /** Allow running outside a git repository */
      skip_git_repo_check?: boolean;
      /** Create no restore point, and run where none can be created */
      no_restore_point?: boolean;
      /** Ask the user for each permission that the agent requests, instead of deciding by mode */
      ask?: boolean;
      /** Environment variables visible to the commands that the agent runs */
      env_policy?: "inherit-none" | "inherit-all" | "allow-list";
      /** Names of the visible variables for env_policy allow-list */
      env_allow_list?: string[];
      /** Copy uncommitted and untracked changes into the worktree */
      carry_dirty?: boolean;
      /** Token limit of the task, input and output together */
      budget?: number;
      /** Turn limit of the task, for agents that take messages */
      max_turns?: number;
      /** Cost limit of the task in US cents, for agents that report it */
      max_cost_cents?: number;
      /** Let the agent report what it has done if a limit ends its work */
      salvage?: boolean;
      /** Run the agent so that it takes messages and asks questions while it works: codex as codex-app-server */
      live?: boolean;
      /** Task to start if this one succeeds: its text, or an object with task (or review: true), mode, agent, model, verify */
      on_success?: unknown;
      /** Task to start if this one fails or is not verified, in the same forms */
      on_failure?: unknown;
      confirm?: boolean;
    };
    data: ExecutionAckData;
  };
  /** Review the changes of a finished task */
  "POST /api/v1/tasks/{id}/review": {
    body: {
      /** Agent that reviews (default: the agent of the task) */
      agent?: string;
      /** Model (default: the agent's) */
      model?: string;
      /** What to look at in particular */
      instructions?: string;
    };
    data: ExecutionAckData;
  };
  /** Show the result of a finished task */
  "GET /api/v1/groups/{id}": {
    query: {
      /** Include output (always if failed) */
      include_output?: boolean;
      /** Last 50 events */
      include_events?: boolean;
      /** Output limit */
      max_output_bytes?: number;
      /** Older events: events.next_cursor */
      events_cursor?: string;
    };
    data: {
      task_id?: string;
      state?: "completed" | "failed" | "cancelled" | "timeout";
      /** The result in one sentence. */
      summary?: string;
      /** The absolute directory in which the agent works; paths of files are relative to it. */
      working_dir?: string;
      /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
      sandbox?: "agent" | "enforced" | "none";
      /** Set for a task that a provider runs. */
      remote?: Remote;
      /** The changes of a task that a provider ran, as a unified diff. */
      diff?: Diff;
      /** The task that it follows in a chain. */
      follows?: Follows;
      /** The tasks that directly follow it. */
      followers?: Record<string, unknown>[];
      group_id?: string;
      attempt?: number;
      final_message?: string | null;
      /** Set if a part of the final message is missing. */
      final_message_truncated?: FinalMessageTruncated;
      /** The final message as JSON, for a task with an output schema. */
      structured_output?: unknown;
      structured_output_violations?: StructuredOutputViolation[];
      /** What a review found, if its final message can be read. */
      findings?: Record<string, unknown>[];
      metadata?: EnhancedMetadata;
      labels?: Record<string, string>;
      artifacts?: Artifact[];
      artifacts_not_listed_count?: number;
      git?: Git;
      /** Shows what the task changed. */
      diff_command?: string;
      /** The directory in which an isolated task works. */
      worktree?: string;
      worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
      /** Takes the changes, while the worktree exists. */
      apply_command?: string;
      /** The restore point of the working directory, with those of other work trees. */
      restore_point?: RestorePoint;
      /** A run of the verify command. */
      verification?: Verification;
      /** For a read-only task that tried to write. */
      denied_write?: DeniedWrite;
      /** What became of the messages to the agent, if there were any. */
      messages?: Record<string, unknown>;
      output?: Output;
      duration_seconds?: number;
      completed_ts?: string;
      events?: Events;
      attempts?: Attempt[];
      /** Which attempt to take; absent if none completed, or while one has not ended. */
      recommended_attempt?: number;
      /** Why this attempt, or why none. */
      recommendation_reason?: string;
    };
  };
  /** Cancel a task and kill all its processes */
  "POST /api/v1/groups/{id}/cancel": PostApiV1TasksIdCancel;
  /** Apply the changes of an isolated task to your work tree */
  "POST /api/v1/groups/{id}/apply": PostApiV1TasksIdApply;
  /** Remove the worktree of a task with its changes */
  "POST /api/v1/groups/{id}/discard": PostApiV1TasksIdDiscard;
  /** Find past tasks */
  "GET /api/v1/history": {
    query: {
      /** Words, or beginnings of words, that the task has in its title, text or final message */
      query?: string;
      /** Only tasks of this agent */
      agent?: string;
      /** Only tasks submitted within this time, such as 3d or 12h */
      since?: string;
      /** Only tasks whose verify command passed */
      verified?: boolean;
      /** Only tasks that failed, timed out, or whose verify command failed */
      failed?: boolean;
      /** Only tasks in this repository: a path in it, or its name */
      repo?: string;
      /** Tasks per page (default: 20) */
      limit?: number;
      /** From the previous page */
      cursor?: string;
    };
    data: {
      tasks: HistoryTask[];
    };
  };
  /** List the worktrees of isolated tasks */
  "GET /api/v1/worktrees": {
    query: {
      /** Items per page (default: 1000) */
      limit?: number;
      /** From the previous page */
      cursor?: string;
    };
    data: CommandDataWorktrees;
  };
  /** Show what tasks used: tokens, cost and time */
  "GET /api/v1/usage": {
    query: {
      /** Tasks that ended within this time, such as 7d or 12h */
      since?: string;
      /** One line for each agent, repository or day (in UTC) */
      by?: "agent" | "repo" | "day";
    };
    data: CommandDataUsage;
  };
  /** List the agents that tasks can name */
  "GET /api/v1/agents": {
    data: {
      agents: Agent[];
    };
  };
  /** Show workers, slots and queue of the fleet */
  "GET /api/v1/fleet": {
    query: {
      /** Only this worker; it is an error if it is not running */
      worker?: string;
    };
    data: FleetStatus;
  };
  /** End the session of the caller */
  "POST /api/v1/session/end": Record<string, unknown>;
  /** Show what the caller may do */
  "GET /api/v1/session": {
    data: {
      /** read, answer or write */
      scope: string;
      /** The value of X-CSRF-Token; null for a caller with the bearer token, who needs none. */
      csrf_token: string | null;
      /** When the session ends unless it is used; null for a caller with the bearer token. */
      expires_at: string | null;
    };
  };
  /** Follow all tasks, and the events of one */
  "GET /api/v1/stream": {
    query: {
      /** Also send the events of this task */
      task?: string;
      /** Number of the first event of the task */
      from?: number;
    };
  };
  /** This document */
  "GET /api/v1/openapi.json": Record<string, unknown>;
}

/** One agent. */
export interface Agent {
  name: string;
  protocol: string;
  is_installed: boolean;
  /** Tasks that name no agent run on it. */
  is_default: boolean;
  /** Absent if it is not installed or does not report it. */
  version?: string;
  /** Absent if that cannot be known without the network. */
  is_signed_in?: boolean;
  /** What enforces the mode of its tasks: `agent`, `enforced` (by us) or `none`. */
  sandbox: string;
  /** Whether a later task can continue its thread. */
  is_resumable: boolean;
  /** When it takes messages: `never`, `next_turn` or `running_turn`. */
  messages: string;
  /** What its token counts cover: `none`, `turn`, `last_call` or `thread`. */
  usage: string;
  has_cost: boolean;
  has_plan: boolean;
  has_exit_codes: boolean;
}

/** Set while the agent of a queued task is paused. */
export interface AgentPause {
  agent: string;
  /** Absent if it is paused until a user resumes it. */
  until_at?: string;
  reason: string;
  /** The task whose end caused the pause. */
  task_id?: string;
  since_at: string;
}

export interface AgentWarning {
  message: string;
  count: number;
}

export interface AgentsUse {
  key: string;
  /** The value that is in force; null if there is none. */
  value: unknown;
  /** default, user_config, project, environment or flag. */
  source?: string;
  /** The user's configuration file. */
  file: string;
  /** The file is or would be changed. */
  is_changed: boolean;
}

/** A task in any state. Fields that its state does not have are null. */
export interface AllTask {
  task_id: string;
  state: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** Where a person looks for it. */
  section: "needs_you" | "working" | "waiting" | "finished_unread" | "finished";
  title: string;
  working_dir: string;
  labels: Record<string, string>;
  /** Environment id; null for a task of this machine. */
  environment: string | null;
  /** What enforces the mode of the task; null if it runs elsewhere. */
  sandbox: "agent" | "enforced" | "none" | null;
  created_ts: string;
  started_ts: string | null;
  completed_ts: string | null;
  /** How long it has run; null before it starts. */
  duration_seconds: number | null;
  /** 0: the task is next. */
  queue_position: number | null;
  /** What the agent has done so far. */
  progress: Progress | null;
  group_id?: string;
  attempt?: number;
}

/** Set once it is answered. */
export interface Answer {
  /** The id of the chosen option. */
  option?: string;
  text?: string;
}

export interface Apply {
  task_id: string;
  dry_run: boolean;
  is_applied: boolean;
  /** The result in one sentence. */
  summary: string;
  files: ApplyFile[];
  /** Files that already are as the task made them. */
  already_applied_files: string[];
  /** Files that cannot be changed; only of a dry run, else they are an error. */
  conflicts?: Conflict[];
  /** Changed files that are not in the diff, with the reason. */
  left_out?: Record<string, unknown>[];
  left_out_count?: number;
  /** The commit with the changes, if one was made. */
  commit?: string;
  /** The branch that was created instead of changing the work tree. */
  branch?: string;
  is_worktree_removed?: boolean;
  group_id?: string;
  attempt?: number;
  /** Why this attempt, if it was not named. */
  recommendation_reason?: string;
  /** The other attempts whose worktrees were removed; their diffs are stored. */
  discarded_task_ids?: string[];
  /** The command that shows how to revert this. */
  restore_command?: string;
}

/** A file that was, or would be, changed; relative to the top of the work tree. */
export interface ApplyFile {
  path: string;
  change: "modified" | "added" | "deleted" | "renamed";
  /** The former path of a renamed file. */
  from?: string;
  /** The file had other changes, which were retained. */
  is_merged: boolean;
}

/** A file that changed during the task and still exists. */
export interface Artifact {
  type: string;
  ref: string;
  size: number;
  sha256?: string;
  /** Why there is no digest. */
  not_hashed?: string;
  /** Whose change it is: agent, possibly_agent or unknown. */
  attributed_to?: string;
}

/** One of the attempts. */
export interface Attempt {
  attempt: number;
  task_id: string;
  agent: string;
  model?: string;
  state: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** The result in one sentence. */
  summary?: string;
  verification?: "verified" | "verify_failed" | "not_run";
  passed_test_count?: number;
  failed_test_count?: number;
  file_count?: number;
  lines_added?: number;
  lines_deleted?: number;
  duration_seconds?: number;
  /** Input and output together. */
  used_tokens?: number;
}

export interface ByTool {
  server: string;
  tool: string;
  finished_count: number;
  failed_count: number;
}

export interface CancelTask {
  task_id: string;
  state: string;
  previous_state?: string;
  title: string;
  /** Processes that could not be killed. */
  survivors?: number[];
}

/** Cloud tasks, which only `cloud status` lists; in the status of this machine, if there are any. */
export interface Cloud {
  /** Running and queued, as last reported. */
  unfinished_count: number;
  /** Ended, and their results were not read. */
  unread_count: number;
}

export interface CloudCancel {
  operation?: string;
  task_id?: string;
  state?: string;
  previous_state?: string;
  /** Processes that could not be killed. */
  survivors?: number[];
  /** The tasks that followed it in a chain and were cancelled with it. */
  cancelled_followers?: string[];
  /** Signals that were sent to the agent, in order. */
  signals?: string[];
  /** Processes that outlived the agent. */
  swept?: Swept;
  dry_run?: boolean;
  /** Tasks that were cancelled by this call, or would be. */
  count?: number;
  /** The result in one sentence. */
  summary?: string;
  tasks?: CancelTask[];
  total_operations?: number;
  successful?: number;
  failed?: number;
  /** Some items failed, and some succeeded. */
  partial_success?: boolean;
  results?: DetailsResult[];
}

export interface CloudResults {
  task_id?: string;
  state?: "completed" | "failed" | "cancelled" | "timeout";
  /** The result in one sentence. */
  summary?: string;
  /** The absolute directory in which the agent works; paths of files are relative to it. */
  working_dir?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  /** The changes of a task that a provider ran, as a unified diff. */
  diff?: Diff;
  /** The task that it follows in a chain. */
  follows?: Follows;
  /** The tasks that directly follow it. */
  followers?: Record<string, unknown>[];
  group_id?: string;
  attempt?: number;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata?: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** What became of the messages to the agent, if there were any. */
  messages?: Record<string, unknown>;
  output?: Output;
  duration_seconds?: number;
  completed_ts?: string;
  events?: Events;
  attempts?: Attempt[];
  /** Which attempt to take; absent if none completed, or while one has not ended. */
  recommended_attempt?: number;
  /** Why this attempt, or why none. */
  recommendation_reason?: string;
  agent_exit_code?: number | null;
}

export interface CloudStatus {
  summary: Summary;
  tasks: StatusSnapshotDataTask[];
  queue: Queue[];
  recently_completed: RecentlyCompleted[];
  /** The groups of the listed tasks, each with all of its attempts. */
  groups?: Record<string, unknown>[];
  /** The directory in which the task works, in the status of one isolated task. */
  worktree?: string;
  /** The notifications about the task, in the status of one task. */
  notifications?: StatusSnapshotDataNotification[];
  /** The tasks of the three lists, in this order and in one shape. Only on the command line. */
  all_tasks?: AllTask[];
  /** Set by [`StatusSnapshot::follow_lists`]. */
  not_listed?: NotListed;
  usage?: StatusSnapshotDataUsage;
  is_queue_paused?: boolean;
  /** Agents of which no queued task starts for now. */
  agent_pauses?: AgentPause[];
  /** Ended tasks whose results were not read. */
  unread?: Unread;
  /** Cloud tasks, which only `cloud status` lists; in the status of this machine, if there are any. */
  cloud?: Cloud;
}

export interface CloudSubmit {
  task_id: string;
  thread_id?: string;
  accepted: boolean;
  capability: "background" | "foreground";
  started_at: string;
  /** The absolute directory in which the agent works; paths of files are relative to it. */
  working_dir?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  state?: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  expected_duration?: string;
  /** The result in one sentence, if the task has ended. */
  summary?: string;
  /** The known progress, if the call ended before the task. */
  progress?: Progress | null;
  /** Since the start of the task, if the call ended before it. */
  elapsed_seconds?: number;
  /** Questions of the agent that wait for an answer, if the call ended before the task. */
  waiting_for_answer?: WaitingForAnswer[];
  /** The tasks that follow it, directly or not. */
  followers?: Follower[];
  group_id?: string;
  attempts?: Attempt[];
  /** Which attempt to take; absent if none completed, or while one has not ended. */
  recommended_attempt?: number;
  /** Why this attempt, or why none. */
  recommendation_reason?: string;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata?: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** What became of the messages to the agent, if there were any. */
  messages?: Record<string, unknown>;
  agent_exit_code?: number | null;
}

export interface CloudWait {
  task_id?: string;
  state?: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** The result in one sentence. */
  summary?: string;
  working_dir?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  /** The changes of a task that a provider ran, as a unified diff. */
  diff?: Diff;
  /** The task that it follows in a chain. */
  follows?: Follows;
  /** The tasks that directly follow it. */
  followers?: Record<string, unknown>[];
  group_id?: string;
  attempt?: number;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata?: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** The messages to the agent of a task. */
  messages?: Messages;
  output?: Output;
  /** What the agent has done so far. */
  progress?: Progress | null;
  /** Since the start of the task. */
  elapsed_seconds?: number;
  thread_id?: string;
  /** Absent while the task is queued. */
  started_ts?: string;
  /** Questions of the agent that wait for an answer. */
  waiting_for_answer?: WaitingForAnswer[];
  tasks?: (Task | WaitResultDataTask)[];
  total_operations?: number;
  successful?: number;
  failed?: number;
  /** Some items failed, and some succeeded. */
  partial_success?: boolean;
  results?: DetailsResult[];
  agent_exit_code?: number | null;
}

export interface CommandDataAnswer {
  task_id: string;
  /** 1, 2, … per task. */
  question_number: number;
  kind: "permission" | "question";
  state: "open" | "answered" | "expired" | "withdrawn";
  title: string;
  /** The command, the paths or the reason. */
  detail?: string;
  /** The possible answers; empty if only a text answers it. */
  options: WaitingForAnswerOption[];
  /** A text can answer it. */
  is_text_accepted: boolean;
  asked_at: string;
  /** Without an answer until then, the agent gets none. */
  expires_at: string;
  /** Set once it is answered. */
  answer?: Answer;
}

export interface CommandDataDiff {
  task_id: string;
  /** What is compared: `task`, the states before and after the task; `so_far`, the states before the task and now; `late`, the states before the task and when the loss of its supervisor was noticed; `worktree`, the worktree of the task since it was created; `cloud`, as the environment of the task reported it; `other_task`, the results of another task and of this one. */
  source: "task" | "so_far" | "late" | "worktree" | "cloud" | "other_task";
  file_count: number;
  lines_added: number;
  lines_deleted: number;
  files: DiffFile[];
  /** Hunks that are not listed because of their size. */
  omitted_hunk_count?: number;
  /** Changed files that are not in the diff, with the reason. */
  left_out?: Record<string, unknown>[];
  left_out_count?: number;
  /** Files that changed during the task and are not in the diff, because nothing attributes the change to the agent. */
  unattributed_files?: string[];
  /** Work trees whose changes are unknown. */
  unavailable_work_trees?: UnavailableWorkTree[];
}

export interface CommandDataUsage {
  /** As it was given, such as 7d. */
  since: string;
  since_ts: string;
  by: "agent" | "repo" | "day";
  total: UsageTotal;
  /** One for each agent or repository, that of most tasks first; or for each day, the last one first. */
  groups: UsageTotal[];
}

export interface CommandDataWorktrees {
  /** The oldest first. */
  worktrees: WorktreesWorktree[];
  total_size_bytes: number;
  /** How many `worktrees prune` would remove. */
  removable_count: number;
}

export interface Commands {
  finished_count: number;
  failed_count: number;
  declined_count: number;
  /** The last commands, oldest first. */
  items: CommandsItem[];
}

export interface CommandsItem {
  command: string;
  status: unknown;
  exit_code: number | null;
  output_bytes: number;
}

/** A file that cannot be changed as the diff demands. */
export interface Conflict {
  path: string;
  reason: string;
  /** The hunks of the diff that do not apply; absent if the whole file is in conflict. */
  hunks?: Record<string, unknown>[];
}

export interface Counts {
  line_count: number;
  byte_count: number;
  event_count: number;
  unknown_count: number;
  not_json_count: number;
  over_long_count: number;
  mixed_dialect_count: number;
  repeated_item_count: number;
  is_last_line_unterminated: boolean;
  /** Number of lines per event type. */
  by_type: Record<string, number>;
  /** Number of completed items per type. */
  items: Record<string, number>;
}

/** For a read-only task that tried to write. */
export interface DeniedWrite {
  reason: string;
  /** How to let the agent write. */
  suggestion: string;
}

/** A problem of an input. */
export interface DetailsProblem {
  field: string;
  problem: string;
  code: string;
  value?: unknown;
  suggestion: string;
  [key: string]: unknown;
}

/** The command to run instead. */
export interface DetailsRedirect {
  command: string;
  permanent: boolean;
  reason: string;
}

export interface DetailsResult {
  /** What the command acted on, such as a task id. */
  target: string;
  success: boolean;
  result?: Record<string, unknown>;
  error?: ResultError;
}

/** The changes of a task that a provider ran, as a unified diff. */
export interface Diff {
  /** The length of the whole diff. */
  bytes: number;
  text: string;
  /** Parts are left out of the text, each replaced by a line in brackets; the command `diff` prints all of it. */
  is_truncated?: boolean;
}

/** A changed file. Its path is relative to the top of the work tree, or absolute in another work tree. */
export interface DiffFile {
  path: string;
  change: "modified" | "added" | "deleted" | "renamed";
  /** The former path of a renamed file. */
  old_path?: string;
  /** git's mode before and after, if it changed. */
  old_mode?: string;
  new_mode?: string;
  is_binary: boolean;
  lines_added: number;
  lines_deleted: number;
  hunks?: Hunk[];
}

export interface Discard {
  task_id?: string;
  /** The removed directory. */
  worktree?: string;
  /** Whether there were changes in it. */
  has_changes?: boolean;
  /** Changed files that are not in the diff, with the reason. */
  left_out?: Record<string, unknown>[];
  left_out_count?: number;
  /** The command that applies the stored diff of the removed worktree. */
  apply_command?: string;
  group_id?: string;
  worktrees?: Worktree[];
}

export interface Dropped {
  task_id: string;
  restore_point: string;
  /** Saved before a restore, not before the task */
  is_undo: boolean;
  work_tree: string;
  created_at: string | null;
  has_staged_changes: boolean;
  modified_count: number;
  untracked_count: number;
  left_out_count: number;
  /** Bytes on disk */
  bytes: number;
  /** No branch, tag or remote-tracking ref contains all of its content */
  is_only_copy?: boolean;
}

export interface Entry {
  /** The event that it describes: 1, 2, … per task. */
  number: number;
  kind: "turn" | "command" | "test" | "edit" | "message" | "plan" | "problem" | "other";
  /** A command that exited with another code than 0, or an error. */
  has_failed: boolean;
  /** When the agent wrote it, to about a second; null if that is not known. */
  at: string | null;
  text: string;
}

export interface Environment {
  id: string;
  name: string;
  repository: string;
  tech_stack: string;
  provider?: string;
  created_at?: string;
}

export interface ErrorContext {
  error_message: string;
  error_type: string;
  failed_files: string[];
  error_locations: ErrorLocation[];
  suggestions: string[];
  failure_kind?: string;
  /** The agent's own message, if the error is that of a command. */
  agent_message?: string;
  /** When the agent expects its model to be available again. */
  retry_at?: string;
  /** Only for a task that ran into a limit. */
  partial_results?: PartialResults;
}

/** A location in the output of a failed command. */
export interface ErrorLocation {
  file: string;
  line: number;
  column?: number;
  message?: string;
  kind?: string;
  command?: string;
}

export interface Events {
  included: boolean;
  /** All events of the task. */
  count: number;
  /** Why they are not included. */
  reason?: string;
  items?: unknown[];
  /** Leads to the events before these. */
  next_cursor?: string;
}

export interface EventsFollow {
  /** completed, failed, interrupted, working (while followed), or unknown if the stream does not say. */
  state: string;
  /** The agent's error message. */
  error_message: string | null;
  /** The task that wrote the transcript, if it has ended. */
  task?: EventsFollowTask;
  /** thread, idle, protocol or rollout; null if no line was recognised. */
  dialect: unknown;
  final_message: string | null;
  is_final_message_truncated: boolean;
  /** The final message as JSON, if it is an object or a list. */
  structured_output: unknown;
  turn_count: number;
  /** What the agent has done so far. */
  progress: Progress | null;
  file_operations: EventsFollowFileOperations;
  commands: Commands;
  /** Final test counts: passed, failed, skipped, failed_tests; null if no tests were counted. */
  test_results: TestResults | null;
  /** The test runs behind these counts, oldest first. */
  test_runs: TestRun[];
  /** Commands that failed and did not succeed later, with the source locations they reported. */
  failures: unknown[];
  mcp_calls: McpCalls;
  web_search_count: number;
  sub_agent_count: number;
  plan: TodoItem[];
  thread_info: EventsFollowThreadInfo;
  /** Warnings of the agent; not failures. */
  agent_warnings: AgentWarning[];
  /** Errors from which the agent recovered, or was still recovering. */
  transient_errors: AgentWarning[];
  /** Items that started but did not end. */
  open_items: unknown[];
  /** Anomalies in the stream. */
  oddities: unknown[];
  counts: Counts;
}

export interface EventsFollowFileOperations {
  modified_files: string[];
  added_files: string[];
  deleted_files: string[];
  /** Number of changed files beyond the list. */
  not_listed_count: number;
  failed_patch_count: number;
}

/** The task that wrote the transcript, if it has ended. */
export interface EventsFollowTask {
  task_id: string;
  state: string;
  /** Of a failed task. */
  failure_kind?: string;
  /** Why the task did not complete. */
  reason?: string;
}

export interface EventsFollowThreadInfo {
  thread_id: string | null;
  /** 0 to 1: cached over all input tokens. */
  cache_hit_rate: number | null;
  /** Usage of this run. */
  token_usage: Record<string, number> | null;
  /** Total of the thread, as reported in the stream. */
  thread_token_usage: Record<string, number> | null;
}

export interface Example {
  command: string;
  shows: string;
}

/** One entry of a command's exit code map. */
export interface ExitCode {
  name: string;
  description: string;
  /** Whether the identical call may be repeated after each of the command's own errors with this exit code. */
  retryable: boolean;
  side_effects: string;
  /** Every `error.code` with this exit code. */
  error_codes: string[];
  /** Those after which the identical call may be repeated: their errors have `retryable: true`. */
  retryable_error_codes: string[];
  /** Those whose errors state in `retryable` whether the obstacle can go away by itself. */
  conditional_error_codes?: string[];
}

export interface FileOperations {
  modified_files: string[];
  added_files: string[];
  deleted_files: string[];
  lines_changed: number;
  /** False if lines of changed files could not be counted, or if nothing observed the changes: then `lines_changed` is the number of lines that are known. */
  is_lines_changed_exact?: boolean;
  lines_added?: number;
  lines_deleted?: number;
  /** git, scan, diff, late: by git after the supervisor was lost, or agent: only what the agent reported. */
  source?: string;
  /** whole or partial. */
  scope?: string;
  renamed_files?: Record<string, string>[];
  /** Changed during the task, but nothing that the agent did explains it. */
  unattributed_files?: string[];
  /** The agent could have made these changes, but reports no events by which this could be verified. */
  possibly_agent_files?: string[];
  not_listed_count?: number;
  /** Paths that were not examined or not read, with the reason. */
  left_out?: Record<string, unknown>[];
  left_out_count?: number;
}

/** Set if a part of the final message is missing. */
export interface FinalMessageTruncated {
  shown_bytes: number;
  /** As the agent wrote it. */
  total_bytes: number;
  suggestion?: string;
}

export interface FleetPause {
  /** The worker; null for the whole fleet. */
  worker: string | null;
  is_paused: boolean;
  /** Whether this call changed it. */
  is_changed: boolean;
}

export interface FleetStatus {
  /** Whether the whole fleet is paused. */
  is_paused: boolean;
  /** Workers with a lease, by name. */
  workers: FleetStatusWorker[];
  worker_count: number;
  slot_count: number;
  busy_count: number;
  queued_count: number;
  /** Claimed or running tasks. */
  running_count: number;
  /** How long the oldest queued task has been waiting. */
  oldest_wait_ms: number | null;
  /** Queued tasks with a label that no worker has. */
  unmatched_count: number;
  /** Attempts that ended in the last 24 hours because their worker was lost. */
  lost_last_day_count: number;
  /** Tasks that ended in the last 24 hours. */
  ended_last_day_count: number;
  /** Size of the stored events, diffs and results of ended tasks. */
  stored_bytes: number;
  schema_version: string;
}

export interface FleetStatusWorker {
  name: string;
  /** idle, busy, full, paused or draining. */
  state: string;
  slot_count: number;
  /** Tasks that it has. */
  busy_count: number;
  labels: Record<string, string>;
  version: string;
  heartbeat_age_ms: number;
  started_at: string;
  /** Since its start. */
  age_ms: number;
}

/** A task that follows another one. */
export interface Follower {
  task_id: string;
  /** The task that a task follows. */
  follows: Follows;
  state: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  title: string;
}

/** The task that a task follows. */
export interface Follows {
  task_id: string;
  /** The outcome of that task after which this one starts. */
  on: "success" | "failure";
}

/** Read or search the log of a task */
export interface GetApiV1TasksIdLog {
  query: GetApiV1TasksIdLogQuery;
  data: GetApiV1TasksIdLogData;
}

export interface GetApiV1TasksIdLogData {
  task_id: string;
  entries: Entry[];
  /** More entries are stored after these. */
  has_more: boolean;
  /** `from` of the next request. */
  next_from: number;
}

export interface GetApiV1TasksIdLogQuery {
  /** Number of the first event */
  from?: number;
  /** Events or entries of an answer */
  limit?: number;
  /** Only what contains this text, in upper or lower case */
  q?: string;
  /** Only what has failed */
  failed?: boolean;
}

export interface Git {
  head_before: string | null;
  head_after: string | null;
  branch_before: string | null;
  branch_after: string | null;
  commit_count: number;
  /** First lines of the newest commits. */
  commits: string[];
  /** Whose commits they are: agent, possibly_agent or unknown. */
  attributed_to?: string;
  is_index_changed: boolean;
}

export interface HistoryTask {
  task_id: string;
  title: string;
  state: string;
  /** `verified`, `verify_failed` or `not_run`; absent without a verify command. */
  verification?: string;
  agent: string;
  mode: string;
  working_dir: string;
  created_ts: string;
  age_seconds: number;
  /** The result in one sentence; absent before the end. */
  summary?: string;
}

export interface Hunk {
  old_start: number;
  old_lines: number;
  new_start: number;
  new_lines: number;
  /** What git prints behind the ranges, usually the enclosing function. */
  header: string;
  /** The lines with their sign: a space, `+`, `-`, or `\` for a remark about the line before. */
  lines: string[];
}

export interface McpCalls {
  finished_count: number;
  failed_count: number;
  /** For the first 100 tools. */
  by_tool: ByTool[];
}

/** The messages to the agent of a task. */
export interface Messages {
  queued_count: number;
  delivered_count: number;
  accepted_count: number;
  failed_count: number;
  /** The task ended before the agent confirmed them; they may have been read. */
  unknown_count: number;
  /** The last messages, oldest first; none in a list of several tasks. */
  items?: MessagesItem[];
}

export interface MessagesItem {
  /** 1, 2, … per task. */
  message_number: number;
  delivery: "now" | "next";
  state: "queued" | "delivered" | "accepted" | "failed" | "unknown";
  /** Why it failed, or why its delivery is unknown. */
  reason?: string;
  /** The beginning of the text. */
  excerpt: string;
  /** The length of the text. */
  bytes: number;
  sent_at: string;
  delivered_at?: string;
  /** When it was accepted, or its delivery failed or became unknown. */
  settled_at?: string;
}

/** Set by [`StatusSnapshot::follow_lists`]. */
export interface NotListed {
  running_count: number;
  queued_count: number;
}

export interface OldTasks {
  found: number;
  deleted: number;
  oldest_age_hours: number | null;
}

export interface OtherWorkTree {
  ref: string;
  head: string | null;
  branch: string | null;
  is_dirty: boolean;
  has_staged_changes: boolean;
  modified_count: number;
  untracked_count: number;
  /** Files that it does not contain, with the reason. */
  left_out: Record<string, unknown>[];
  left_out_count: number;
  work_tree: string;
}

export interface Output {
  included: boolean;
  /** Why it is not included. */
  reason?: string;
  stdout?: string;
  stderr?: string;
  truncated: boolean;
  /** The budget of both streams together. */
  max_bytes: number;
  /** The size that the agent wrote, if it was truncated. */
  original_size?: number;
}

/** What concerns no single task. */
export interface Overall {
  is_queue_paused: boolean;
  /** Agents of which no queued task starts for now. */
  agent_pauses: AgentPause[];
  /** All tasks that have not ended. */
  unfinished_count: number;
  unread_count: number;
  /** Why the tasks could not be read; they are shown as they were before. */
  problem?: string;
}

/** A change that would be reverted and was changed again. */
export interface Overlap {
  /** The file or directory; for `head` the work tree. */
  path: string;
  /** What was changed again: the file in the work tree, its permissions, its index entry, or HEAD of the work tree. */
  part: "file" | "permissions" | "index" | "head";
}

export interface Pagination {
  page: number;
  /** The requested size of a page, not the number of its items. */
  page_size: number;
  total_count: number;
  filtered_count: number;
}

/** What a timed-out task printed last. */
export interface PartialResults {
  last_events: unknown[];
  /** The end of stdout, then the end of stderr under a heading. */
  last_output: string;
}

/** A text to paste, and its destination. */
export interface Paste {
  where: string;
  text: string;
}

export interface PerDay {
  /** In UTC */
  day: string;
  task_count?: number;
  duration_seconds: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
  /** In US dollars, of the agents that report it. */
  cost_usd?: number;
  /** Without this count, "0 tokens" could also mean that the agent did not report its usage. */
  tasks_without_tokens_count?: number;
}

export interface PerLabel {
  /** `key=value` */
  label: string;
  task_count?: number;
  duration_seconds: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
  /** In US dollars, of the agents that report it. */
  cost_usd?: number;
  /** Without this count, "0 tokens" could also mean that the agent did not report its usage. */
  tasks_without_tokens_count?: number;
}

export interface PerTask {
  task_id: string;
  task_count?: number;
  duration_seconds: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
  /** In US dollars, of the agents that report it. */
  cost_usd?: number;
  /** Without this count, "0 tokens" could also mean that the agent did not report its usage. */
  tasks_without_tokens_count?: number;
  title: string;
}

export interface PerWorktree {
  /** The task for which it was created. */
  task_id: string;
  path: string;
  size_bytes: number;
}

/** Apply the changes of an isolated task to your work tree */
export interface PostApiV1TasksIdApply {
  query: {
    /** Report what would happen; change nothing */
    check?: boolean;
  };
  body: PostApiV1TasksIdApplyBody;
  data: Apply;
}

export interface PostApiV1TasksIdApplyBody {
  /** Also commit the changes on the current branch; hooks are not run */
  commit?: boolean;
  /** Message of the commit (default: title, summary and id of the task) */
  message?: string;
  /** Create this branch with the changes and the commits of the agent, and leave your work tree alone */
  branch?: string;
  /** Directory in the work tree to change (default: that of the task) */
  working_dir?: string;
  /** Attempt, if there are several (default: the first of a cloud task, the recommended one of a group) */
  attempt?: number;
  /** Keep the worktree of the task; of a group, those of all attempts */
  keep?: boolean;
  /** Also apply changes whose verify command did not pass, or an attempt that is not the recommended one */
  force?: boolean;
}

/** Cancel a task and kill all its processes */
export interface PostApiV1TasksIdCancel {
  body: PostApiV1TasksIdCancelBody;
  data: CloudCancel;
}

export interface PostApiV1TasksIdCancelBody {
  /** Reason */
  reason?: string;
  confirm?: boolean;
}

/** Remove the worktree of a task with its changes */
export interface PostApiV1TasksIdDiscard {
  body: {
    /** Confirm the removal */
    confirm_destructive?: boolean;
  };
  data: Discard;
}

/** The known progress, if the call ended before the task. */
export interface Progress {
  /** Null if neither a plan nor history tells it. A running task has at most 99: the end of a turn is not its end. */
  percent: number | null;
  /** `plan`, or `history`: an estimate from the duration of similar tasks. */
  progress_source?: "plan" | "history";
  /** The steps of the agent's plan. */
  completed_steps: number | null;
  total_steps: number | null;
  current_activity: string | null;
  event_count?: number;
  command_count?: number;
  file_count?: number;
}

/** A task in the queue. */
export interface Queue {
  task_id: string;
  state?: "queued";
  /** Where a person looks for it. */
  section?: "needs_you" | "working" | "waiting" | "finished_unread" | "finished";
  /** 0: the task is next. */
  position: number;
  title?: string;
  working_dir?: string;
  labels?: Record<string, string>;
  /** Environment id, if a provider runs it. */
  environment?: string;
  /** What enforces the mode of the task. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** The task that it follows in a chain. */
  follows?: Follows;
  group_id?: string;
  attempt?: number;
  estimated_start_ms?: number;
  /** The task that a queued task waits for, besides a free slot. */
  waiting_for?: WaitingFor;
  /** Set while its agent is paused. */
  agent_pause?: AgentPause;
  /** Only in the status of a single task. */
  messages?: Messages;
}

export interface QueuePause {
  /** Whether the whole queue is paused. */
  is_paused: boolean;
  /** Whether this call paused or resumed something. */
  is_changed: boolean;
  /** The agent that the call paused or resumed. */
  agent?: string;
  /** Agents of which no queued task starts for now. */
  agent_pauses?: AgentPause[];
  running_count: number;
  queued_count: number;
}

/** An ended task in a list. */
export interface RecentlyCompleted {
  task_id: string;
  state: "completed" | "failed" | "cancelled" | "timeout";
  /** Where a person looks for it. */
  section?: "needs_you" | "working" | "waiting" | "finished_unread" | "finished";
  /** The result of its verify command, if it has one. */
  verification?: "verified" | "verify_failed" | "not_run";
  duration_seconds: number;
  completed_ts: string;
  /** Only in the status of a single task. */
  messages?: Messages;
  title?: string;
  working_dir?: string;
  labels?: Record<string, string>;
  /** Environment id, if a provider runs it. */
  environment?: string;
  /** What enforces the mode of the task. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** The task that it follows in a chain. */
  follows?: Follows;
  group_id?: string;
  attempt?: number;
}

/** Set for a task that a provider runs. */
export interface Remote {
  /** Environment id. */
  environment: string;
  provider: string;
  /** The provider's own id of the task; absent until the provider has accepted it. */
  remote_id?: string;
  url?: string;
  /** The worker that ran the task. */
  worker?: string;
  /** The commit that the task started from. */
  base_commit?: string;
  /** The branch of that commit. */
  branch?: string;
  /** The branch to which the worker pushed the changes. */
  pushed_branch?: string;
  /** Changed files that are not in the diff, with the reason. */
  left_out?: Record<string, unknown>[];
  left_out_count?: number;
}

export interface Restore {
  task_id?: string;
  /** Something was changed */
  is_restored: boolean;
  dry_run: boolean;
  /** The restore point that was used */
  restore_point?: string;
  work_tree?: string;
  /** Files restored */
  written?: string[];
  /** Those of them that retain later edits */
  merged?: string[];
  /** Files removed because they did not exist before */
  removed?: string[];
  /** Files and directories of which only the permissions were restored */
  modes_restored?: string[];
  directories_created?: string[];
  /** Empty directories removed because they did not exist before */
  directories_removed?: string[];
  /** Files that differ and were left unchanged */
  kept?: UnavailableWorkTree[];
  /** Those of the restored and removed files that may hold edits of the user; missing if that is not known, because the state after the task is not stored */
  possible_user_edits?: UnavailableWorkTree[];
  is_index_restored?: boolean;
  /** HEAD or its branch has moved since the restore point */
  has_head_moved?: boolean;
  is_head_restored?: boolean;
  /** The state before the restore */
  undo_point?: string | null;
  /** Further work trees the task could write to */
  other_work_trees?: RestoreOtherWorkTree[];
  /** Work trees that could not be restored, because their repository or restore point is gone */
  unavailable_work_trees?: RestoreUnavailableWorkTree[];
  /** Files of git's own settings restored or removed: configuration, hooks, attributes */
  git_settings?: string[];
  /** Shows what reverting the restore would change */
  undo_command?: string;
  /** With drop: the restore points that were deleted, or would be with dry_run */
  dropped?: Dropped[];
  /** With list: the restore points of the repository */
  restore_points?: Dropped[];
  total_operations?: number;
  successful?: number;
  failed?: number;
  /** Some items failed, and some succeeded. */
  partial_success?: boolean;
  results?: DetailsResult[];
}

export interface RestoreOtherWorkTree {
  /** The restore point that was used */
  restore_point: string;
  work_tree: string;
  /** Files restored */
  written: string[];
  /** Those of them that retain later edits */
  merged: string[];
  /** Files removed because they did not exist before */
  removed: string[];
  /** Files and directories of which only the permissions were restored */
  modes_restored: string[];
  directories_created: string[];
  /** Empty directories removed because they did not exist before */
  directories_removed: string[];
  /** Files that differ and were left unchanged */
  kept: UnavailableWorkTree[];
  /** Those of the restored and removed files that may hold edits of the user; missing if that is not known, because the state after the task is not stored */
  possible_user_edits?: UnavailableWorkTree[];
  is_index_restored: boolean;
  /** HEAD or its branch has moved since the restore point */
  has_head_moved: boolean;
  is_head_restored: boolean;
  /** The state before the restore */
  undo_point?: string | null;
}

/** The restore point of the working directory, with those of other work trees. */
export interface RestorePoint {
  ref: string;
  head: string | null;
  branch: string | null;
  is_dirty: boolean;
  has_staged_changes: boolean;
  modified_count: number;
  untracked_count: number;
  /** Files that it does not contain, with the reason. */
  left_out: Record<string, unknown>[];
  left_out_count: number;
  work_tree: string;
  /** Shows what a restore would change. */
  restore_command?: string;
  other_work_trees?: OtherWorkTree[];
}

export interface RestorePointsItem {
  task_id: string;
  repository: string;
  ref: string;
  reason: string;
  expires_ts: string | null;
}

export interface RestoreUnavailableWorkTree {
  work_tree: string;
  problem: string;
}

export interface ResultError {
  code: string;
  kind: string;
  message: string;
  /** The state of the task, if it is the reason. */
  state?: string;
}

export interface Send {
  task_id: string;
  /** The state of the task. */
  state: string;
  message: MessagesItem;
  /** Messages to the task that are not delivered yet, this one included. */
  queued_count: number;
}

export interface Show {
  task_id: string;
  state: string;
  title: string;
  /** The task text. */
  ask: string;
  agent: string;
  model?: string;
  mode: string;
  created_ts: string;
  age_seconds: number;
  started_ts?: string;
  completed_ts?: string;
  /** Of an ended task. */
  result?: ShowResult;
  /** Of a task that has not ended. */
  unfinished?: WaitResultDataTask;
  /** The notifications about it, the oldest first. */
  notifications?: StatusSnapshotDataNotification[];
  /** What can be done with the task now. */
  next_commands: Example[];
}

/** Of an ended task. */
export interface ShowResult {
  task_id: string;
  state: "completed" | "failed" | "cancelled" | "timeout";
  /** The result in one sentence. */
  summary: string;
  /** The absolute directory in which the agent works; paths of files are relative to it. */
  working_dir?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  /** The changes of a task that a provider ran, as a unified diff. */
  diff?: Diff;
  /** The task that it follows in a chain. */
  follows?: Follows;
  /** The tasks that directly follow it. */
  followers?: Record<string, unknown>[];
  group_id?: string;
  attempt?: number;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** What became of the messages to the agent, if there were any. */
  messages?: Record<string, unknown>;
  output: Output;
}

/** A task in any state. Fields that its state does not have are null. */
export interface SnapshotTask {
  task_id: string;
  state: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** Where a person looks for it. */
  section: "needs_you" | "working" | "waiting" | "finished_unread" | "finished";
  title: string;
  working_dir: string;
  labels: Record<string, string>;
  /** Environment id; null for a task of this machine. */
  environment: string | null;
  /** What enforces the mode of the task; null if it runs elsewhere. */
  sandbox: "agent" | "enforced" | "none" | null;
  created_ts: string;
  started_ts: string | null;
  completed_ts: string | null;
  /** How long it has run; null before it starts. */
  duration_seconds: number | null;
  /** 0: the task is next. */
  queue_position: number | null;
  /** What the agent has done so far. */
  progress: Progress | null;
  group_id?: string;
  attempt?: number;
  agent: string;
  /** The state in words, as a person reads it: the question, the current activity, what it waits for, or how it ended. */
  line: string;
  /** The group or chain with which it was submitted. */
  submission_id?: string;
  /** The section of that group or chain as a whole. */
  submission_section?: string;
  /** The result of its verify command, if it has ended and has one. */
  verification?: "verified" | "verify_failed" | "not_run";
  /** It has ended, and its result was not read. */
  is_unread: boolean;
  lines_added?: number;
  lines_deleted?: number;
  cost_microdollars?: number;
  /** Questions of the agent that wait for an answer. */
  waiting_for_answer?: WaitingForAnswer[];
  /** The messages to the agent of a task. */
  messages?: Messages;
}

export interface StatusSnapshotDataNotification {
  /** What it is about: `task`, `group` or `chain` */
  subject: string;
  /** The id of the task or the group; of a chain, that of its first task. */
  subject_id: string;
  /** `ended`, or why a running task needs you: `question`, `budget` or `stuck` */
  event: string;
  /** `command`, `webhook` or `desktop` */
  channel: string;
  state: "pending" | "delivered" | "failed" | "dropped";
  attempt_count: number;
  /** When it happened. */
  created_at: string;
  /** When the next attempt may begin; only of pending ones. */
  next_attempt_at?: string;
  /** When it was delivered, dropped or given up. */
  settled_at?: string;
  /** Why the last attempt failed, or why the notification was dropped. */
  last_error: string | null;
}

/** A running task in a list. */
export interface StatusSnapshotDataTask {
  task_id: string;
  state: "working";
  /** Where a person looks for it. */
  section?: "needs_you" | "working" | "waiting" | "finished_unread" | "finished";
  started_ts: string;
  elapsed_seconds: number;
  /** Null if nothing is known. */
  progress: Progress | null;
  containment?: string | null;
  title?: string;
  working_dir?: string;
  labels?: Record<string, string>;
  /** Environment id, if a provider runs it. */
  environment?: string;
  /** What enforces the mode of the task. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** The task that it follows in a chain. */
  follows?: Follows;
  group_id?: string;
  attempt?: number;
  last_lines?: string[];
  /** Questions of the agent that wait for an answer. */
  waiting_for_answer?: WaitingForAnswer[];
  /** The messages to the agent of a task. */
  messages?: Messages;
}

export interface StatusSnapshotDataUsage {
  total: Total;
  per_task: PerTask[];
  per_label: PerLabel[];
  per_day: PerDay[];
  /** The disk space of the worktrees of isolated tasks. */
  worktrees: Worktrees;
}

export interface Step {
  step: number;
  title: string;
  instructions: string;
  paste?: Paste[];
}

/** Where the final message violates the output schema, and how. */
export interface StructuredOutputViolation {
  path: string;
  problem: string;
}

export interface StuckTasks {
  found: number;
  cleaned: number;
  task_ids: string[];
}

export interface Summary {
  running: number;
  queued: number;
  recently_completed: number;
}

/** Processes that outlived the agent. */
export interface Swept {
  process_count: number;
  /** Some of them needed SIGKILL. */
  has_killed_processes: boolean;
}

/** An ended task in a list: its result, with the facts that the response to a call for one task has in `meta`. */
export interface Task {
  task_id: string;
  state: "completed" | "failed" | "cancelled" | "timeout";
  /** The result in one sentence. */
  summary: string;
  /** The absolute directory in which the agent works; paths of files are relative to it. */
  working_dir?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  /** Set for a task that a provider runs. */
  remote?: Remote;
  /** The changes of a task that a provider ran, as a unified diff. */
  diff?: Diff;
  /** The task that it follows in a chain. */
  follows?: Follows;
  /** The tasks that directly follow it. */
  followers?: Record<string, unknown>[];
  group_id?: string;
  attempt?: number;
  final_message?: string | null;
  /** Set if a part of the final message is missing. */
  final_message_truncated?: FinalMessageTruncated;
  /** The final message as JSON, for a task with an output schema. */
  structured_output?: unknown;
  structured_output_violations?: StructuredOutputViolation[];
  /** What a review found, if its final message can be read. */
  findings?: Record<string, unknown>[];
  metadata: EnhancedMetadata;
  labels?: Record<string, string>;
  artifacts?: Artifact[];
  artifacts_not_listed_count?: number;
  git?: Git;
  /** Shows what the task changed. */
  diff_command?: string;
  /** The directory in which an isolated task works. */
  worktree?: string;
  worktree_state?: "planned" | "present" | "applied" | "discarded" | "unchanged";
  /** Takes the changes, while the worktree exists. */
  apply_command?: string;
  /** The restore point of the working directory, with those of other work trees. */
  restore_point?: RestorePoint;
  /** A run of the verify command. */
  verification?: Verification;
  /** For a read-only task that tried to write. */
  denied_write?: DeniedWrite;
  /** What became of the messages to the agent, if there were any. */
  messages?: Record<string, unknown>;
  output: Output;
  started_ts: string;
  completed_ts: string;
  duration_ms: number;
  /** Null if the agent was not started. */
  agent_exit_code: number | null;
}

/** Flags are included only if they are set. */
export interface TestResults {
  passed: number;
  failed: number;
  skipped: number;
  failed_tests: string[];
  failed_tests_not_listed_count?: number;
  /** Some tests ran without being counted. */
  is_incomplete?: boolean;
  /** A test command failed although none of its tests did. */
  has_ended_badly?: boolean;
}

/** One run of a test command. */
export interface TestRun {
  command: string;
  runner: unknown;
  exit_code: number | null;
  /** The counts are as the runner reported them. */
  passed: number;
  failed: number;
  skipped: number;
  is_incomplete: boolean;
  /** The command failed although it counted no failed test. */
  has_ended_badly: boolean;
  /** Another run covers the same tests; this one is not in the sums. */
  is_superseded: boolean;
}

export interface ThreadInfo {
  thread_id: string | null;
  cache_hit_rate: number | null;
  token_usage: Record<string, number> | null;
  /** In US dollars, if the agent reports it. */
  cost_usd?: number;
}

export interface TokenPermissions {
  contents: string;
  pull_requests: string;
  metadata: string;
}

export interface Total {
  task_count?: number;
  duration_seconds: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
  /** In US dollars, of the agents that report it. */
  cost_usd?: number;
  /** Without this count, "0 tokens" could also mean that the agent did not report its usage. */
  tasks_without_tokens_count?: number;
}

export interface UnavailableWorkTree {
  path: string;
  reason: string;
}

/** Ended tasks whose results were not read. */
export interface Unread {
  count: number;
  task_ids: string[];
}

export interface UsageTotal {
  /** The agent, the path of the repository, or the day; empty in the total. */
  name: string;
  task_count?: number;
  duration_seconds: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
  /** In US dollars, of the agents that report it. */
  cost_usd?: number;
  /** Without this count, "0 tokens" could also mean that the agent did not report its usage. */
  tasks_without_tokens_count?: number;
  /** Whether the cost is what the agents report, of some tasks or of all. */
  cost_source: "reported" | "partly_reported" | "not_reported";
  tasks_without_cost_count: number;
  /** Tasks with a verify command. */
  tasks_with_verify_count: number;
  verified_count: number;
  /** Of the tasks with a verify command, from 0 to 1; null if there are none. */
  verified_share: number | null;
}

/** A run of the verify command. */
export interface Verification {
  status: "verified" | "verify_failed" | "not_run";
  /** As it was given: a command line, or a program and its arguments. */
  command: unknown;
  exit_code?: number | null;
  is_sandboxed?: boolean;
  duration_ms?: number;
  output_tail?: string;
  output_bytes?: number;
  /** Flags are included only if they are set. */
  test_results?: TestResults;
  signal?: number;
  reason?: string;
  detail?: string;
}

/** A task that has not ended when the wait is over. */
export interface WaitResultDataTask {
  task_id: string;
  state: "queued" | "working" | "completed" | "failed" | "cancelled" | "timeout";
  /** What the agent has done so far. */
  progress?: Progress | null;
  /** Since the start of the task. */
  elapsed_seconds?: number;
  working_dir?: string;
  /** What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere. */
  sandbox?: "agent" | "enforced" | "none";
  thread_id?: string;
  /** Absent while the task is queued. */
  started_ts?: string;
  /** Set for a task that a provider runs. */
  remote?: Remote;
  /** Questions of the agent that wait for an answer. */
  waiting_for_answer?: WaitingForAnswer[];
  /** The messages to the agent of a task. */
  messages?: Messages;
  group_id?: string;
  attempt?: number;
}

/** The task that a queued task waits for, besides a free slot. */
export interface WaitingFor {
  task_id: string;
  reason: string;
}

/** A question of the agent. */
export interface WaitingForAnswer {
  /** 1, 2, … per task. */
  question_number: number;
  kind: "permission" | "question";
  state: "open" | "answered" | "expired" | "withdrawn";
  title: string;
  /** The command, the paths or the reason. */
  detail?: string;
  /** The possible answers; empty if only a text answers it. */
  options: WaitingForAnswerOption[];
  /** A text can answer it. */
  is_text_accepted: boolean;
  asked_at: string;
  /** Without an answer until then, the agent gets none. */
  expires_at: string;
  /** Set once it is answered. */
  answer?: Answer;
}

export interface WaitingForAnswerOption {
  id: string;
  label: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always" | "other";
}

/** Something the caller should know although the command succeeded. */
export interface Warning {
  code: string;
  message: string;
  context?: Record<string, unknown>;
}

/** What the diff of a task does not have. */
export interface Worktree {
  task_id: string;
  /** The removed directory. */
  worktree: string;
  /** Whether there were changes in it. */
  has_changes: boolean;
  /** Changed files that are not in the diff, with the reason. */
  left_out?: Record<string, unknown>[];
  left_out_count?: number;
  /** The command that applies the stored diff of the removed worktree. */
  apply_command?: string;
}

/** The disk space of the worktrees of isolated tasks. */
export interface Worktrees {
  count: number;
  total_bytes: number;
  /** The oldest first. */
  per_worktree: PerWorktree[];
}

export interface WorktreesWorktree {
  /** The task for which it was created. */
  task_id: string;
  title: string;
  path: string;
  branch: string;
  /** The work tree from which it was created. */
  repository: string;
  /** When its task was submitted. */
  created_ts: string;
  age_seconds: number;
  size_bytes: number;
  /** What is in it. Absent if it could not be compared. */
  content?: "incomplete" | "missing" | "unchanged" | "applied" | "changed" | "changed_after_apply" | "only_copies";
  /** Absent if it could not be compared. */
  changed_file_count?: number;
  lines_added?: number;
  lines_deleted?: number;
  /** Whether its changes were applied at some time. */
  is_applied: boolean;
  /** Whether `worktrees prune` would remove it. */
  is_removable: boolean;
  /** A task that works in it, or will. */
  used_by_task_id?: string;
  /** Why it could not be compared. */
  problem?: string;
}
