// Trying a route: a form for what it takes, the same as a line for curl, and what the server answers.

import { copyable, el } from "./page.js";
import { example, needed, resolve, typeName } from "./schema.js";

const MOST_SHOWN = 200_000;
let held = "";

/** The key is kept here and nowhere else. */
export const key = { get: () => held, set: (value) => { held = value; } };

export const authorized = (headers = {}) => (held ? { ...headers, authorization: `Bearer ${held}` } : headers);

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function field(root, parameter, operation, changed) {
  const id = `${operation}-${parameter.in}-${parameter.name}`;
  const schema = resolve(root, parameter.schema);
  const given = parameter.example ?? (parameter.required ? example(root, parameter.schema) : "");
  const input = schema.enum && !schema.enum.some((value) => typeof value === "object")
    ? el("select", { id, onchange: changed }, parameter.required ? null : el("option", { value: "" }, "–"),
      schema.enum.map((value) => el("option", { value }, String(value))))
    : el("input", { id, type: schema.format === "binary" ? "file" : null, oninput: changed, autocomplete: "off", spellcheck: "false", placeholder: typeName(root, schema).replace(" | null", "") });
  if (input.type !== "file") input.value = given;
  const name = el("label", { for: id }, el("code", {}, parameter.name), parameter.required ? el("span", { class: "required" }, "required") : null);
  return { parameter, input, row: el("div", { class: "input" }, name, input) };
}

/** The fields of a body that is a form, such as one with a file. */
function parts(root, content) {
  const schema = resolve(root, content?.["multipart/form-data"]?.schema);
  const entries = Object.entries(schema.properties ?? {});
  return entries.map(([name, one]) => ({ name, in: "form", schema: one, required: schema.required?.includes(name) }));
}

/** The request as the form stands. */
function request(path, method, inputs, media, body) {
  let target = path;
  const query = new URLSearchParams();
  const headers = {};
  const form = inputs.filter(({ parameter }) => parameter.in === "form").map(({ parameter, input }) => [parameter.name, input]);
  for (const { parameter, input } of inputs) {
    const value = input.value;
    if (parameter.in === "path") target = target.replace(`{${parameter.name}}`, encodeURIComponent(value));
    else if (value === "") continue;
    else if (parameter.in === "query") query.set(parameter.name, value);
    else if (parameter.in === "header") headers[parameter.name] = value;
  }
  if (query.size) target += `?${query}`;
  if (media) headers.accept = media;
  if (body !== null) headers["content-type"] = "application/json";
  return { url: location.origin + target, method: method.toUpperCase(), headers, body, form };
}

/** What `fetch` sends. */
function payload({ body, form }) {
  if (!form.length) return body ?? undefined;
  const data = new FormData();
  for (const [name, input] of form) data.append(name, input.type === "file" ? input.files[0] ?? "" : input.value);
  return data;
}

function curl({ url, method, headers, body, form }) {
  const stream = headers.accept?.includes("event-stream") ? " -N" : "";
  const verb = method === "GET" ? "" : ` -X ${method}`;
  const parts = [`curl${stream}${verb} ${quoted(url)}`];
  // The key itself never stands in a line that is copied.
  if (held) parts.push(`-H "Authorization: Bearer $BATON_KEY"`);
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== null) parts.push(`-d ${quoted(body)}`);
  for (const [name, input] of form) {
    parts.push(`-F ${quoted(`${name}=${input.type === "file" ? `@${input.files[0]?.name ?? "FILE"}` : input.value}`)}`);
  }
  return parts.join(" \\\n  ");
}

/** Text as it arrives; JSON is laid out when it is there as a whole. */
async function show(response, output) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    text = (text + part.value).slice(0, MOST_SHOWN);
    output.textContent = text;
  }
  if (response.headers.get("content-type")?.includes("json")) {
    try { output.textContent = JSON.stringify(JSON.parse(text), null, 2); } catch { /* It is shown as it came. */ }
  }
}

export function trial(root, path, method, operation) {
  const line = { refresh() {} };
  const changed = () => line.refresh();
  const content = resolve(root, operation.requestBody).content;
  const taking = [...(operation.parameters ?? []).map((one) => resolve(root, one)), ...parts(root, content)];
  const inputs = taking.map((one) => field(root, one, operation.operationId, changed));
  const taken = content?.["application/json"];
  const id = `${operation.operationId}-body`;
  const body = taken && el("textarea", { id, rows: 8, spellcheck: "false", oninput: changed });
  if (body) body.value = JSON.stringify(example(root, taken.schema, needed), null, 2);
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
  const forms = Object.keys(resolve(root, success).content ?? {});
  const media = forms.length > 1 && el("select", { id: `${id}-accept`, onchange: changed }, forms.map((form) => el("option", {}, form)));
  const now = () => request(path, method, inputs, media && media.value, body ? body.value : null);
  const { block, refresh } = copyable(() => curl(now()), "the line for curl");
  line.refresh = refresh;

  const status = el("p", { class: "answer", role: "status" });
  const output = el("code");
  const answer = el("pre", { tabindex: "0", "aria-label": "The answer", hidden: true }, output);
  let running = null;
  const send = el("button", { type: "submit" }, "Send");
  const run = async (event) => {
    event.preventDefault();
    if (running) { running.abort(); return; }
    running = new AbortController();
    send.textContent = "Stop";
    answer.hidden = true;
    output.textContent = "";
    status.textContent = "Sending…";
    try {
      const wanted = now();
      const { url, method: verb, headers } = wanted;
      const response = await fetch(url, { method: verb, headers: authorized(headers), body: payload(wanted), signal: running.signal });
      status.textContent = `${response.status} ${response.statusText}`;
      answer.hidden = response.status === 204;
      await show(response, output);
    } catch (error) {
      status.textContent += error.name === "AbortError" ? " – stopped" : ` ${error.message}`;
    } finally {
      running = null;
      send.textContent = "Send";
    }
  };
  return el("form", { class: "trial", onsubmit: run },
    inputs.map(({ row }) => row),
    media ? el("div", { class: "input" }, el("label", { for: media.id }, el("code", {}, "Accept")), media) : null,
    body ? el("div", { class: "input" }, el("label", { for: id }, "Body"), body) : null,
    block, el("div", { class: "row" }, send, status), answer);
}
