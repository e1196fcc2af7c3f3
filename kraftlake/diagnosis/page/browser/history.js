"use strict";

// The history of a cluster: what every partition and broker was at each moment, and what happened then.
// A moment is the number of a metadata delta in the page; a row is the number of a partition.

const OFFLINE = 1, UNDER_REPLICATED = 2, MOVING = 4, RECOVERING = 8;
const BROKER_STATES = ["not registered", "active", "fenced", "shutting down"];
const B_ABSENT = 0, B_ACTIVE = 1, B_FENCED = 2, B_SHUTTING_DOWN = 3;
const LEADER = 0, REPLICAS = 1, ISR = 2, ADDING = 3, REMOVING = 4, ELR = 5, LAST_KNOWN_ELR = 6, FLAGS = 7;

class ClusterHistory {
  constructor(columns) {
    Object.assign(this, columns);
    this.momentCount = this.offsets.length;
    this.rowCount = this.rowTopics.length;
    this.shownTopics = this.topics.map(visible);
    this.rowStarts = startsOf(this.rowChanges);
    this._describeStates();
    this._nameBrokers();
    this._findTopics();
    this._countTrouble();
    this.hasTimes = this.times.some((time) => time >= 0);
    this.current = new Int32Array(this.rowCount).fill(-1);
    this.brokersNow = new Uint8Array(this.brokerIds.length);
    this.at = -1;
  }

  _describeStates() {
    const states = this.states;
    this.stateLeaders = Int32Array.from(states, (state) => (state ? state[LEADER] : -1));
    this.stateFlags = Uint8Array.from(states, (state) => (state ? state[FLAGS] : 0));
    this.stateThere = Uint8Array.from(states, (state) => (state ? 1 : 0));
  }

  // All brokers that were registered, or hosted a partition, in the order of their ids.
  _nameBrokers() {
    const ids = new Set(this.brokers);
    for (const state of this.states) if (state) for (const id of state[REPLICAS]) ids.add(id);
    this.brokerIds = [...ids].sort((a, b) => a - b);
    this.columnOf = new Map(this.brokerIds.map((id, column) => [id, column]));
    this.columnRacks = this.brokerIds.map((id) => {
      const rack = this.racks[this.brokers.indexOf(id)];
      return rack === undefined || rack === null ? "" : visible(rack);
    });
    this.brokerColumns = this.brokers.map((id) => this.columnOf.get(id));
  }

  // The rows of a topic follow each other: topics in the order of their rows.
  _findTopics() {
    this.topicOrder = [];
    this.topicRows = new Map();
    for (let row = 0; row < this.rowCount; row++) {
      const topic = this.rowTopics[row];
      if (row && topic === this.rowTopics[row - 1]) this.topicRows.get(topic)[1] = row + 1;
      else {
        this.topicOrder.push(topic);
        this.topicRows.set(topic, [row, row + 1]);
      }
    }
  }

  // How many partitions were offline, under-replicated, moving and there after each moment.
  _countTrouble() {
    const growth = { offline: OFFLINE, under: UNDER_REPLICATED, moving: MOVING };
    const counts = { there: new Int32Array(this.momentCount) };
    for (const name of Object.keys(growth)) counts[name] = new Int32Array(this.momentCount);
    for (let row = 0; row < this.rowCount; row++) {
      let flags = 0, there = 0;
      for (let change = this.rowStarts[row]; change < this.rowStarts[row + 1]; change++) {
        const moment = this.changeMoments[change], state = this.changeStates[change];
        const now = this.stateFlags[state], differ = now ^ flags;
        if (differ & OFFLINE) counts.offline[moment] += now & OFFLINE ? 1 : -1;
        if (differ & UNDER_REPLICATED) counts.under[moment] += now & UNDER_REPLICATED ? 1 : -1;
        if (differ & MOVING) counts.moving[moment] += now & MOVING ? 1 : -1;
        counts.there[moment] += this.stateThere[state] - there;
        flags = now;
        there = this.stateThere[state];
      }
    }
    Object.values(counts).forEach(sumUp);
    this.counts = counts;
    this.fencedCounts = new Int32Array(this.momentCount);
    const now = new Uint8Array(this.brokers.length);
    this.brokerMoments.forEach((moment, i) => {
      const broker = this.brokerNumbers[i], state = this.brokerStates[i];
      this.fencedCounts[moment] += (state === B_FENCED) - (now[broker] === B_FENCED);
      now[broker] = state;
    });
    sumUp(this.fencedCounts);
    this.outages = intervalsOf(counts.offline);
  }

  // Brings `current` (the number of each row's state, -1 for none) and `brokersNow` to a moment.
  goTo(moment) {
    if (moment === this.at) return;
    this.at = moment;
    for (let row = 0; row < this.rowCount; row++) {
      const change = this.changeAt(row, moment);
      const state = change < 0 ? -1 : this.changeStates[change];
      this.current[row] = state >= 0 && this.stateThere[state] ? state : -1;
    }
    this.brokersNow.fill(B_ABSENT);
    for (let i = 0; i < this.brokerMoments.length && this.brokerMoments[i] <= moment; i++) {
      this.brokersNow[this.brokerColumns[this.brokerNumbers[i]]] = this.brokerStates[i];
    }
    this.ledBy = new Int32Array(this.brokerIds.length);
    for (let row = 0; row < this.rowCount; row++) {
      const leader = this.current[row] < 0 ? -1 : this.stateLeaders[this.current[row]];
      if (leader >= 0) this.ledBy[this.columnOf.get(leader)]++;
    }
  }

  // The last change of a row up to a moment, -1 for none.
  changeAt(row, moment) {
    const first = this.rowStarts[row];
    const found = upTo(this.changeMoments, moment, first, this.rowStarts[row + 1]);
    return found < first ? -1 : found;
  }

  // Whether a row was changed at the moment that is shown.
  changedNow(row) {
    const change = this.changeAt(row, this.at);
    return change >= 0 && this.changeMoments[change] === this.at && (this.at > 0 || !this.about.begins);
  }

  stateOf(row) {
    return this.current[row] < 0 ? null : this.states[this.current[row]];
  }

  flagsOf(row) {
    return this.current[row] < 0 ? 0 : this.stateFlags[this.current[row]];
  }

  nameOf(row) {
    return `${this.shownTopics[this.rowTopics[row]]}-${this.rowPartitions[row]}`;
  }

  sentenceOf(event) {
    const row = this.eventRows[event], tail = visible(this.tails[this.eventTails[event]]);
    return row < 0 ? tail : this.nameOf(row) + tail;
  }

  // The moment of an offset: the last one up to it, or the first of all.
  momentOfOffset(offset) {
    return Math.max(0, upTo(this.offsets, offset, 0, this.momentCount));
  }

  momentOfTime(millis) {
    let found = 0;
    for (let moment = 0; moment < this.momentCount; moment++) {
      if (this.times[moment] >= 0 && this.times[moment] <= millis) found = moment;
    }
    return found;
  }

  // The rows of a topic by its name, those of the newest topic of that name that is there now first.
  rowsOfTopic(topicName) {
    const topics = this.topicOrder.filter((topic) => this.topics[topic] === topicName);
    const isThere = (topic) => this.current[this.topicRows.get(topic)[0]] >= 0;
    topics.sort((a, b) => isThere(b) - isThere(a) || b - a);
    return topics.flatMap((topic) => {
      const [first, end] = this.topicRows.get(topic);
      return Array.from({ length: end - first }, (_, i) => first + i);
    });
  }
}

function startsOf(counts) {
  const starts = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) starts[i + 1] = starts[i] + counts[i];
  return starts;
}

// The last place in [first, end) whose number is at most `wanted`; first - 1 for none.
function upTo(numbers, wanted, first, end) {
  let low = first, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The intervals in which a count is above 0: [first moment, first moment after, or the number of all, peak].
function intervalsOf(counts) {
  const found = [];
  let open = null;
  for (let moment = 0; moment < counts.length; moment++) {
    if (counts[moment] > 0) {
      if (!open) found.push((open = [moment, counts.length, 0]));
      open[2] = Math.max(open[2], counts[moment]);
    } else if (open) {
      open[1] = moment;
      open = null;
    }
  }
  return found;
}
