// How long a page's timeline takes to load and to draw, in Chromium.
// usage: node frames.cjs NODE_MODULES PAGE
'use strict';
const path = require('node:path');

const [modules, file] = process.argv.slice(2);
const { chromium } = require(path.resolve(modules, 'playwright-core'));

(async () => {
  const args = ['--no-sandbox', '--enable-precise-memory-info', '--js-flags=--expose-gc'];
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const began = Date.now();
  await page.goto(`file://${path.resolve(file)}`);
  await page.waitForFunction(() => window.ompfuseTimeline && window.ompfuseTimeline.view, null, { timeout: 120000 });
  const loaded = Date.now() - began;
  const told = await page.evaluate(async () => {
    const { view } = ompfuseTimeline;
    const times = [];
    for (let n = 0; n < 120; n++) {
      const from = performance.now();
      view.show(view.length * 0.001 * n, view.length * (1 - 0.004 * n));
      view.paint();
      times.push(performance.now() - from);
    }
    times.sort((a, b) => a - b);
    if (window.gc) gc();
    return {
      lanes: view.decoded.lanes.length, spans: view.decoded.spans.start.length, rows: view.rows.length,
      timeline_ms: Math.round(view.loadedIn), frame_median_ms: times[60], frame_p95_ms: times[114],
      heap_mb: performance.memory.usedJSHeapSize / 1e6,
    };
  });
  console.log(JSON.stringify({ ...told, load_ms: loaded, page_mb: require('node:fs').statSync(file).size / 1e6 }));
  await browser.close();
})().catch(error => { console.error(error); process.exit(1); });
