// The call paths as an icicle: the wider, the more inclusive time.
'use strict';
(() => {
  const place = document.getElementById('icicle');
  const nodes = ompfuse.data.paths;
  if (!place || !nodes || nodes.length < 2) return;
  const { h, seconds, percent, count } = ompfuse;
  const told = document.getElementById('icicle-told');
  const ROW = 26;
  const below = nodes.map(() => []);
  nodes.forEach(([parent], at) => { if (parent != null) below[parent].push(at); });
  for (const list of below) list.sort((a, b) => nodes[b][5] - nodes[a][5]);
  const whole = nodes[0][5];
  let root = 0;
  let current = 0;

  const around = at => nodes[at][0] == null ? [at] : [...around(nodes[at][0]), at];

  const text = at => {
    const [, , name, , own, all, executions, called] = nodes[at];
    const times = executions ? `, ${count(executions)} executions` : '';
    return `${name}: ${seconds(all)} inclusive (${percent(all / whole)}), ${seconds(own)} own${times}${called ? `, from ${called}` : ''}`;
  };
  const say = at => {
    const key = nodes[at][1];
    told.replaceChildren(text(at), key ? ' ' : '', key ? h('a', { href: `#region=${key}` }, 'Details') : '');
  };

  const draw = () => {
    const list = [];
    const path = around(root);
    const put = (at, left, width, row) => {
      if (width < 0.0008) return;
      list.push(h('button', {
        type: 'button', class: `node ${nodes[at][3]}${row < path.length - 1 ? ' above' : ''}`, 'data-at': at, tabindex: at === current ? 0 : -1,
        style: `left:${(left * 100).toFixed(3)}%;width:${(width * 100).toFixed(3)}%;top:${row * ROW}px`, title: text(at), 'aria-label': text(at),
      }, nodes[at][2]));
      if (row < path.length - 1) return put(path[row + 1], 0, 1, row + 1);
      let from = left;
      for (const inner of below[at]) {
        const part = width * nodes[inner][5] / nodes[at][5];
        put(inner, from, part, row + 1);
        from += part;
      }
    };
    put(0, 0, 1, 0);
    place.replaceChildren(...list);
  };

  // A pointer that rests is reported again wherever what is below it was drawn anew: then the keyboard has the word.
  let pointer = '';
  const moved = event => {
    const before = pointer;
    pointer = `${event.clientX},${event.clientY}`;
    return pointer !== before;
  };
  place.addEventListener('click', event => {
    if (event.detail) moved(event);
    const node = event.target.closest('.node');
    if (!node) return;
    current = root = Number(node.dataset.at);
    draw();
    say(root);
    place.querySelector(`[data-at="${root}"]`).focus();
  });
  place.addEventListener('pointerover', event => {
    const node = event.target.closest('.node');
    if (moved(event) && node) say(Number(node.dataset.at));
  });
  place.addEventListener('keydown', event => {
    const at = Number(event.target.dataset.at);
    const siblings = nodes[at][0] == null ? [at] : below[nodes[at][0]];
    const next = {
      ArrowDown: below[at][0], ArrowUp: nodes[at][0],
      ArrowRight: siblings[siblings.indexOf(at) + 1], ArrowLeft: siblings[siblings.indexOf(at) - 1],
    }[event.key];
    const node = next != null && place.querySelector(`[data-at="${next}"]`);
    if (!node) return;
    event.preventDefault();
    current = next;
    for (const one of place.children) one.tabIndex = one === node ? 0 : -1;
    node.focus();
    say(next);
  });
  draw();
  say(0);
})();
