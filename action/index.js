"use strict";

// cli/action.ts
var import_node_crypto2 = require("node:crypto");
var import_node_fs2 = require("node:fs");

// cli/body.ts
var import_node_crypto = require("node:crypto");
var import_node_fs = require("node:fs");
var import_promises3 = require("node:fs/promises");
var import_node_path = require("node:path");

// src/texts/fill.ts
function fill([english, chinese], language2, write) {
  return (language2 === "zh-CN" ? chinese : english).replace(/\{(\w+)\}/g, (_, name) => write(name));
}
function listed(parts, language2) {
  return parts.join(language2 === "zh-CN" ? "\u3001" : ", ");
}

// src/texts/table/cli.ts
var cli = {
  "cli-colon": [": ", "\uFF1A"],
  "cli-semicolon": ["; ", "\uFF1B"],
  "cli-refused": ["refused", "\u88AB\u62D2\u7EDD"],
  "cli-unsent": ["unsent", "\u672A\u53D1\u51FA"],
  "cli-unanswered": ["unanswered", "\u6CA1\u6709\u5E94\u7B54"],
  "cli-address-wrong": ["the address of the relay is missing or wrong: it begins with http:// or https://", "\u6CA1\u6709\u5730\u5740\u6216\u5730\u5740\u4E0D\u6B63\u786E\uFF1A\u5E94\u4EE5 http:// \u6216 https:// \u5F00\u5934"],
  "cli-key-wrong": ["the API key is missing, or holds characters that no key has", "\u6CA1\u6709 API \u5BC6\u94A5\uFF0C\u6216\u5BC6\u94A5\u4E2D\u6709\u4E0D\u5141\u8BB8\u7684\u5B57\u7B26"],
  "cli-address-unset": ["no address of a relay: set RELAY_URL, or use --url", "\u6CA1\u6709\u5730\u5740\uFF1A\u8BF7\u8BBE\u7F6E RELAY_URL\uFF0C\u6216\u7528 --url \u6307\u5B9A"],
  "cli-key-unset": ["no API key: set RELAY_KEY, or use --api-key", "\u6CA1\u6709 API \u5BC6\u94A5\uFF1A\u8BF7\u8BBE\u7F6E RELAY_KEY\uFF0C\u6216\u7528 --api-key \u6307\u5B9A"],
  "cli-commands": ["the commands are {commands}: see relay --help", "\u53EF\u7528\u7684\u547D\u4EE4\u6709 {commands}\uFF1A\u8BE6\u89C1 relay --help"],
  "cli-no-such-command": [
    "there is no command {command}: the commands are {commands}, see relay --help",
    "\u6CA1\u6709 {command} \u8FD9\u4E2A\u547D\u4EE4\uFF1A\u53EF\u7528\u7684\u547D\u4EE4\u6709 {commands}\uFF0C\u8BE6\u89C1 relay --help"
  ],
  "cli-command-meant": [
    "there is no command {command}: did you mean relay {meant}? Otherwise see relay --help",
    "\u6CA1\u6709 {command} \u8FD9\u4E2A\u547D\u4EE4\uFF1A\u662F\u4E0D\u662F relay {meant}\uFF1F\u547D\u4EE4\u5217\u8868\u89C1 relay --help"
  ],
  "cli-options-wrong": ["{words}", "\u9009\u9879\u6709\u8BEF\uFF08{words}\uFF09\uFF1A\u8BE6\u89C1 relay --help"],
  "cli-option-belongs": ["--{option} belongs to {commands}", "--{option} \u53EA\u80FD\u7528\u4E8E {commands}"],
  "cli-too-many-words": ["too many words: put the text in quotes, and -f before each file", "\u53C2\u6570\u592A\u591A\uFF1A\u8BF7\u7ED9\u6587\u672C\u52A0\u5F15\u53F7\uFF0C\u5E76\u5728\u6BCF\u4E2A\u6587\u4EF6\u524D\u5199 -f"],
  "cli-send-what-where": ["where to? Write relay send <to> <text>", "\u53D1\u5230\u54EA\u91CC\uFF1F\u8BF7\u5199\u6210 relay send <\u76EE\u6807> <\u6587\u672C>"],
  "cli-status-of-what": ["of which delivery? Write relay status <delivery>", "\u67E5\u770B\u54EA\u6761\u6295\u9012\uFF1F\u8BF7\u5199\u6210 relay status <\u6295\u9012>"],
  "cli-backup-where": ["into which file? Write relay backup <file>", "\u4FDD\u5B58\u5230\u54EA\u4E2A\u6587\u4EF6\uFF1F\u8BF7\u5199\u6210 relay backup <\u6587\u4EF6>"],
  "cli-run-what": ["which command? Write relay run <beat> -- <command>", "\u8FD0\u884C\u4EC0\u4E48\u547D\u4EE4\uFF1F\u8BF7\u5199\u6210 relay run <\u5FC3\u8DF3> -- <\u547D\u4EE4>"],
  "cli-beat-or-ping": ["give a beat or --ping, one of them", "\u8BF7\u5728\u5FC3\u8DF3\u548C --ping \u4E2D\u6307\u5B9A\u4E00\u4E2A"],
  "cli-which-incident": ["which incident? Write relay {command} <incident>", "\u54EA\u4E2A\u4E8B\u4EF6\uFF1F\u8BF7\u5199\u6210 relay {command} <\u4E8B\u4EF6>"],
  "cli-option-key": ["--key must be 1 to 255 visible ASCII characters without blanks", "--key \u987B\u4E3A 1 \u5230 255 \u4E2A\u53EF\u89C1\u7684 ASCII \u5B57\u7B26\uFF0C\u4E0D\u542B\u7A7A\u683C"],
  "cli-option-seconds": ["--{option} must be a whole number of seconds", "--{option} \u987B\u4E3A\u6574\u6570\u79D2\u6570"],
  "cli-file-without-option": ["{file} is a file: write -f before each file", "{file} \u662F\u6587\u4EF6\uFF1A\u8BF7\u5728\u6BCF\u4E2A\u6587\u4EF6\u524D\u5199 -f"],
  "cli-nothing-to-send": ["nothing to send: give a text, a file, or pipe the text in", "\u6CA1\u6709\u8981\u53D1\u9001\u7684\u5185\u5BB9\uFF1A\u8BF7\u7ED9\u51FA\u6587\u672C\u6216\u6587\u4EF6\uFF0C\u6216\u7528\u7BA1\u9053\u4F20\u5165\u6587\u672C"],
  "cli-input-unreadable": ["cannot read the standard input", "\u65E0\u6CD5\u8BFB\u53D6\u6807\u51C6\u8F93\u5165"],
  "cli-not-utf8": [
    "the text is not UTF-8: convert it (chcp 65001 in cmd, else iconv -f gbk), or send it as a file with -f",
    "\u6587\u672C\u4E0D\u662F UTF-8\uFF1A\u8BF7\u5148\u8F6C\u6362\u7F16\u7801\uFF08cmd \u91CC\u7528 chcp 65001\uFF0C\u5176\u4ED6\u60C5\u51B5\u7528 iconv -f gbk\uFF09\uFF0C\u6216\u7528 -f \u4F5C\u4E3A\u6587\u4EF6\u53D1\u9001"
  ],
  "cli-no-file": ["{file} is not a file", "{file} \u4E0D\u662F\u6587\u4EF6"],
  "cli-file-shrank": ["{file} became shorter while it was read", "{file} \u5728\u8BFB\u53D6\u65F6\u53D8\u77ED\u4E86"],
  "cli-file-unreadable": ["cannot read {file} ({code})", "\u65E0\u6CD5\u8BFB\u53D6 {file}\uFF08{code}\uFF09"],
  "cli-file-unwritable": ["cannot write {file} ({code})", "\u65E0\u6CD5\u5199\u5165 {file}\uFF08{code}\uFF09"],
  "cli-demo": [
    `A bot is running here, connected to a simulator of QQ. No message leaves this machine.

  Send one (a second terminal)   {command}
  See it in the group \u201CBuilds\u201D   {chats}
  The page of the relay          {page}
  All that it keeps              {folder}

Ctrl+C ends it.`,
    `\u673A\u5668\u4EBA\u5DF2\u5728\u672C\u673A\u8FD0\u884C\uFF0C\u8FDE\u63A5\u7684\u662F\u5185\u7F6E\u7684 QQ \u6A21\u62DF\u5668\uFF0C\u6D88\u606F\u4E0D\u4F1A\u79BB\u5F00\u8FD9\u53F0\u673A\u5668\u3002

  \u5728\u53E6\u4E00\u4E2A\u7EC8\u7AEF\u91CC\u53D1\u4E00\u6761\u6D88\u606F   {command}
  \u5728\u7FA4\u804A\u91CC\u67E5\u770B               {chats}
  \u7BA1\u7406\u9875\u9762                   {page}
  \u5168\u90E8\u6570\u636E                   {folder}

\u6309 Ctrl+C \u7ED3\u675F\u3002`
  ],
  "cli-demo-page": [
    "only with Koishi's console: npx -p koishi-plugin-message-relay -p @koishijs/plugin-console relay demo",
    "\u9700\u8981 Koishi \u63A7\u5236\u53F0\uFF1Anpx -p koishi-plugin-message-relay -p @koishijs/plugin-console relay demo"
  ],
  "cli-demo-needs": [
    "the demo needs the package and Koishi: run npx koishi-plugin-message-relay demo",
    "\u6F14\u793A\u9700\u8981\u5B8C\u6574\u7684\u8F6F\u4EF6\u5305\u548C Koishi\uFF1A\u8BF7\u8FD0\u884C npx koishi-plugin-message-relay demo"
  ],
  "cli-demo-port": ["cannot listen on port {port} ({code}): set WEBHOOK_PORT to another one", "\u65E0\u6CD5\u76D1\u542C\u7AEF\u53E3 {port}\uFF08{code}\uFF09\uFF1A\u8BF7\u628A WEBHOOK_PORT \u8BBE\u4E3A\u522B\u7684\u7AEF\u53E3"],
  "cli-unreachable": ["cannot reach the relay ({cause})", "\u65E0\u6CD5\u8FDE\u63A5\u5230 message-relay\uFF08{cause}\uFF09"],
  "cli-connection-broke": ["the connection to the relay broke before it answered ({cause})", "\u8FDE\u63A5\u5728\u6536\u5230\u5E94\u7B54\u4E4B\u524D\u4E2D\u65AD\uFF08{cause}\uFF09"],
  "cli-no-answer": ["no answer within {seconds} seconds", "{seconds} \u79D2\u5185\u6CA1\u6709\u5E94\u7B54"],
  "cli-no-relay": [
    "the answer ({status}) is not that of a relay: check the address, and the path in it",
    "\u5E94\u7B54\uFF08{status}\uFF09\u4E0D\u662F\u6765\u81EA message-relay\uFF1A\u8BF7\u68C0\u67E5\u5730\u5740\u548C\u5176\u4E2D\u7684\u8DEF\u5F84"
  ],
  "cli-from-proxy": [
    "{status} {words}, not from the relay: check the address, and any proxy before it",
    "{status} {words}\uFF0C\u4E0D\u662F\u6765\u81EA message-relay\uFF1A\u8BF7\u68C0\u67E5\u5730\u5740\u548C\u524D\u9762\u7684\u53CD\u5411\u4EE3\u7406"
  ],
  "cli-denied": ["the API key is wrong or expired, or not allowed from this address", "API \u5BC6\u94A5\u4E0D\u6B63\u786E\u6216\u5DF2\u8FC7\u671F\uFF0C\u6216\u4E0D\u5141\u8BB8\u4ECE\u5F53\u524D\u5730\u5740\u4F7F\u7528"],
  "cli-earlier-try": ["an earlier try got no answer; the last one: {reason}", "\u5148\u524D\u7684\u4E00\u6B21\u5C1D\u8BD5\u6CA1\u6709\u5F97\u5230\u5E94\u7B54\uFF1B\u6700\u540E\u4E00\u6B21\uFF1A{reason}"],
  "cli-trying-again": ["{reason}; trying again in {seconds} s", "{reason}\uFF1B{seconds} \u79D2\u540E\u91CD\u8BD5"],
  "cli-still-trying": ["{reason}; still trying", "{reason}\uFF1B\u4ECD\u5728\u91CD\u8BD5"],
  "cli-may-have-arrived": ["it may have arrived; repeat it with --key {key}, and it will not come twice", "\u6D88\u606F\u53EF\u80FD\u5DF2\u9001\u8FBE\uFF1B\u7528 --key {key} \u91CD\u53D1\uFF0C\u4E0D\u4F1A\u91CD\u590D"],
  "cli-repeat-the-rest": ["repeat it with --key {key}, and it goes only where nothing has arrived", "\u7528 --key {key} \u91CD\u53D1\uFF0C\u53EA\u4F1A\u53D1\u5F80\u6CA1\u6709\u9001\u8FBE\u7684\u76EE\u6807"],
  "cli-send-the-rest": ["the rest has arrived, so send only this again", "\u5176\u4F59\u7684\u5DF2\u9001\u8FBE\uFF0C\u53EA\u9700\u91CD\u53D1\u8FD9\u4E00\u90E8\u5206"],
  "cli-repeat-later": ["repeat it later with --key {key}, and it will not come twice", "\u8BF7\u7A0D\u540E\u7528 --key {key} \u91CD\u53D1\uFF0C\u4E0D\u4F1A\u91CD\u590D"],
  "cli-progress": ["{percent}% of {size} MB", "{percent}%\uFF0C\u5171 {size} MB"],
  "cli-saved": ["{file}: {size} MB; it holds API keys and messages, so guard it", "{file}\uFF1A{size} MB\uFF1B\u5176\u4E2D\u6709 API \u5BC6\u94A5\u548C\u6D88\u606F\uFF0C\u8BF7\u59A5\u5584\u4FDD\u7BA1"],
  "cli-nobody-told": ["nobody is told of this run: {reason}", "\u8FD9\u6B21\u8FD0\u884C\u4E0D\u4F1A\u4E0A\u62A5\uFF1A{reason}"],
  "cli-start-not-told": ["the relay was not told of the start: {reason}", "\u6CA1\u80FD\u4E0A\u62A5\u5F00\u59CB\uFF1A{reason}"],
  "cli-end-not-told": ["the relay was not told of the exit status {status}: {reason}", "\u6CA1\u80FD\u4E0A\u62A5\u9000\u51FA\u7801 {status}\uFF1A{reason}"],
  "cli-cannot-run": ["cannot run {command} ({code})", "\u65E0\u6CD5\u8FD0\u884C {command}\uFF08{code}\uFF09"]
};

// src/errors.ts
function codeOf(error) {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

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

// cli/texts.ts
var language = "en-US";
function spoken() {
  return language;
}
function say2(id, ...[values]) {
  const given = values ?? {};
  return fill(cli[id], language, (name) => {
    const value = given[name];
    return Array.isArray(value) ? listed(value.map(String), language) : String(value);
  });
}

// cli/client.ts
var exits = { sent: 0, accepted: 0, refused: 1, unsent: 2, unanswered: 3, usage: 64, denied: 77 };
var severity = ["denied", "usage", "unanswered", "refused", "unsent", "accepted", "sent"];
var UsageError = class extends Error {
  constructor(message2, outcome = "usage") {
    super(message2);
    this.outcome = outcome;
  }
  outcome;
};
var ConnectionError = class extends Error {
  /** @param mayHaveArrived whether the whole request may have reached the relay */
  constructor(cause, mayHaveArrived) {
    const reason = cause.message || ("code" in cause ? String(cause.code) : cause.name);
    super(say2(mayHaveArrived ? "cli-connection-broke" : "cli-unreachable", { cause: reason }));
    this.mayHaveArrived = mayHaveArrived;
  }
  mayHaveArrived;
};
function parseServer(given = "", key = "") {
  const url = given.trim();
  if (!/^https?:/i.test(url) || !URL.canParse(url)) throw new UsageError(say2("cli-address-wrong"));
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError(say2("cli-key-wrong"));
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
    headers: { "accept": "application/json", "accept-language": spoken(), "authorization": `Bearer ${key}`, ...headers, ...length }
  });
  const limit = idleTimeout + wait * 1e3;
  request.setTimeout(limit, () => request.destroy(new Error(say2("cli-no-answer", { seconds: limit / 1e3 }))));
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
var noRelay = (status) => new UsageError(say2("cli-no-relay", { status }));
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
    const msg2 = status === 401 ? say2("cli-denied") : parsed.msg;
    return { status, headers: response.headers, msg: msg2, data: fieldsOf(parsed.data ?? parsed.error) };
  }
  if (status < 400) throw noRelay(status);
  const msg = say2("cli-from-proxy", { status, words: response.statusMessage ?? "" });
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
  return { outcome, msg: failed.map(({ target, msg }) => [target, msg].filter(Boolean).join(say2("cli-colon"))).join(say2("cli-semicolon")), data };
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
async function send(server, message2, patience, note) {
  const { to, body, key, thread, urgent, at, wait } = message2;
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
      return { ...result, outcome: "unanswered", msg: say2("cli-earlier-try", { reason: result.msg }) };
    }
    note(say2("cli-trying-again", { reason: result.msg, seconds: Math.ceil(pause) }));
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
  if (!found.isFile()) throw new UsageError(say2("cli-no-file", { file: path }));
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
  if (rest > 0) throw new UsageError(say2("cli-file-shrank", { file: path }));
}
function unreadable(path, error) {
  return new UsageError(say2("cli-file-unreadable", { file: path, code: codeOf(error) }));
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
  const message2 = { to, body: await makeBody(Buffer.from(text), files), key: (0, import_node_crypto2.randomUUID)(), thread, urgent: flag("urgent") };
  return await send(server, message2, 60, (line) => process.stdout.write(`relay: ${printable(line)}
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
