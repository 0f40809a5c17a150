// Numbers as people read them: the same as ompfuse_account::units, which a test compares.
'use strict';
window.ompfuse = {};
ompfuse.three = value => {
  const a = Math.abs(value);
  return value.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
};
ompfuse.seconds = s => {
  if (s === 0) return '0';
  const a = Math.abs(s);
  if (a >= 9999.5) return ompfuse.three(s / 3600) + ' h';
  if (a >= 0.9995) return ompfuse.three(s) + ' s';
  if (a >= 0.9995e-3) return ompfuse.three(s * 1e3) + ' ms';
  if (a >= 0.9995e-6) return ompfuse.three(s * 1e6) + ' µs';
  return (s * 1e9).toFixed(0) + ' ns';
};
ompfuse.count = n => {
  if (n < 10000) return String(n);
  let value = n / 1e3;
  let unit = 'k';
  for (const next of ['M', 'G', 'T', 'P', 'E']) {
    if (value < 999.5) break;
    [value, unit] = [value / 1e3, next];
  }
  return `${ompfuse.three(value)} ${unit}`;
};
ompfuse.percent = share => (share * 100).toFixed(1) + '%';
