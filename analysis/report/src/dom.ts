// Elements from code only: text goes in as text, never as markup, so hostile names stay names.
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;
type Child = Node | string | null | undefined;

export function h(tag: string, attributes: Attributes = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (name === "value") (element as HTMLInputElement).value = String(value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

export function select(label: string, options: { value: string; text: string }[], value: string, change: (value: string) => void): HTMLElement {
  const box = h("select", { onchange: (event) => change((event.target as HTMLSelectElement).value) },
    ...options.map((o) => h("option", { value: o.value, selected: o.value === value }, o.text))) as HTMLSelectElement;
  box.value = value;
  return h("label", { class: "control" }, h("span", {}, label), box);
}

export function table(caption: string, head: string[], rows: (string | Node)[][], numeric: boolean[] = []): HTMLElement {
  const cls = (i: number) => (numeric[i] ? "num" : undefined);
  return h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, ...head.map((t, i) => h("th", { scope: "col", class: cls(i) }, t)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((c, i) =>
        i === 0 ? h("th", { scope: "row", class: cls(i) }, c) : h("td", { class: cls(i) }, c)))))));
}

export function download(name: string, text: string): void {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name }) as HTMLAnchorElement;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A leading = + - @ would run as a formula in a spreadsheet; such text gets a quote in front.
export function csv(head: string[], rows: (string | number | null)[][]): string {
  const cell = (value: string | number | null): string => {
    if (value === null) return "";
    if (typeof value === "number") return String(value);
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
