"use strict";

// Takes the columns out of the page: base64, deflated, as kraftlake/diagnosis/page/packing.py has packed them.

const ARRAYS = { uint8: Uint8Array, int32: Int32Array, float64: Float64Array };
const DIFFERENCES = new Set([
  "offsets", "times", "epochs", "rowTopics", "rowPartitions", "changeMoments", "eventMoments", "eventRows",
  "eventTopics", "brokerMoments",
]);

async function unpackColumns(base64) {
  const buffer = await inflate(bytesOf(base64));
  const headLength = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headLength)));
  const columns = { ...head };
  for (const [name, [type, place, length]] of Object.entries(head.arrays)) {
    columns[name] = arrayAt(buffer, ARRAYS[type], 4 + headLength + place, length);
    if (DIFFERENCES.has(name)) sumUp(columns[name]);
  }
  return columns;
}

function bytesOf(base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// The bytes of the numbers lie by their significance, all lowest ones first.
function arrayAt(buffer, Type, place, length) {
  const array = new Type(length);
  const width = Type.BYTES_PER_ELEMENT;
  const from = new Uint8Array(buffer, place, length * width);
  const to = new Uint8Array(array.buffer);
  for (let byte = 0; byte < width; byte++) {
    for (let i = 0, at = byte, source = byte * length; i < length; i++, at += width) to[at] = from[source + i];
  }
  return array;
}

function sumUp(differences) {
  for (let i = 1; i < differences.length; i++) differences[i] += differences[i - 1];
}
