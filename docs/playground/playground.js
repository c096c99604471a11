// The playground: sliders in, pictures out. Who is served when is decided in worker.js, by the core.
const STEP_MS = 250; // of simulated time, and between two pictures
const POINTS = 120;
const SCENES = {
  'Noisy neighbour': { perSecond: 100, tenants: [['noisy', 180, 1, 0], ['acme', 12, 1, 0], ['globex', 8, 1, 0]] },
  'Who pays gets more': { perSecond: 100, tenants: [['gold', 120, 6, 0], ['silver', 120, 3, 0], ['bronze', 120, 1, 0]] },
  'A provider with a limit': { perSecond: 100, tenants: [['stripe', 60, 1, 20], ['mail', 40, 1, 0], ['sms', 30, 1, 0]] },
};
const root = document.getElementById('playground');
const make = (name, attributes = {}, ...children) => {
  const svg = ['svg', 'path', 'rect', 'text', 'line'].includes(name);
  const node = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

class Core {
  constructor() {
    this.worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      data.error ? reject(new Error(data.error)) : resolve(data.told);
    };
    this.worker.onerror = (event) => {
      for (const { reject } of this.waiting.values()) reject(new Error(event.message || 'the worker ended'));
    };
  }
  ask(what, rest = {}) {
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.count, { resolve, reject });
      this.worker.postMessage({ id: this.count, asked: { what, ...rest } });
    });
  }
}

const core = new Core();
let tenants, perSecond, past, running, changed;

async function begin(name) {
  const scene = SCENES[name];
  running = false;
  perSecond = scene.perSecond;
  tenants = scene.tenants.map(([name, rate, weight, limit]) => ({ name, rate, weight, limit }));
  past = [];
  changed = false;
  await core.ask('start', { tenants, workers: 4, per_second: perSecond });
  draw_controls(name);
  running = true;
  draw();
}

async function step() {
  if (!running) return;
  if (changed) {
    changed = false;
    await core.ask('change', { tenants, per_second: perSecond });
  }
  past.push(await core.ask('advance', { ms: STEP_MS }));
  if (past.length > POINTS) past.shift();
  draw();
}

function slider(label, value, min, max, told, set) {
  const shown = make('output', {}, told(value));
  const input = make('input', {
    type: 'range', min, max, value, 'aria-label': label,
    oninput: () => { set(Number(input.value)); shown.textContent = told(Number(input.value)); changed = true; },
  });
  return make('label', {}, make('span', {}, label.split(': ').at(-1)), input, shown);
}

function draw_controls(scene) {
  const choice = make('select', { 'aria-label': 'Scene', onchange: () => begin(choice.value) },
    ...Object.keys(SCENES).map((name) => make('option', name === scene ? { selected: '' } : {}, name)));
  const stop = make('button', { class: 'md-button', onclick: () => {
    running = !running;
    stop.textContent = running ? 'Pause' : 'Go on';
  } }, 'Pause');
  const rows = tenants.map((one, number) => make('fieldset', { class: `tenant-${number}` },
    make('legend', {}, one.name),
    slider(`${one.name}: sends`, one.rate, 0, 300, (n) => `${n}/s`, (n) => { one.rate = n; }),
    slider(`${one.name}: weight`, one.weight, 1, 10, (n) => `${n}`, (n) => { one.weight = n; }),
    slider(`${one.name}: limit`, one.limit, 0, 100, (n) => (n ? `${n}/s` : 'none'), (n) => { one.limit = n; }),
    make('button', { class: 'md-button', onclick: () => core.ask('burst', { number, count: 1000 }) }, 'Send 1,000 now')));
  root.replaceChildren(
    make('div', { class: 'playground-bar' }, choice,
      slider('All workers: workers finish', perSecond, 10, 400, (n) => `${n}/s`, (n) => { perSecond = n; }), stop),
    make('div', { class: 'playground-tenants' }, ...rows),
    make('div', { class: 'playground-pictures' }, ...['fair', 'fifo'].map((kind) => make('section', { id: `seen-${kind}` }))));
}

const recent = (kind, number, name) => past.slice(-8).map((one) => one[kind][number][name]);
const text_ms = (ms) => (ms < 0 ? '–' : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function draw() {
  for (const [kind, title] of [['fair', 'Fila'], ['fifo', 'First in, first out']]) {
    const sums = tenants.map((_, number) => recent(kind, number, 'delivered').reduce((a, b) => a + b, 0));
    const all = sums.reduce((a, b) => a + b, 0) || 1;
    const rows = tenants.map((one, number) => {
      const waits = recent(kind, number, 'wait_ms').filter((ms) => ms >= 0);
      const wait = waits.length ? waits.reduce((a, b) => a + b, 0) / waits.length : -1;
      const pending = past.length ? past.at(-1)[kind][number].pending : 0;
      return make('tr', { class: `tenant-${number}` }, make('th', { scope: 'row' }, one.name),
        make('td', {}, `${Math.round((100 * sums[number]) / all)} %`), make('td', {}, text_ms(wait)),
        make('td', {}, pending.toLocaleString('en')));
    });
    document.getElementById(`seen-${kind}`).replaceChildren(
      make('h3', {}, title), bars(sums, all), lines(kind),
      make('table', {}, make('thead', {}, make('tr', {}, ...['tenant', 'share', 'wait', 'pending'].map((name) => make('th', { scope: 'col' }, name)))),
        make('tbody', {}, ...rows)));
  }
}

function bars(sums, all) {
  let at = 0;
  const picture = make('svg', { viewBox: '0 0 400 24', role: 'img', 'aria-label': 'shares of what was delivered in the last two seconds' });
  sums.forEach((sum, number) => {
    const width = (400 * sum) / all;
    picture.append(make('rect', { x: at, y: 0, width, height: 24, class: `tenant-${number}` }));
    at += width;
  });
  return picture;
}

// Waits over the last half minute; every step upwards is ten times as long.
function lines(kind) {
  const x = (index) => (40 + (360 * index) / (POINTS - 1)).toFixed(1);
  const y = (ms) => 150 - (Math.log10(Math.max(ms, 1)) / 5) * 140;
  const picture = make('svg', { viewBox: '0 0 400 160', role: 'img', 'aria-label': 'waits of the last thirty seconds' });
  for (const [ms, name] of [[10, '10 ms'], [100, '0.1 s'], [1000, '1 s'], [10000, '10 s']]) {
    picture.append(make('line', { x1: 40, x2: 400, y1: y(ms), y2: y(ms), class: 'grid' }));
    picture.append(make('text', { x: 0, y: y(ms) + 4 }, name));
  }
  tenants.forEach((_, number) => {
    let path = '';
    past.forEach((one, index) => {
      const ms = one[kind][number].wait_ms;
      if (ms >= 0) path += `${path ? 'L' : 'M'}${x(index)},${y(ms).toFixed(1)}`;
    });
    picture.append(make('path', { d: path, class: `tenant-${number}` }));
  });
  return picture;
}

async function run() {
  try {
    await begin('Noisy neighbour');
    root.dataset.ready = 'true';
    for (;;) {
      const began = performance.now();
      await step();
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, STEP_MS - (performance.now() - began))));
    }
  } catch (error) {
    root.textContent = `The playground did not start: ${error.message}. It needs a browser with WebAssembly, and pages that come from a web server.`;
  }
}

if (location.protocol === 'file:') root.textContent = 'Browsers run no programs from files: open this page from a web server (python -m http.server).';
else run();
