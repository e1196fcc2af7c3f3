"use strict";

// The curves over time, the states of the brokers beneath them, and the place of the moment that is shown.

const LANE = 38, GAP = 8, AXIS = 20, STRIP = 7, MOST_STRIPS = 16, GUTTER = 152, EDGE = 14;

class Timeline {
  // `onMove` is called with the moment that the pointer or the slider has gone to.
  constructor(history, onMove) {
    this.history = history;
    this.onMove = onMove;
    this.canvas = document.getElementById("curves");
    this.slider = document.getElementById("slider");
    this.playhead = document.getElementById("playhead");
    this.hint = document.getElementById("hint");
    this.axis = history.hasTimes ? "time" : "offsets";
    this.zoom = [0, 1];
    this.strips = history.brokerIds.length <= MOST_STRIPS;
    this._place();
    this._listen();
  }

  setAxis(axis) {
    this.axis = axis;
    this.zoom = [0, 1];
    this._place();
    this.draw();
  }

  // Where each moment lies on the whole axis, 0 to 1. Clocks may run backwards; places don't.
  _place() {
    const { history, axis } = this, count = history.momentCount;
    const places = new Float64Array(count);
    let last = -Infinity;
    for (let moment = 0; moment < count; moment++) {
      const raw = axis === "changes" ? moment : axis === "offsets" ? history.offsets[moment] : history.times[moment];
      last = Math.max(last, axis === "time" && raw < 0 ? -Infinity : raw);
      places[moment] = last;
    }
    const first = places.find((place) => place > -Infinity) ?? 0;
    this.first = first;
    this.span = Math.max(places[count - 1] - first, 1e-9);
    for (let moment = 0; moment < count; moment++) places[moment] = Math.max(0, (places[moment] - first) / this.span);
    this.places = places;
  }

  momentAt(fraction) {
    const place = this.zoom[0] + fraction * (this.zoom[1] - this.zoom[0]);
    return Math.max(0, upTo(this.places, place + 1e-12, 0, this.places.length));
  }

  // Where a moment is on the part of the axis that is shown: 0 to 1, or outside of that.
  fractionOf(moment) {
    return (this.places[moment] - this.zoom[0]) / (this.zoom[1] - this.zoom[0]);
  }

  // Zooms so that the place that is shown at a fraction stays there.
  zoomBy(factor, fraction) {
    const [from, to] = this.zoom;
    const size = Math.min(1, Math.max((to - from) * factor, 1e-7));
    const fixed = from + fraction * (to - from);
    this._showFrom(fixed - fraction * size, size);
  }

  reset() {
    this._showFrom(0, 1);
  }

  _showFrom(from, size) {
    const begin = Math.min(Math.max(0, from), 1 - size);
    this.zoom = [begin, begin + size];
    this.draw();
  }

  // Moves what is shown so that a moment is among it.
  reveal(moment) {
    const size = this.zoom[1] - this.zoom[0], place = this.places[moment];
    if (place < this.zoom[0] || place > this.zoom[1]) this._showFrom(place - size / 2, size);
  }

  show(moment) {
    this.moment = moment;
    this.reveal(moment);
    const fraction = this.fractionOf(moment);
    this.playhead.style.transform = `translateX(${GUTTER + fraction * this.plotWidth}px)`;
    this.slider.value = Math.round(fraction * Number(this.slider.max));
    const { history } = this;
    this.slider.setAttribute(
      "aria-valuetext",
      `offset ${history.offsets[moment]}, ${dateOf(history.times[moment])} ${timeOf(history.times[moment])}`,
    );
  }

  get plotWidth() {
    return Math.max(10, this.canvas.clientWidth - GUTTER - EDGE);
  }

  _listen() {
    this.slider.addEventListener("input", () => {
      this.onMove(this.momentAt(this.slider.valueAsNumber / Number(this.slider.max)));
    });
    const fractionOf = (event) => {
      const x = event.clientX - this.canvas.getBoundingClientRect().left - GUTTER;
      return Math.min(1, Math.max(0, x / this.plotWidth));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.onMove(this.momentAt(fractionOf(event)));
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.onMove(this.momentAt(fractionOf(event)));
      this._hint(fractionOf(event));
    });
    this.canvas.addEventListener("pointerleave", () => (this.hint.hidden = true));
    this.canvas.addEventListener("dblclick", () => this.reset());
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const size = this.zoom[1] - this.zoom[0];
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this._showFrom(this.zoom[0] + ((event.deltaX || event.deltaY) / this.plotWidth) * size, size);
      } else this.zoomBy(Math.exp(event.deltaY * 0.002), fractionOf(event));
      this.show(this.moment);
    }, { passive: false });
  }

  _hint(fraction) {
    const { history, hint } = this, moment = this.momentAt(fraction);
    const troubles = [
      [history.counts.offline[moment], "offline"], [history.counts.under[moment], "under-replicated"],
      [history.fencedCounts[moment], "fenced"],
    ].filter(([count]) => count > 0).map(([count, what]) => `${grouped(count)} ${what}`);
    const when = history.times[moment] < 0 ? [] : [timeOf(history.times[moment])];
    const words = [...when, `offset ${grouped(history.offsets[moment])}`];
    if (troubles.length) words.push(troubles.join(", "));
    hint.textContent = words.join(" · ");
    hint.hidden = false;
    const x = GUTTER + fraction * this.plotWidth;
    hint.style.transform = `translateX(${Math.min(x + 12, this.canvas.clientWidth - hint.offsetWidth - 4)}px)`;
  }

  draw() {
    const { history } = this, brokers = history.brokerIds.length;
    const lanes = [["offline", history.counts.offline, "offline"], ["under-replicated", history.counts.under, "under"]];
    if (!this.strips) lanes.push(["fenced brokers", history.fencedCounts, "fenced"]);
    const height = lanes.length * (LANE + GAP) + (this.strips ? brokers * STRIP + GAP : 0) + AXIS;
    this.canvas.style.height = `${height}px`;
    this.playhead.style.height = `${height - AXIS + 4}px`;
    const context = fitted(this.canvas, this.canvas.clientWidth, height);
    lanes.forEach(([name, counts, colour], i) => this._drawLane(context, i * (LANE + GAP), name, counts, colour));
    if (this.strips) this._drawStrips(context, lanes.length * (LANE + GAP));
    this._drawAxis(context, height - AXIS);
    if (this.moment !== undefined) this.show(this.moment);
  }

  // A stepped area: of each pixel the largest count.
  _drawLane(context, top, name, counts, colour) {
    const width = Math.ceil(this.plotWidth), peaks = new Float64Array(width), [begin, end] = this._shown();
    let highest = 0;
    for (let moment = begin; moment < end; moment++) {
      const count = counts[moment];
      if (!count) continue;
      const from = Math.max(0, Math.floor(this.fractionOf(moment) * this.plotWidth));
      const next = moment + 1 < this.places.length ? this.fractionOf(moment + 1) : this.fractionOf(moment);
      const to = Math.min(width - 1, Math.max(from, Math.ceil(next * this.plotWidth) - 1));
      for (let x = from; x <= to; x++) if (peaks[x] < count) peaks[x] = count;
      highest = Math.max(highest, count);
    }
    const bottom = top + LANE;
    this._label(context, top + LANE / 2, name, highest ? `at most ${grouped(highest)}` : "none");
    context.fillStyle = colours.line;
    context.fillRect(GUTTER, bottom, this.plotWidth, 1);
    if (!highest) return;
    context.fillStyle = colours[colour];
    for (let x = 0; x < width; x++) {
      if (!peaks[x]) continue;
      const size = Math.max(3, (peaks[x] / highest) * (LANE - 2));
      context.globalAlpha = 0.38;
      context.fillRect(GUTTER + x, bottom - size, 1, size);
      context.globalAlpha = 1;
      context.fillRect(GUTTER + x, bottom - size, 1, 2);
    }
  }

  // The moments that are shown, with the one before them.
  _shown() {
    const begin = Math.max(0, upTo(this.places, this.zoom[0], 0, this.places.length));
    return [begin, upTo(this.places, this.zoom[1], 0, this.places.length) + 1];
  }

  _drawStrips(context, top) {
    const { history } = this, shown = [null, colours.active, colours.fenced, colours.stopping];
    const open = history.brokerIds.map(() => [0, B_ABSENT]);
    const strip = (column, [from, state], to) => {
      const left = Math.max(0, this.fractionOf(from)), right = Math.min(1, to === null ? 1 : this.fractionOf(to));
      if (state === B_ABSENT || right < 0 || left > 1) return;
      context.fillStyle = shown[state];
      const width = Math.max(state === B_ACTIVE ? 0 : 1.5, (right - left) * this.plotWidth);
      context.fillRect(GUTTER + left * this.plotWidth, top + column * STRIP, width, STRIP - 2);
    };
    const waiting = [];
    history.brokerMoments.forEach((moment, i) => {
      const column = history.brokerColumns[history.brokerNumbers[i]];
      waiting.push([column, open[column], moment]);
      open[column] = [moment, history.brokerStates[i]];
    });
    open.forEach((last, column) => waiting.push([column, last, null]));
    waiting.sort((a, b) => (a[1][1] === B_ACTIVE ? 0 : 1) - (b[1][1] === B_ACTIVE ? 0 : 1));
    waiting.forEach((one) => strip(...one));
    const first = history.brokerIds[0], last = history.brokerIds[history.brokerIds.length - 1];
    if (first !== undefined) {
      const height = history.brokerIds.length * STRIP;
      this._label(context, top + height / 2 - 1, "brokers", first === last ? `${first}` : `${first} to ${last}`);
    }
  }

  _label(context, middle, name, value) {
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.font = "600 11px " + FONT;
    context.fillStyle = colours.text;
    context.fillText(name, 14, middle - 7);
    context.font = "11px " + FONT;
    context.fillStyle = colours.quiet;
    context.fillText(value, 14, middle + 7);
  }

  _drawAxis(context, top) {
    context.font = "11px " + FONT;
    context.textBaseline = "middle";
    context.textAlign = "center";
    const wanted = Math.max(2, Math.floor(this.plotWidth / 130));
    for (const [place, text] of this._ticks(wanted)) {
      const x = GUTTER + ((place - this.zoom[0]) / (this.zoom[1] - this.zoom[0])) * this.plotWidth;
      context.fillStyle = colours.line;
      context.fillRect(Math.round(x), 0, 1, top + 3);
      context.fillStyle = colours.quiet;
      context.fillText(text, Math.min(Math.max(x, GUTTER + 26), GUTTER + this.plotWidth - 20), top + AXIS / 2 + 2);
    }
  }

  _ticks(wanted) {
    const { history, first, span } = this, from = first + this.zoom[0] * span, to = first + this.zoom[1] * span;
    const step = this.axis === "time" ? timeStep((to - from) / wanted) : Math.max(1, roundStep((to - from) / wanted));
    const ticks = [];
    const shift = this.axis === "time" ? from - shifted(from).getTime() : 0;
    for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to && ticks.length < 50; at += step) {
      let text = grouped(at);
      if (this.axis === "time") text = step >= 86400000 ? dateOf(at) : timeOf(at, step < 1000);
      if (this.axis === "changes") {
        const moment = Math.min(at, history.momentCount - 1);
        text = history.times[moment] < 0 ? grouped(history.offsets[moment]) : timeOf(history.times[moment], false);
      }
      ticks.push([(at - first) / span, text]);
    }
    return ticks;
  }
}


function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least);
}

function timeStep(least) {
  const steps = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5,
    108e5, 216e5, 432e5, 864e5,
  ];
  return steps.find((step) => step >= least) ?? 864e5 * roundStep(least / 864e5);
}
