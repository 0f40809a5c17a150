// The details of a pair of regions in a comparison.
'use strict';
ompfuse.pair = (r, { panel, table }) => {
  const { h, seconds } = ompfuse;
  const dash = text => text == null ? '–' : text;
  const side = (name, list) => h('div', {}, h('h4', {}, name), list.map(k => h('ul', { class: 'facts' },
    [['Place', k.file || k.place], ['Function', k.function], ['Schedule', k.schedule], ['Addresses', k.addresses.slice(0, 6).join(', ')]]
      .filter(([, value]) => value).map(([what, value]) => h('li', {}, h('span', { class: 'what' }, what), ' ', h('span', { class: 'value' }, value))))));
  // Which share of the units takes at most so long.
  const distributions = () => {
    const known = r.quantiles.map((list, n) => list && { list, n }).filter(Boolean);
    if (!known.length) return null;
    const away = r.distance == null ? '' : ` Units differ by ${ompfuse.percent(r.distance)} of A’s mean time.`;
    return panel('How long units take', `Share of the units that take at most so long.${away}`,
      ompfuse.cumulative(known.map(({ list, n }) => ({ name: 'AB'[n], class: `line of-${n}`, list }))),
      h('ul', { class: 'keys' }, known.map(({ n }) => h('li', {}, h('span', { class: `key by-${n}` }), 'AB'[n]))));
  };
  return [
    r.causes.length > 0 && panel('What changed', null, h('ul', {}, r.causes.map(cause => h('li', {}, cause)))),
    panel('Quantities', null, table(['Quantity', 'A', 'B', 'Change', 'How sure'], r.changes.map(([what, a, b, change, sure, tone]) =>
      [what, dash(a), dash(b), h('span', { class: tone }, change), h('span', { class: 'sub' }, sure)]), 'All quantities')),
    distributions(),
    r.unit && panel('The unit that got slower most', r.unit[4] ? 'Certain: slower in every run' : 'By chance some unit always is',
      table(['Unit', 'A', 'B', 'Label'], [[r.unit[0], seconds(r.unit[1]), seconds(r.unit[2]), h('code', {}, r.unit[3][1])]], 'A unit on both sides')),
    panel('Match', r.basis + (r.group ? '; compared as a sum, since they can’t be told apart' : ''), h('div', { class: 'two' }, side('A', r.sides[0]), side('B', r.sides[1]))),
  ];
};
