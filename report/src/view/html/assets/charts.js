// Elements and charts. All text is set as text, never as markup.
'use strict';
(() => {
  const SVG = 'http://www.w3.org/2000/svg';

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === false || value == null) continue;
      if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? '' : value);
    }
    for (const child of children.flat(Infinity)) {
      if (child != null && child !== false) node.append(child);
    }
    return node;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // A box whose drawing follows its width. `draw(width)` gives an element.
  const responsive = (height, draw) => {
    const box = h('div', { class: 'chart', style: `height:${height}px` });
    let last = 0;
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width < 40 || width === last) return;
      last = width;
      box.replaceChildren(draw(width));
    }).observe(box);
    return box;
  };

  // Round numbers that divide a linear axis.
  const ticks = (max, most) => {
    if (!(max > 0)) return [0];
    const rough = max / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(f => f * power).find(f => f >= rough);
    const list = [];
    for (let at = 0; at <= max * 1.0001; at += step) list.push(at);
    return list;
  };

  const PAD = { left: 56, right: 12, top: 10, bottom: 34 };

  // An area with axes. `x`, `y`: {ticks: [[position 0..1, text]], title}.
  const frame = (width, height, label, x, y, inside) => {
    const w = width - PAD.left - PAD.right;
    const t = height - PAD.top - PAD.bottom;
    return s('svg', { width, height, role: 'img', 'aria-label': label },
      y.ticks.map(([at, text]) => [
        s('line', { x1: PAD.left, x2: width - PAD.right, y1: PAD.top + t * (1 - at), y2: PAD.top + t * (1 - at), class: 'grid' }),
        s('text', { x: PAD.left - 6, y: PAD.top + t * (1 - at) + 4, 'text-anchor': 'end' }, text),
      ]),
      // The last one may be at the edge.
      x.ticks.map(([at, text]) => s('text', { x: Math.min(PAD.left + w * at, width - 4 * text.length), y: height - PAD.bottom + 15, 'text-anchor': 'middle' }, text)),
      x.title && s('text', { x: PAD.left + w / 2, y: height - 3, 'text-anchor': 'middle', class: 'axis' }, x.title),
      s('g', { transform: `translate(${PAD.left},${PAD.top})` }, inside(w, t)));
  };

  // Powers of ten (or of two where there are few) between two times in seconds.
  const logTicks = (from, to, format, most = 7) => {
    const list = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) {
      for (const factor of [1, 2, 5]) list.push(factor * 10 ** power);
    }
    const inside = list.filter(v => v >= from && v <= to);
    const decades = inside.filter(v => Math.abs(Math.log10(v) % 1) < 1e-9);
    let chosen = inside.length <= most ? inside : decades;
    if (chosen.length > most) chosen = chosen.filter((_, at) => at % Math.ceil(chosen.length / most) === 0);
    if (!chosen.length) chosen = [from, to];
    const span = Math.log(to / from) || 1;
    return chosen.map(v => [Math.log(v / from) / span, format(v)]);
  };

  // Times of units: buckets [from, to, count] in nanoseconds. Several series are outlines over each other.
  ompfuse.histogram = (series, height = 190) => responsive(height, width => {
    const all = series.flatMap(one => one.buckets);
    const from = Math.max(1, Math.min(...all.map(b => b[0])));
    const to = Math.max(...all.map(b => b[1]), from * 1.5);
    const span = Math.log(to / from);
    const at = ns => Math.log(Math.max(ns, from) / from) / span;
    // No more columns than can be told apart: neighbours become one.
    const columns = Math.max(12, Math.min(64, Math.floor(width / 9)));
    const binned = series.map(one => {
      const bins = new Float64Array(columns);
      for (const [a, b, count] of one.buckets) {
        const first = at(a) * columns, last = Math.max(at(b) * columns, first + 1e-9);
        for (let c = Math.floor(first); c < Math.min(columns, Math.ceil(last)); c++) {
          bins[c] += count * (Math.min(c + 1, last) - Math.max(c, first)) / (last - first);
        }
      }
      const sum = one.buckets.reduce((n, b) => n + b[2], 0);
      return series.length > 1 ? bins.map(n => n / sum) : bins;
    });
    const most = Math.max(...binned.flatMap(bins => [...bins]));
    const count = series.length > 1 ? ompfuse.percent : n => ompfuse.count(Math.round(n));
    const y = ticks(most, 4).map(v => [v / most, count(v)]);
    const x = logTicks(from * 1e-9, to * 1e-9, ompfuse.seconds, Math.max(2, Math.floor(width / 80)));
    const label = 'Histogram of the units’ own times';
    return frame(width, height, label, { ticks: x, title: 'own time of a unit' }, { ticks: y }, (w, t) => binned.map((bins, n) => {
      const step = w / columns;
      if (series.length > 1) {
        const points = [...bins].flatMap((v, c) => [[c * step, v], [(c + 1) * step, v]]);
        const line = points.map(([px, v]) => `${px.toFixed(1)},${(t * (1 - v / most)).toFixed(1)}`).join(' ');
        return s('polyline', { points: line, class: `outline of-${n}` });
      }
      return [...bins].map((v, c) => v > 0 && s('rect', {
        x: c * step, width: Math.max(1, step - 1), y: t * (1 - v / most), height: Math.max(1, t * v / most), class: 'column',
      }, s('title', {}, `${ompfuse.seconds(from * Math.exp(span * c / columns) * 1e-9)} to ${ompfuse.seconds(from * Math.exp(span * (c + 1) / columns) * 1e-9)}: about ${ompfuse.count(Math.round(v))}`)));
    }));
  });

  // Lines over a common axis: series [{name, class, points: [[x, y]]}].
  ompfuse.lines = (series, { title, xTitle, format, label, xs, height = 230 }) => responsive(height, width => {
    const points = series.flatMap(one => one.points);
    const [least, most] = [Math.min(...xs), Math.max(...xs)];
    const top = Math.max(...points.map(p => p[1])) * 1.05;
    const at = x => most > least ? Math.log(x / least) / Math.log(most / least) : 0.5;
    const y = ticks(top, 5).map(v => [v / top, format(v)]);
    let shown = xs;
    while (shown.length > width / 55) shown = shown.filter((_, n) => n % 2 === 0);
    return frame(width, height, label || title, { ticks: shown.map(x => [at(x), String(x)]), title: xTitle }, { ticks: y }, (w, t) => series.map(one => {
      const place = ([x, v]) => [at(x) * w, t * (1 - v / top)];
      return s('g', { class: one.class },
        s('polyline', { points: one.points.map(p => place(p).map(n => n.toFixed(1)).join(',')).join(' ') }),
        !one.plain && one.points.map(p => {
          const [px, py] = place(p);
          return s('circle', { cx: px, cy: py, r: 3.5 }, s('title', {}, `${one.name}, ${p[0]} threads: ${format(p[1])}`));
        }));
    }));
  });

  // Which share of numbers is at most so large: series [{name, class, list}] of times in seconds at equal steps of rank.
  ompfuse.cumulative = (series, height = 220) => responsive(height, width => {
    const all = series.flatMap(one => one.list).filter(v => v > 0);
    const from = Math.min(...all);
    const to = Math.max(...all, from * 1.5);
    const at = v => Math.log(Math.max(v, from) / from) / Math.log(to / from);
    const x = logTicks(from, to, ompfuse.seconds, Math.max(2, Math.floor(width / 80)));
    const y = [0, 0.25, 0.5, 0.75, 1].map(v => [v, `${v * 100}%`]);
    return frame(width, height, 'Distributions of the units’ times', { ticks: x, title: 'own time of a unit' }, { ticks: y }, (w, t) => series.map(one =>
      s('g', { class: one.class }, s('polyline', {
        points: one.list.map((v, n) => `${(w * at(v)).toFixed(1)},${(t * (1 - n / (one.list.length - 1))).toFixed(1)}`).join(' '),
      }))));
  });

  // A cloud of points on a canvas. `axis(name)` gives values, null where there is none.
  ompfuse.scatter = (points, { x, y, colours, height = 300 }) => {
    const known = points.filter(p => x.of(p) != null && y.of(p) != null);
    return responsive(height, width => {
      if (!known.length) return h('p', { class: 'note' }, 'No unit has both counts.');
      const range = axis => {
        let [from, to] = [Infinity, -Infinity];
        for (const p of known) { const v = axis.of(p); if (v < from) from = v; if (v > to) to = v; }
        return [from, to];
      };
      const scale = axis => {
        const [from, to] = range(axis);
        const isLog = from > 0 && to / from > 30;
        if (isLog) return { at: v => Math.log(v / from) / Math.log(to / from), ticks: logTicks(from, to, axis.format, 5) };
        const top = (to || 1) * 1.03;
        return { at: v => v / top, ticks: ticks(top, 5).map(v => [v / top, axis.format(v)]) };
      };
      const [sx, sy] = [scale(x), scale(y)];
      const label = `${y.name} over ${x.name}, ${known.length} units`;
      const back = frame(width, height, label, { ticks: sx.ticks, title: x.name }, { ticks: sy.ticks }, () => []);
      const canvas = h('canvas', { 'aria-hidden': 'true', style: `width:${width}px;height:${height}px` });
      const ratio = window.devicePixelRatio || 1;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const paint = canvas.getContext('2d');
      paint.scale(ratio, ratio);
      paint.globalAlpha = known.length > 400 ? 0.45 : 0.7;
      const [w, t] = [width - PAD.left - PAD.right, height - PAD.top - PAD.bottom];
      for (const p of known) {
        paint.fillStyle = colours(p);
        paint.beginPath();
        paint.arc(PAD.left + w * sx.at(x.of(p)), PAD.top + t * (1 - sy.at(y.of(p))), 2.6, 0, 7);
        paint.fill();
      }
      return h('div', { class: 'layers' }, back, canvas);
    });
  };

  // Colours of things without an order, told apart by colour-blind people too.
  ompfuse.hues = ['--accent', '--imbalance', '--sync', '--limited', '--manage', '--serial'];
  ompfuse.colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  ompfuse.h = h;
  ompfuse.s = s;
  ompfuse.responsive = responsive;
})();
