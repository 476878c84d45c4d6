"use strict";

// cli/action.ts
var import_node_crypto2 = require("node:crypto");
var import_node_fs2 = require("node:fs");

// cli/body.ts
var import_node_crypto = require("node:crypto");
var import_node_fs = require("node:fs");
var import_promises3 = require("node:fs/promises");
var import_node_path = require("node:path");

// cli/client.ts
var import_node_http = require("node:http");
var import_node_https = require("node:https");
var import_node_perf_hooks = require("node:perf_hooks");
var import_node_stream = require("node:stream");
var import_promises = require("node:stream/promises");
var import_consumers = require("node:stream/consumers");
var import_promises2 = require("node:timers/promises");

// src/lib/json.ts
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return void 0;
  }
}
var [space = 0, quote = 0, backslash, comma, openArray, closeArray, openObject, closeObject] = Buffer.from(' "\\,[]{}');

// src/lib/retry-after.ts
function readRetryAfter(text) {
  const wait = /^[\d.]+$/.test(text) ? Number(text) * 1e3 : Date.parse(text) - Date.now();
  return wait > 0 ? wait : void 0;
}

// src/lib/shape.ts
var isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
var fieldsOf = (value) => isObject(value) ? value : {};
var objectsIn = (value) => Array.isArray(value) ? value.filter(isObject) : [];

// cli/client.ts
var exits = { sent: 0, accepted: 0, refused: 1, unsent: 2, unanswered: 3, usage: 64, denied: 77 };
var severity = ["denied", "usage", "unanswered", "refused", "unsent", "accepted", "sent"];
var UsageError = class extends Error {
  constructor(message, outcome = "usage") {
    super(message);
    this.outcome = outcome;
  }
  outcome;
};
var ConnectionError = class extends Error {
  /** @param mayHaveArrived whether the whole request may have reached the relay */
  constructor(cause, mayHaveArrived) {
    const reason = cause.message || ("code" in cause ? String(cause.code) : cause.name);
    super(`${mayHaveArrived ? "the connection to the relay broke before it answered" : "cannot reach the relay"} (${reason})`);
    this.mayHaveArrived = mayHaveArrived;
  }
  mayHaveArrived;
};
function parseServer(given = "", key = "") {
  const url = given.trim();
  if (!/^https?:/i.test(url) || !URL.canParse(url)) throw new UsageError("the address of the relay is missing or wrong: it begins with http:// or https://");
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError("the API key is missing, or holds characters that no key has");
  return { url: url.replace(/[?#].*$/, "").replace(/\/+$/, ""), key };
}
var idleTimeout = 12e4;
async function call({ url, key }, { method, path, headers, body, save }, wait = 0) {
  const isSecure = /^https:/i.test(url);
  const reached = { connected: false, written: false };
  async function* chunks() {
    if (body) yield* body.chunks();
    reached.written = true;
  }
  const length = body && { "content-type": body.type, "content-length": body.length };
  const request = (isSecure ? import_node_https.request : import_node_http.request)(url + path, {
    method,
    agent: false,
    headers: { accept: "application/json", authorization: `Bearer ${key}`, ...headers, ...length }
  });
  const limit = idleTimeout + wait * 1e3;
  request.setTimeout(limit, () => request.destroy(new Error(`no answer within ${limit / 1e3} seconds`)));
  request.once("socket", (socket) => socket.once(isSecure ? "secureConnect" : "connect", () => {
    reached.connected = true;
  }));
  try {
    return await new Promise((resolve, reject) => {
      request.once("response", (response) => void readAnswer(response, save).then(resolve, reject));
      request.once("error", reject);
      (0, import_promises.pipeline)(import_node_stream.Readable.from(chunks(), { highWaterMark: 1 }), request).catch(reject);
    });
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error;
    throw new ConnectionError(error, reached.connected && reached.written);
  } finally {
    request.on("error", () => void 0);
    request.destroy();
  }
}
var noRelay = (status) => new UsageError(`the answer (${status}) is not that of a relay: check the address, and the path in it`);
async function readAnswer(response, save) {
  const status = response.statusCode ?? 0;
  if (save && status === 200) {
    if (response.headers["content-type"] !== "application/vnd.sqlite3") throw noRelay(status);
    await save(response);
    return { status, headers: response.headers, msg: "", data: {} };
  }
  const text = await (0, import_consumers.text)(response);
  const parsed = parseJson(text);
  if (isObject(parsed) && typeof parsed.msg === "string" && "data" in parsed && (status >= 400 || parsed.code === 0)) {
    const msg2 = status === 401 ? "the API key is wrong or expired, or not allowed from this address" : parsed.msg;
    return { status, headers: response.headers, msg: msg2, data: fieldsOf(parsed.data ?? parsed.error) };
  }
  if (status < 400) throw noRelay(status);
  const msg = `${status} ${response.statusMessage ?? ""}, not from the relay: check the address, and any proxy before it`;
  if (status >= 500) throw new Error(msg);
  return { status, headers: {}, msg, data: {} };
}
function outcomeOf(status) {
  if (status < 300) return status === 202 ? "accepted" : "sent";
  if (status === 401 || status === 403) return "denied";
  if (status === 409) return "unanswered";
  if (status === 408 || status === 429 || status === 507) return "unsent";
  return status < 500 ? "usage" : "unanswered";
}
function judge({ status, headers, msg, data }) {
  const parts = [...objectsIn(data.deliveries), ...objectsIn(data.results)];
  if (status < 300 && parts.length > 0) return judgeParts(parts, data);
  return { outcome: readOutcome(headers["relay-outcome"]) ?? outcomeOf(status), msg, data };
}
function judgeParts(parts, data) {
  const outcomes = parts.map(judgePart);
  const outcome = severity.find((each) => outcomes.includes(each)) ?? "unanswered";
  const failed = parts.flatMap(leavesOf).filter((part) => part.success === false);
  return { outcome, msg: failed.map(({ target, msg }) => [target, msg].filter(Boolean).join(": ")).join("; "), data };
}
function leavesOf(part) {
  const results = objectsIn(part.results);
  return results.length > 0 ? results.map((result) => ({ target: part.target, ...result })) : [part];
}
function judgePart(part) {
  const results = objectsIn(part.results);
  if (results.length > 0) return judgeParts(results, part).outcome;
  if (part.success === true) return "state" in part ? "accepted" : "sent";
  return readOutcome(part.outcome) ?? outcomeOf(Number(part.code ?? 500));
}
function readOutcome(value) {
  return severity.find((each) => each === value);
}
var longestPause = 3600;
var temporary = /* @__PURE__ */ new Set([408, 409, 429, 503]);
async function send(server, message, patience, note) {
  const { to, body, key, thread, urgent, at, wait } = message;
  const query = new URLSearchParams({ ...thread && { thread }, ...urgent && { urgent: "1" }, ...at && { send_at: at } });
  const path = `/send/${to.split(",").map((word) => encodeURIComponent(word.trim())).join()}${query.size > 0 ? `?${query.toString()}` : ""}`;
  const headers = { "idempotency-key": key, ...wait !== void 0 && { prefer: `respond-async, wait=${wait}` } };
  const end = import_node_perf_hooks.performance.now() + Math.max(patience, wait ?? 0) * 1e3;
  let mayHaveArrived = false;
  for (let tries = 0; ; tries++) {
    const { result, isConclusive, isTemporary, after } = await attempt(server, { method: "POST", path, headers, body }, wait);
    mayHaveArrived = !isConclusive && (mayHaveArrived || result.outcome === "unanswered");
    const pause = after ?? Math.min(0.5 * 2 ** tries, 10) * (1 + Math.random() / 4);
    if (!isTemporary || import_node_perf_hooks.performance.now() + pause * 1e3 > end) {
      if (!mayHaveArrived || result.outcome === "unanswered") return result;
      return { ...result, outcome: "unanswered", msg: `an earlier try got no answer; the last one: ${result.msg}` };
    }
    note(`${result.msg}; trying again in ${Math.ceil(pause)} s`);
    await (0, import_promises2.setTimeout)(pause * 1e3);
  }
}
async function attempt(server, request, wait) {
  try {
    const answer = await call(server, request, wait);
    const { status, headers, data } = answer;
    const result = judge(answer);
    const after = headers["retry-after"];
    return {
      result,
      isConclusive: status < 300 || result.outcome === "refused",
      isTemporary: temporary.has(status) || objectsIn(data.deliveries).some(({ code }) => temporary.has(code)),
      // A proxy may have written it.
      ...after !== void 0 && { after: Math.min(Math.max((readRetryAfter(after) ?? 0) / 1e3, 1), longestPause) }
    };
  } catch (error) {
    if (error instanceof UsageError) return { result: { outcome: error.outcome, msg: error.message, data: {} } };
    if (!(error instanceof ConnectionError)) throw error;
    return { result: { outcome: error.mayHaveArrived ? "unanswered" : "unsent", msg: error.message, data: {} }, isTemporary: true };
  }
}
function idsOf(data) {
  const parts = [data, ...objectsIn(data.deliveries)];
  const leaves = [...parts, ...parts.flatMap((part) => objectsIn(part.results))];
  const messages = leaves.flatMap(({ message_ids: ids }) => Array.isArray(ids) ? ids.map(String) : []);
  return { deliveries: parts.flatMap(({ delivery_id: id }) => typeof id === "string" ? [id] : []), messages: [...new Set(messages)] };
}
function printable(text) {
  return text.replace(new RegExp("\\p{Cc}+", "gu"), " ");
}

// cli/body.ts
async function makeBody(text, paths, progress) {
  if (paths.length === 0) return { type: "text/plain; charset=utf-8", length: text.length, chunks: () => [text] };
  const boundary = (0, import_node_crypto.randomUUID)();
  const head = (disposition, type) => Buffer.from(`--${boundary}\r
Content-Disposition: form-data; ${disposition}\r
Content-Type: ${type}\r
\r
`);
  const gap = Buffer.from("\r\n");
  const tail = Buffer.from(`--${boundary}--\r
`);
  const words = text.length > 0 ? [head('name="text"', "text/plain; charset=utf-8"), text, gap] : [];
  const files = await Promise.all(paths.map(async (path) => {
    const size = await sizeOf(path);
    return { path, size, head: head(`name="file"; filename="${escapeName((0, import_node_path.basename)(path))}"`, "application/octet-stream") };
  }));
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const length = [...words, ...files.flatMap((file) => [file.head, gap]), tail].reduce((sum, part) => sum + part.length, total);
  async function* chunks() {
    let done = 0;
    yield* words;
    for (const { path, size, head: head2 } of files) {
      yield head2;
      for await (const chunk of read(path, size)) {
        yield chunk;
        progress?.(done += chunk.length, total);
      }
      yield gap;
    }
    yield tail;
  }
  return { type: `multipart/form-data; boundary=${boundary}`, length, chunks };
}
async function sizeOf(path) {
  const found = await (0, import_promises3.stat)(path).catch((error) => {
    throw unreadable(path, error);
  });
  if (!found.isFile()) throw new UsageError(`${path} is not a file`);
  return found.size;
}
async function* read(path, size) {
  if (size === 0) return;
  let rest = size;
  const stream = (0, import_node_fs.createReadStream)(path, { end: size - 1 });
  try {
    for await (const chunk of stream) {
      rest -= chunk.length;
      yield chunk;
    }
  } catch (error) {
    throw unreadable(path, error);
  }
  if (rest > 0) throw new UsageError(`${path} became shorter while it was read`);
}
function unreadable(path, error) {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown failure";
  return new UsageError(`cannot read ${path} (${code})`);
}
function escapeName(name) {
  return name.replace(/["\r\n]/g, encodeURIComponent);
}

// cli/action.ts
var { env } = process;
function input(name) {
  return (env[`INPUT_${name.toUpperCase()}`] ?? "").trim();
}
function flag(name) {
  const value = input(name);
  if (/^true$/i.test(value)) return true;
  if (/^(?:false)?$/i.test(value)) return false;
  throw new UsageError(`${name} must be true or false`);
}
function command(name, text) {
  process.stdout.write(`::${name}::${text.replace(/%/g, "%25").replace(/\r/g, "%0D").replace(/\n/g, "%0A")}
`);
}
function setOutputs(values) {
  if (!env.GITHUB_OUTPUT) return;
  const delimiter = (0, import_node_crypto2.randomUUID)();
  (0, import_node_fs2.appendFileSync)(env.GITHUB_OUTPUT, Object.entries(values).map(([name, value]) => `${name}<<${delimiter}
${value}
${delimiter}
`).join(""));
}
var marks = { success: "\u2705 ", failure: "\u274C ", cancelled: "\u26AA " };
function describeJob() {
  const { GITHUB_REPOSITORY: repository, GITHUB_WORKFLOW: workflow, GITHUB_JOB: job, GITHUB_ACTOR: actor } = env;
  const { GITHUB_HEAD_REF: head, GITHUB_REF_NAME: ref } = env;
  const status = input("job_status");
  const attempt2 = Number(env.GITHUB_RUN_ATTEMPT) > 1 ? `/attempts/${env.GITHUB_RUN_ATTEMPT ?? ""}` : "";
  return [
    `${marks[status] ?? ""}[${repository ?? ""}] ${workflow ?? ""} / ${job ?? ""}: ${status}`,
    `${head || (ref ?? "")} \xB7 ${actor ?? ""}`,
    `${env.GITHUB_SERVER_URL ?? ""}/${repository ?? ""}/actions/runs/${env.GITHUB_RUN_ID ?? ""}${attempt2}`
  ].join("\n");
}
async function run() {
  const key = input("key");
  if (key) command("add-mask", key);
  const server = parseServer(input("url"), key);
  const isStatus = flag("status");
  const to = input("to");
  if (!to) throw new UsageError("to is missing: the target, such as group:123456");
  const text = [isStatus ? describeJob() : "", input("text")].filter(Boolean).join("\n");
  const files = input("file").split("\n").map((path) => path.trim()).filter(Boolean);
  if (!text && files.length === 0) throw new UsageError("nothing to send: give text, file or status: true");
  const thread = input("thread") || (isStatus ? `${env.GITHUB_REPOSITORY ?? ""}/runs/${env.GITHUB_RUN_ID ?? ""}` : void 0);
  const message = { to, body: await makeBody(Buffer.from(text), files), key: (0, import_node_crypto2.randomUUID)(), thread, urgent: flag("urgent") };
  return await send(server, message, 60, (line) => process.stdout.write(`relay: ${printable(line)}
`));
}
function report({ outcome, msg, data }) {
  const { deliveries, messages } = idsOf(data);
  process.exitCode = exits[outcome];
  if (exits[outcome] > 0) command("error", `${outcome}: ${msg}`);
  else process.stdout.write(`${printable([outcome, ...deliveries].join(" "))}
`);
  setOutputs({ delivery_id: deliveries.join(), outcome, message_ids: messages.join() });
}
void run().catch((error) => {
  const outcome = error instanceof UsageError ? error.outcome : "unsent";
  return { outcome, msg: error instanceof Error ? error.message : "failed", data: {} };
}).then(report);
