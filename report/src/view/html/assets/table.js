// Sorting, filtering and unfolding of the table of regions.
'use strict';
(() => {
  const table = document.getElementById('regions-table');
  if (!table) return;
  const bodies = [...table.tBodies];
  const columns = [...table.tHead.querySelectorAll('button[data-sort]')].map(button => button.dataset.sort);
  const values = new Map(bodies.map(body => [body, JSON.parse(body.dataset.v)]));

  for (const button of table.tHead.querySelectorAll('button[data-sort]')) {
    button.addEventListener('click', () => {
      const head = button.parentElement;
      const column = columns.indexOf(button.dataset.sort);
      const first = column === 0 ? 'ascending' : 'descending';
      const other = column === 0 ? 'descending' : 'ascending';
      const order = head.getAttribute('aria-sort') === first ? other : first;
      for (const th of table.tHead.rows[0].cells) th.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', order);
      const sign = order === 'ascending' ? 1 : -1;
      // What has no value comes last in either order.
      const compare = (a, b) => {
        const [x, y] = [values.get(a)[column], values.get(b)[column]];
        if (x == null || y == null) return (x == null) - (y == null);
        return sign * (typeof x === 'string' ? x.localeCompare(y, undefined, { numeric: true }) : x - y);
      };
      table.append(...bodies.sort(compare));
    });
  }

  const filter = document.getElementById('filter');
  const shown = document.getElementById('shown');
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const body of bodies) {
      const text = body.dataset.text.toLowerCase();
      body.hidden = !words.every(word => text.includes(word));
      left += !body.hidden;
    }
    shown.textContent = words.length ? `${left} of ${bodies.length}` : '';
    document.getElementById('none').hidden = left > 0;
  });

  table.addEventListener('click', event => {
    const more = event.target.closest('.more');
    const body = event.target.closest('tbody.row');
    if (more) {
      const open = more.getAttribute('aria-expanded') !== 'true';
      more.setAttribute('aria-expanded', open);
      for (const row of body.querySelectorAll('.child')) row.hidden = !open;
    } else if (body && !event.target.closest('a') && !String(getSelection())) {
      location.hash = `#region=${body.dataset.key}`;
    }
  });

  // Up and down go from region to region.
  table.addEventListener('keydown', event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const link = event.target.closest('tbody.row th a');
    if (!step || !link) return;
    const links = [...table.querySelectorAll('tbody.row:not([hidden]) th a')];
    const next = links[links.indexOf(link) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
})();
