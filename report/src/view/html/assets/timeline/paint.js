// What a lane looks like at one magnification: a colour per pixel, of what took most of its time.
'use strict';
(() => {
  // The first span that ends after a time.
  const firstAfter = (ends, from, to, time) => {
    while (from < to) {
      const middle = (from + to) >> 1;
      if (ends[middle] > time) to = middle; else from = middle + 1;
    }
    return from;
  };
  ompfuseTimeline.firstAfter = firstAfter;

  // Colours as canvas memory has them: red in the lowest byte.
  const packed = ([r, g, b], alpha) => ((Math.round(alpha * 255) << 24) | (b << 16) | (g << 8) | r) >>> 0;

  // `slots`: how many colours there are; `slotOf`: by what a span is, its colour; `hit`: the same, whether it was searched for.
  ompfuseTimeline.Painter = class {
    constructor(data, decoded) {
      this.data = data;
      this.decoded = decoded;
      this.width = 0;
    }

    use(colours, slotOf, hit) {
      this.slotOf = slotOf;
      this.hit = hit;
      this.slots = colours.length;
      // By slot and alpha from 0 to 15.
      this.shades = colours.map(rgb => Uint32Array.from({ length: 16 }, (_, at) => packed(rgb, at / 15)));
      this.width = 0;
    }

    resize(width) {
      if (this.width === width) return;
      this.width = width;
      this.time = new Float32Array(width * this.slots);
      this.hits = new Float32Array(width * this.slots);
      this.whole = new Int32Array(width);
      this.sums = new Uint8Array(width);
    }

    // Adds a span from pixel x0 to x1, which need not be whole.
    add(into, slot, x0, x1) {
      const { width, slots } = this;
      const [from, to] = [Math.max(0, x0), Math.min(width, x1)];
      for (let x = Math.floor(from); x < to; x++) {
        into[x * slots + slot] += Math.min(x + 1, to) - Math.max(x, from);
      }
    }

    // The time of each slot, by pixel, of one lane. `t0`: the left edge; `scale`: pixels per nanosecond.
    gather(lane, t0, scale) {
      const { width, slots, slotOf, hit, time, hits, whole, decoded: { spans } } = this;
      time.fill(0);
      hits.fill(0);
      whole.fill(-1);
      this.sums.fill(0);
      const t1 = t0 + width / scale;
      const { start, end, what } = spans;
      for (let at = firstAfter(end, lane.from, lane.to, t0); at < lane.to && start[at] < t1; at++) {
        const x0 = Math.max(0, (start[at] - t0) * scale);
        const x1 = Math.min(width, (end[at] - t0) * scale);
        const slot = slotOf[what[at]];
        const into = hit && hit[what[at]] ? hits : time;
        const [p0, p1] = [Math.floor(x0), Math.floor(x1)];
        if (p0 === p1) {
          if (p0 < width) into[p0 * slots + slot] += x1 - x0;
          continue;
        }
        into[p0 * slots + slot] += p0 + 1 - x0;
        if (p1 > p0 + 1) whole.fill(at, p0 + 1, p1);
        if (p1 < width) into[p1 * slots + slot] += x1 - p1;
      }
      if (lane.sums) this.gatherSums(lane, t0, t1, scale);
    }

    gatherSums(lane, t0, t1, scale) {
      const { slots, slotOf, hit, time, hits, data, sums } = this;
      const length = data.binNs;
      const byClass = data.classes.length;
      for (let bin = Math.max(0, Math.floor(t0 / length)); bin < data.bins && bin * length < t1; bin++) {
        if (lane.short[bin] === 0) continue;
        const what = lane.most[bin] - 1;
        const into = hit && hit[what] ? hits : time;
        const [x0, x1] = [(bin * length - t0) * scale, ((bin + 1) * length - t0) * scale];
        for (let c = 0; c < byClass; c++) {
          const share = lane.sums[c][bin] / length;
          if (share === 0) continue;
          const slot = this.byClass ? c : slotOf[what];
          const [from, to] = [Math.max(0, x0), Math.min(this.width, x1)];
          for (let x = Math.floor(from); x < to; x++) {
            into[x * slots + slot] += share * (Math.min(x + 1, to) - Math.max(x, from));
            if (x1 - x0 > 6) sums[x] = 1;
          }
        }
      }
    }

    // One row of pixels of what was gathered.
    row(into, offset) {
      const { width, slots, time, hits, whole, sums, shades, slotOf, hit, decoded: { spans: { what } } } = this;
      for (let x = 0; x < width; x++) {
        const at = whole[x];
        if (at >= 0) {
          const shade = shades[slotOf[what[at]]];
          const isEdge = x > 0 && whole[x - 1] !== at && whole[x + 3] === at;
          const full = hit && !hit[what[at]] ? 3 : 15;
          into[offset + x] = shade[isEdge ? full - (full >> 1) + 1 : full];
          continue;
        }
        let [best, most, sum, found] = [-1, 0, 0, 0];
        for (let slot = 0; slot < slots; slot++) {
          const h = hits[x * slots + slot];
          const t = h + time[x * slots + slot];
          sum += t;
          found += h;
          // What was searched for is seen however short it is.
          const weight = h > 0 ? t + 1 : t;
          if (weight > most) [best, most] = [slot, weight];
        }
        if (best < 0) { into[offset + x] = 0; continue; }
        const covered = Math.min(1, sum);
        let alpha = 4 + Math.round(11 * covered);
        if (sums[x] && x % 4 === 0) alpha -= 3;
        if (hit) alpha = found > 0 ? Math.max(alpha, 10) : Math.max(1, alpha >> 2);
        into[offset + x] = shades[best][Math.max(0, Math.min(15, alpha))];
      }
    }
  };
})();
