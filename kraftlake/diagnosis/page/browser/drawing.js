"use strict";

// What all drawings share: colours of the theme, fonts, and canvases as sharp as the screen.

const FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
const NAMES = [
  "page", "panel", "line", "text", "quiet", "leader", "leader-text", "isr", "lagging", "offline", "under", "moving",
  "fenced", "stopping", "active", "selected", "changed",
];
const colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of NAMES) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// The context of a canvas that is made this large in CSS pixels, cleared.
function fitted(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const wide = Math.max(1, Math.round(width * scale)), high = Math.max(1, Math.round(height * scale));
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// A text cut so that it is at most this wide. Widths are measured once for each text and font.
function cutText(context, text, width) {
  if (measured(context, text) <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return text.slice(0, low) + "…";
}

const widths = new Map();

function measured(context, text) {
  const key = context.font + "\n" + text;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(key, (width = context.measureText(text).width));
  }
  return width;
}
