"use strict";

// Topics and partitions as rows, brokers as columns, at one moment. Only the rows that are seen are drawn.

const ROW = 22, HEADER = 46, LABEL = 350, LEAST_COLUMN = 26, MOST_COLUMN = 150, MOST_HEIGHT = 8e6;
const FILTERS = {
  all: () => true,
  offline: (flags) => flags & OFFLINE,
  under: (flags) => flags & UNDER_REPLICATED,
  moving: (flags) => flags & MOVING,
  changed: (flags, row, history) => history.changedNow(row),
};

class Matrix {
  // `onSelect` is called with a topic and a row, -1 for none.
  constructor(history, onSelect) {
    this.history = history;
    this.onSelect = onSelect;
    this.scroller = document.getElementById("scroller");
    this.canvas = document.getElementById("matrix");
    this.spacer = document.getElementById("spacer");
    this.empty = document.getElementById("empty");
    this.collapsed = new Set();
    this.search = "";
    this.filter = "all";
    this.topic = -1;
    this.row = -1;
    this.items = new Int32Array(0);
    this.lowerTopics = history.topics.map((name) => name.toLowerCase());
    this._listen();
  }

  // The items that are listed: a row, or -1 - topic for the heading of a topic with several partitions.
  rebuild() {
    const { history, search, filter } = this, items = [], wanted = FILTERS[filter];
    const cut = search.lastIndexOf("-"), number = search.slice(cut + 1);
    const ofPartition = cut >= 0 && /^\d*$/.test(number) ? search.slice(0, cut) : null;  // `foo-1` is in `foo-12` too
    for (const topic of history.topicOrder) {
      const [first, end] = history.topicRows.get(topic), name = this.lowerTopics[topic];
      const all = name.includes(search);
      if (!all && (ofPartition === null || !name.endsWith(ofPartition))) continue;
      const heading = end - first > 1, at = items.length;
      for (let row = first; row < end; row++) {
        const isThere = history.current[row] >= 0;
        if (!isThere && (!search || filter !== "all")) continue;
        if (!all && !String(history.rowPartitions[row]).startsWith(number)) continue;
        if (!wanted(history.flagsOf(row), row, history)) continue;
        if (heading && items.length === at) items.push(-1 - topic);
        if (heading && this.collapsed.has(topic)) break;
        items.push(row);
      }
    }
    this.items = Int32Array.from(items);
    this.empty.hidden = items.length > 0;
    this.empty.textContent = this._nothing();
  }

  _nothing() {
    const words = { offline: "is offline", under: "is under-replicated", moving: "is being moved", changed: "changed" };
    const which = this.search ? `No partition that matches “${visible(this.search)}”` : "No partition";
    return `${which} ${words[this.filter] ?? "is here"} at this moment.`;
  }

  get columnWidth() {
    const room = (this.scroller.clientWidth - this.labelWidth - 8) / Math.max(1, this.history.brokerIds.length);
    return Math.min(MOST_COLUMN, Math.max(LEAST_COLUMN, Math.floor(room)));
  }

  get labelWidth() {
    return Math.min(LABEL, Math.max(150, Math.floor(this.scroller.clientWidth * 0.42)));
  }

  layOut() {
    const { scroller, canvas, spacer } = this;
    this.height = Math.min(this.items.length * ROW, MOST_HEIGHT);
    const width = this.labelWidth + this.columnWidth * this.history.brokerIds.length + 8;
    this.isWide = width > scroller.clientWidth;  // then a leader may lie beside what is seen
    canvas.style.width = `${scroller.clientWidth}px`;
    canvas.style.height = `${scroller.clientHeight}px`;
    spacer.style.width = `${width}px`;
    spacer.style.height = `${Math.max(0, HEADER + this.height + 6 - scroller.clientHeight)}px`;
  }

  // The first item that is seen, with a fraction: as many items as fit may lie in fewer pixels than they need.
  get first() {
    const most = this.items.length * ROW - (this.scroller.clientHeight - HEADER);
    const reach = this.height - (this.scroller.clientHeight - HEADER);
    return most <= 0 || reach <= 0 ? 0 : (this.scroller.scrollTop / reach) * (most / ROW);
  }

  scrollToItem(index) {
    const seen = Math.floor((this.scroller.clientHeight - HEADER) / ROW);
    if (index >= this.first && index < this.first + seen - 1) return;
    const most = this.items.length * ROW - (this.scroller.clientHeight - HEADER);
    const reach = this.height - (this.scroller.clientHeight - HEADER);
    const top = Math.max(0, index - Math.floor(seen / 3)) * ROW;
    this.scroller.scrollTop = most <= 0 ? 0 : Math.min(1, top / most) * reach;
  }

  reveal(topic, row) {
    if (row >= 0 && this.collapsed.delete(topic)) this.rebuild();
    let index = this.items.indexOf(row >= 0 ? row : -1 - topic);
    const ofTopic = (item) => item >= 0 && this.history.rowTopics[item] === topic;
    if (index < 0 && topic >= 0) index = this.items.findIndex(ofTopic);
    this.layOut();
    if (index >= 0) this.scrollToItem(index);
  }

  draw() {
    const { history, scroller } = this, width = scroller.clientWidth, height = scroller.clientHeight;
    const context = fitted(this.canvas, width, height);
    const first = this.first, left = scroller.scrollLeft;
    const seen = Math.ceil((height - HEADER) / ROW) + 1;
    const begin = Math.floor(first), shift = (first - begin) * ROW;
    this.drawn = Math.min(seen, this.items.length - begin);
    context.save();
    context.beginPath();
    context.rect(this.labelWidth, 0, width - this.labelWidth, height);
    context.clip();
    context.translate(this.labelWidth - left, 0);
    this._drawColumns(context, height);
    for (let i = 0; i < this.drawn; i++) {
      const top = HEADER + i * ROW - shift, item = this.items[begin + i];
      if (item >= 0) this._drawCells(context, item, top);
      else this._drawLeaders(context, -1 - item, top);
    }
    this._drawHeader(context);
    context.restore();
    for (let i = 0; i < this.drawn; i++) {
      this._drawLabel(context, this.items[begin + i], HEADER + i * ROW - shift, width);
    }
    this._drawCorner(context, width);
    if (history.brokerIds.length === 0) this.empty.hidden = false;
  }

  _drawColumns(context, height) {
    const column = this.columnWidth;
    this.history.brokersNow.forEach((state, i) => {
      if (state === B_ACTIVE) return;
      context.fillStyle = [colours.quiet, colours.active, colours.fenced, colours.stopping][state];
      context.globalAlpha = state === B_ABSENT ? 0.06 : 0.13;
      context.fillRect(i * column, 0, column - 1, height);
      context.globalAlpha = 1;
    });
  }

  _drawHeader(context) {
    const { history } = this, column = this.columnWidth;
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, history.brokerIds.length * column, HEADER - 1);
    context.textAlign = "center";
    context.textBaseline = "middle";
    history.brokerIds.forEach((id, i) => {
      const state = history.brokersNow[i], middle = i * column + column / 2;
      const colour = [colours.quiet, colours.text, colours.fenced, colours.stopping][state];
      context.fillStyle = colour;
      context.font = `600 13px ${FONT}`;
      context.fillText(String(id), middle, 13);
      context.font = `10.5px ${FONT}`;
      const words = [["not registered", "gone"], [`leads ${grouped(history.ledBy[i])}`, grouped(history.ledBy[i])],
        ["fenced", "fenced"], ["shutting down", "stopping"]][state];
      context.fillStyle = state === B_ACTIVE ? colours.quiet : colour;
      const word = measured(context, words[0]) < column - 4 ? words[0] : words[1];
      context.fillText(measured(context, word) < column ? word : "", middle, 28);
      if (state !== B_ACTIVE) context.fillRect(i * column + 2, HEADER - 5, column - 5, 3);
    });
    context.fillStyle = colours.line;
    context.fillRect(0, HEADER - 1, history.brokerIds.length * column, 1);
  }

  _drawCorner(context, width) {
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, this.labelWidth, HEADER - 1);
    context.fillStyle = colours.line;
    context.fillRect(0, HEADER - 1, width, 1);
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.font = `11px ${FONT}`;
    context.fillStyle = colours.quiet;
    const shown = this.items.reduce((count, item) => count + (item >= 0), 0);
    context.fillText(shown === 1 ? "1 partition listed" : `${grouped(shown)} partitions listed`, 14, 13);
    context.textAlign = "right";
    if (this.labelWidth > 220) context.fillText("broker", this.labelWidth - 10, 13);
  }

  // What each replica of a partition is.
  _drawCells(context, row, top) {
    const { history } = this, state = history.stateOf(row), column = this.columnWidth;
    if (!state) return;
    const height = ROW - 6, width = column - 5;
    for (const id of state[REPLICAS]) {
      const left = history.columnOf.get(id) * column + 2, look = lookOf(state, id);
      context.beginPath();
      context.roundRect(left + 0.5, top + 3.5, width - 1, height - 1, 4);
      if (look.fill) {
        context.fillStyle = colours[look.fill];
        context.fill();
      }
      if (look.edge) {
        context.lineWidth = 1.5;
        context.strokeStyle = colours[look.edge];
        context.setLineDash(look.fill ? [] : [4, 3]);
        context.stroke();
        context.setLineDash([]);
      }
      context.font = `600 10.5px ${FONT}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillStyle = colours[look.fill === "leader" ? "leader-text" : look.edge ?? "text"];
      const word = measured(context, look.word) < width - 4 ? look.word : look.sign;
      if (word) context.fillText(word, left + width / 2, top + ROW / 2 + 0.5);
    }
  }

  // How many partitions of a topic each broker leads.
  _drawLeaders(context, topic, top) {
    const { history } = this, [first, end] = history.topicRows.get(topic), led = new Map();
    for (let row = first; row < end; row++) {
      const leader = history.current[row] < 0 ? -1 : history.stateLeaders[history.current[row]];
      if (leader >= 0) led.set(leader, (led.get(leader) ?? 0) + 1);
    }
    context.font = `10.5px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = colours.quiet;
    const column = this.columnWidth, words = column > 70;
    for (const [id, count] of led) {
      const left = history.columnOf.get(id) * column;
      context.fillText(words ? `leads ${grouped(count)}` : grouped(count), left + column / 2, top + ROW / 2);
    }
  }

  _drawLabel(context, item, top, width) {
    const { history } = this, isRow = item >= 0, topic = isRow ? history.rowTopics[item] : -1 - item;
    if (!isRow) {
      context.fillStyle = colours.line;
      context.fillRect(0, top, width, 1);
    }
    const selected = isRow ? item === this.row : topic === this.topic && this.row < 0;
    if (isRow && history.changedNow(item)) {
      context.fillStyle = colours.changed;
      context.fillRect(0, top + 2, 3, ROW - 4);
    }
    if (selected) {
      context.strokeStyle = colours.selected;
      context.lineWidth = 1.5;
      context.strokeRect(4.5, top + 1, width - 10, ROW - 2);
    }
    context.save();
    context.beginPath();
    context.rect(0, HEADER, this.labelWidth, 1e6);
    context.clip();
    const single = isRow && history.topicRows.get(topic)[1] - history.topicRows.get(topic)[0] === 1;
    context.textBaseline = "middle";
    let right = this.labelWidth - 10;
    for (const [colour, word] of this._tags(item, topic)) {
      context.font = `600 10.5px ${FONT}`;
      context.textAlign = "right";
      context.fillStyle = colours[colour];
      context.fillText(word, right, top + ROW / 2);
      right -= measured(context, word) + 8;
    }
    context.textAlign = "left";
    context.font = isRow && !single ? `12px ${FONT}` : `600 12px ${FONT}`;
    context.fillStyle = isRow && history.current[item] < 0 ? colours.quiet : colours.text;
    const folded = this.collapsed.has(topic) ? "▸" : "▾";
    const name = isRow ? history.nameOf(item) : `${folded} ${history.shownTopics[topic]}`;
    const indent = isRow && !single ? 30 : 14;
    context.fillText(cutText(context, name, Math.max(20, right - indent)), indent, top + ROW / 2);
    context.restore();
  }

  // What is to be said of an item beside its name.
  _tags(item, topic) {
    const { history } = this, under = this.labelWidth < LABEL ? "under" : "under-replicated";
    if (item >= 0) {
      const flags = history.flagsOf(item), tags = [];
      if (history.current[item] < 0) return [["quiet", "not there now"]];
      if (this.isWide && !(flags & OFFLINE)) tags.push(["quiet", `led by ${history.stateOf(item)[LEADER]}`]);
      if (flags & OFFLINE) tags.push(["offline", "offline"]);
      else if (flags & MOVING) tags.push(["moving", "moving"]);
      else if (flags & RECOVERING) tags.push(["offline", "recovering"]);
      else if (flags & UNDER_REPLICATED) tags.push(["under", under]);
      return tags;
    }
    const [first, end] = history.topicRows.get(topic), tags = [];
    let offline = 0, lagging = 0, there = 0;
    for (let row = first; row < end; row++) {
      const flags = history.flagsOf(row);
      offline += flags & OFFLINE ? 1 : 0;
      lagging += flags & UNDER_REPLICATED ? 1 : 0;
      there += history.current[row] >= 0 ? 1 : 0;
    }
    tags.push(["quiet", grouped(there)]);
    if (lagging) tags.push(["under", `${grouped(lagging)} ${under}`]);
    if (offline) tags.push(["offline", `${grouped(offline)} offline`]);
    return tags;
  }

  _itemAt(event) {
    const y = event.clientY - this.scroller.getBoundingClientRect().top - HEADER;
    if (y < 0) return undefined;
    return this.items[Math.floor(this.first + y / ROW)];
  }

  _listen() {
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("click", (event) => {
      const item = this._itemAt(event);
      if (item === undefined) return;
      const x = event.clientX - this.scroller.getBoundingClientRect().left;
      if (item < 0 && (x < 30 || this.topic === -1 - item)) this.toggle(-1 - item);
      if (item < 0) this.onSelect(-1 - item, -1);
      else this.onSelect(this.history.rowTopics[item], item);
    });
    this.scroller.addEventListener("mousemove", (event) => (this.scroller.title = this._explain(event)));
  }

  // What lies under the pointer, in words.
  _explain(event) {
    const { history } = this, item = this._itemAt(event);
    const x = event.clientX - this.scroller.getBoundingClientRect().left;
    const id = history.brokerIds[Math.floor((x - this.labelWidth + this.scroller.scrollLeft) / this.columnWidth)];
    if (x > this.labelWidth && id !== undefined && item === undefined) {
      const column = history.columnOf.get(id), rack = history.columnRacks[column];
      return `broker ${id}${rack ? ` in rack ${rack}` : ""}: ${BROKER_STATES[history.brokersNow[column]]}`;
    }
    if (item === undefined) return "";
    if (item < 0) return history.shownTopics[-1 - item];
    const state = history.stateOf(item), name = history.nameOf(item);
    if (!state || x <= this.labelWidth || !state[REPLICAS].includes(id)) return name;
    return `${name} on broker ${id}: ${lookOf(state, id).means}`;
  }

  toggle(topic) {
    if (!this.collapsed.delete(topic)) this.collapsed.add(topic);
    this.rebuild();
    this.layOut();
    this.draw();
  }

  toggleAll() {
    if (this.collapsed.size) this.collapsed.clear();
    else this.history.topicOrder.forEach((topic) => this.collapsed.add(topic));
    this.rebuild();
    this.layOut();
    this.draw();
  }

  // The item that follows the one that is selected, `by` items on.
  neighbour(by) {
    const index = this.items.indexOf(this.row >= 0 ? this.row : -1 - this.topic);
    const next = index < 0 ? (by > 0 ? 0 : this.items.length - 1) : index + by;
    return this.items[Math.min(Math.max(next, 0), this.items.length - 1)];
  }
}

// How the replica of a partition on a broker looks, and what it is.
function lookOf(state, id) {
  const inSync = state[ISR].includes(id);
  const moving = state[ADDING].includes(id) ? ["moving", "being added"] : state[REMOVING].includes(id)
    ? ["moving", "being removed"] : null;
  const edge = moving ? "moving" : undefined, sign = moving ? (moving[1] === "being added" ? "+" : "−") : "";
  const also = moving ? `, ${moving[1]}` : "";
  if (state[LEADER] === id) return { fill: "leader", edge, word: "leader", sign: "L", means: `leader, in sync${also}` };
  if (inSync) return { fill: "isr", edge, word: moving ? moving[1] : "", sign, means: `in sync${also}` };
  if (moving) return { edge, word: moving[1], sign, means: `out of sync${also}` };
  if (state[ELR].includes(id)) {
    return { edge: "lagging", word: "eligible", sign: "E", means: "out of sync, eligible to lead" };
  }
  return { edge: "lagging", word: "out of sync", sign: "!", means: "out of sync" };
}
