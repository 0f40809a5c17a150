// The timeline under mouse, keyboard and fingers.
'use strict';
(() => {
  const { ROW } = ompfuseTimeline;
  const escape = document.createElement('span');
  const text = value => { escape.textContent = value; return escape.innerHTML; };
  const time = ns => ompfuse.seconds(ns / 1e9);
  // A moment: to the nanosecond where that is of use.
  const moment = ns => {
    const [name, size] = ompfuseTimeline.unit(ns);
    return `${(ns / size).toLocaleString('en', { maximumFractionDigits: 6 })} ${name}`;
  };
  const DOING = {
    work: 'Work', serial: 'Serial code', sync: 'Synchronization', imbalance: 'Imbalance',
    limited: 'Limited parallelism', manage: 'Management', idle: 'Idle',
  };

  ompfuseTimeline.mount = async (section, data) => {
    const find = name => section.querySelector(`.ot-${name}`);
    const names = ['root', 'map', 'ruler', 'scroll', 'body', 'lanes', 'names', 'tip', 'search', 'found', 'previous', 'next', 'colour', 'in', 'out', 'all', 'chosen', 'legend'];
    const parts = Object.fromEntries(names.map(name => [name, find(name)]));
    const began = performance.now();
    const decoded = await ompfuseTimeline.decode(data);
    const view = new ompfuseTimeline.View(parts, data, decoded);
    const { spans, items } = decoded;
    const regionOf = what => (what[1] < 0 ? null : data.regions[what[1]]);

    // Lines about a span: what a tip shows, and what is told of the one that was chosen.
    const lines = at => {
      const what = data.whats[spans.what[at]];
      const region = regionOf(what);
      const item = spans.item[at];
      const list = [['From', moment(spans.start[at])], ['Takes', time(spans.end[at] - spans.start[at])]];
      if (item >= 0) {
        const whole = items.own[item];
        if (Math.abs(whole - (spans.end[at] - spans.start[at])) > 1) list.push(['Own time of all of it', time(whole)]);
        if (items.label[item]) list.push(['Label', items.label[item]]);
        data.events.forEach((event, e) => {
          const count = items.counts[item * data.events.length + e];
          if (!Number.isNaN(count)) list.push([event, count.toLocaleString('en')]);
        });
      }
      return { name: what[2], doing: data.classes[what[0]], region, list };
    };
    const sumLines = (lane, bin) => {
      const list = data.classes.map((name, c) => [DOING[name], lane.sums[c][bin]]).filter(([, ns]) => ns > 0);
      return list.sort((a, b) => b[1] - a[1]).map(([name, ns]) => [name, time(ns)]);
    };
    const table = list => `<dl>${list.map(([k, v]) => `<div><dt>${text(k)}</dt><dd>${text(v)}</dd></div>`).join('')}</dl>`;
    const describe = (name, doing, region, list) => {
      const place = region ? `<div class="ot-place">${text(region.place)}${region.function ? ` in <code>${text(region.function)}</code>` : ''}</div>` : '';
      const key = doing ? `<i class="key" style="background:var(--${doing})"></i>` : '';
      return `<div class="ot-name">${key}${text(name)}<span>${doing ? text(DOING[doing]) : ''}</span></div>${place}${table(list)}`;
    };

    const tip = (html, x, y) => {
      parts.tip.hidden = !html;
      if (!html) return;
      parts.tip.innerHTML = html;
      const room = parts.root.clientWidth;
      const wide = parts.tip.offsetWidth;
      parts.tip.style.left = `${Math.max(4, Math.min(x + 14, room - wide - 4))}px`;
      parts.tip.style.top = `${y + 18}px`;
    };

    // Names at the left; ranks fold.
    const rows = () => {
      parts.names.replaceChildren(...view.rows.map(row => {
        const isGroup = row.group !== undefined;
        const element = document.createElement(isGroup ? 'button' : 'div');
        if (isGroup) {
          const group = data.groups[row.group];
          element.type = 'button';
          element.setAttribute('aria-expanded', view.open[row.group]);
          element.innerHTML = `<b>${text(group.name)}</b> <span>${row.lanes.length} threads</span>`;
          element.addEventListener('click', () => {
            view.open[row.group] = !view.open[row.group];
            view.arrange();
            rows();
            view.draw();
            parts.names.querySelectorAll('button')[row.group].focus();
          });
        } else {
          element.innerHTML = `${text(row.lane.name)} <span>${text(row.lane.detail)}</span>`;
        }
        return element;
      }));
    };
    rows();

    // The span that was chosen is told below, with a link to its region: opening that at once would move the timeline away.
    const keyOf = at => (regionOf(data.whats[spans.what[at]]) ?? {}).key;
    const choose = at => {
      view.chosen = at;
      parts.chosen.replaceChildren();
      if (at >= 0) {
        const { name, doing, region, list } = lines(at);
        const lane = decoded.lanes.find(l => l.from <= at && at < l.to);
        parts.chosen.innerHTML = describe(name, doing, region, [['Thread', lane.name], ...list]);
        if (keyOf(at)) {
          const link = document.createElement('a');
          link.href = `#region=${encodeURIComponent(keyOf(at))}`;
          link.textContent = 'Open its region';
          parts.chosen.append(link);
        }
      }
      view.draw();
    };
    const open = () => { if (view.chosen >= 0 && keyOf(view.chosen)) location.hash = `#region=${encodeURIComponent(keyOf(view.chosen))}`; };
    // Shows a span, zooming in where it is too short to be seen.
    const reveal = at => {
      const [from, to] = [spans.start[at], spans.end[at]];
      const seen = view.t1 - view.t0;
      const length = (to - from) < seen / 200 || (to - from) > seen ? (to - from) * 12 : seen;
      if (from < view.t0 || to > view.t1 || length !== seen) view.show((from + to - length) / 2, (from + to + length) / 2);
      const group = decoded.lanes.find(l => l.from <= at && at < l.to).group;
      if (data.groups.length > 1 && !view.open[group]) { view.open[group] = true; view.arrange(); rows(); }
      const row = view.rows.findIndex(r => r.lane && r.lane.from <= at && at < r.lane.to);
      const y = row * ROW;
      if (y < parts.scroll.scrollTop || y + ROW > parts.scroll.scrollTop + parts.scroll.clientHeight) parts.scroll.scrollTop = y - parts.scroll.clientHeight / 2;
    };
    // The next span of those that were searched for, or of the lane, in the order of time.
    const go = (direction, isWanted) => {
      const now = view.chosen >= 0 ? spans.start[view.chosen] : direction > 0 ? view.t0 - 1 : view.t1 + 1;
      let [best, distance] = [-1, Infinity];
      const lane = !view.hit && decoded.lanes.find(l => l.from <= view.chosen && view.chosen < l.to);
      const [from, to] = lane ? [lane.from, lane.to] : [0, spans.start.length];
      for (let at = from; at < to; at++) {
        if (at === view.chosen || !isWanted(at)) continue;
        const ahead = (spans.start[at] - now) * direction;
        const isTie = ahead === 0 && (at - view.chosen) * direction > 0;
        if ((ahead > 0 || isTie) && ahead < distance) [best, distance] = [at, ahead];
      }
      if (best < 0) return;
      reveal(best);
      choose(best);
    };

    const isHit = at => !view.hit || view.hit[spans.what[at]] === 1;
    parts.previous.addEventListener('click', () => go(-1, isHit));
    parts.next.addEventListener('click', () => go(1, isHit));
    const search = () => {
      const words = parts.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      parts.previous.disabled = parts.next.disabled = words.length === 0;
      if (words.length === 0) { parts.found.textContent = ''; view.search(null); return; }
      const hit = Uint8Array.from(data.whats, what => {
        const region = regionOf(what);
        const name = `${what[2]} ${region ? `${region.place} ${region.function ?? ''} ${region.key ?? ''}` : ''}`.toLowerCase();
        return words.every(word => name.includes(word)) ? 1 : 0;
      });
      let [number, sum] = [0, 0];
      for (let at = 0; at < spans.start.length; at++) {
        if (hit[spans.what[at]]) { number++; sum += spans.end[at] - spans.start[at]; }
      }
      parts.found.textContent = `${ompfuse.count(number)} spans, ${time(sum)}`;
      view.search(hit);
    };
    parts.search.addEventListener('input', search);
    parts.search.addEventListener('keydown', event => {
      if (event.key === 'Enter') go(event.shiftKey ? -1 : 1, isHit);
    });
    const ofClasses = parts.legend.innerHTML;
    const entry = (colour, name) => `<li><i class="key" style="background:var(${colour})"></i>${text(name)}</li>`;
    const named = data.regions.slice(0, ompfuseTimeline.PALETTE.length).map((region, at) => entry(ompfuseTimeline.PALETTE[at], region.place));
    const ofPaths = [...parts.legend.querySelectorAll('.ot-of-paths')].map(item => item.outerHTML);
    const ofRegions = [...named, entry('--idle', 'all others'), ...ofPaths].join('');
    parts.colour.addEventListener('change', () => {
      view.byRegion = parts.colour.value === 'region';
      parts.legend.innerHTML = view.byRegion ? ofRegions : ofClasses;
      view.colours();
    });
    parts.in.addEventListener('click', () => view.zoom(0.5));
    parts.out.addEventListener('click', () => view.zoom(2));
    parts.all.addEventListener('click', () => view.show(0, view.length));

    // One pointer pans, two zoom, a click chooses.
    const down = new Map();
    let moved = 0;
    const place = event => {
      const box = parts.lanes.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    parts.lanes.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      parts.lanes.setPointerCapture(event.pointerId);
      down.set(event.pointerId, place(event));
      moved = 0;
    });
    parts.lanes.addEventListener('pointermove', event => {
      const [x, y] = place(event);
      const before = down.get(event.pointerId);
      if (!before) {
        const { row, span, bin } = view.at(x, y);
        const box = parts.root.getBoundingClientRect();
        const near = [event.clientX - box.left, event.clientY - box.top];
        if (span >= 0) {
          const { name, doing, region, list } = lines(span);
          tip(describe(name, doing, region, list), ...near);
        } else if (bin >= 0) {
          const many = `${ompfuse.count(row.lane.short[bin])} short spans in ${time(data.binNs)}`;
          tip(describe(many, null, regionOf(data.whats[row.lane.most[bin] - 1]), sumLines(row.lane, bin)), ...near);
        } else tip('');
        parts.lanes.style.cursor = span >= 0 ? 'pointer' : 'grab';
        return;
      }
      moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
      tip('');
      if (down.size === 1) {
        view.pan((before[0] - x) / view.width);
        if (event.pointerType !== 'touch') parts.scroll.scrollTop += before[1] - y;
      } else {
        const other = [...down].find(([id]) => id !== event.pointerId)[1];
        const was = Math.max(8, Math.abs(before[0] - other[0]));
        const is = Math.max(8, Math.abs(x - other[0]));
        view.zoom(was / is, view.time((x + other[0]) / 2));
        view.pan((before[0] - x) / 2 / view.width);
      }
      down.set(event.pointerId, [x, y]);
    });
    const up = event => {
      const was = down.delete(event.pointerId);
      if (!was || moved > 5 || event.type === 'pointercancel') return;
      const [x, y] = place(event);
      choose(view.at(x, y).span);
    };
    parts.lanes.addEventListener('pointerup', up);
    parts.lanes.addEventListener('pointercancel', up);
    parts.lanes.addEventListener('pointerleave', () => tip(''));
    parts.lanes.addEventListener('dblclick', event => view.zoom(0.25, view.time(place(event)[0])));
    // A wheel alone scrolls the page.
    parts.lanes.addEventListener('wheel', event => {
      if (event.ctrlKey || event.metaKey || event.altKey) {
        event.preventDefault();
        view.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), view.time(place(event)[0]));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        view.pan((event.deltaX || event.deltaY) / view.width);
      }
    }, { passive: false });

    // On the map a stretch is drawn, or the one that is seen is moved.
    let drawn = null;
    const onMap = event => {
      const box = parts.map.getBoundingClientRect();
      return (Math.min(Math.max(0, event.clientX - box.left), box.width) / box.width) * view.length;
    };
    parts.map.addEventListener('pointerdown', event => {
      parts.map.setPointerCapture(event.pointerId);
      const at = onMap(event);
      const isInside = at > view.t0 && at < view.t1 && view.t1 - view.t0 < view.length;
      drawn = { at, move: isInside ? view.t0 - at : null };
    });
    parts.map.addEventListener('pointermove', event => {
      if (!drawn) return;
      const at = onMap(event);
      const length = view.t1 - view.t0;
      if (drawn.move !== null) view.show(at + drawn.move, at + drawn.move + length);
      else if (Math.abs(at - drawn.at) > view.length / 200) view.show(Math.min(at, drawn.at), Math.max(at, drawn.at));
    });
    const release = () => { drawn = null; };
    parts.map.addEventListener('pointerup', release);
    parts.map.addEventListener('pointercancel', release);
    parts.map.addEventListener('dblclick', () => view.show(0, view.length));

    const keys = {
      ArrowLeft: () => view.pan(-0.15), ArrowRight: () => view.pan(0.15),
      '+': () => view.zoom(0.5), '=': () => view.zoom(0.5), '-': () => view.zoom(2), 0: () => view.show(0, view.length),
      Home: () => view.show(0, view.t1 - view.t0), End: () => view.show(view.length - (view.t1 - view.t0), view.length),
      n: () => go(1, isHit), p: () => go(-1, isHit),
      ArrowDown: () => { parts.scroll.scrollTop += ROW; }, ArrowUp: () => { parts.scroll.scrollTop -= ROW; },
      Enter: open,
      Escape: () => { choose(-1); parts.search.value = ''; search(); },
      '/': () => parts.search.focus(),
    };
    parts.lanes.addEventListener('keydown', event => {
      const act = !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    parts.scroll.addEventListener('scroll', () => view.draw(), { passive: true });
    new ResizeObserver(() => view.draw()).observe(parts.scroll);
    window.addEventListener('ompfuse-theme', () => view.colours());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => view.colours());
    view.paint();
    view.loadedIn = performance.now() - began;
    ompfuseTimeline.view = view;
    parts.root.dataset.spans = spans.start.length;
    return view;
  };
})();
