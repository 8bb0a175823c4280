// The status page: shows what the events say. Every name is set as text, never as markup.
"use strict";

const OLD_AFTER = 5000; // milliseconds without an event
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

let status = null;
let received = 0;
let lost = false;
const open = new Set();
const rows = new Map();

// Milliseconds as people say them, in the two largest units.
function time(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 1) return `${Math.floor(ms)}ms`;
  if (s < 10) return `${(ms / 1000).toFixed(1)}s`;
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${Math.floor(s / 60) % 60}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
}

function count(n) {
  return new Intl.NumberFormat("en", { notation: "compact" }).format(n);
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawing(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A line through the values, over the whole width.
function line(values, most, kind, label) {
  const svg = drawing("svg", { class: kind, viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": label });
  const x = (i) => (values.length < 2 ? 0 : (i / (values.length - 1)) * 100);
  const y = (v) => 97 - (v / Math.max(most, 1)) * 94;
  svg.append(drawing("path", { d: values.map((v, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`).join("") }));
  return svg;
}

function bar(gap, most) {
  const svg = drawing("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(drawing("rect", { class: "of", width: 100, height: 10 }));
  svg.append(drawing("rect", { class: "is", width: Math.max((gap / Math.max(most, 1)) * 100, 1), height: 10 }));
  return svg;
}

const key = (p) => JSON.stringify([p.process ?? "", p.role, p.worker, p.id]);
const called = (p) => (p.name && p.name !== p.id ? `${p.name} (${p.id})` : p.id);
const notable = (p) => p.held || p.physical?.held || (p.pinned && p.pinned.batches > 0);

function gapText(p) {
  if (p.held) return time(p.gap);
  if (p.physical?.held) return `${time(p.physical.gap)} (physical)`;
  return "none";
}

function heldBy(p) {
  if (!p.holders.length) return p.held ? "unknown" : "nobody";
  const first = p.holders[0];
  const more = p.holders.length - 1 + p.more_holders;
  return `${first.kind} ${first.label}` + (more ? `, and ${more} more` : "");
}

function where(p) {
  return `${p.role}, worker ${p.worker}` + (p.process ? `, ${p.process}` : "") + (p.frozen ? ", frozen" : "");
}

// What the filters let through.
function asked(p) {
  const name = $("by-name").value.trim().toLowerCase();
  const words = [p.name, ...p.ids, ...p.holders.map((h) => h.label)];
  return (!name || words.some((w) => w.toLowerCase().includes(name)))
    && (!$("by-role").value || p.role === $("by-role").value)
    && (!$("by-worker").value || String(p.worker) === $("by-worker").value)
    && (!$("by-process").value || p.process === $("by-process").value);
}

function details(p) {
  const cell = element("td", undefined, { colspan: 6, role: "cell" });
  const facts = element("dl");
  const fact = (name, value) => facts.append(element("dt", name), element("dd", value));
  fact("Requested", p.requested);
  fact("Applied", p.applied);
  if (p.upper !== null) fact("Sealed up to", p.upper);
  if (p.ids.length > 1) fact("Known as", p.ids.join(", "));
  if (p.physical) fact("Physical", p.physical.held ? `${time(p.physical.gap)} held, applied ${p.physical.applied}` : "not held");
  if (p.pinned) fact("Pinned", `${count(p.pinned.batches)} batches, ${count(p.pinned.updates)} updates`);
  if (p.queued && p.queued.instructions) fact("Queued", `${count(p.queued.instructions)} instructions, ${count(p.queued.batches)} batches`);
  cell.append(facts);
  const list = element("ul", undefined, { "aria-label": "Holders" });
  for (const h of p.holders) list.append(element("li", `${h.kind} ${h.label}, for ${time(h.age_seconds * 1000)}`));
  if (p.more_holders) list.append(element("li", `and ${p.more_holders} more`));
  cell.append(p.holders.length ? list : element("p", "Nobody is named as its holder."));
  return cell;
}

// A row that stays the same element while its point stays, so that the focus does too.
function row(k) {
  const known = rows.get(k);
  if (known) return known;
  // The roles stay when a phone's layout takes the table apart.
  const main = element("tr", undefined, { role: "row" });
  const more = element("tr", undefined, { class: "more", role: "row" });
  const button = element("button", "", { type: "button" });
  button.addEventListener("click", () => {
    if (!open.delete(k)) open.add(k);
    show();
  });
  const cells = ["Arrangement", "Gap", "Last 10 minutes", "Held for", "Held by", "Where"].map((head) => element("td", undefined, { "data-head": head, role: "cell" }));
  cells[0].append(button);
  cells[1].className = "gap";
  main.append(...cells);
  const made = { main, more, button, cells };
  rows.set(k, made);
  return made;
}

function showWorst() {
  const all = status.worst.filter(notable);
  const shown = all.filter(asked);
  const most = Math.max(...shown.map((p) => p.gap), 1);
  const body = $("worst").tBodies[0];
  const wanted = [];
  for (const p of shown) {
    const k = key(p);
    const { main, more, button, cells } = row(k);
    const expanded = open.has(k);
    button.textContent = called(p);
    button.setAttribute("aria-expanded", expanded);
    cells[1].replaceChildren(gapText(p), bar(p.gap, most));
    cells[2].replaceChildren(line(p.history, Math.max(...p.history), "spark", `at most ${time(Math.max(...p.history))} in the last ten minutes`));
    cells[3].textContent = p.stalled_seconds === null ? "not held" : time(p.stalled_seconds * 1000);
    cells[4].textContent = heldBy(p);
    cells[5].textContent = where(p);
    wanted.push(main);
    if (expanded) {
      more.replaceChildren(details(p));
      wanted.push(more);
    }
  }
  // Only what moved is moved: the rest keeps its focus.
  wanted.forEach((tr, i) => {
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] ?? null);
  });
  while (body.children.length > wanted.length) body.lastChild.remove();
  const keys = new Set(all.map(key));
  for (const k of rows.keys()) if (!keys.has(k)) { rows.delete(k); open.delete(k); }
  $("worst").hidden = !shown.length;
  $("none").hidden = Boolean(shown.length);
  $("none").textContent = all.length ? "Nothing that is held matches the filters." : "Nothing is held, and nothing is pinned.";
}

function showHeadline() {
  const worst = status.worst.find((p) => p.held && !p.frozen);
  const state = status.held > 0 ? "held" : "clear";
  $("headline").dataset.state = state;
  $("mark").textContent = state === "held" ? "⚠" : "✓";
  const n = status.held;
  const verdict = n > 0 ? `Held now: ${n} of ${status.published} arrangements, worst ${time(status.gap)}` : "All clear: nothing is held";
  if ($("verdict").textContent !== verdict) $("verdict").textContent = verdict;
  $("detail").textContent = worst
    ? `${called(worst)}, by ${heldBy(worst)}, for ${time((worst.stalled_seconds ?? 0) * 1000)}`
    : `${status.published} arrangements are published` + (status.frozen ? `, ${status.frozen} more are frozen` : "");
  document.title = n > 0 ? `⚠ ${n} held, ${time(status.gap)} – holdgap` : "✓ all clear – holdgap";
}

function showNotes() {
  const notes = [];
  for (const p of status.processes) {
    if (!p.up) notes.push(`✕ ${p.label} has ended, ${time(p.heartbeat_age_seconds * 1000)} ago: its last state is shown`);
    if (p.not_shown) notes.push(`${p.label}: ${p.not_shown} arrangements are not shown, its segment has no room for them`);
  }
  if (status.attached && !status.processes.length) notes.push("No process has a segment in the watched folders yet");
  if (status.unreadable) notes.push("Some files in the watched folders cannot be read: the exporter's log says which");
  $("notes").replaceChildren(...notes.map((text) => element("li", text)));
}

// The choices of a filter, those that there are and the one that is chosen.
function choices(select, values) {
  const wanted = ["", ...new Set([...values, select.value].filter(Boolean))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const known = [...select.options].map((o) => o.value);
  if (wanted.join("\n") === known.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...wanted.map((value) => element("option", value || "all", { value })));
  select.value = chosen;
}

function showPeaks() {
  const most = Math.max(...status.roles.flatMap((r) => r.peaks), 1);
  $("peaks").replaceChildren(...status.roles.map((r) => {
    const peak = Math.max(...r.peaks);
    const figure = element("figure");
    figure.append(element("figcaption", `${r.role}: at most ${time(peak)}`), line(r.peaks, most, "peak", `${r.role}, peak ${time(peak)}`));
    return figure;
  }));
}

function showFresh() {
  const age = Date.now() - received;
  const old = lost || age > OLD_AFTER;
  const fresh = $("fresh");
  fresh.toggleAttribute("data-old", old);
  if (!received) fresh.textContent = lost ? "The exporter does not answer" : "Waiting for the first look…";
  else if (old) fresh.textContent = `⚠ This is old: nothing was heard from the exporter for ${time(age)}`;
  else fresh.textContent = "Up to date";
}

function show() {
  if (status && status.worst) {
    showHeadline();
    showNotes();
    choices($("by-role"), status.worst.map((p) => p.role).concat(status.roles.map((r) => r.role)));
    choices($("by-worker"), status.worst.map((p) => String(p.worker)));
    choices($("by-process"), status.processes.map((p) => p.label));
    $("process-filter").hidden = !status.attached;
    showWorst();
    showPeaks();
  }
  showFresh();
}

let events = null;

function listen() {
  events?.close();
  events = new EventSource("/api/v1/events");
  events.onmessage = (event) => {
    status = JSON.parse(event.data);
    received = Date.now();
    lost = false;
    show();
  };
  events.onerror = () => { lost = true; showFresh(); };
}

listen();
// A browser keeps few connections to one host: a page that nobody sees gives its own up.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) listen();
  else { events.close(); events = null; }
});
setInterval(showFresh, 1000);
// After some errors a browser gives up by itself.
setInterval(() => { if (events?.readyState === EventSource.CLOSED) listen(); }, OLD_AFTER);
$("filters").addEventListener("input", show);
$("filters").addEventListener("submit", (event) => event.preventDefault());
