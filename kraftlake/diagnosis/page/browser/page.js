"use strict";

// Puts the parts together: the moment, what is selected, the search, the link, and the keys.

class Page {
  constructor(history) {
    this.history = history;
    this.moment = -1;
    this.topic = this.row = -1;
    this.frame = 0;
    readColours();
    this.timeline = new Timeline(history, (moment) => this.goTo(moment));
    this.matrix = new Matrix(history, (topic, row) => this.select(topic, row));
    this.panel = new Panel(history, (moment) => this.goTo(moment), (topic, row) => this.select(topic, row));
    this.search = document.getElementById("search");
    this._head();
    this._listen();
    this.openLink();
    this.timeline.draw();
  }

  _head() {
    const { about } = this.history;
    const cluster = about.cluster ? `Cluster ${visible(about.cluster)}` : "A cluster of unknown id";
    document.title = cluster;
    document.getElementById("cluster").textContent = cluster;
    const range = `offsets ${grouped(about.from)} to ${grouped(about.to)}`;
    const events = counted(this.history.eventMoments.length, "event");
    document.getElementById("source").textContent = `${visible(about.source)} · ${range} · ${events}`;
    const skipped = counted(about.skipped, "record");
    setText("skipped", `Left out, as it can't be replayed: ${skipped}. What is shown is not all that happened.`);
    document.getElementById("skipped").hidden = !about.skipped;
    document.getElementById("made").textContent = `Made by kraftlake ${about.version}. Secrets are redacted.`;
    for (const button of document.querySelectorAll("#axis button")) {
      if (button.dataset.axis === "time") button.hidden = !this.history.hasTimes;
    }
  }

  // Shows a moment with the next frame; several calls before that draw once.
  goTo(moment) {
    this.moment = Math.min(Math.max(0, moment), this.history.momentCount - 1);
    this.update();
  }

  select(topic, row) {
    this.topic = topic;
    this.row = row;
    this.update(true);
  }

  update(reveal = false) {
    this.reveal = this.reveal || reveal;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const { history, matrix, panel, moment } = this;
    history.goTo(moment);
    matrix.topic = this.topic;
    matrix.row = this.row;
    matrix.rebuild();
    matrix.layOut();
    if (this.reveal && this.topic >= 0) matrix.reveal(this.topic, this.row);
    this.reveal = false;
    matrix.draw();
    this.timeline.show(moment);
    panel.show(moment, this.topic, this.row);
    this._drawMoment();
    this._writeLink();
  }

  _drawMoment() {
    const { history, moment } = this, time = history.times[moment];
    setText("time", time < 0 ? `offset ${grouped(history.offsets[moment])}` : timeOf(time));
    setText("date", [dateOf(time), time < 0 ? "" : zoneName()].filter(Boolean).join(" "));
    setText("offset", `offset ${grouped(history.offsets[moment])} · epoch ${grouped(history.epochs[moment])}`);
    const states = [0, 0, 0, 0];
    history.brokersNow.forEach((state) => states[state]++);
    tile("offline", history.counts.offline[moment]);
    tile("under", history.counts.under[moment]);
    tile("moving", history.counts.moving[moment]);
    tile("all", history.counts.there[moment]);
    setText("brokers-count", `${states[B_ACTIVE]} of ${states[B_ACTIVE] + states[B_FENCED] + states[B_SHUTTING_DOWN]}`);
    const unwell = [B_FENCED, B_SHUTTING_DOWN].filter((state) => states[state]);
    const words = unwell.map((state) => `${states[state]} ${BROKER_STATES[state]}`);
    setText("brokers-words", ["brokers active", ...words].join(", "));
    document.getElementById("brokers").classList.toggle("bad", states[B_FENCED] > 0);
    for (const button of document.querySelectorAll("[data-filter]")) {
      button.setAttribute("aria-pressed", String(button.dataset.filter === this.matrix.filter));
    }
  }

  // `#at=458&topic=foo&partition=3&search=bar&only=offline`; `at` may be a time too.
  openLink() {
    const { history } = this, link = new URLSearchParams(location.hash.slice(1));
    this.moment = this._momentOf(link.get("at"));
    history.goTo(this.moment);
    this.search.value = link.get("search") ?? "";
    this._setSearch();
    this._setFilter(link.get("only") ?? "all");
    const partition = link.get("partition"), rows = link.has("topic") ? history.rowsOfTopic(link.get("topic")) : [];
    this.row = rows.length === 1 ? rows[0] : rows.find((row) => String(history.rowPartitions[row]) === partition) ?? -1;
    this.topic = rows.length ? history.rowTopics[this.row >= 0 ? this.row : rows[0]] : -1;
    document.getElementById("unknown").hidden = !link.has("topic") || rows.length > 0;
    this.update(true);
  }

  // The moment that a link names: by an offset, a time (in UTC unless it names a zone), or the last one.
  _momentOf(at) {
    const { history } = this;
    if (!at) return history.momentCount - 1;
    if (/^-?\d+$/.test(at)) return history.momentOfOffset(Number(at));
    const iso = at.trim().replace(" ", "T"), hasZone = /z$|T.*[+-]\d\d:?\d\d$/i.test(iso);
    const time = Date.parse(hasZone || !iso.includes("T") ? iso : `${iso}Z`);
    return Number.isNaN(time) ? history.momentCount - 1 : history.momentOfTime(time);
  }

  _writeLink() {
    const { history } = this, link = new URLSearchParams({ at: history.offsets[this.moment] });
    if (this.topic >= 0) link.set("topic", history.topics[this.topic]);
    if (this.row >= 0) link.set("partition", history.rowPartitions[this.row]);
    if (this.search.value) link.set("search", this.search.value);
    if (this.matrix.filter !== "all") link.set("only", this.matrix.filter);
    clearTimeout(this.writing);
    // Browsers refuse to write the address many times a second.
    this.writing = setTimeout(() => {
      if (location.hash !== `#${link}`) window.history.replaceState(null, "", `#${link}`);
    }, 150);
  }

  _setSearch() {
    this.matrix.search = this.panel.search = this.search.value.trim().toLowerCase();
  }

  _setFilter(filter) {
    this.matrix.filter = filter in FILTERS ? filter : "all";
  }

  _listen() {
    this.search.addEventListener("input", () => {
      this._setSearch();
      this.matrix.scroller.scrollTop = 0;
      this.update();
    });
    for (const button of document.querySelectorAll("[data-filter]")) {
      button.addEventListener("click", () => {
        this._setFilter(button.dataset.filter === this.matrix.filter ? "all" : button.dataset.filter);
        this.matrix.scroller.scrollTop = 0;
        this.update();
      });
    }
    for (const button of document.querySelectorAll("#axis button")) {
      button.addEventListener("click", () => this.setAxis(button.dataset.axis));
    }
    const on = (id, action) => document.getElementById(id).addEventListener("click", action);
    on("theme", () => this.switchTheme());
    on("zone", () => this.switchZone());
    on("help-button", () => document.getElementById("help").showModal());
    on("help-close", () => document.getElementById("help").close());
    on("previous", () => this.goTo(this.moment - 1));
    on("next", () => this.goTo(this.moment + 1));
    on("unknown-close", () => (document.getElementById("unknown").hidden = true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    window.addEventListener("hashchange", () => this.openLink());
    new ResizeObserver(() => this.redraw()).observe(document.body);
    new ResizeObserver(() => this.update()).observe(this.matrix.scroller);
    document.addEventListener("keydown", (event) => this._key(event));
    this._showAxis();
  }

  redraw() {
    readColours();
    this.timeline.draw();
    this.update();
  }

  setAxis(axis) {
    this.timeline.setAxis(axis);
    this._showAxis();
  }

  _nextAxis() {
    const axes = this.history.hasTimes ? ["time", "offsets", "changes"] : ["offsets", "changes"];
    this.setAxis(axes[(axes.indexOf(this.timeline.axis) + 1) % axes.length]);
  }

  _showAxis() {
    for (const button of document.querySelectorAll("#axis button")) {
      button.setAttribute("aria-pressed", String(button.dataset.axis === this.timeline.axis));
    }
  }

  switchTheme() {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    this.redraw();
  }

  switchZone() {
    clock.local = !clock.local;
    document.getElementById("zone").textContent = clock.local ? "Local" : "UTC";
    this.redraw();
  }

  // The next moment (or with -1 the one before) at which partitions go offline or all have leaders again.
  goToOutage(by) {
    const edges = this.history.outages.flatMap(([first, end]) => [first, end]);
    if (edges.at(-1) === this.history.momentCount) edges.pop();  // it has not ended
    const next = by > 0 ? edges.find((edge) => edge > this.moment) : edges.findLast((edge) => edge < this.moment);
    if (next !== undefined) this.goTo(next);
  }

  // The next change of what is selected.
  goToChange(by) {
    const { history, row } = this;
    if (row < 0) return;
    const change = history.changeAt(row, by > 0 ? this.moment : this.moment - 1) + (by > 0 ? 1 : 0);
    const isOfRow = change >= history.rowStarts[row] && change < history.rowStarts[row + 1];
    if (isOfRow) this.goTo(history.changeMoments[change]);
  }

  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
    const typing = event.target === this.search;
    if (event.key === "Escape") {
      if (typing && this.search.value) {
        this.search.value = "";
        this.search.dispatchEvent(new Event("input"));
      } else if (typing) this.search.blur();
      else this.select(-1, -1);
      return;
    }
    if (typing && event.key === "Enter") this._selectNext(1);
    const action = typing ? null : this._actionOf(event);
    if (!action) return;
    event.preventDefault();
    action();
  }

  _actionOf(event) {
    const by = event.shiftKey ? 25 : 1, last = this.history.momentCount - 1;
    return {
      ArrowLeft: () => this.goTo(this.moment - by),
      ArrowRight: () => this.goTo(this.moment + by),
      ArrowUp: () => this._selectNext(-1),
      ArrowDown: () => this._selectNext(1),
      Home: () => this.goTo(0),
      End: () => this.goTo(last),
      "[": () => this.goToChange(-1),
      "]": () => this.goToChange(1),
      p: () => this.goToOutage(-1),
      n: () => this.goToOutage(1),
      o: () => document.querySelector('[data-filter="offline"]').click(),
      u: () => document.querySelector('[data-filter="under"]').click(),
      c: () => document.querySelector('[data-filter="changed"]').click(),
      f: () => this.matrix.toggleAll(),
      x: () => this._nextAxis(),
      "+": () => this._zoom(0.5),
      "-": () => this._zoom(2),
      0: () => this.timeline.reset(),
      "/": () => this.search.select(),
      t: () => this.switchTheme(),
      z: () => this.switchZone(),
      "?": () => document.getElementById("help").showModal(),
    }[event.key];
  }

  _zoom(factor) {
    this.timeline.zoomBy(factor, Math.min(1, Math.max(0, this.timeline.fractionOf(this.moment))));
  }

  _selectNext(by) {
    const item = this.matrix.neighbour(by);
    if (item !== undefined) this.select(item >= 0 ? this.history.rowTopics[item] : -1 - item, item >= 0 ? item : -1);
  }
}

function setText(id, text) {
  document.getElementById(id).textContent = text;
}

function tile(filter, count) {
  const made = document.querySelector(`.tile[data-filter="${filter}"]`);
  made.querySelector("strong").textContent = grouped(count);
  made.classList.toggle("none", count === 0);
}

async function openPage() {
  const loading = document.getElementById("loading");
  if (typeof DecompressionStream === "undefined") {
    loading.textContent = "This page needs a browser of 2023 or later: Chrome 80, Firefox 113 or Safari 16.4.";
    return;
  }
  const data = document.getElementById("data");
  const columns = await unpackColumns(data.textContent);
  data.remove();
  document.getElementById("app").hidden = false;
  loading.remove();
  window.clusterPage = new Page(new ClusterHistory(columns));
}

openPage().catch((fault) => {
  document.getElementById("loading").textContent = `The page could not be opened: ${fault.message}`;
  throw fault;
});
