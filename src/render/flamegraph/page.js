// Makes the picture a page: the boxes in view are drawn on a canvas, at the window's width, and can be pointed at,
// searched and zoomed into. The search and the zoom are in the address after "#", so that it can be passed on.
(() => {
  'use strict';
  const svg = document.documentElement;
  const textOf = id => svg.querySelector('#' + id).textContent;
  const facts = JSON.parse(textOf('facts'));
  const names = textOf('names').split('\n');
  const boxes = readBoxes();
  const rows = Array.from({ length: facts.rows }, () => []);
  boxes.forEach(box => rows[box.row].push(box));
  const whole = { start: 0, end: facts.total, row: -1 };
  const MARGIN = 8, NARROWEST = facts.chart ? 1 : 0.3, AXIS = facts.chart ? 22 : 0;

  let view = whole, hovered = null, found = null, colors, widths = new Map();
  const page = build();
  const pen = page.canvas.getContext('2d');

  function readBoxes() {
    const all = [];
    for (const group of svg.querySelectorAll('g[data-b]')) {
      let start = 0;
      for (const record of group.getAttribute('data-b').split(' ')) {
        const [row, skip, width, name, color, shares, before] = record.split(',');
        start += +skip;
        all.push({ row: +row, start, end: start + +width, name: +name, color, shares, before });
      }
    }
    return all;
  }

  // Elements of HTML: the document stays XML, so nothing is ever parsed out of a name.
  function make(tag, parent, properties, text) {
    const element = document.createElementNS('http://www.w3.org/1999/xhtml', tag);
    Object.assign(element, properties);
    if (text) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  function build() {
    const html = make('html');
    const head = make('head', html);
    make('title', head, {}, facts.title);
    const styles = svg.querySelector('style').textContent;
    make('style', head, {}, styles);
    const body = make('body', html, { className: facts.inverted ? 'inverted' : '' });
    const header = make('header', body);
    make('h1', header, { title: facts.title }, facts.title);
    make('div', header, { className: 'known' }, facts.facts);
    const legend = make('div', header, { className: 'legend' });
    const main = make('main', body);
    const scroll = make('div', main, { className: 'scroll', tabIndex: 0 });
    const spacer = make('div', scroll);
    spacer.style.height = facts.rows * facts.row + 2 * MARGIN + AXIS + 'px';
    const canvas = make('canvas', main);
    const footer = make('footer', body);
    const hover = make('div', footer, { className: 'hover' });
    const what = make('div', hover, { className: 'what' });
    const much = make('div', hover, { className: 'much' });
    const find = make('div', footer, { className: 'find' });
    const output = make('output', find);
    const input = make('input', find, { type: 'text', placeholder: 'Search (Ctrl-F)', title: 'Part of a name' });
    const label = make('label', find, { title: 'The text is a regular expression' });
    const regex = make('input', label, { type: 'checkbox' });
    label.append(' regex');
    const reset = make('button', find, { title: 'Show everything (Esc)' }, 'Reset zoom');
    const probe = make('div', body, { hidden: true });
    document.replaceChild(html, svg);
    return { body, legend, main, scroll, canvas, what, much, output, input, regex, reset, probe };
  }

  // The style sheet has the colors of both themes: it is queried by letter and shade.
  function readColors() {
    colors = new Map();
    const image = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    page.body.append(image);
    const asked = new Set(boxes.map(box => box.color));
    for (const letter of facts.legend.map(([letter]) => letter)) asked.add(letter + '0');
    for (const { shares } of boxes) for (const [, letter] of (shares || '').matchAll(/([a-z])\d+/g)) asked.add(letter + '0');
    for (const color of asked) {
      const styled = (tag, name) => {
        const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
        element.setAttribute('class', name + color);
        image.append(element);
        return getComputedStyle(element);
      };
      const { stroke } = styled('path', 'c'), ink = styled('text', 'c').fill;
      // Unnamed code is hatched.
      const isHatched = stroke.startsWith('url'), base = isHatched ? styled('rect', 'c').fill : stroke;
      const line = isHatched && styled('path', 'h').stroke;
      colors.set(color, [line ? hatched(base, line) : base, ink, line ? `repeating-linear-gradient(135deg,${base} 0 3px,${line} 3px 5px)` : base]);
    }
    image.remove();
    const root = getComputedStyle(document.documentElement);
    for (const name of ['page', 'ink', 'dim', 'line', 'found']) colors.set(name, root.getPropertyValue('--' + name).trim());
    colors.set('font', facts.font + 'px ' + root.getPropertyValue('--font'));
    page.legend.replaceChildren();
    for (const [letter, text] of facts.legend) {
      const entry = make('span', page.legend);
      make('i', entry).style.background = colors.get(letter + '0')[2];
      entry.append(text);
    }
  }

  // A pattern for the canvas: two colors in diagonal lines that go on from tile to tile.
  function hatched(base, line) {
    const tile = make('canvas'), size = tile.width = tile.height = 8, tilePen = tile.getContext('2d');
    tilePen.fillStyle = base;
    tilePen.fillRect(0, 0, size, size);
    tilePen.strokeStyle = line;
    tilePen.lineWidth = 2;
    tilePen.beginPath();
    for (const at of [-size, 0, size]) {
      tilePen.moveTo(at - 1, size + 1);
      tilePen.lineTo(at + size + 1, -1);
    }
    tilePen.stroke();
    return tilePen.createPattern(tile, 'repeat');
  }

  // Geometry: rows from below, or from above if inverted; a graph that is lower than the window is on the bar.
  const extent = () => ({ width: page.scroll.clientWidth, height: page.scroll.clientHeight });
  const scaleOf = width => (width - 2 * MARGIN) / (view.end - view.start);
  function topOf(row, height) {
    const content = facts.rows * facts.row + 2 * MARGIN + AXIS;
    const lower = facts.inverted ? 0 : Math.max(0, height - content);
    return lower + MARGIN + (facts.inverted ? row : facts.rows - 1 - row) * facts.row - page.scroll.scrollTop;
  }

  function draw() {
    const { width, height } = extent();
    const ratio = window.devicePixelRatio || 1;
    if (page.canvas.width !== Math.round(width * ratio) || page.canvas.height !== Math.round(height * ratio)) {
      page.canvas.width = Math.round(width * ratio);
      page.canvas.height = Math.round(height * ratio);
      page.canvas.style.width = width + 'px';
      page.canvas.style.height = height + 'px';
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colors.get('page');
    pen.fillRect(0, 0, width, height);
    pen.font = colors.get('font');
    pen.textBaseline = 'middle';
    for (let row = 0; row < facts.rows; row++) {
      const top = topOf(row, height);
      if (top > height || top + facts.row < 0) continue;
      drawRow(rows[row], top, width);
    }
    if (facts.chart) drawAxis(width, height);
    page.reset.style.visibility = view === whole ? 'hidden' : 'visible';
  }

  function firstInView(row) {
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].end <= view.start) low = middle + 1; else high = middle;
    }
    return low;
  }

  function drawRow(row, top, width) {
    const scale = scaleOf(width);
    let drawnTo = -1;
    for (let at = firstInView(row); at < row.length && row[at].start < view.end; at++) {
      const box = row[at];
      const left = MARGIN + (Math.max(box.start, view.start) - view.start) * scale;
      const right = MARGIN + (Math.min(box.end, view.end) - view.start) * scale;
      // A box that is too narrow to be seen is drawn once a part of a pixel.
      if (right - left < NARROWEST && right - drawnTo < NARROWEST) continue;
      drawnTo = right;
      drawBox(box, left, Math.max(right - left, NARROWEST), top);
    }
  }

  function drawBox(box, left, width, top) {
    const [fill, ink] = colors.get(box.color), height = facts.row - 1;
    const shown = width > 2 ? width - 1 : width, isFound = found && found.names[box.name] && isSearched(box);
    const isBelow = view !== whole && (box.start < view.start || box.end > view.end);
    pen.globalAlpha = isBelow ? 0.5 : 1;
    if (box.color[0] !== 'l') {
      pen.fillStyle = isFound ? colors.get('found') : fill;
      pen.fillRect(left, top, shown, height);
      if (box.shares && width > 8) drawShares(box, left, shown, top + height - 3);
    }
    if (box === hovered) {
      pen.strokeStyle = colors.get('ink');
      pen.lineWidth = 1.5;
      pen.strokeRect(left + 0.5, top + 0.5, Math.max(shown - 1, 0.5), height - 1);
    }
    pen.globalAlpha = 1;
    const text = width > facts.font * 1.6 && fit(box, shown - 5);
    if (!text) return;
    pen.fillStyle = isFound ? '#fff' : ink;
    pen.fillText(text, left + 3, top + height / 2 + 0.5);
  }

  function drawShares(box, left, width, top) {
    const shares = sharesOf(box), all = shares.reduce((sum, [, amount]) => sum + amount, 0);
    for (const [letter, amount] of shares) {
      pen.fillStyle = colors.get(letter + '0')[0];
      pen.fillRect(left, top, width * amount / all, 3);
      left += width * amount / all;
    }
  }

  const sharesOf = box => Array.from((box.shares || '').matchAll(/([a-z])(\d+)/g), ([, letter, amount]) => [letter, +amount]);

  function drawAxis(width, height) {
    const scale = scaleOf(width), marks = Math.max(2, Math.floor(width / 140)), top = height - AXIS;
    const apart = roundUp((view.end - view.start) * facts.unit / marks) / facts.unit;
    pen.fillStyle = colors.get('page');
    pen.fillRect(0, top, width, AXIS);
    for (let at = Math.ceil(view.start / apart) * apart; at <= view.end; at += apart) {
      const x = MARGIN + (at - view.start) * scale;
      pen.fillStyle = colors.get('line');
      pen.fillRect(x, 0, 1, height);
      pen.fillStyle = colors.get('dim');
      pen.fillText(told(at), x + 4, top + AXIS / 2);
    }
  }

  // The next of 1, 2, 5, 10, 20, 50 …
  function roundUp(amount) {
    const ten = 10 ** Math.floor(Math.log10(amount));
    return [1, 2, 5, 10].map(step => step * ten).find(step => step >= amount * 0.999);
  }

  // As much of a name as there is room for: first without namespaces, then with its end cut.
  function fit(box, room) {
    const name = names[box.name];
    if (widthOf(name) <= room) return name;
    if (facts.cutBegin) return cut(name, room, (text, length) => '…' + text.slice(text.length - length));
    let shortest = name;
    for (const at of qualifiedAt(name, isJit(box))) {
      shortest = name.slice(at);
      if (widthOf(shortest) <= room) return shortest;
    }
    return cut(shortest, room, (text, length) => text.slice(0, length) + '…');
  }

  const isJit = box => 'abmocswrj'.includes(box.color[0]);

  function cut(text, room, part) {
    let low = 0, high = Math.min(text.length, Math.ceil(room / 2));
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(part(text, middle)).width <= room) low = middle; else high = middle - 1;
    }
    return low < 2 ? '' : part(text, low);
  }

  function widthOf(text) {
    let width = widths.get(text);
    if (width === undefined) widths.set(text, width = pen.measureText(text).width);
    return width;
  }

  function qualifiedAt(name, dots) {
    const found = [];
    let depth = 0;
    for (let at = 0; at + 1 < name.length; at++) {
      const letter = name[at];
      if ('<([{'.includes(letter)) depth++;
      else if ('>)]}'.includes(letter)) depth = Math.max(0, depth - 1);
      else if (depth) continue;
      else if (letter === ' ') break;
      else if (letter === ':' && at && name[at - 1] === ':' || dots && letter === '.' && at && name[at - 1] !== '.' && name[at + 1] !== '.') found.push(at + 1);
    }
    return found;
  }

  // Amounts as people read them.
  function told(amount) {
    const value = amount * facts.unit * facts.factor;
    const units = {
      time: [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']],
      bytes: [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'bytes']],
      large: [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']],
    }[facts.scale];
    const name = facts.counts ? ' ' + facts.counts : '';
    if (!units || facts.scale === 'large' && value < 10000) return Math.round(value).toLocaleString('en-US') + name;
    const [size, unit] = units.find(([size]) => value / size >= 0.9995) || units[units.length - 1];
    const number = value / size;
    return number.toFixed(number < 99.95 && size > 1 ? 1 : 0) + ' ' + unit + name;
  }

  function percent(part, all) {
    const share = all > 0 ? 100 * part / all : 0;
    return share.toFixed(share > 0 && share < 0.1 ? 2 : 1) + ' %';
  }

  function boxAt(x, y) {
    const { width, height } = extent();
    const above = Math.floor((y - topOf(facts.inverted ? 0 : facts.rows - 1, height)) / facts.row);
    const row = rows[facts.inverted ? above : facts.rows - 1 - above];
    const amount = view.start + (x - MARGIN) / scaleOf(width);
    if (!row || x < MARGIN || amount > view.end) return null;
    let best = null;
    const slack = 1 / scaleOf(width);
    for (let at = firstInView(row); at < row.length && row[at].start <= amount + slack; at++) {
      const box = row[at];
      if (box.start <= amount && amount < box.end) return box;
      if (amount - box.end < slack) best = best || box;
    }
    return best;
  }

  function tell(box) {
    if (!box) {
      page.what.textContent = view === whole ? '' : names[view.name];
      page.much.textContent = view === whole ? 'Point at a box to read it, click to zoom in' : amountOf(view);
      return;
    }
    page.what.textContent = (facts.nameType ? facts.nameType + ' ' : '') + names[box.name];
    page.what.title = names[box.name];
    page.much.textContent = box.color[0] === 'l' ? 'thread' : amountOf(box);
  }

  function amountOf(box) {
    const amount = box.end - box.start, parts = [told(amount)];
    if (facts.chart) parts.push('from ' + told(box.start));
    else parts.push(percent(amount, facts.total) + ' of all');
    if (view !== whole && box !== view && !facts.chart) parts.push(percent(amount, view.end - view.start) + ' of ' + names[view.name]);
    const shares = sharesOf(box), all = shares.reduce((sum, [, share]) => sum + share, 0);
    const word = facts.words[box.color[0]];
    if (shares.length) parts.push(shares.map(([letter, share]) => facts.words[letter] + ' ' + percent(share, all)).join(', '));
    else if (word) parts.push(word);
    if (box.before !== undefined) parts.push(changeOf(box, amount));
    return parts.join(' · ');
  }

  function changeOf(box, amount) {
    const before = parseInt(box.before, 10), isChance = box.before.endsWith('~');
    if (!before) return 'new' + (isChance ? ', may be chance' : '');
    const change = 100 * (amount - before) / before;
    return 'before ' + told(before) + ', ' + (change < 0 ? '−' : '+') + Math.abs(change).toFixed(1) + ' %' + (isChance ? ', may be chance' : '');
  }

  // Searching: part of a name, upper and lower case alike, or a regular expression.
  const isSearched = box => box.row > 0 && box.color[0] !== 'l' || facts.chart && box.color[0] !== 'l';

  function search() {
    const wanted = page.input.value;
    page.input.classList.remove('wrong');
    found = null;
    page.output.textContent = '';
    if (wanted) {
      let matches;
      if (page.regex.checked) {
        try {
          const pattern = new RegExp(wanted, 'i');
          matches = name => pattern.test(name);
        } catch (error) {
          page.input.classList.add('wrong');
          page.output.textContent = 'no regular expression';
        }
      } else {
        const lower = wanted.toLowerCase();
        matches = name => name.toLowerCase().includes(lower);
      }
      if (matches) sumFound(names.map(matches));
    }
    remember();
    draw();
  }

  // A box inside of one that was found already counts once.
  function sumFound(matching) {
    let sum = 0, busy = 0, coveredTo = 0, last = 0;
    const functions = new Set();
    for (const box of boxes) {
      if (box.start < last || box.color[0] === 'l') coveredTo = 0;
      last = box.start;
      if (box.color[0] === 'l') continue;
      if (facts.chart && box.start >= busyTo(box)) busy += box.end - box.start;
      if (!matching[box.name] || !isSearched(box)) continue;
      functions.add(box.name);
      if (box.start >= coveredTo) {
        sum += box.end - box.start;
        coveredTo = box.end;
      }
    }
    found = { names: matching };
    page.output.textContent = functions.size ? percent(sum, facts.chart ? busy : facts.total) + ' matched' : 'not found';
    page.output.title = functions.size + ' functions, ' + told(sum);
  }

  // In a chart, all activity is the whole: the outermost boxes.
  let outermost = null;
  function busyTo(box) {
    if (!outermost) {
      outermost = new Set();
      let to = 0, last = 0;
      for (const one of boxes) {
        if (one.start < last || one.color[0] === 'l') to = 0;
        last = one.start;
        if (one.color[0] !== 'l' && one.start >= to) {
          outermost.add(one);
          to = one.end;
        }
      }
    }
    return outermost.has(box) ? 0 : Infinity;
  }

  function zoom(box) {
    view = !box || box.start === 0 && box.end === facts.total && !facts.chart || box.color[0] === 'l' ? whole : box;
    if (view !== whole && view.start === view.end) view = whole;
    remember();
    tell(hovered);
    draw();
  }

  // The address keeps what is searched for and zoomed to.
  function remember() {
    const kept = new URLSearchParams();
    if (page.input.value) kept.set('search', page.input.value);
    if (page.regex.checked) kept.set('regex', '1');
    if (view !== whole) kept.set('zoom', [view.row, view.start].join('-'));
    try {
      history.replaceState(null, '', '#' + kept);
    } catch (error) {
      // Inside of other pages the address may not be changed.
    }
  }

  function recall() {
    const kept = new URLSearchParams(location.hash.slice(1));
    page.input.value = kept.get('search') || '';
    page.regex.checked = kept.get('regex') === '1';
    const [row, start] = (kept.get('zoom') || '').split('-').map(Number);
    const box = rows[row] && rows[row].find(box => box.start === start && box.color[0] !== 'l');
    if (box) zoom(box);
    if (page.input.value) search();
  }

  const place = event => {
    const edge = page.scroll.getBoundingClientRect();
    return boxAt(event.clientX - edge.left, event.clientY - edge.top);
  };
  page.scroll.addEventListener('mousemove', event => {
    const box = place(event);
    if (box === hovered) return;
    hovered = box;
    page.scroll.style.cursor = box ? 'pointer' : '';
    tell(box);
    draw();
  });
  page.scroll.addEventListener('mouseleave', () => {
    hovered = null;
    tell(null);
    draw();
  });
  page.scroll.addEventListener('click', event => {
    const box = place(event);
    if (box) zoom(box);
  });
  page.scroll.addEventListener('scroll', draw);
  page.input.addEventListener('input', search);
  page.regex.addEventListener('change', search);
  page.reset.addEventListener('click', () => zoom(null));
  addEventListener('keydown', event => {
    if (event.key === 'F3' || event.key === 'f' && (event.ctrlKey || event.metaKey) || event.key === '/' && event.target !== page.input) {
      event.preventDefault();
      page.input.select();
      page.input.focus();
    } else if (event.key === 'Escape') {
      if (page.input.value) {
        page.input.value = '';
        search();
      } else {
        zoom(null);
      }
    }
  });
  addEventListener('resize', draw);
  addEventListener('hashchange', recall);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    readColors();
    draw();
  });

  // The outermost functions of the topmost thread, which are at its name, come into view.
  function showFirstThread() {
    const lane = boxes.findLast(box => box.color[0] === 'l');
    const lower = lane && !facts.inverted ? MARGIN + (facts.rows - lane.row) * facts.row + AXIS + 4 : 0;
    page.scroll.scrollTop = Math.max(0, lower - page.scroll.clientHeight);
  }

  readColors();
  if (!facts.inverted) page.scroll.scrollTop = page.scroll.scrollHeight;
  if (facts.chart) showFirstThread();
  tell(null);
  draw();
  recall();
})();
