// Types of the world a Callboard Graph runs in. Put these two lines at the top of a Graph and any
// editor checks it while you type; nothing has to be installed or built:
//
//   // @ts-check
//   /// <reference path="./graph.d.ts" />
//
// A Graph is plain JavaScript with `export const meta = {…}` as its first statement. Its body may
// `await` and `return` at the top level (editors that insist on a module say "return outside a
// function" there; Callboard does not). There is no import, no network and no file system:
// everything goes through the functions below.

/** JSON Schema, draft 2020-12. References must stay inside the schema (`#/…`). */
type JsonSchema = { [keyword: string]: unknown };

/** What a Graph says about itself: a pure literal, read without running the Graph. */
interface GraphMeta {
  /** Short name for lists. */
  name: string;
  /** What it does, for people and for models that choose among Graphs. */
  description: string;
  /** When to choose it. */
  whenToUse?: string;
  /** The phases it announces, in order. */
  phases?: { title: string; detail?: string }[];
  /** Schema of the arguments; `type: 'object'` at its root. Checked before anything starts. */
  args?: JsonSchema;
  /** Schema of the result. Checked when the Graph returns. */
  result?: JsonSchema;
  /** Limits it sets itself. The owner may set tighter ones. */
  limits?: {
    /** Token cap of the whole run. Calls over it are refused; running ones finish. */
    tokens?: number;
    /** Agent and tool calls at the same time: 1 to 64, 8 when absent. */
    max_concurrency?: number;
    /** Agent calls of the run: 1 to 1,000, 200 when absent. */
    agents?: number;
    /** Longest run in seconds: 1 to 86,400, 3,600 when absent. */
    wall_s?: number;
  };
}

/** The arguments of the run, frozen. */
declare const args: any;

interface AgentOptions {
  /** The answer is parsed and must match; `type: 'object'` at its root. */
  schema?: JsonSchema;
  /** Name of the call in lists. */
  label?: string;
  /** Phase of the call, when it is not the current one. */
  phase?: string;
  /** Model to use instead of the provider's own. */
  model?: string;
  /** Reasoning effort: none, minimal, low, medium, high, xhigh, max. */
  effort?: string;
  /** Name of a provider in the desktop's configuration. */
  agent?: string;
  /** The same under the name other engines use. */
  agentType?: string;
  /** Longest answer in tokens; 4,096 when absent. Counts against the cap while the call runs. */
  max_tokens?: number;
  /** Longest time for all tries together. */
  timeout_ms?: number;
  /** `'null'`: a failure becomes null and is listed in the run's failures. */
  on_error?: 'throw' | 'null';
}

/** Asks a model. The answer is its text, or the parsed object when a schema is given. */
declare function agent(prompt: string, options?: AgentOptions & { schema?: undefined }): Promise<string>;
declare function agent<T = any>(prompt: string, options: AgentOptions & { schema: JsonSchema }): Promise<T>;

/** Calls a tool, such as `mcp__files__list`. */
declare function tool<T = any>(
  name: string,
  args?: object,
  options?: { label?: string; phase?: string; timeout_ms?: number; idempotency_key?: string },
): Promise<T>;

/** Runs functions at the same time. A failure becomes null and is listed in the run's failures. */
declare function parallel<T>(thunks: (() => T | Promise<T>)[], options?: { concurrency?: number }): Promise<(T | null)[]>;

/** Takes each item through all stages, items at the same time. A failure becomes null. */
declare function pipeline<T = any>(
  items: readonly any[],
  ...stages: ((previous: any, item: any, index: number) => any)[]
): Promise<(T | null)[]>;

/** Tries again after failures that may pass: at most `max` tries, 1 to 20, 3 when absent. */
declare function retry<T>(
  options: {
    max?: number;
    delay_ms?: number;
    factor?: number;
    max_delay_ms?: number;
    retry_if?: (error: unknown, attempt: number) => boolean | Promise<boolean>;
  },
  attempt: (attempt: number) => T | Promise<T>,
): Promise<T>;

/** Names what happens from here on. */
declare function phase(title: string): void;
/** Writes a line to the run's log. */
declare function log(...values: unknown[]): void;
/** Waits. */
declare function sleep(ms: number): Promise<void>;
/** The run's clock in milliseconds since the epoch; moves when an answer arrives. */
declare function now(): number;
/** A number in [0, 1), the same in every replay of the run. */
declare function random(): number;
/** A UUID, the same in every replay of the run. */
declare function uuid(): string;

/** The token cap. */
declare const budget: {
  /** The cap, or null when there is none. */
  readonly total: number | null;
  /** Tokens of every answer so far. */
  spent(): number;
  /** What is left; Infinity when there is no cap. */
  remaining(): number;
};

/** What failed calls throw. */
declare class GraphError extends Error {
  constructor(message: string, code?: string);
  /** Stable word: agent_failed, agent_timeout, schema_mismatch, tool_refused, budget_exceeded, … */
  readonly code: string;
  /** The call it came from. */
  readonly call?: { label: string | null; phase: string | null };
  /** Whether the same call might succeed later. */
  readonly retryable: boolean;
}

/** Comes later. */
declare function graph(slug: string, args?: object): Promise<never>;
/** Comes later. */
declare function chat(link: string, prompt: string, options?: { timeout_s?: number }): Promise<never>;
