// The page's state lives in the URL's fragment, so a link shows what its sender saw.
export class State {
  private values = new URLSearchParams(location.hash.slice(1));
  get(key: string, fallback: string): string { return this.values.get(key) ?? fallback; }
  set(key: string, value: string, fallback = ""): void {
    if (value === fallback) this.values.delete(key);
    else this.values.set(key, value);
    history.replaceState(null, "", `#${this.values.toString()}`);
  }
  reload(): void { this.values = new URLSearchParams(location.hash.slice(1)); }
}
