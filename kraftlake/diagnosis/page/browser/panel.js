"use strict";

// What happened up to the moment, the outages, and the history of the partition or topic that is selected.

const LISTED_AT_ONCE = 80, MOST_LATER = 500;
const BAD = new Set(["leader_lost", "broker_fenced", "broker_unregistered", "topic_deleted", "recovery_state_changed"]);
const WORSE = new Set(["isr_shrank", "broker_in_controlled_shutdown", "controller_elected"]);
const GOOD = new Set(["leader_elected", "isr_expanded", "broker_unfenced", "reassignment_finished"]);
const MOVES = new Set(["reassignment_started", "reassignment_changed", "reassignment_cancelled"]);

class Panel {
  // `onMove` is called with a moment, `onSelect` with a topic and a row, -1 for none.
  constructor(history, onMove, onSelect) {
    this.history = history;
    this.onMove = onMove;
    this.onSelect = onSelect;
    this.tab = "events";
    this.search = "";
    this.list = document.getElementById("list");
    this.title = document.getElementById("panel-title");
    this.facts = document.getElementById("facts");
    this.close = document.getElementById("close");
    this.tabs = [...document.querySelectorAll("#tabs [data-tab]")];
    this.close.addEventListener("click", () => onSelect(-1, -1));
    this.list.addEventListener("scroll", () => {
      if (this.list.scrollTop + this.list.clientHeight > this.list.scrollHeight - 200) this._listMore();
    });
    for (const button of this.tabs) {
      button.addEventListener("click", () => {
        this.tab = button.dataset.tab;
        this.onSelect(-1, -1);
      });
    }
    this.bars = new StabilityBars(history, onMove);
    this.tabs[2].hidden = !history.stability;
    const outages = history.outages.length;
    this.tabs[1].textContent = outages ? `Outages (${grouped(outages)})` : "Outages";
  }

  show(moment, topic, row) {
    const selected = topic >= 0;
    this.close.hidden = !selected;
    this.title.hidden = this.facts.hidden = !selected;
    for (const button of this.tabs) {
      button.setAttribute("aria-pressed", String(!selected && button.dataset.tab === this.tab));
    }
    if (selected) this._showThing(moment, topic, row);
    else if (this.tab === "outages") this._showOutages(moment);
    else if (this.tab === "stability") this._showStability(moment);
    else this._fill(this._newest(moment), moment, "Nothing has happened yet.");
  }

  // The events up to a moment that match the search, the newest first.
  *_newest(moment) {
    const { history, search } = this;
    for (let event = upTo(history.eventMoments, moment, 0, history.eventMoments.length); event >= 0; event--) {
      if (!search || history.sentenceOf(event).toLowerCase().includes(search)) yield event;
    }
  }

  // All events of a row and of its topic, or of a topic with all its partitions, the newest first.
  _of(topic, row) {
    const { history } = this, found = [];
    for (let event = history.eventMoments.length - 1; event >= 0; event--) {
      if (history.eventTopics[event] !== topic) continue;
      if (row < 0 || history.eventRows[event] === row || history.eventRows[event] < 0) found.push(event);
    }
    return found;
  }

  _showThing(moment, topic, row) {
    const { history } = this;
    this.title.textContent = row >= 0 ? history.nameOf(row) : history.shownTopics[topic];
    this.facts.replaceChildren(...(row >= 0 ? this._factsOf(row) : this._factsOfTopic(topic)));
    const events = this._of(topic, row), past = events.findIndex((event) => history.eventMoments[event] <= moment);
    const later = past < 0 ? events.length : past, left = Math.max(0, later - MOST_LATER);
    this._fill(events.slice(left).values(), moment, "Nothing happened to it in this range.", later - left);
    if (left) this.list.prepend(element("li", "nothing", `${counted(left, "later event")} not listed: go on in time.`));
    const now = this.list.querySelector(".now, .past");
    const top = now ? now.offsetTop - this.list.offsetTop - this.list.clientHeight / 3 : this.list.scrollHeight;
    this.list.scrollTop = top;
  }

  _factsOf(row) {
    const { history } = this, state = history.stateOf(row), topicId = history.topicIds[history.rowTopics[row]];
    const facts = [["topic id", topicId]];
    if (!state) return pairs([["now", "not there at this moment"], ...facts]);
    const brokers = (ids) => (ids.length ? ids.join(", ") : "none");
    const out = state[REPLICAS].filter((id) => !state[ISR].includes(id));
    facts.unshift(
      ["leader", state[LEADER] < 0 ? "none: offline" : `broker ${state[LEADER]}`, state[LEADER] < 0 ? "bad" : ""],
      ["in sync", brokers(state[ISR])],
      ["replicas", brokers(state[REPLICAS])],
    );
    if (out.length) facts.splice(2, 0, ["out of sync", brokers(out), "worse"]);
    if (state[ELR].length) facts.push(["eligible to lead", brokers(state[ELR])]);
    if (state[LAST_KNOWN_ELR].length) facts.push(["eligible last", brokers(state[LAST_KNOWN_ELR])]);
    if (state[ADDING].length) facts.push(["being added", brokers(state[ADDING]), "moves"]);
    if (state[REMOVING].length) facts.push(["being removed", brokers(state[REMOVING]), "moves"]);
    if (state[FLAGS] & RECOVERING) facts.push(["recovering", "from an unclean election", "bad"]);
    const change = history.changeAt(row, history.at), since = history.changeMoments[change];
    const begins = since === 0 && history.about.begins;
    const time = history.times[since], when = time < 0 ? "" : `${dateOf(time)} ${timeOf(time)}, `;
    facts.push(["so since", begins ? "before this range" : `${when}offset ${grouped(history.offsets[since])}`]);
    return pairs(facts);
  }

  _factsOfTopic(topic) {
    const { history } = this, [first, end] = history.topicRows.get(topic);
    let there = 0, offline = 0, under = 0;
    for (let row = first; row < end; row++) {
      there += history.current[row] >= 0;
      offline += (history.flagsOf(row) & OFFLINE) > 0;
      under += (history.flagsOf(row) & UNDER_REPLICATED) > 0;
    }
    return pairs([
      ["partitions", there ? grouped(there) : "not there at this moment"],
      ["offline", grouped(offline), offline ? "bad" : ""],
      ["under-replicated", grouped(under), under ? "worse" : ""], ["topic id", history.topicIds[topic]],
    ]);
  }

  _showOutages(moment) {
    const { history } = this;
    const made = history.outages.map(([first, end, peak]) => {
      const over = end < history.momentCount, known = over && history.times[first] >= 0 && history.times[end] >= 0;
      const time = known ? `for ${durationOf(history.times[end] - history.times[first])}` : "";
      const lasted = over ? time : "and still so at the end";
      const item = this._item(first, `up to ${counted(peak, "partition")} without a leader ${lasted}`, "bad");
      if (first <= moment && moment < end) item.classList.add("now");
      return item;
    });
    this.waiting = null;
    if (!made.length) made.push(element("li", "nothing", "No partition was offline in this range."));
    this.list.replaceChildren(...made);
  }

  _showStability(moment) {
    this.waiting = null;
    this.list.replaceChildren(...this.bars.items);
    this.bars.draw(moment);
  }

  // Lists events, which an iterator gives: some of them at once, more when those are scrolled through.
  _fill(events, moment, nothing, later = 0) {
    this.waiting = events;
    this.listedAt = moment;
    this.list.replaceChildren();
    this._listMore(later + LISTED_AT_ONCE);
    if (!this.list.firstChild) this.list.append(element("li", "nothing", nothing));
    this.list.scrollTop = 0;
  }

  _listMore(most = LISTED_AT_ONCE) {
    const { history, listedAt: moment } = this;
    for (let count = 0; this.waiting && count < most; count++) {
      const { value: event, done } = this.waiting.next();
      if (done) {
        this.waiting = null;
        return;
      }
      const kind = history.kinds[history.eventKinds[event]], at = history.eventMoments[event];
      const topic = history.eventTopics[event], row = history.eventRows[event];
      const item = this._item(at, history.sentenceOf(event), manner(kind), topic, row);
      item.classList.add(at === moment ? "now" : at < moment ? "past" : "later");
      item.title = kind.replaceAll("_", " ");
      this.list.append(item);
    }
  }

  _item(moment, text, className, topic = -1, row = -1) {
    const { history } = this;
    const when = element("span", "when", history.times[moment] < 0 ? "" : timeOf(history.times[moment]));
    when.title = dateOf(history.times[moment]);
    const button = element("button", className, null, when, element("span", "offset", grouped(history.offsets[moment])),
      element("span", "what", text));
    button.type = "button";
    button.addEventListener("click", () => {
      this.onMove(moment);
      if (row >= 0) this.onSelect(topic, row);
    });
    return element("li", "", null, button);
  }
}

function manner(kind) {
  const manners = { bad: BAD, worse: WORSE, good: GOOD, moves: MOVES };
  return Object.keys(manners).find((name) => manners[name].has(kind)) ?? "plain";
}

function pairs(facts) {
  return facts.flatMap(([name, value, className = ""]) => [element("dt", "", name), element("dd", className, value)]);
}
