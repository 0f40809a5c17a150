// Starts the page: light and dark, the timeline, and what its address names.
'use strict';
(() => {
  const root = document.documentElement;
  document.getElementById('theme').addEventListener('click', () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    try { localStorage.setItem('ompfuse-theme', root.dataset.theme); } catch { /* a page from disk may have no storage */ }
    window.dispatchEvent(new Event('ompfuse-theme'));
  });

  const timeline = document.getElementById('timeline');
  const spans = document.getElementById('timeline-data');
  if (timeline && spans && window.ompfuseTimeline) {
    window.ompfuseTimeline.mount(timeline, JSON.parse(spans.textContent));
  }

  // The navigation says which section is seen.
  const links = new Map([...document.querySelectorAll('.top nav a')].map(a => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries.filter(e => e.isIntersecting)) {
      for (const [id, link] of links) {
        if (id === entry.target.id) link.setAttribute('aria-current', 'true');
        else link.removeAttribute('aria-current');
      }
    }
  }, { rootMargin: '-15% 0px -75% 0px' });
  for (const id of links.keys()) seen.observe(document.getElementById(id));

  if (ompfuse.select && location.hash) ompfuse.select();
})();
