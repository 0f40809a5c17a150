// Opens pages of ompfuse in a browser and looks at them. usage: node check.mjs FOLDER, with what tests/e2e/page.rs has written there.
import assert from 'node:assert/strict';
import { readFileSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const folder = process.argv[2];
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });

// A page that must not ask for anything, nor complain, nor move by itself.
async function open(name, { width = 1280, scheme = 'light', hash = '' } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  const page = await context.newPage();
  const said = [];
  page.on('console', message => { if (['error', 'warning'].includes(message.type())) said.push(message.text()); });
  page.on('pageerror', error => said.push(String(error)));
  page.on('request', request => { if (!/^(file|data|blob):/.test(request.url())) said.push(`asks for ${request.url()}`); });
  page.on('dialog', dialog => { said.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  await page.addInitScript(() => {
    window.shift = 0;
    new PerformanceObserver(list => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
    }).observe({ type: 'layout-shift', buffered: true });
  });
  await page.goto(`file://${join(folder, name)}${hash}`);
  return {
    page,
    async close() {
      await page.waitForTimeout(50);
      assert.deepEqual(said, [], `${name}: the console is silent`);
      const shift = await page.evaluate(() => window.shift);
      assert.ok(shift < 0.02, `${name}: nothing moves by itself (${shift})`);
      await context.close();
    },
  };
}

async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
  const serious = found.violations.filter(v => ['serious', 'critical'].includes(v.impact));
  const told = serious.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => `${n.target} ${n.failureSummary}`).join('; ')}`);
  assert.deepEqual(told, [], `${what}: axe`);
}

// A shown number in its base unit: 12.3 ms, 4.56 k, 7.8%.
function number(text) {
  const [, value, unit] = /^[≈~]?\s*([\d.]+)\s*(.*)$/.exec(text.trim()) ?? assert.fail(`no number: ${text}`);
  const factors = { '': 1, '%': 1e-2, s: 1, ms: 1e-3, 'µs': 1e-6, ns: 1e-9, h: 3600, k: 1e3, M: 1e6, G: 1e9 };
  return Number(value) * (factors[unit] ?? assert.fail(`unit of ${text}`));
}
const close = (shown, exact, what) => assert.ok(Math.abs(shown - exact) <= 0.006 * Math.abs(exact) + 1e-9, `${what}: ${shown} is shown for ${exact}`);

async function checks() {
  const model = JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'));
  let { page, close: done } = await open('run.html');

  // Formats are those of the command.
  const formats = await page.evaluate(() => [[0, 3e-9, 0.9996e-6, 1.5e-6, 0.012345, 0.99951, 99.96, 4321, 36000].map(ompfuse.seconds),
    [0, 9999, 10000, 123456, 999600, 2 ** 40].map(ompfuse.count), ompfuse.percent(0.12345)]);
  assert.deepEqual(formats, [['0', '3 ns', '1.00 µs', '1.50 µs', '12.3 ms', '1.00 s', '100 s', '4321 s', '10.0 h'],
    ['0', '9999', '10.0 k', '123 k', '1.00 M', '1.10 T'], '12.3%']);

  // The table's numbers are the model's, and the times add up.
  const rows = await page.$$eval('#regions-table tbody', bodies => bodies.map(body => ({
    key: body.dataset.key, values: JSON.parse(body.dataset.v), cells: Object.fromEntries([...body.rows[0].cells].map(c => [c.classList[0], c.innerText])),
  })));
  const sum = rows.reduce((all, row) => all + row.values[2], 0);
  close(sum, model.available_s, 'all times');
  for (const region of model.regions) {
    const kind = region.construct + (region.combined_with ? ` ${region.combined_with}` : '');
    const key = `${kind}@${region.source.file.split('/').pop()}:${region.source.line}`.replace(' ', '-');
    const same = model.regions.filter(r => r.construct === region.construct && r.source.line === region.source.line && r.combined_with === region.combined_with);
    const row = rows.find(r => r.key === key) ?? assert.fail(`a row of ${key}: ${rows.map(r => r.key)}`);
    const all = name => same.reduce((total, r) => total + r[name], 0);
    close(number(row.cells['c-time']), all('time_s'), `time of ${key}`);
    assert.equal(row.cells['c-share'].trim(), `${(100 * all('of_available')).toFixed(1)}%`);
    if (all('xus')) close(number(row.cells['c-units']), all('xus'), `units of ${key}`);
  }
  const parts = await page.$$eval('#overview .legend li:not([data-part=probes]) .num', list => list.map(e => e.textContent));
  close(parts.map(number).reduce((a, b) => a + b), 1, 'parts of the available time');
  const headline = await page.textContent('.headline');
  assert.match(headline, /time is lost|No loss/);

  // Sorting, by mouse and by keyboard; what is not known comes last.
  const names = await page.$$eval('#regions-table button[data-sort]', buttons => buttons.map(b => b.dataset.sort));
  const column = name => page.$$eval('#regions-table tbody', (bodies, at) => bodies.map(b => JSON.parse(b.dataset.v)[at]), names.indexOf(name));
  const isSorted = (list, sign) => list.filter(v => v != null).every((v, at, all) => !at || sign * (all[at - 1] - v) <= 0);
  await page.click('button[data-sort=time]');
  assert.ok(isSorted(await column('time'), -1), 'longest first');
  await page.focus('button[data-sort=max]');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  const longest = await column('max');
  assert.ok(isSorted(longest, 1), `shortest first: ${longest}`);
  assert.ok(longest.lastIndexOf(longest.findLast(v => v != null)) < (longest.indexOf(null) + 1 || Infinity), 'unknown last');
  assert.equal(await page.getAttribute('th:has(button[data-sort=max])', 'aria-sort'), 'ascending');

  // Filter.
  await page.fill('#filter', 'critical');
  const left = await page.$$eval('#regions-table tbody', bodies => bodies.filter(b => !b.hidden).map(b => b.dataset.key));
  assert.ok(left.length === 1 && left[0].startsWith('critical@'), `${left}`);
  await page.fill('#filter', 'no such thing');
  assert.ok(await page.isVisible('#none'));
  await page.fill('#filter', '');

  // Selection, by keyboard and by mouse; the address names it.
  const loop = rows.find(r => /loop@/.test(r.key) && r.values[4] > 0).key;
  await page.focus('#regions-table tbody.row th a');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#detail h2');
  await page.click(`tbody[data-key="${loop}"] td.c-time`);
  await page.waitForFunction(key => decodeURIComponent(location.hash) === `#region=${key}`, loop);
  const detail = await page.innerText('#detail');
  for (const wanted of ['Threads', 'How long units took', 'The longest units', 'Source', '#pragma omp']) {
    assert.ok(detail.includes(wanted), `${wanted} is in the details: ${detail}`);
  }
  await page.waitForSelector('#detail svg rect.column');
  const columns = await page.$$eval('#detail rect.column title', list => list.length);
  assert.ok(columns > 0, 'a histogram');
  await page.click('#detail .close');
  await page.waitForSelector('#detail', { state: 'hidden' });
  await page.click(`tbody[data-key="${loop}"] td.c-time`);
  await page.waitForSelector('#detail h2');
  await page.keyboard.press('Escape');
  await page.waitForSelector('#detail', { state: 'hidden' });
  assert.equal(await page.evaluate(() => document.activeElement.closest('tbody').dataset.key), loop);

  // The call paths: zoom, by mouse and by keyboard.
  await page.click('#icicle .node:nth-child(2)');
  await page.mouse.move(2, 2);
  assert.match(await page.innerText('#icicle-told'), /inclusive/);
  await page.keyboard.press('ArrowUp');
  assert.match(await page.innerText('#icicle-told'), /^program/);
  await page.waitForSelector('#growth svg rect.fill');

  // Light and dark by the switch.
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await back();
  await page.click('#theme');
  assert.notEqual(await back(), light);
  await done();

  // Deep links, everywhere.
  for (const scheme of ['light', 'dark']) {
    ({ page, close: done } = await open('run.html', { scheme, hash: `#region=${loop}` }));
    await page.waitForSelector('#detail svg');
    assert.equal(await page.getAttribute(`tbody[data-key="${loop}"]`, 'aria-current'), 'true');
    await accessible(page, `details, ${scheme}`);
    await done();
  }
  const pages = ['run.html', 'series.html', 'diff.html', 'hostile.html', 'redacted.html', 'history.html'];
  for (const [name, scheme] of [['series.html', 'light'], ['diff.html', 'dark']]) {
    const hash = name === 'diff.html' ? `#region=${first(name)}` : '';
    ({ page, close: done } = await open(name, { scheme, hash }));
    await page.waitForSelector(name === 'diff.html' ? '#detail table' : '#scaling-program svg');
    await accessible(page, name);
    await done();
  }
  for (const scheme of ['light', 'dark']) {
    ({ page, close: done } = await open('history.html', { scheme }));
    await page.waitForSelector('#curves svg');
    assert.equal(await page.$$eval('#overview svg path.dot', list => list.length), 3, 'a point for each commit');
    await accessible(page, `history, ${scheme}`);
    await done();
  }
  ({ page, close: done } = await open('unsteady.html'));
  assert.equal(await page.$$eval('#overview svg path.dot', list => list.length), 3, 'counts have their points');
  assert.ok(!/Curves/.test(await page.innerText('body')), 'no heading of nothing');
  await done();
  for (const name of pages) {
    const hash = ['series.html', 'history.html'].includes(name) ? '' : `#region=${first(name)}`;
    ({ page, close: done } = await open(name, { width: 390, hash }));
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${name}: ${width} pixels of 390`);
    if (name === 'run.html') await accessible(page, 'narrow');
    await done();
  }

  // What names hold stays text.
  ({ page, close: done } = await open('hostile.html', { hash: `#region=${first('hostile.html')}` }));
  await page.waitForTimeout(100);
  const injected = await page.evaluate(() => [window.injected, document.querySelectorAll('img, iframe, b').length]);
  assert.deepEqual(injected, [undefined, 0], 'nothing is injected');
  assert.ok((await page.innerText('body')).includes('<img src=x onerror='), 'but shown');
  await done();
}

// The first region's key.
function first(name) {
  const [, key] = /<tbody class="row" data-key="([^"]*)"/.exec(readFileSync(join(folder, name), 'utf8'));
  return encodeURIComponent(key);
}

assert.ok(existsSync(folder), `usage: node check.mjs FOLDER`);
try {
  await checks();
} finally {
  await browser.close();
}
