// The page's timeline in Chromium: what it shows is the table of units; zoom, pan, search, choosing a unit; by mouse, keys and fingers.
// usage: node timeline.cjs NODE_MODULES PAGE UNITS, where UNITS is JSON: [{label, own_ns}, ...]
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');

const [modules, file, unitsFile] = process.argv.slice(2);
const { chromium } = require(path.resolve(modules, 'playwright-core'));

(async () => {
  const units = JSON.parse(fs.readFileSync(unitsFile, 'utf8'));
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const said = [];
  page.on('console', message => said.push(message.text()));
  page.on('pageerror', error => said.push(error.message));
  await page.goto(`file://${path.resolve(file)}`);
  await page.waitForFunction(() => window.ompfuseTimeline && window.ompfuseTimeline.view);

  // What was decoded is what was recorded.
  const shown = await page.evaluate(() => {
    const { spans, items, lanes } = ompfuseTimeline.view.decoded;
    const by = {};
    items.label.forEach((label, at) => { if (label) by[label] = (by[label] ?? 0) + items.own[at]; });
    let ordered = true;
    for (const lane of lanes) {
      for (let at = lane.from; at < lane.to; at++) {
        ordered &&= spans.end[at] >= spans.start[at] && (at === lane.from || spans.start[at] >= spans.end[at - 1]);
      }
    }
    return { by, ordered, spans: spans.start.length, told: document.querySelector('.ot-root').dataset.spans };
  });
  const own = {};
  for (const unit of units) own[unit.label] = (own[unit.label] ?? 0) + Number(unit.own_ns);
  assert.deepStrictEqual(Object.keys(shown.by).sort(), Object.keys(own).sort());
  for (const [label, ns] of Object.entries(own)) assert(Math.abs(shown.by[label] - ns) <= 4, `${label}: ${shown.by[label]}, ${ns}`);
  assert(shown.ordered && String(shown.spans) === shown.told);

  // Each piece of the critical path is a unit, and has a line below it.
  const critical = await page.evaluate(() => {
    const { view } = ompfuseTimeline;
    const { spans, items, lanes } = view.decoded;
    const pieces = view.data.paths.flat();
    const isUnit = ([lane, begin]) => {
      for (let at = lanes[lane].from; at < lanes[lane].to; at++) {
        if (spans.start[at] === begin) return spans.item[at] >= 0 && Boolean(items.label[spans.item[at]]);
      }
      return false;
    };
    const [lane, begin, end] = pieces.reduce((a, b) => (b[2] - b[1] > a[2] - a[1] ? b : a));
    view.show(begin - (end - begin), end + (end - begin));
    view.paint();
    const row = view.rows.findIndex(r => r.lane === lanes[lane]);
    const y = row * ompfuseTimeline.ROW + 21 - view.parts.scroll.scrollTop;
    const ratio = window.devicePixelRatio;
    // A piece near an end of the run is not in the middle of what is seen.
    const x = ((begin + end) / 2 - view.t0) / (view.t1 - view.t0) * view.width;
    const drawn = [...view.parts.lanes.getContext('2d').getImageData(x * ratio, y * ratio, 1, 1).data];
    const probe = document.createElement('canvas').getContext('2d');
    probe.fillStyle = view.style.path;
    probe.fillRect(0, 0, 1, 1);
    view.show(0, view.length);
    return { pieces: pieces.length, units: pieces.filter(isUnit).length, drawn, wanted: [...probe.getImageData(0, 0, 1, 1).data] };
  });
  assert(critical.pieces > 0 && critical.units > 0, JSON.stringify(critical));
  assert.deepStrictEqual(critical.drawn, critical.wanted);

  const lanes = page.locator('.ot-lanes');
  await lanes.scrollIntoViewIfNeeded();
  const seen = () => page.evaluate(() => [ompfuseTimeline.view.t0, ompfuseTimeline.view.t1]);
  const length = async () => { const [t0, t1] = await seen(); return t1 - t0; };
  const whole = await length();
  let box = await lanes.boundingBox();

  // Zoom by wheel and keys, pan by mouse and keys.
  await page.mouse.move(box.x + box.width / 2, box.y + 12);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -240);
  await page.keyboard.up('Control');
  await page.waitForFunction(all => ompfuseTimeline.view.t1 - ompfuseTimeline.view.t0 < all * 0.7, whole);
  const before = await seen();
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 - 100, box.y + 12, { steps: 4 });
  await page.mouse.up();
  assert((await seen())[0] > before[0], 'dragging to the left shows what is later');
  await lanes.focus();
  const dragged = await length();
  await page.keyboard.press('+');
  assert(Math.abs(await length() - dragged / 2) < 1);
  const zoomed = await seen();
  await page.keyboard.press('ArrowLeft');
  assert((await seen())[0] < zoomed[0]);
  await page.keyboard.press('0');
  assert.strictEqual(await length(), whole);

  // Search counts what is found; the next of them is shown.
  const wanted = await page.evaluate(() => {
    const { data, decoded: { spans, items } } = ompfuseTimeline.view;
    let [best, most] = [-1, 0];
    for (let at = 0; at < spans.start.length; at++) {
      const isUnit = spans.item[at] >= 0 && items.label[spans.item[at]];
      if (isUnit && spans.end[at] - spans.start[at] > most) [best, most] = [at, spans.end[at] - spans.start[at]];
    }
    const region = data.regions[data.whats[spans.what[best]][1]];
    const number = spans.what.reduce((n, what) => n + ((data.regions[data.whats[what][1]] ?? {}).place === region.place ? 1 : 0), 0);
    return { best, place: region.place, key: region.key, label: items.label[spans.item[best]], number };
  });
  await page.fill('.ot-search', wanted.place);
  const found = await page.textContent('.ot-found');
  assert(found.startsWith(`${await page.evaluate(n => ompfuse.count(n), wanted.number)} spans`), found);
  await page.click('.ot-next');
  assert((await page.textContent('.ot-chosen')).includes(wanted.place));
  await page.fill('.ot-search', '');

  // A click chooses a unit and tells of it; a link opens its region.
  const at = await page.evaluate(best => {
    const { view } = ompfuseTimeline;
    const { spans } = view.decoded;
    const [from, to] = [spans.start[best], spans.end[best]];
    view.show(from - (to - from), to + (to - from));
    const row = view.rows.findIndex(r => r.lane && r.lane.from <= best && best < r.lane.to);
    return [view.width / 2, row * ompfuseTimeline.ROW + 12 - view.parts.scroll.scrollTop];
  }, wanted.best);
  await lanes.scrollIntoViewIfNeeded();
  box = await lanes.boundingBox();
  await page.mouse.click(box.x + at[0], box.y + at[1]);
  assert((await page.textContent('.ot-chosen')).includes(wanted.label));
  await page.click('.ot-chosen a');
  assert.strictEqual(decodeURIComponent(await page.evaluate(() => location.hash)), `#region=${wanted.key}`);

  // On a telephone: two fingers zoom, one moves along, a tap chooses.
  const phone = await browser.newContext({ viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
  const small = await phone.newPage();
  small.on('console', message => said.push(message.text()));
  small.on('pageerror', error => said.push(error.message));
  await small.goto(`file://${path.resolve(file)}`);
  await small.waitForFunction(() => window.ompfuseTimeline && window.ompfuseTimeline.view);
  const area = small.locator('.ot-lanes');
  await area.scrollIntoViewIfNeeded();
  const of = await area.boundingBox();
  const fingers = await phone.newCDPSession(small);
  const touch = (type, points) => fingers.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  const now = () => small.evaluate(() => [ompfuseTimeline.view.t0, ompfuseTimeline.view.t1]);
  const [y, middle] = [of.y + 12, of.x + of.width / 2];
  const all = await now();
  await touch('touchStart', [[middle - 20, y], [middle + 20, y]]);
  for (const d of [30, 45, 60, 80]) await touch('touchMove', [[middle - d, y], [middle + d, y]]);
  await touch('touchEnd', []);
  const pinched = await now();
  assert((pinched[1] - pinched[0]) < 0.6 * (all[1] - all[0]), `two fingers zoom: ${all} to ${pinched}`);
  await touch('touchStart', [[middle, y]]);
  for (const d of [10, 30, 60]) await touch('touchMove', [[middle - d, y]]);
  await touch('touchEnd', []);
  const moved = await now();
  assert(moved[0] > pinched[0], `a finger to the left shows what is later: ${pinched} to ${moved}`);
  const tapped = await small.evaluate(best => {
    const { view } = ompfuseTimeline;
    const { spans } = view.decoded;
    view.show(spans.start[best], spans.end[best]);
    const row = view.rows.findIndex(r => r.lane && r.lane.from <= best && best < r.lane.to);
    return row * ompfuseTimeline.ROW + 12 - view.parts.scroll.scrollTop;
  }, wanted.best);
  await area.scrollIntoViewIfNeeded();
  const again = await area.boundingBox();
  await small.touchscreen.tap(again.x + again.width / 2, again.y + tapped);
  assert((await small.textContent('.ot-chosen')).includes(wanted.label), 'a tap chooses');
  assert.deepStrictEqual(said, []);
  await browser.close();
})().catch(error => { console.error(error); process.exit(1); });
