// Pieces of the page. Text is always text: nothing from the document becomes markup.

/** An element with attributes and children; `null` and `false` are left out. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** `code` and **strong** of a line of Markdown. The code of a problem leads to its explanation. */
export function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
    if (piece.startsWith("**")) return el("strong", {}, piece.slice(2, -2));
    if (!piece.startsWith("`")) return piece;
    const word = piece.slice(1, -1);
    const code = el("code", {}, word);
    const isProblem = /^[a-z_]+$/.test(word) && document.querySelector(`.problem#${word}`);
    return isProblem ? el("a", { href: `#${word}` }, code) : code;
  });
}

/** Paragraphs of Markdown. */
export function paragraphs(text) {
  return (text ?? "").trim().split(/\n\s*\n/).filter(Boolean).map((part) => el("p", {}, inline(part.replace(/\s*\n\s*/g, " "))));
}

/** A block of text with a button that copies it. `read` is asked when it is pressed. */
export function copyable(read, label) {
  const text = el("code", {}, read());
  const done = el("span", { class: "hidden", role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(read());
    button.textContent = "Copied";
    done.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; done.textContent = ""; }, 1500);
  };
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy ${label}`, onclick: copy }, "Copy");
  const block = el("div", { class: "block" }, el("pre", { tabindex: "0", "aria-label": label }, text), button, done);
  return { block, refresh: () => { text.textContent = read(); } };
}
