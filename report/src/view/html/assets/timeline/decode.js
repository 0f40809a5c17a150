// The timeline's data: columns of variable-length numbers, deflated. Written by report/src/view/html/timeline/encode.rs.
'use strict';
window.ompfuseTimeline = {};
(() => {
  const inflate = async text => {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  class Reader {
    constructor(bytes) { this.bytes = bytes; this.at = 0; }

    // Seven bits a byte, the least significant first.
    next() {
      let value = 0;
      let unit = 1;
      for (;;) {
        const byte = this.bytes[this.at++];
        value += (byte & 127) * unit;
        if (byte < 128) return value;
        unit *= 128;
      }
    }

    column(n) {
      const values = new Float64Array(n);
      for (let at = 0; at < n; at++) values[at] = this.next();
      return values;
    }
  }

  // Each label begins with so many characters of the one before.
  const labels = (reader, n) => {
    const shared = reader.column(n);
    const own = reader.column(n);
    const texts = [];
    let last = '';
    const decoder = new TextDecoder();
    for (let at = 0; at < n; at++) {
      const end = reader.at + own[at];
      last = last.slice(0, shared[at]) + decoder.decode(reader.bytes.subarray(reader.at, end));
      reader.at = end;
      texts.push(last);
    }
    return texts;
  };

  // Spans of all lanes one after the other; times are nanoseconds since `data.begin`.
  ompfuseTimeline.decode = async data => {
    const lanes = data.groups.flatMap((group, at) => group.lanes.map(lane => ({ ...lane, group: at })));
    const total = lanes.reduce((sum, lane) => sum + lane.spans, 0);
    const kept = lanes.reduce((sum, lane) => sum + lane.items, 0);
    const events = data.events.length;
    const spans = {
      start: new Float64Array(total), end: new Float64Array(total), what: new Uint16Array(total),
      item: new Int32Array(total).fill(-1),
    };
    // What a unit is, or a span that others interrupt: own time of the whole, label, counts.
    const items = { own: new Float64Array(kept), label: new Array(kept), counts: new Float64Array(kept * events).fill(NaN), span: new Int32Array(kept).fill(-1) };
    const reader = new Reader(await inflate(data.columns));
    let from = 0;
    let firstItem = 0;
    for (const lane of lanes) {
      const n = lane.spans;
      const gaps = reader.column(n);
      const lengths = reader.column(n);
      let now = 0;
      for (let at = 0; at < n; at++) {
        spans.start[from + at] = now + gaps[at];
        spans.end[from + at] = now = now + gaps[at] + lengths[at];
      }
      spans.what.set(reader.column(n), from);
      for (let at = 0; at < n; at++) {
        const item = reader.next();
        if (item === 0) continue;
        spans.item[from + at] = firstItem + item - 1;
        if (items.span[firstItem + item - 1] < 0) items.span[firstItem + item - 1] = from + at;
      }
      items.own.set(reader.column(lane.items), firstItem);
      labels(reader, lane.items).forEach((label, at) => { items.label[firstItem + at] = label; });
      for (let event = 0; event < events; event++) {
        for (let at = 0; at < lane.items; at++) {
          const value = reader.next();
          if (value > 0) items.counts[(firstItem + at) * events + event] = value - 1;
        }
      }
      // What is too short to be here one by one: per bin the time of each class, the number, and what most of it is.
      if (data.bins > 0) {
        lane.sums = data.classes.map(() => reader.column(data.bins));
        lane.short = reader.column(data.bins);
        lane.most = reader.column(data.bins);
      }
      lane.from = from;
      lane.to = from += n;
      firstItem += lane.items;
    }
    return { lanes, spans, items };
  };
})();
