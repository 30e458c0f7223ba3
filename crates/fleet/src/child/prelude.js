// The script's world: everything a Graph can call. Evaluates to a function that the engine calls
// once with its outlet and the run's settings; nothing of it stays reachable for the script but
// the globals defined here.
(emit, settings) => {
  'use strict';
  // The script may replace built-ins; what is used later is taken now.
  const { parse, stringify } = JSON;
  const { apply, construct, ownKeys } = Reflect;
  const { freeze, defineProperty, assign } = Object;
  const { isArray } = Array;
  const { isFinite, isInteger } = Number;
  const { min, floor, imul } = Math;
  const NativePromise = Promise, NativeDate = Date, NativeString = String, NativeError = Error;
  const bind = (method) => (self, ...values) => apply(method, self, values);
  const toWellFormed = bind(String.prototype.toWellFormed);
  const slice = bind(String.prototype.slice);
  const padStart = bind(String.prototype.padStart);
  const numberToString = bind(Number.prototype.toString);
  const mapGet = bind(Map.prototype.get), mapSet = bind(Map.prototype.set), mapDelete = bind(Map.prototype.delete);
  const setAdd = bind(WeakSet.prototype.add), setHas = bind(WeakSet.prototype.has);
  const all = (promises) => apply(NativePromise.all, NativePromise, [promises]);

  const { listItemsMax, retriesMax, sleepMsMax, logMax, labelMax, failureMax, errorMax } = settings.limits;

  const pending = new Map();
  const fatals = new WeakSet();
  let clock = settings.nowMs, spent = 0, calls = 0, currentPhase = null;

  class GraphError extends NativeError {
    constructor(message, code = 'script_error', more = {}) {
      super(message);
      this.code = code;
      this.retryable = more.retryable === true;
      if (more.call !== undefined) this.call = more.call;
      if (more.cause !== undefined) this.cause = more.cause;
    }
  }
  defineProperty(GraphError.prototype, 'name', { value: 'GraphError', configurable: true, writable: true });

  const isObject = (value) => typeof value === 'object' && value !== null;
  const isFatal = (error) => isObject(error) && setHas(fatals, error);
  const cut = (value, max) => toWellFormed(slice(NativeString(value), 0, max));

  // What the host is told is put together as text: no toJSON and no change of a prototype reaches
  // it. `quote` takes what is no object; `data` takes the script's own objects, as JSON.stringify
  // shows them.
  const quote = (value) => toWellFormed(stringify(value));
  const data = (value) => {
    const json = stringify(value);
    if (json === undefined) throw wrong('a value cannot be written as JSON');
    return toWellFormed(json);
  };
  const field = (name, value) => value === undefined ? '' : `,"${name}":${isObject(value) ? data(value) : quote(value)}`;
  const orNull = (value, max) => typeof value === 'string' ? quote(cut(value, max)) : 'null';

  const refuse = (message, code) => new GraphError(message, code);
  const wrong = (message) => new TypeError(message);

  const send = (kind, json) => {
    if (!emit(kind, json)) throw refuse('too much at once: the script hands over more than 8 MB between two awaits', 'limit_exceeded');
  };

  // One call of the host. `identity` writes what the call is; `view` is for display only. The
  // number comes last, because a toJSON may make calls as well.
  const request = (kind, identity, view) => new NativePromise((resolve, reject) => {
    const rest = `"kind":${quote(kind)},"identity":{${identity()}},"label":${orNull(view.label, labelMax)},"phase":${orNull(view.phase, labelMax)}`;
    const id = ++calls;
    send('call', `{"id":${id},${rest}}`);
    mapSet(pending, id, { resolve, reject, view });
  });

  const deliver = (id, ok, json, nowMs, spentTokens) => {
    const call = mapGet(pending, id);
    if (!call) return;
    mapDelete(pending, id);
    clock = nowMs;
    spent = spentTokens;
    const value = parse(json);
    if (ok) return void call.resolve(value);
    const error = new GraphError(value.message, value.code, { retryable: value.retryable, call: call.view });
    if (value.fatal) setAdd(fatals, error);
    call.reject(error);
  };

  // What a function of ours takes as options: known names with known types, nothing else.
  const readOptions = (name, given, types) => {
    const read = { __proto__: null };
    if (given === undefined || given === null) return read;
    if (!isObject(given) || isArray(given)) throw wrong(`${name}: options must be an object`);
    for (const key of ownKeys(given)) {
      const type = types[key];
      if (!type) throw wrong(`${name}: unknown option "${cut(NativeString(key), 60)}"; it knows ${ownKeys(types).join(', ')}`);
      const value = given[key];
      if (value === undefined || value === null) continue;
      if (type === 'object' ? !isObject(value) || isArray(value)
        : type === 'array' ? !isArray(value)
        : type === 'count' ? !isInteger(value) || value < 1 || value > 4294967295
        : typeof value !== type) throw wrong(`${name}: option "${key}" must be ${type === 'count' ? 'a whole number from 1' : `of type ${type}`}`);
      read[key] = value;
    }
    return read;
  };

  const view = (options) => ({
    label: options.label === undefined ? null : cut(options.label, labelMax),
    phase: options.phase === undefined ? currentPhase : cut(options.phase, labelMax),
  });

  const swallow = (error, call) => {
    const ours = error instanceof GraphError;
    let message = 'a value that cannot be shown';
    try { message = cut(ours ? error.message : isObject(error) && 'message' in error ? `${error.name}: ${error.message}` : error, failureMax); } catch { /* its own getters threw */ }
    let code = 'script_error';
    try { if (ours && typeof error.code === 'string') code = cut(error.code, 60); } catch { /* likewise */ }
    let label = 'null', from = orNull(currentPhase, labelMax);
    try {
      const shown = (ours && error.call) || call;
      label = orNull(shown?.label, labelMax);
      from = orNull(shown?.phase ?? currentPhase, labelMax);
    } catch { /* likewise */ }
    send('swallow', `{"code":${quote(code)},"message":${quote(message)},"label":${label},"phase":${from}}`);
  };

  const AGENT_OPTIONS = { __proto__: null, schema: 'object', label: 'string', phase: 'string', model: 'string', effort: 'string', agent: 'string', agentType: 'string', tools: 'array', max_tokens: 'count', timeout_ms: 'count', on_error: 'string', isolation: 'string' };
  const agent = (prompt, given) => {
    if (typeof prompt !== 'string') throw wrong('agent(prompt, options): the prompt must be a string');
    const options = readOptions('agent', given, AGENT_OPTIONS);
    if (options.tools !== undefined && options.tools.length > 0) throw refuse('agent: agents with tools come later; call tool() and put the text into the prompt', 'not_available');
    if (options.isolation !== undefined) throw refuse('agent: isolation comes later', 'not_available');
    if (options.on_error !== undefined && options.on_error !== 'null' && options.on_error !== 'throw') throw wrong("agent: on_error is 'throw' or 'null'");
    const { schema, model, effort, max_tokens, timeout_ms } = options;
    const profile = options.agent ?? options.agentType;
    const display = view(options);
    const identity = () => `"prompt":${quote(prompt)}${field('schema', schema)}${field('model', model)}${field('effort', effort)}${field('profile', profile)}${field('max_tokens', max_tokens)}${field('timeout_ms', timeout_ms)}`;
    const answer = request('agent', identity, display);
    if (options.on_error !== 'null') return answer;
    return (async () => {
      try { return await answer; } catch (error) { if (isFatal(error)) throw error; swallow(error, display); return null; }
    })();
  };

  const TOOL_OPTIONS = { __proto__: null, label: 'string', phase: 'string', timeout_ms: 'count', idempotency_key: 'string' };
  const tool = (name, given = {}, more) => {
    if (typeof name !== 'string') throw wrong('tool(name, args, options): the name must be a string');
    if (!isObject(given) || isArray(given)) throw wrong('tool(name, args, options): args must be an object');
    const options = readOptions('tool', more, TOOL_OPTIONS);
    const { timeout_ms, idempotency_key } = options;
    const identity = () => `"name":${quote(name)},"arguments":${data(given)}${field('timeout_ms', timeout_ms)}${field('idempotency_key', idempotency_key)}`;
    return request('tool', identity, view(options));
  };

  const later = (name) => (..._) => NativePromise.reject(refuse(`${name}() is not available yet: it comes later`, 'not_available'));

  const list = (name, values) => {
    if (!isArray(values)) throw wrong(`${name}: the first argument must be an array`);
    if (values.length > listItemsMax) throw refuse(`${name}: ${values.length} items; ${listItemsMax} is the most`, 'limit_exceeded');
    return [...values];
  };

  const branch = async (work) => {
    try { return await work(); } catch (error) { if (isFatal(error)) throw error; swallow(error, null); return null; }
  };

  const parallel = async (thunks, given) => {
    const works = list('parallel', thunks);
    for (let index = 0; index < works.length; index++) {
      if (typeof works[index] !== 'function') throw wrong(`parallel: item ${index} must be a function: write () => agent(…), not agent(…)`);
    }
    const { concurrency = works.length } = readOptions('parallel', given, { __proto__: null, concurrency: 'count' });
    const results = [];
    for (let index = 0; index < works.length; index++) results[index] = null;
    let next = 0;
    const lane = async () => {
      while (next < works.length) {
        const index = next++;
        results[index] = await branch(works[index]);
      }
    };
    const lanes = [];
    for (let index = 0; index < min(concurrency, works.length); index++) lanes[index] = lane();
    await all(lanes);
    return results;
  };

  const pipeline = async (items, ...stages) => {
    const values = list('pipeline', items);
    for (let index = 0; index < stages.length; index++) {
      if (typeof stages[index] !== 'function') throw wrong(`pipeline: stage ${index + 1} must be a function`);
    }
    const lanes = [];
    for (let index = 0; index < values.length; index++) {
      lanes[index] = branch(async () => {
        let value = values[index];
        for (let stage = 0; stage < stages.length; stage++) value = await stages[stage](value, values[index], index);
        return value;
      });
    }
    return all(lanes);
  };

  const RETRY_OPTIONS = { __proto__: null, max: 'count', delay_ms: 'number', factor: 'number', max_delay_ms: 'number', retry_if: 'function' };
  const retry = async (given, attempt) => {
    if (typeof given === 'function') [given, attempt] = [attempt, given];
    if (typeof attempt !== 'function') throw wrong('retry(options, attempt): attempt must be a function');
    const { max = 3, delay_ms = 0, factor = 2, max_delay_ms = 60000, retry_if } = readOptions('retry', given, RETRY_OPTIONS);
    if (max > retriesMax) throw wrong(`retry: max lies between 1 and ${retriesMax}`);
    for (const wait of [delay_ms, factor, max_delay_ms]) if (!isFinite(wait) || wait < 0) throw wrong('retry: delays and factor must not be negative');
    for (let number = 1; ; number++) {
      try {
        return await attempt(number);
      } catch (error) {
        const hopeless = isFatal(error) || (error instanceof GraphError && error.call !== undefined && !error.retryable);
        if (hopeless || number >= max || (retry_if !== undefined && !(await retry_if(error, number)))) throw error;
        const wait = min(delay_ms * factor ** (number - 1), max_delay_ms);
        if (wait > 0) await sleep(wait);
      }
    }
  };

  const sleep = (ms) => {
    if (typeof ms !== 'number' || !isFinite(ms) || ms < 0 || ms > sleepMsMax) throw wrong(`sleep(ms): between 0 and ${sleepMsMax}`);
    return request('sleep', () => `"ms":${quote(floor(ms))}`, view({ __proto__: null }));
  };

  const phase = (title) => { currentPhase = cut(title, labelMax); send('phase', `{"title":${quote(currentPhase)}}`); };
  const show = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof NativeError) return `${value.name}: ${value.message}`;
    try { return stringify(value) ?? NativeString(value); } catch { return NativeString(value); }
  };
  const log = (...values) => {
    let line = '';
    for (let index = 0; index < values.length; index++) line += (index ? ' ' : '') + slice(show(values[index]), 0, logMax);
    send('log', `{"message":${quote(cut(line, logMax))}}`);
  };

  // xoshiro128**, seeded from the run: the same run draws the same numbers when it is replayed.
  const state = [settings.seed[0] | 0, settings.seed[1] | 0, settings.seed[2] | 0, settings.seed[3] | 1];
  const rotate = (value, by) => (value << by) | (value >>> (32 - by));
  const draw = () => {
    const drawn = imul(rotate(imul(state[1], 5), 7), 9) >>> 0;
    const shifted = state[1] << 9;
    state[2] ^= state[0]; state[3] ^= state[1]; state[1] ^= state[2]; state[0] ^= state[3];
    state[2] ^= shifted; state[3] = rotate(state[3], 11);
    return drawn;
  };
  const random = () => draw() / 4294967296;
  const uuid = () => {
    let hex = '';
    for (let index = 0; index < 4; index++) hex += padStart(numberToString(draw(), 16), 8, '0');
    const variant = numberToString(8 + (draw() & 3), 16);
    return `${slice(hex, 0, 8)}-${slice(hex, 8, 12)}-4${slice(hex, 13, 16)}-${variant}${slice(hex, 17, 20)}-${slice(hex, 20, 32)}`;
  };

  const deepFreeze = (value) => {
    if (isObject(value)) { for (const key of ownKeys(value)) deepFreeze(value[key]); freeze(value); }
    return value;
  };

  const structuredClone = (value) => {
    const json = stringify(value);
    return json === undefined ? undefined : parse(json);
  };

  const total = settings.tokens ?? null;
  const budget = freeze({
    total,
    spent: () => spent,
    remaining: () => total === null ? Infinity : total > spent ? total - spent : 0,
  });

  function RunDate(...parts) {
    if (!new.target) return NativeString(new NativeDate(clock));
    return construct(NativeDate, parts.length === 0 ? [clock] : parts, new.target);
  }
  RunDate.prototype = NativeDate.prototype;
  defineProperty(NativeDate.prototype, 'constructor', { value: RunDate, configurable: true, writable: true });
  assign(RunDate, { now: () => clock, parse: NativeDate.parse, UTC: NativeDate.UTC });

  for (const name of ['WeakRef', 'FinalizationRegistry', 'performance', 'Atomics', 'SharedArrayBuffer']) delete globalThis[name];
  defineProperty(Math, 'random', { value: random });
  defineProperty(globalThis, 'Date', { value: RunDate, configurable: true, writable: true });
  const graph = later('graph');
  const console = freeze({ log, info: log, warn: log, error: log, debug: log });
  const globals = {
    agent, tool, graph, workflow: graph, chat: later('chat'), parallel, pipeline, retry, sleep, phase, log, now: () => clock,
    random, uuid, budget, GraphError, structuredClone, console, args: deepFreeze(parse(settings.arguments)),
  };
  for (const name of ownKeys(globals)) defineProperty(globalThis, name, { value: globals[name], enumerable: true });

  // The result as JSON text. `undefined` becomes null.
  const encode = (value) => {
    let json;
    try { json = stringify(value); } catch (error) {
      throw refuse(`the result cannot be written as JSON: ${error.message}`, 'result_not_json');
    }
    return json === undefined ? 'null' : toWellFormed(json);
  };

  // What was thrown, whatever it was.
  const describe = (error) => {
    const told = { name: 'Error', message: '', stack: '', code: null };
    const tell = (key, read, max) => { try { const text = read(); if (text !== undefined && text !== null) told[key] = cut(text, max); } catch { /* its own getters threw */ } };
    if (error instanceof NativeError) {
      tell('name', () => error.name, 100);
      tell('message', () => error.message, errorMax);
      tell('stack', () => error.stack, 4000);
      if (error instanceof GraphError) tell('code', () => error.code, 60);
    } else {
      told.name = 'Thrown';
      tell('message', () => show(error), errorMax);
    }
    return `{"name":${quote(told.name)},"message":${quote(told.message)},"stack":${quote(told.stack)},"code":${quote(told.code)}}`;
  };

  return { deliver, encode, describe };
}
