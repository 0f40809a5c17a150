// The details of a region, which the page's address names: #region=KEY.
'use strict';
(() => {
  const { h, seconds, percent, count } = ompfuse;
  const data = JSON.parse(document.getElementById('data').textContent);
  const section = document.getElementById('detail');
  ompfuse.data = data;
  if (!section) return;

  const panel = (title, note, ...inside) => h('div', { class: 'panel' }, h('h3', {}, title), note && h('p', { class: 'note' }, note), inside);
  const table = (head, rows, label) => h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, h('table', {},
    h('thead', {}, h('tr', {}, head.map(name => h('th', { scope: 'col', class: name === 'Label' ? 'label' : '' }, name)))),
    h('tbody', {}, rows.map(row => h('tr', {}, row.map((cell, at) => h(at ? 'td' : 'th', at ? { class: head[at] === 'Label' ? 'label' : '' } : { scope: 'row' }, cell)))))));
  const known = value => value == null ? '–' : seconds(value);

  const facts = r => {
    const list = [
      ['Time', `${seconds(r.time)} (${percent(r.share)})`],
      r.wall != null && ['On the clock', seconds(r.wall)],
      r.inclusive != null && ['Inclusive', seconds(r.inclusive)],
      r.efficiency != null && ['Efficiency', percent(r.efficiency)],
      ['Executions', count(r.executions)],
      r.units > 0 && ['Units', count(r.units)],
      r.iterations != null && ['Iterations', count(r.iterations)],
      r.iterations_max != null && ['An execution', `mean ${(r.iterations / r.executions).toPrecision(3)}, at most ${count(r.iterations_max)} iterations`],
      r.units > 0 && r.median != null && ['Median unit', seconds(r.median)],
      r.imbalance != null && ['Imbalance', percent(r.imbalance)],
      r.detail && ['Detail', r.detail],
      r.function && ['Function', r.function],
      r.sites.length > 0 && ['Sites', r.sites.join(', ')],
    ];
    return h('ul', { class: 'facts' }, list.filter(Boolean).map(([name, value]) =>
      h('li', {}, h('span', { class: 'what' }, name), ' ', h('span', { class: 'value' }, value))));
  };

  const stack = (parts, all, label) => h('div', { class: 'bar slim', role: 'img', 'aria-label': label },
    parts.filter(p => p[2] > 0).map(([id, name, s]) => h('div', {
      class: `seg ${id}`, style: `width:${(100 * s / all).toFixed(3)}%`, title: `${name}: ${seconds(s)} (${percent(s / all)})`,
    }, h('span', {}, percent(s / all)))));

  const overhead = r => {
    const o = r.overhead;
    if (!o || !o.total) return null;
    const parts = [['work', 'Work', o.work || 0], ['unknown', 'Not known', o.unknown], ...o.classes];
    const label = parts.filter(p => p[2] > 0).map(p => `${p[1]} ${percent(p[2] / o.total)}`).join(', ');
    return panel('Fork to join', `${seconds(o.total)}: ${seconds(o.wall)} on the clock × the team, at most ${o.team} threads`,
      stack(parts, o.total, label),
      h('ul', { class: 'keys' }, parts.filter(p => p[2] > 0).map(([id, name, s]) => h('li', {}, h('span', { class: `key ${id}` }), `${name} ${percent(s / o.total)}`))),
      o.parts.length > 0 && table(['Overhead', 'Time', 'Times'], o.parts.slice(0, 8).map(([what, id, s, n]) =>
        [h('span', {}, h('span', { class: `key ${id}` }), ' ', what), seconds(s), count(n)]), 'Parts of the overhead'));
  };

  const threads = r => {
    if (r.threads.length < 1) return null;
    const most = Math.max(...r.threads.map(t => t[2] + t[3] + t[4]), 1e-12);
    const bar = ([, , work, wait, runtime]) => [['work', work], ['wait', wait], ['runtime', runtime]].map(([id, s]) =>
      s > 0 && h('span', { class: id, style: `width:${(100 * s / most).toFixed(2)}%` }));
    const told = ([, units, work, wait, runtime]) => `work ${seconds(work)}, waiting ${seconds(wait)}, runtime ${seconds(runtime)}${r.units ? `, ${count(units)} units` : ''}`;
    const dense = r.threads.length > 24;
    return panel('Threads', 'Own time of each thread by its number; the time at the right is its work',
      h('div', { class: dense ? 'threads dense' : 'threads' }, r.threads.map(t => h('div', { title: `thread ${t[0]}: ${told(t)}`, role: 'img', 'aria-label': `thread ${t[0]}: ${told(t)}` },
        h('span', { class: 'who' }, t[0]), h('span', { class: 'track' }, bar(t)), h('span', { class: 'num' }, seconds(t[2]))))),
      h('ul', { class: 'keys' }, [['work', 'Work'], ['wait', 'Waiting'], ['runtime', 'Runtime library']].map(([id, name]) =>
        h('li', {}, h('span', { class: `key ${id}` }), name))));
  };

  const ranks = r => r.ranks && r.ranks.length > 1 && panel('Ranks', null,
    table(['Rank', 'Units', 'Work', 'Waiting', 'Runtime'], r.ranks.map(([rank, n, ...s]) => [String(rank), count(n), ...s.map(seconds)]), 'The region on each rank'));

  const histogram = r => r.sample && r.sample.histogram && r.sample.count > 0 && panel('How long units took',
    `All ${count(r.sample.count)} units: ${seconds(r.min)} to ${seconds(r.max)}, half of them at most ${seconds(r.median)}`,
    ompfuse.histogram([{ buckets: r.sample.histogram }]));

  // Two properties of sampled units over each other.
  const scatter = r => {
    const sample = r.sample;
    if (!sample || !sample.own || sample.own.length < 3) return null;
    const events = data.events || [];
    const runs = data.event_runs || [];
    const axes = [{ name: 'own time', of: p => sample.own[p] * 1e-9, format: seconds },
      { name: 'iteration or number', of: p => sample.first[p], format: count }, { name: 'begin', of: p => sample.begin[p] * 1e-9, format: seconds },
      ...events.map((name, e) => ({ name: runs[e] ? `${name} (run ${runs[e]})` : name, run: runs[e], of: p => sample.counts[e] ? sample.counts[e][p] : null, format: count }))];
    axes.push({ name: 'thread', of: p => sample.thread[p], format: String });
    const points = sample.own.map((_, at) => at);
    const group = { thread: p => sample.thread[p], rank: p => sample.rank ? sample.rank[p] : 0 };
    const choice = (label, at) => h('label', {}, label, ' ', h('select', { onchange: draw },
      axes.map((axis, n) => h('option', { value: n, selected: n === at }, axis.name))));
    const x = choice('Across', events.length ? 3 : 1);
    const y = choice('Up', 0);
    const by = h('label', {}, 'Colour ', h('select', { onchange: draw }, h('option', { value: 'thread' }, 'thread'), sample.rank && h('option', { value: 'rank' }, 'rank')));
    const place = h('div', {});
    const origin = h('p', { class: 'note' });
    function draw() {
      const of = label => label.querySelector('select').value;
      const hues = ompfuse.hues.map(ompfuse.colour);
      const [a, b] = [axes[of(x)].run || 1, axes[of(y)].run || 1];
      origin.textContent = a === b || !runs.some(Boolean) ? '' : `The two come from runs ${b} and ${a}; a unit is the same in both by its label.`;
      place.replaceChildren(ompfuse.scatter(points, { x: axes[of(x)], y: axes[of(y)], colours: p => hues[group[of(by)](p) % hues.length] }));
    }
    draw();
    window.addEventListener('ompfuse-theme', draw);
    const whole = sample.own.length < sample.count;
    return panel('Units', whole ? `A sample of ${count(sample.own.length)} of ${count(sample.count)} units` : `All ${count(sample.count)} units`,
      h('div', { class: 'tools' }, y, x, by), place, origin);
  };

  const longest = r => {
    const list = r.sample && r.sample.longest;
    if (!list || !list.length) return null;
    const events = (data.events || []).filter((_, e) => list.some(u => u[4] && u[4][e] != null));
    const at = events.map(name => data.events.indexOf(name));
    return panel('The longest units', 'A label is the unit’s path from the root of the task tree, equal in all runs',
      table(['Unit', 'Own time', 'Thread', ...events, 'Label'], list.map(([what, s, thread, label, counts]) =>
        [what || 'unit', seconds(s), thread, ...at.map(e => counts[e] == null ? '–' : count(counts[e])), h('code', {}, label || '–')]), 'The longest units'));
  };

  const mutex = r => r.mutex && panel('One thread at a time', 'Waiting to enter, holding, and leaving',
    table(['Thread', 'Entries', 'Waiting', 'Held', 'Leaving'], [
      ...r.mutex.threads.map(([who, n, ...s]) => [who, count(n), ...s.map(known)]),
      ['all', count(r.mutex.entries), seconds(r.mutex.enter), known(r.mutex.held), known(r.mutex.exit)],
    ], 'Waits and holders'));

  const locks = r => r.locks && panel('Locks', 'By address, in all regions that take them',
    table(['Lock', 'Threads', 'Entries', 'Waiting', 'Held', 'Leaving'], r.locks.map(([name, threads, n, ...s]) =>
      [name, count(threads), count(n), ...s.map(known)]), 'Locks'));

  const callers = r => r.callers.length > 0 && panel('Callers', null,
    table(['From', 'Executions', 'Own', 'Inclusive'], r.callers.map(([text, n, own, all]) => [text, count(n), seconds(own), seconds(all)]), 'Where it was called from'));

  const events = r => Object.keys(r.events).length > 0 && panel('Events', 'Counts of its own code, without what is inside',
    table(['Event', 'Count', 'For each unit'], Object.entries(r.events).map(([name, n]) =>
      [name, count(n), r.units ? count(Math.round(n / r.units)) : '–']), 'Counts of events'));

  const why = r => r.losses && panel('Why time is lost here', null, h('ul', { class: 'why' }, r.losses.map(([share, s, told, remedy]) => h('li', {},
    h('span', { class: 'num' }, percent(share)), h('div', {}, h('p', {}, told, ' ', h('span', { class: 'sub' }, seconds(s))), remedy && h('p', { class: 'remedy' }, `Try: ${remedy}`))))));

  const predicted = r => {
    const p = r.predicted;
    if (!p) return null;
    const points = p.times.filter(([, s]) => s > 0);
    const part = p.executions < p.of ? ` (of ${count(p.executions)} of ${count(p.of)} executions)` : '';
    return panel('Predicted for other numbers of threads', `Time on the clock, from replaying its units${part}`,
      ompfuse.lines([{ name: 'predicted', class: 'line of-0', points }], {
        xs: points.map(q => q[0]), xTitle: 'threads', format: seconds, label: 'Predicted time by number of threads',
      }));
  };

  const source = r => {
    if (!r.source) return r.file ? panel('Source', `${r.file}:${r.line} was not at hand when this page was made.`) : null;
    const { first, lines, times } = r.source;
    const newer = r.source.newer ? ' The file was written after the program ran: lines may have moved.' : '';
    return panel('Source', `${r.file}, with the own time of the constructs at each line.${newer}`,
      h('div', { class: 'scroll code', tabindex: '0', role: 'region', 'aria-label': 'Source lines' }, h('table', {}, h('tbody', {}, lines.map((text, n) => {
        const line = first + n;
        const time = times[line];
        return h('tr', { class: line === r.line ? 'here' : time ? 'timed' : null },
          h('td', { class: 'lost' }, time ? seconds(time[0]) : ''), h('td', { class: 'lost' }, time ? percent(time[1]) : ''),
          h('td', { class: 'number' }, String(line)), h('td', { class: 'text' }, h('code', {}, text || ' ')));
      })))));
  };

  // Where samples were: a bar for each line, with what is there.
  const hot = r => r.hot && panel('Hottest lines', `Of ${count(r.hot.work)} samples in its code, those of lines with at least ten`,
    h('ul', { class: 'hot' }, r.hot.lines.map(([n, place, name, into, text]) => h('li', {},
      h('p', {}, h('span', { class: 'num' }, percent(n / r.hot.work)), ' ', h('span', { class: 'place' }, place), ' ', name && h('code', {}, name),
        into && h('span', { class: 'sub' }, ` inlined into ${into}`), h('span', { class: 'sub' }, ` ${count(n)} samples`)),
      h('span', { class: 'track', role: 'img', 'aria-label': `${place}: ${percent(n / r.hot.work)}` },
        h('span', { class: into ? 'inlined' : 'work', style: `width:${(100 * n / r.hot.work).toFixed(2)}%` })),
      text && h('pre', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Source of ${place}` }, text)))));

  // What slow units do that fast ones don't: mean times of a unit, by line.
  const sentence = text => `${text[0].toUpperCase()}${text.slice(1)}.`;
  const slow = r => r.slow && panel(`Slow and fast ${r.slow.noun}`,
    `${sentence(`${r.slow.meant}, against the others`)} ${sentence(r.slow.told || 'why they are slow is not known')}`,
    table(['Line', 'Slow', 'Fast'], [['all', ...r.slow.times.map(seconds)], ...r.slow.lines.map(([place, ...s]) => [place, ...s.map(seconds)])],
      'Mean time of a unit by line'));

  const code = r => r.code && panel('Machine code at the site', 'Its first instructions, as they were before it was patched',
    h('pre', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Instructions' }, r.code.join('\n')));

  const open = key => {
    const r = data.regions[key];
    if (!r) return false;
    const head = h('div', { class: 'heading' }, h('h2', {}, r.title),
      h('a', { class: 'close', href: '#regions', 'aria-label': 'Close the details' }, 'Close'));
    section.hidden = false;
    if (r.pair) {
      section.replaceChildren(head, h('div', { class: 'panels' }, ompfuse.pair(r, { panel, table })));
      return true;
    }
    const notes = r.notes.length > 0 && h('div', { class: 'alert' }, h('ul', {}, r.notes.map(note => h('li', {}, note))));
    const panels = [why, overhead, ranks, threads, slow, hot, source, histogram, scatter, longest, mutex, locks, callers, predicted, events, code];
    section.replaceChildren(head, facts(r), notes || '', h('div', { class: 'panels' }, panels.map(make => make(r))));
    return true;
  };

  ompfuse.select = () => {
    const key = /^#region=(.*)$/.exec(location.hash);
    const name = key && decodeURIComponent(key[1]);
    for (const body of document.querySelectorAll('tbody.row')) {
      body.setAttribute('aria-current', body.dataset.key === name);
    }
    if (name == null) {
      section.hidden = true;
      return;
    }
    if (open(name)) {
      section.scrollIntoView({ block: 'start' });
      section.focus({ preventScroll: true });
    }
  };
  window.addEventListener('hashchange', ompfuse.select);

  // As the link that closes it; the keyboard is where the region was opened. What is written into a field isn't meant.
  document.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || event.defaultPrevented || section.hidden || event.target.closest('input, .ot')) return;
    const link = document.querySelector('tbody.row[aria-current="true"] th a');
    location.hash = '#regions';
    if (link) link.focus();
  });
})();
