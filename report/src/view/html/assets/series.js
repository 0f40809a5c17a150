// How a run goes on over time, and speed-up over threads.
'use strict';
(() => {
  const { h, s, seconds, data } = ompfuse;
  const growth = document.getElementById('growth');
  if (growth && data.growth) {
    const { parts, intervals } = data.growth;
    const end = Math.max(...intervals.map(i => i[1]));
    const speed = i => i.slice(2).reduce((sum, v) => sum + v, 0) / Math.max(i[1] - i[0], 1e-12);
    const most = Math.max(...intervals.map(speed), 1e-12);
    growth.append(ompfuse.responsive(200, width => {
      const [left, bottom, top] = [40, 26, 8];
      const w = width - left - 8, t = 200 - bottom - top;
      const x = at => left + w * at / end;
      const y = v => top + t * (1 - v / most);
      const steps = Math.max(2, Math.floor(width / 110));
      return s('svg', { width, height: 200, role: 'img', 'aria-label': 'Threads by what they do, over time' },
        [0, 0.5, 1].map(at => [s('line', { x1: left, x2: width - 8, y1: y(most * at), y2: y(most * at), class: 'grid' }),
          s('text', { x: left - 6, y: y(most * at) + 4, 'text-anchor': 'end' }, (most * at).toFixed(1))]),
        Array.from({ length: steps + 1 }, (_, n) => s('text', { x: x(end * n / steps), y: 194, 'text-anchor': n === steps ? 'end' : 'middle' }, seconds(end * n / steps))),
        intervals.map(i => {
          let sum = 0;
          const span = Math.max(i[1] - i[0], 1e-12);
          return i.slice(2).map((v, n) => {
            if (v <= 0) return null;
            const high = sum + v / span;
            const rect = s('rect', { x: x(i[0]), width: Math.max(0.6, x(i[1]) - x(i[0]) + 0.3), y: y(high), height: y(sum) - y(high), class: `fill ${parts[n][0]}` },
              s('title', {}, `${seconds(i[0])} to ${seconds(i[1])}: ${parts[n][1]} ${seconds(v)}`));
            sum = high;
            return rect;
          });
        }));
    }));
  }

  const program = document.getElementById('scaling-program');
  if (program && data.scaling) {
    const { threads, regions } = data.scaling;
    const ideal = { name: 'perfect', class: 'ideal', plain: true, points: threads.map(n => [n, n / threads[0]]) };
    const options = { xs: threads, xTitle: 'threads', format: v => v.toFixed(v < 10 ? 1 : 0) };
    program.append(ompfuse.lines([ideal, { name: 'program', class: 'line of-0', points: data.scaling.program }], { ...options, label: 'Speed-up of the program' }));
    const lines = regions.map(([name, points], n) => ({ name, class: `line of-${n}`, points }));
    if (lines.length) {
      document.getElementById('scaling-regions').append(ompfuse.lines([ideal, ...lines], { ...options, label: 'Speed-up of regions' }));
    }
  }
})();
