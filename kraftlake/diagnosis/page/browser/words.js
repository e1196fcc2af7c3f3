"use strict";

// Numbers, times and strings of the log as text.

const clock = { local: false };

// Characters that could hide or reorder what stands beside them are shown as their code.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function visible(text) {
  return text.replace(UNSEEN, (found) => "\\u" + found.charCodeAt(0).toString(16).padStart(4, "0"));
}

function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

function counted(number, thing, things = thing + "s") {
  return `${grouped(number)} ${number === 1 ? thing : things}`;
}

const pad = (number, width = 2) => String(number).padStart(width, "0");

function dateOf(millis) {
  if (millis < 0) return "";
  const shown = shifted(millis);
  return `${shown.getUTCFullYear()}-${pad(shown.getUTCMonth() + 1)}-${pad(shown.getUTCDate())}`;
}

function timeOf(millis, precise = true) {
  if (millis < 0) return "no time";
  const shown = shifted(millis);
  const time = `${pad(shown.getUTCHours())}:${pad(shown.getUTCMinutes())}:${pad(shown.getUTCSeconds())}`;
  return precise ? `${time}.${pad(shown.getUTCMilliseconds(), 3)}` : time;
}

function zoneName() {
  return clock.local ? Intl.DateTimeFormat().resolvedOptions().timeZone || "local time" : "UTC";
}

// The same wall-clock reading in the zone that is shown, as if that were UTC.
function shifted(millis) {
  return new Date(clock.local ? millis - new Date(millis).getTimezoneOffset() * 60000 : millis);
}

function durationOf(millis) {
  const seconds = Math.round(millis / 1000);
  if (millis < 1000) return `${Math.max(0, Math.round(millis))} ms`;
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// An element with a class, text and children. Text is set as text, so nothing in it is ever markup.
function element(tag, className, text, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined && text !== null) made.textContent = text;
  made.append(...children);
  return made;
}
