// Which stretch of time and which lanes are seen, and what of it is drawn where.
'use strict';
(() => {
  const ROW = 24;
  const BAR = 18;
  const MAP = 44;
  const RULER = 22;
  // Of regions, the longest first.
  const PALETTE = ['--work', '--imbalance', '--sync', '--limited', '--manage', '--accent', '--serial'];
  // Nothing is seen in less.
  const LEAST = 50;

  const canvas = (element, width, height) => {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (element.width !== w || element.height !== h) [element.width, element.height] = [w, h];
    const context = element.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  };

  const rgb = text => {
    const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    probe.fillStyle = text;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };

  // Steps of the ruler: 1, 2, 5 times a power of ten.
  const step = (span, most) => {
    const least = span / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map(n => n * power).find(s => s >= least);
  };

  const unit = ns => (ns >= 1e9 ? ['s', 1e9] : ns >= 1e6 ? ['ms', 1e6] : ns >= 1e3 ? ['µs', 1e3] : ['ns', 1]);

  ompfuseTimeline.View = class {
    constructor(parts, data, decoded) {
      Object.assign(this, { parts, data, decoded });
      this.length = Math.max(LEAST, data.end - data.begin);
      [this.t0, this.t1] = [0, this.length];
      this.painter = new ompfuseTimeline.Painter(data, decoded);
      this.hit = null;
      this.byRegion = false;
      this.chosen = -1;
      this.cursor = null;
      this.open = data.groups.map(group => group.open);
      this.frame = 0;
      this.frames = 0;
      this.arrange();
      this.colours();
    }

    // The rows: a header per rank if there are several, and the lanes of those that are unfolded.
    arrange() {
      const several = this.data.groups.length > 1;
      this.rows = [];
      this.data.groups.forEach((group, at) => {
        const lanes = this.decoded.lanes.filter(lane => lane.group === at);
        if (several) this.rows.push({ group: at, lanes });
        if (!several || this.open[at]) lanes.forEach(lane => this.rows.push({ lane, lanes: [lane] }));
      });
      this.parts.body.style.height = `${this.rows.length * ROW}px`;
      this.parts.root.style.setProperty('--ot-rows', this.rows.length);
    }

    colours() {
      const style = getComputedStyle(this.parts.root);
      const named = name => style.getPropertyValue(name).trim();
      this.style = { text: named('--text'), muted: named('--muted'), line: named('--line'), panel: named('--panel'), surface: named('--surface'), accent: named('--accent'), path: named('--ot-path') };
      const { data } = this;
      const classes = data.classes.map(name => rgb(named(`--${name}`)));
      // Regions in the order of their time; those beyond the palette share one colour.
      const palette = PALETTE.map(name => rgb(named(name)));
      const rest = rgb(named('--idle'));
      const other = palette.length;
      const slotOf = data.whats.map(([c, region]) => (this.byRegion ? (region < 0 ? other : Math.min(region, other)) : c));
      this.slotOf = Uint8Array.from(slotOf);
      this.painter.byClass = !this.byRegion;
      this.painter.use(this.byRegion ? [...palette, rest] : classes, this.slotOf, this.hit);
      this.shown = this.byRegion ? [...palette, rest] : classes;
      this.mapped = null;
      this.draw();
    }

    search(hit) {
      this.hit = hit;
      this.painter.hit = hit;
      this.mapped = null;
      this.draw();
    }

    get width() { return Math.max(1, this.parts.lanes.clientWidth); }

    // Shows a stretch, inside of what there is.
    show(t0, t1) {
      const length = Math.min(this.length, Math.max(LEAST, t1 - t0));
      const middle = (t0 + t1) / 2;
      this.t0 = Math.min(Math.max(0, middle - length / 2), this.length - length);
      this.t1 = this.t0 + length;
      this.draw();
    }

    zoom(factor, at = (this.t0 + this.t1) / 2) {
      const length = Math.min(this.length, Math.max(LEAST, (this.t1 - this.t0) * factor));
      const share = (at - this.t0) / (this.t1 - this.t0);
      this.show(at - share * length, at + (1 - share) * length);
    }

    pan(share) {
      const by = (this.t1 - this.t0) * share;
      this.show(this.t0 + by, this.t1 + by);
    }

    time(x) { return this.t0 + (x / this.width) * (this.t1 - this.t0); }

    // What is at a place of the lanes: a row, a span or -1, a bin or -1.
    at(x, y) {
      const row = this.rows[Math.floor((y + this.parts.scroll.scrollTop) / ROW)];
      if (!row || !row.lane) return { row, span: -1, bin: -1 };
      const { spans } = this.decoded;
      const [from, to] = [this.time(x - 1), this.time(x + 1)];
      let [best, most] = [-1, 0];
      let at = ompfuseTimeline.firstAfter(spans.end, row.lane.from, row.lane.to, from);
      for (; at < row.lane.to && spans.start[at] < to; at++) {
        const inside = Math.min(to, spans.end[at]) - Math.max(from, spans.start[at]) + 1e-3;
        const weight = inside * (this.hit && this.hit[this.decoded.spans.what[at]] ? 1e6 : 1);
        if (weight > most) [best, most] = [at, weight];
      }
      const bin = row.lane.sums ? Math.floor(this.time(x) / this.data.binNs) : -1;
      const isSum = bin >= 0 && bin < this.data.bins && row.lane.short[bin] > 0;
      return { row, span: best, bin: best < 0 && isSum ? bin : -1 };
    }

    draw() {
      if (this.frame) return;
      this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
    }

    paint() {
      this.frames++;
      this.paintMap();
      this.paintRuler();
      this.paintLanes();
      this.parts.root.dispatchEvent(new CustomEvent('ot-painted'));
    }

    paintLanes() {
      const { parts, painter, rows } = this;
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [this.width, parts.scroll.clientHeight];
      const context = canvas(parts.lanes, width, height);
      const pixels = parts.lanes.width;
      context.clearRect(0, 0, width, height);
      const top = parts.scroll.scrollTop;
      const first = Math.floor(top / ROW);
      const last = Math.min(rows.length, Math.ceil((top + height) / ROW));
      painter.resize(pixels);
      const scale = pixels / (this.t1 - this.t0);
      const image = new ImageData(pixels, Math.max(1, last - first));
      const memory = new Uint32Array(image.data.buffer);
      const texts = [];
      for (let row = first; row < last; row++) {
        const y = row * ROW - top;
        this.paintLife(context, rows[row], y);
        const offset = (row - first) * pixels;
        if (rows[row].lane) {
          painter.gather(rows[row].lane, this.t0, scale);
          painter.row(memory, offset);
          this.names(rows[row].lane, y, texts);
        } else {
          this.paintFolded(rows[row], scale, memory, offset);
        }
      }
      this.sheet ??= document.createElement('canvas');
      [this.sheet.width, this.sheet.height] = [pixels, Math.max(1, last - first)];
      this.sheet.getContext('2d').putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      for (let row = first; row < last; row++) {
        const bar = rows[row].lane ? BAR : BAR - 8;
        const y = Math.round((row * ROW - top + (ROW - bar) / 2) * ratio) / ratio;
        context.drawImage(this.sheet, 0, row - first, pixels, 1, 0, y, width, bar);
      }
      this.paintTexts(context, texts);
      this.paintPaths(context, top, height);
      this.paintChosen(context, top);
    }

    // All threads of a rank in one row.
    paintFolded(row, scale, memory, offset) {
      const { painter } = this;
      const time = new Float32Array(painter.width * painter.slots);
      for (const lane of row.lanes) {
        painter.gather(lane, this.t0, scale);
        const { whole, slots, slotOf } = painter;
        const { what } = this.decoded.spans;
        for (let x = 0; x < painter.width; x++) {
          if (whole[x] >= 0) time[x * slots + slotOf[what[whole[x]]]] += 1;
          for (let s = 0; s < slots; s++) time[x * slots + s] += painter.time[x * slots + s] + painter.hits[x * slots + s];
        }
      }
      const many = row.lanes.length;
      painter.time.set(time.map(t => t / many));
      painter.hits.fill(0);
      painter.whole.fill(-1);
      painter.sums.fill(0);
      painter.row(memory, offset);
    }

    // From when to when its threads were recorded.
    paintLife(context, row, y) {
      const scale = this.width / (this.t1 - this.t0);
      context.fillStyle = this.style.line;
      for (const lane of row.lanes) {
        const x0 = Math.max(0, (lane.begin - this.t0) * scale);
        const x1 = Math.min(this.width, (lane.end - this.t0) * scale);
        if (x1 > x0) context.fillRect(x0, y + ROW / 2 - 0.5, x1 - x0, 1);
      }
    }

    // Spans that are wide enough to say what they are.
    names(lane, y, texts) {
      const scale = this.width / (this.t1 - this.t0);
      const { spans } = this.decoded;
      const least = 46 / scale;
      let at = ompfuseTimeline.firstAfter(spans.end, lane.from, lane.to, this.t0);
      for (; at < lane.to && spans.start[at] < this.t1 && texts.length < 500; at++) {
        if (spans.end[at] - spans.start[at] < least) continue;
        const x0 = Math.max(0, (spans.start[at] - this.t0) * scale);
        const x1 = Math.min(this.width, (spans.end[at] - this.t0) * scale);
        if (x1 - x0 >= 46) texts.push([at, x0, x1, y]);
      }
    }

    paintTexts(context, texts) {
      context.font = `11px ${getComputedStyle(this.parts.root).fontFamily}`;
      context.textBaseline = 'middle';
      for (const [at, x0, x1, y] of texts) {
        const what = this.data.whats[this.decoded.spans.what[at]];
        if (this.hit && !this.hit[this.decoded.spans.what[at]]) continue;
        const [r, g, b] = this.shown[this.slotOf[this.decoded.spans.what[at]]];
        const name = what[1] >= 0 ? `${what[2]} ${this.data.regions[what[1]].place}` : what[2];
        const room = x1 - x0 - 10;
        let text = context.measureText(name).width <= room ? name : what[2];
        if (context.measureText(text).width > room) continue;
        context.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#14181d' : '#fff';
        context.fillText(text, x0 + 5, y + ROW / 2 + 0.5);
      }
    }

    // A line below each unit on the critical path, and lines from one to the next.
    paintPaths(context, top, height) {
      const scale = this.width / (this.t1 - this.t0);
      const rowOf = new Map(this.rows.map((row, at) => [row.lane, at]).filter(([lane]) => lane));
      const middles = this.decoded.lanes.map(lane => (rowOf.has(lane) ? rowOf.get(lane) * ROW - top + (ROW + BAR) / 2 : NaN));
      const isSeen = y => y > -ROW && y < height + ROW;
      context.strokeStyle = this.style.path;
      context.fillStyle = this.style.path;
      context.lineWidth = 1;
      for (const path of this.data.paths) {
        if (path[0][1] > this.t1) continue;
        let last = null;
        for (const [lane, begin, end] of path) {
          const [x0, x1, y] = [(begin - this.t0) * scale, (end - this.t0) * scale, middles[lane]];
          const from = last;
          last = [x1, y];
          if (Number.isNaN(y) || x0 > this.width || x1 < 0 && !(from && from[0] > 0)) continue;
          if (isSeen(y)) context.fillRect(Math.max(0, x0), y - 1, Math.max(1, Math.min(this.width, x1) - Math.max(0, x0)), 3);
          if (!from || Number.isNaN(from[1]) || from[1] === y || !(isSeen(y) || isSeen(from[1]))) continue;
          context.beginPath();
          context.moveTo(from[0], from[1]);
          context.lineTo(x0, y);
          context.stroke();
        }
      }
    }

    paintChosen(context, top) {
      const { spans, items } = this.decoded;
      if (this.chosen < 0) return;
      const scale = this.width / (this.t1 - this.t0);
      const row = this.rows.findIndex(r => r.lane && r.lane.from <= this.chosen && this.chosen < r.lane.to);
      if (row < 0) return;
      const x0 = (spans.start[this.chosen] - this.t0) * scale;
      const x1 = (spans.end[this.chosen] - this.t0) * scale;
      context.strokeStyle = this.style.text;
      context.lineWidth = 2;
      const y = row * ROW - top + (ROW - BAR) / 2;
      context.strokeRect(x0 - 1, y - 1, Math.max(3, x1 - x0 + 2), BAR + 2);
    }

    paintRuler() {
      const context = canvas(this.parts.ruler, this.width, RULER);
      context.clearRect(0, 0, this.width, RULER);
      const span = this.t1 - this.t0;
      const by = step(span, this.width / 90);
      const [name, size] = unit(this.t1 / by > 1e6 ? by * 1e3 : this.t1);
      const digits = Math.max(0, -Math.floor(Math.log10(by / size) + 1e-9));
      context.font = `11px ${getComputedStyle(this.parts.root).fontFamily}`;
      context.textBaseline = 'middle';
      for (let n = Math.ceil(this.t0 / by); n * by <= this.t1; n++) {
        const x = ((n * by - this.t0) / span) * this.width;
        context.fillStyle = this.style.line;
        context.fillRect(Math.round(x), RULER - 6, 1, 6);
        context.fillStyle = this.style.muted;
        const text = `${(n * by / size).toFixed(digits)} ${name}`;
        if (x + context.measureText(text).width < this.width) context.fillText(text, x < 3 ? 0 : x + 4, RULER / 2 - 1);
      }
    }

    // All threads over the whole time, by class, and what of it is seen.
    paintMap() {
      const { map } = this.parts;
      const width = Math.max(1, map.clientWidth);
      const context = canvas(map, width, MAP);
      context.clearRect(0, 0, width, MAP);
      if (!this.mapped || this.mapped.columns !== Math.round(width)) this.gatherMap(Math.round(width));
      context.drawImage(this.mapped.sheet, 0, 0, width, MAP);
      const [x0, x1] = [this.t0, this.t1].map(t => (t / this.length) * width);
      context.fillStyle = this.style.surface;
      context.globalAlpha = 0.72;
      context.fillRect(0, 0, x0, MAP);
      context.fillRect(x1, 0, width - x1, MAP);
      context.globalAlpha = 1;
      context.strokeStyle = this.style.accent;
      context.lineWidth = 1.5;
      if (this.t1 - this.t0 < this.length) context.strokeRect(x0, 0.75, Math.max(2, x1 - x0), MAP - 1.5);
    }

    gatherMap(columns) {
      const painter = new ompfuseTimeline.Painter(this.data, this.decoded);
      painter.byClass = !this.byRegion;
      painter.use(this.shown, this.slotOf, this.hit);
      painter.resize(columns);
      const { slots } = painter;
      const time = new Float32Array(columns * slots);
      const found = new Float32Array(columns);
      for (const lane of this.decoded.lanes) {
        painter.gather(lane, 0, columns / this.length);
        for (let x = 0; x < columns; x++) {
          const at = painter.whole[x];
          if (at >= 0) {
            const what = this.decoded.spans.what[at];
            time[x * slots + this.slotOf[what]] += 1;
            if (this.hit && this.hit[what]) found[x] += 1;
          }
          for (let s = 0; s < slots; s++) {
            time[x * slots + s] += painter.time[x * slots + s] + painter.hits[x * slots + s];
            found[x] += painter.hits[x * slots + s];
          }
        }
      }
      const sheet = document.createElement('canvas');
      this.mapped = { columns, sheet };
      this.stackMap(canvas(sheet, columns, MAP), columns, time, found);
    }

    // What is drawn of it once.
    stackMap(context, columns, time, found) {
      const { slots } = this.painter;
      const many = this.decoded.lanes.length || 1;
      context.globalAlpha = this.hit ? 0.25 : 1;
      for (let x = 0; x < columns; x++) {
        let bottom = MAP;
        for (let slot = 0; slot < slots; slot++) {
          const tall = (time[x * slots + slot] / many) * MAP;
          if (tall === 0) continue;
          context.fillStyle = `rgb(${this.shown[slot].join(' ')})`;
          context.fillRect(x, bottom - tall, 1, tall);
          bottom -= tall;
        }
      }
      context.globalAlpha = 1;
      if (!this.hit) return;
      context.fillStyle = this.style.accent;
      for (let x = 0; x < columns; x++) {
        if (found[x] > 0) context.fillRect(x, MAP - Math.max(3, (found[x] / many) * MAP), 1, MAP);
      }
    }
  };

  Object.assign(ompfuseTimeline, { ROW, PALETTE, unit });
})();
