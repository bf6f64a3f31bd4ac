// Schemas as people read them: a word for the type, a tree of fields, an example.

import { el, paragraphs } from "./page.js";

const DEEPEST = 6;

/** What a `$ref` stands for. */
export function resolve(root, schema) {
  for (let hops = 0; schema?.$ref && hops < 20; hops++) {
    schema = schema.$ref.slice(2).split("/").reduce((at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], root);
  }
  return schema ?? {};
}

/** The schema with everything that `allOf` brings, as one. */
function whole(root, schema) {
  schema = resolve(root, schema);
  if (!schema.allOf) return schema;
  const parts = [...schema.allOf, { ...schema, allOf: undefined }].map((part) => whole(root, part));
  return parts.reduce((all, part) => ({
    ...all, ...Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)),
    properties: { ...all.properties, ...part.properties },
    required: [...(all.required ?? []), ...(part.required ?? [])],
  }), {});
}

const choices = (schema) => schema.oneOf ?? schema.anyOf;
const kinds = (schema) => [schema.type ?? []].flat();

/** `string`, `array of Message`, `"stop" | "abort"`. */
export function typeName(root, schema) {
  if (!schema) return "any";
  const name = schema.$ref?.split("/").pop().replace(/^Listed_/, "list of ");
  const found = whole(root, schema);
  if (choices(found)) {
    const names = choices(found).map((one) => typeName(root, one));
    return [...new Set(names)].join(" | ");
  }
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (found.const !== undefined) return JSON.stringify(found.const);
  const types = kinds(found).map((type) => {
    if (type === "array") return `array of ${typeName(root, found.items)}`;
    if (type === "object") return name ?? "object";
    return found.format ? `${type} (${found.format})` : type;
  });
  return types.join(" | ") || name || "any";
}

/** What else is known about a value. */
function bounds(schema) {
  const known = [["minimum", "≥ "], ["maximum", "≤ "], ["minLength", "at least "], ["maxLength", "at most "], ["default", "default "]];
  return known.filter(([key]) => schema[key] !== undefined).map(([key, word]) => {
    const unit = key.endsWith("Length") ? " characters" : "";
    return `${word}${typeof schema[key] === "string" ? schema[key] : JSON.stringify(schema[key])}${unit}`;
  });
}

/** One line about a field or parameter, with what is said about it. */
export function fieldLine(root, name, schema, { required, description, isParameter } = {}) {
  const found = whole(root, schema);
  // That a parameter may be left out is said by its name not being required.
  const type = isParameter ? typeName(root, schema).replace(" | null", "") : typeName(root, schema);
  const facts = [type, ...bounds(found)].join(", ");
  return [
    el("dt", {}, el("code", {}, name), " ", el("span", { class: "type" }, facts),
      required ? el("span", { class: "required" }, "required") : null),
    el("dd", {}, paragraphs(description ?? schema?.description ?? found.description)),
  ];
}

/** All fields, one below the other; objects inside open on demand. */
export function fields(root, schema, depth = 0) {
  const found = whole(root, schema);
  if (choices(found)) {
    const forms = choices(found).filter((one) => whole(root, one).type !== "null");
    if (forms.length > 1) {
      const shown = forms.map((one, nth) => {
        const form = whole(root, one);
        const tree = fields(root, one, depth + 1);
        return el("li", {}, el("span", { class: "type" }, form.title ?? `Form ${nth + 1}: ${typeName(root, one)}`),
          paragraphs(form.description), tree);
      });
      return el("ul", { class: "forms" }, shown);
    }
    return fields(root, forms[0], depth);
  }
  if (found.type === "array") return fields(root, found.items, depth);
  const entries = Object.entries(found.properties ?? {});
  if (!entries.length || depth > DEEPEST) return null;
  return el("dl", { class: "fields" }, entries.map(([name, one]) => {
    const line = fieldLine(root, name, one, { required: found.required?.includes(name) });
    const inner = fields(root, one, depth + 1);
    if (inner) line[1].append(el("details", {}, el("summary", {}, "Fields"), inner));
    return line;
  }));
}

/** A value that fits. Examples of the document come first, then defaults, then the plainest of the type; `part` says which fields. */
export function example(root, schema, part = () => true, depth = 0) {
  const found = whole(root, schema);
  const given = found.example ?? found.examples?.[0] ?? found.default ?? found.const ?? found.enum?.[0];
  if (given !== undefined) return given;
  if (depth > DEEPEST) return null;
  if (choices(found)) return example(root, choices(found).find((one) => whole(root, one).type !== "null"), part, depth + 1);
  const type = kinds(found).find((one) => one !== "null");
  if (found.properties || type === "object") {
    const entries = Object.entries(found.properties ?? {}).filter(([name]) => part(name, found));
    return Object.fromEntries(entries.map(([name, one]) => [name, example(root, one, part, depth + 1)]));
  }
  if (type === "array") return [example(root, found.items, part, depth + 1)];
  if (type === "integer" || type === "number") return found.minimum ?? 0;
  if (type === "boolean") return false;
  return { uuid: "550e8400-e29b-41d4-a716-446655440000", "date-time": "2026-11-16T09:30:00Z" }[found.format] ?? (type ? "…" : {});
}

/** Only what has to be there. */
export const needed = (name, schema) => schema.required?.includes(name);

/** What is said about a schema, its fields, and an example of it. */
export function described(root, schema) {
  const found = whole(root, schema);
  return [el("p", { class: "type" }, typeName(root, schema)), paragraphs(found.description), fields(root, schema)];
}
