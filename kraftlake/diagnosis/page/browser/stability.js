"use strict";

// How much happened in each span of the range: bars for each kind, those above the level of the others marked.

const BARS = 46;

class StabilityBars {
  // `onMove` is called with the first moment of the span that was chosen.
  constructor(history, onMove) {
    this.history = history;
    this.of = history.stability;
    this.onMove = onMove;
    this.kinds = (this.of?.kinds ?? []).map((kind) => ({ ...kind, canvas: document.createElement("canvas") }));
    this.items = this.kinds.map((kind) => this._item(kind));
    const legend = this.items.length
      ? `A bar is ${durationOf(this.of.size)}. Pale is what was orderly; red are bars above the level of all.`
      : "Nothing that counts here has a time.";
    this.items.unshift(element("li", "nothing", legend));
  }

  _item(kind) {
    const total = kind.spans.reduce((sum, [, count]) => sum + count, 0);
    const orderly = kind.spans.reduce((sum, [, , count]) => sum + count, 0);
    const unusual = kind.spans.filter((span) => this._isUnusual(kind, span)).length;
    const length = durationOf(this.of.size);
    const words = `${grouped(total)}, ${grouped(orderly)} orderly` + (unusual ? `; unusual in ${grouped(unusual)}` : "");
    kind.canvas.setAttribute("role", "img");
    kind.canvas.setAttribute("aria-label", `${kind.kind} by ${length}: ${words}`);
    kind.canvas.addEventListener("mousemove", (event) => (kind.canvas.title = this._tooltip(kind, this._spanAt(event))));
    kind.canvas.addEventListener("click", (event) => this._goTo(this._spanAt(event)));
    const head = element("div", "bars", null, element("strong", "", kind.kind),
      element("span", unusual ? "bad" : "", words));
    return element("li", "", null, head, kind.canvas);
  }

  _isUnusual(kind, [, count, orderly]) {
    return kind.level !== null && count - orderly > kind.level;
  }

  _spanAt(event) {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(this.of.count - 1, Math.floor(((event.clientX - left) / width) * this.of.count)));
  }

  _tooltip(kind, number) {
    const time = this.of.first + number * this.of.size, span = kind.spans.find(([one]) => one === number);
    const [, count, orderly] = span ?? [0, 0, 0], level = kind.level === null ? "" : `, level ${kind.level.toFixed(1)}`;
    return `${dateOf(time)} ${timeOf(time, false)}: ${grouped(count)}, ${grouped(orderly)} orderly${level}`;
  }

  _goTo(number) {
    const time = this.of.first + number * this.of.size, moment = this.history.times.findIndex((one) => one >= time);
    this.onMove(moment < 0 ? this.history.momentCount - 1 : moment);
  }

  draw(moment) {
    for (const kind of this.kinds) this._draw(kind, moment);
  }

  _draw(kind, moment) {
    const { first, size, count } = this.of, width = kind.canvas.parentElement.clientWidth - 18;
    const context = fitted(kind.canvas, width, BARS), most = Math.max(...kind.spans.map(([, all]) => all));
    const each = width / count, high = (value) => (value / most) * (BARS - 3);
    for (const span of kind.spans) {
      const [number, all, orderly] = span, x = number * each, wide = Math.max(1, each - (each > 4 ? 1 : 0));
      const top = Math.max(2, high(all)), low = all ? top * (orderly / all) : 0;
      context.fillStyle = colours.active;
      context.fillRect(x, BARS - low, wide, low);
      context.fillStyle = this._isUnusual(kind, span) ? colours.offline : colours.lagging;
      context.fillRect(x, BARS - top, wide, top - low);
    }
    context.fillStyle = colours.line;
    context.fillRect(0, BARS - 1, width, 1);
    const time = this.history.times[moment];
    if (time < 0) return;
    context.fillStyle = colours.text;
    context.fillRect(Math.min(width - 1, ((time - first) / size / count) * width), 0, 1, BARS);
  }
}
