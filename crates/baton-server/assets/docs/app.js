// Draws the description of the API: contents, groups, routes. A route is drawn when it is first opened.

import { copyable, el, inline, paragraphs } from "./page.js";
import { described, example, fieldLine, resolve } from "./schema.js";
import { authorized, key, trial } from "./trial.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const at = (id) => document.getElementById(id);

/** All routes of the document, by group. */
function grouped(root) {
  const groups = new Map((root.tags ?? []).map((tag) => [tag.name, { tag, routes: [] }]));
  for (const [path, item] of Object.entries(root.paths)) {
    for (const method of METHODS.filter((one) => item[one])) {
      const operation = item[method];
      const name = operation.tags?.[0] ?? "other";
      if (!groups.has(name)) groups.set(name, { tag: { name }, routes: [] });
      groups.get(name).routes.push({ path, method, operation, id: `op-${operation.operationId}` });
    }
  }
  return [...groups.values()].filter(({ routes }) => routes.length);
}

function parameters(root, operation) {
  const all = (operation.parameters ?? []).map((one) => resolve(root, one));
  if (!all.length) return null;
  return [el("h4", {}, "Parameters"), el("dl", { class: "fields" }, all.map((one) => {
    const place = one.in === "path" ? "" : `${one.in}: `;
    return fieldLine(root, place + one.name, one.schema, { required: one.required, description: one.description, isParameter: true });
  }))];
}

function body(root, operation) {
  const content = resolve(root, operation.requestBody).content;
  if (!content) return null;
  return [el("h4", {}, "Body"), Object.entries(content).map(([media, { schema }]) => [
    el("p", {}, el("code", {}, media)), described(root, schema),
  ])];
}

function answer(root, [status, given]) {
  const response = resolve(root, given);
  const content = Object.entries(response.content ?? {});
  const isProblem = content.some(([media]) => media === "application/problem+json");
  const line = [el("span", { class: `status s${status[0]}` }, status), " ", inline(response.description ?? "")];
  if (isProblem || !content.length) return el("p", { class: "response" }, line);
  const shown = content.map(([media, { schema }]) => [
    el("p", {}, el("code", {}, media)), described(root, schema),
    media.endsWith("json") ? copyable(() => JSON.stringify(example(root, schema), null, 2), "the example").block : null,
  ]);
  return el("details", { class: "response" }, el("summary", {}, line, " ", el("code", {}, content.map(([media]) => media).join(", "))), shown);
}

/** What the route says itself, and what every route may answer, folded away. */
function responses(root, operation) {
  const all = Object.entries(operation.responses);
  const usual = all.filter(([, given]) => given.$ref);
  const own = all.filter(([, given]) => !given.$ref);
  const statuses = usual.map(([status]) => status).join(" ");
  return [el("h4", {}, "Answers"), own.map((one) => answer(root, one)),
    usual.length ? el("details", { class: "response" }, el("summary", {}, `Refused as on other routes: ${statuses}`),
      usual.map((one) => answer(root, one))) : null];
}

function route(root, { path, method, operation, id }) {
  const permission = operation["x-permission"];
  const inner = el("div", { class: "inner" });
  const draw = () => {
    if (!element.open || inner.childElementCount) return;
    inner.append(...[
      paragraphs(operation.description), parameters(root, operation), body(root, operation), responses(root, operation),
      el("h4", {}, "Try it"), trial(root, path, method, operation),
    ].flat(Infinity).filter(Boolean));
  };
  const element = el("details", { class: "route", id, ontoggle: draw },
    el("summary", {},
      el("span", { class: `method ${method}` }, method.toUpperCase()), el("code", { class: "path" }, broken(path)),
      el("span", { class: "permission" }, permission),
      el("span", { class: "headline" }, inline(operation.summary ?? ""))),
    inner);
  return element;
}

/** A path that may be broken before each slash and nowhere else. */
const broken = (path) => path.split(/(?=\/)/).flatMap((part) => [part, el("wbr")]);

function contents(groups) {
  const link = ({ path, method, id }) => el("li", { "data-of": id },
    el("a", { href: `#${id}` }, el("span", { class: `method ${method}` }, method.toUpperCase()), el("span", {}, broken(path.replace("/api/v1", "")))));
  const entries = groups.map(({ tag, routes }) => el("div", { "data-of": `group-${tag.name}` },
    el("h2", {}, el("a", { href: `#group-${tag.name}` }, tag.name)), el("ul", {}, routes.map(link))));
  return [...entries, el("h2", {}, el("a", { href: "#problems" }, "problems"))];
}

function draw(root) {
  const groups = grouped(root);
  at("version").textContent = root.info.version;
  at("intro").replaceChildren(...paragraphs(root.info.description));
  at("nav").replaceChildren(...contents(groups));
  at("groups").replaceChildren(...groups.map(({ tag, routes }) => el("section", { id: `group-${tag.name}`, class: "group" },
    el("h2", {}, tag.name), paragraphs(tag.description), routes.map((one) => route(root, one)))));
  at("state").textContent = "";
  find();
  go();
}

/** Shows only routes that have every word of the filter in them. */
function find() {
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const hide = (element, isHidden) => {
    element.hidden = isHidden;
    document.querySelector(`[data-of="${element.id}"]`).hidden = isHidden;
  };
  let shown = 0;
  for (const element of document.querySelectorAll(".route")) {
    const text = element.querySelector("summary").textContent.toLowerCase();
    hide(element, !words.every((word) => text.includes(word)));
    shown += element.hidden ? 0 : 1;
  }
  for (const group of document.querySelectorAll(".group")) hide(group, !group.querySelector(".route:not([hidden])"));
  if (words.length) at("state").textContent = shown ? `${shown} ${shown === 1 ? "route" : "routes"}` : "No route has these words.";
  else if (at("groups").childElementCount) at("state").textContent = "";
}

/** Opens what the address names. */
function go() {
  const target = location.hash && at(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.matches("details")) target.open = true;
  target.scrollIntoView();
}

async function load() {
  at("state").textContent = "Loading…";
  const response = await fetch("/openapi.json", { headers: authorized() }).catch((error) => ({ status: 0, statusText: error.message }));
  at("state").textContent = "";
  at("sign-in").hidden = response.status !== 401;
  if (response.ok) {
    at("key").value = "";
    draw(await response.json());
    return;
  }
  if (response.status !== 401) {
    at("state").textContent = `The description cannot be read: ${response.status || ""} ${response.statusText}`;
    return;
  }
  at("refusal").textContent = key.get() ? "The server does not know this key." : "";
  if (key.get()) at("key").select();
}

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  key.set(at("key").value.trim());
  load();
});
at("filter").addEventListener("input", find);
at("nav").addEventListener("click", (event) => {
  if (event.target.closest("a") && matchMedia("(max-width: 60rem)").matches) at("contents").open = false;
});
addEventListener("hashchange", go);
addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, textarea, select");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    at("filter").focus();
  }
  if (event.key === "Escape" && event.target === at("filter")) {
    at("filter").value = "";
    find();
  }
});
at("contents").open = matchMedia("(min-width: 60rem)").matches;
load();
