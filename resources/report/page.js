'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const byId = id => document.getElementById(id);
  const space = byId('picture').namespaceURI;

  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
      name.startsWith('on') ? made.addEventListener(name.slice(2), value) : made.setAttribute(name, value);
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
  }
  function shape(tag, attributes, text) {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function bytes(n) {
    for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
      if (n < 1024 || unit === 'GiB') return (unit === 'B' ? n : n.toPrecision(3)) + ' ' + unit;
      n /= 1024;
    }
  }
  const seconds = s => s < 1e-3 ? (s * 1e6).toPrecision(3) + ' us' : s < 1 ? (s * 1e3).toPrecision(3) + ' ms' : s.toPrecision(3) + ' s';
  // NaN and infinities are texts.
  const number = x => typeof x === 'number' ? [x.toPrecision(3), x] : [String(x), Infinity];

  // A table with a filter, sorted by a click on a head. A cell is a text, or [text, number], or an element.
  function table(heads, rows) {
    const body = el('tbody');
    const text = cell => cell instanceof Node ? cell.textContent : Array.isArray(cell) ? cell[0] : String(cell ?? '');
    const key = cell => Array.isArray(cell) ? cell[1] : text(cell);
    const lines = rows.map(row => ({row, line: el('tr', {}, ...row.map(cell =>
      el('td', Array.isArray(cell) ? {class: 'num'} : {}, cell instanceof Node ? cell : text(cell))))}));
    const show = () => body.replaceChildren(...lines.map(each => each.line));
    let last = -1, up = true;
    const head = el('tr', {}, ...heads.map((name, i) => {
      const sort = () => {
        up = last === i ? !up : true;
        last = i;
        lines.sort((a, b) => {
          const x = key(a.row[i]), y = key(b.row[i]);
          return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
        });
        show();
      };
      return el('th', {tabindex: 0, onclick: sort, onkeydown: event => event.key === 'Enter' && sort()}, name);
    }));
    const filter = el('input', {placeholder: 'filter', 'aria-label': 'filter', oninput: () => {
      for (const each of lines)
        each.line.hidden = !each.row.some(cell => text(cell).toLowerCase().includes(filter.value.toLowerCase()));
    }});
    show();
    return el('div', {}, rows.length > 8 ? filter : null, el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, head), body)));
  }
  function section(id, title, ...children) {
    byId('main').append(el('section', {id}, el('h2', {}, title), ...children));
    byId('nav').append(el('a', {href: '#' + id}, title));
  }

  // The picture, the code and the chosen node of one graph.
  let graph = null, chosen = -1, view = {x: 0, y: 0, k: 1}, cards = [], links = [], folded = new Map();
  const svg = byId('picture'), world = shape('g', {});
  svg.append(world);
  const [X, Y, W, H, TITLE, DETAIL, FAMILY, FLAGS, FRAME, NAME, LINE] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  const place = () => world.setAttribute('transform', `translate(${view.x} ${view.y}) scale(${view.k})`);
  function fit() {
    const box = svg.getBoundingClientRect(), [x, y, w, h] = graph.bounds;
    view.k = Math.min(2, (box.width - 20) / Math.max(1, w), (box.height - 20) / Math.max(1, h));
    if (view.k < 0.05) view.k = 0.3;
    view.x = 10 - x * view.k;
    view.y = 10 - y * view.k;
    place();
  }
  // The upper end at a size that can be read.
  function start() {
    const box = svg.getBoundingClientRect(), [x, y, w] = graph.bounds;
    view.k = Math.min(1, Math.max(0.5, (box.width - 20) / Math.max(1, w)));
    view.x = Math.max(10, (box.width - w * view.k) / 2) - x * view.k;
    view.y = 10 - y * view.k;
    place();
  }
  function centre(i) {
    const box = svg.getBoundingClientRect(), c = graph.cards[i];
    view.k = Math.max(view.k, 0.7);
    view.x = box.width / 2 - (c[X] + c[W] / 2) * view.k;
    view.y = box.height / 2 - (c[Y] + c[H] / 2) * view.k;
    place();
  }
  function path(from, to, points) {
    const a = graph.cards[from], b = graph.cards[to];
    if (points.length >= 4) {
      let d = `M${points[0]} ${points[1]}`;
      for (let i = 2; i < points.length; i += 2) d += `L${points[i]} ${points[i + 1]}`;
      return d;
    }
    const x1 = a[X] + a[W], y1 = a[Y] + a[H] / 2, x2 = b[X], y2 = b[Y] + b[H] / 2, m = (x1 + x2) / 2;
    return `M${x1} ${y1}C${m} ${y1} ${m} ${y2} ${x2} ${y2}`;
  }
  function draw(g) {
    graph = g;
    chosen = -1;
    folded = new Map();
    world.replaceChildren();
    if (g.cut) world.append(shape('rect', {class: 'cut', x: g.cut[0], y: g.bounds[1], width: Math.max(0, g.cut[1] - g.cut[0]), height: g.bounds[3]}));
    links = g.links.map(([from, to, kind, points]) => {
      const line = shape('path', {class: kind === 2 ? 'link far' : 'link', d: path(from, to, points)});
      world.append(line);
      return line;
    });
    cards = g.cards.map((c, i) => {
      const card = shape('g', {class: `card f${c[FAMILY]}${c[FLAGS] & 1 ? ' again' : ''}`, tabindex: 0, 'data-name': c[NAME]});
      card.append(shape('title', {}, c[NAME] + '\n' + c[DETAIL]), shape('rect', {x: c[X], y: c[Y], width: c[W], height: c[H], rx: 4}));
      card.append(shape('text', {x: c[X] + 8, y: c[Y] + (c[H] > 30 ? 15 : c[H] / 2 + 4)}, c[TITLE] + (c[NAME] in g.notes ? ' *' : '')));
      if (c[H] > 30) card.append(shape('text', {class: 'd', x: c[X] + 8, y: c[Y] + 29}, c[DETAIL]));
      card.addEventListener('click', () => choose(i, false));
      card.addEventListener('keydown', event => event.key === 'Enter' && choose(i, false));
      world.append(card);
      return card;
    });
    byId('code').replaceChildren(...g.code.split('\n').map((line, i) => {
      const row = el('div', {}, line);
      row.addEventListener('click', () => {
        const at = g.cards.findIndex(c => c[LINE] === i);
        if (at >= 0) choose(at, true);
      });
      return row;
    }));
    byId('node').replaceChildren(el('span', {class: 'dim'}, 'click a card or a line'));
    byId('found').textContent = '';
    search();
    start();
  }
  function named(i) {
    return el('a', {href: '#graphs', onclick: event => { event.preventDefault(); choose(i, true); }}, graph.cards[i][NAME]);
  }
  function listed(label, indices) {
    const row = el('div', {}, el('span', {class: 'dim'}, label + ' '));
    indices.slice(0, 40).forEach((i, n) => row.append(n ? ', ' : '', named(i)));
    if (indices.length > 40) row.append(` and ${indices.length - 40} more`);
    return row;
  }
  function choose(i, move) {
    if (chosen >= 0) cards[chosen].classList.remove('on');
    for (const line of links) line.classList.remove('on');
    for (const row of byId('code').querySelectorAll('.on')) row.classList.remove('on');
    chosen = i;
    const c = graph.cards[i];
    cards[i].classList.add('on');
    const into = [], out = [];
    graph.links.forEach(([from, to], n) => {
      if (from === i) out.push(to);
      if (to === i) into.push(from);
      if (from === i || to === i) links[n].classList.add('on');
    });
    if (c[LINE] >= 0) {
      const row = byId('code').children[c[LINE]];
      row.classList.add('on');
      byId('code').scrollTop = row.offsetTop - byId('code').offsetTop - 120;
    }
    const facts = [el('div', {}, el('b', {}, c[NAME]), ' ', el('span', {class: 'mono'}, c[TITLE] + ' ' + c[DETAIL]))];
    const source = graph.sources[c[NAME]];
    if (source) facts.push(el('div', {class: 'mono'}, source));
    const note = graph.notes[c[NAME]];
    if (note !== undefined) facts.push(el('div', {}, note ? 'note: ' + note : 'bookmarked'));
    const saved = (data.cut?.saved || []).find(s => s.name === c[NAME]);
    if (saved && graph.joint) facts.push(el('div', {}, `saved for the backward: ${bytes(saved.bytes)}, ${saved.why}`));
    facts.push(listed('reads', into), listed('used by', out));
    for (let f = c[FRAME]; f >= 0; f = graph.frames[f][1]) {
      const at = f;
      facts.push(el('div', {}, el('button', {onclick: () => fold(at)}, 'fold ' + graph.frames[f][0])));
    }
    byId('node').replaceChildren(...facts);
    if (move) {
      for (let f = c[FRAME]; f >= 0; f = graph.frames[f][1]) unfold(f);
      centre(i);
    }
  }
  function within(i, frame) {
    for (let f = graph.cards[i][FRAME]; f >= 0; f = graph.frames[f][1]) if (f === frame) return true;
    return false;
  }
  function fold(frame) {
    if (folded.has(frame)) return;
    const members = graph.cards.map((_, i) => i).filter(i => within(i, frame));
    if (!members.length) return;
    const x = Math.min(...members.map(i => graph.cards[i][X])), y = Math.min(...members.map(i => graph.cards[i][Y]));
    const right = Math.max(...members.map(i => graph.cards[i][X] + graph.cards[i][W]));
    const bottom = Math.max(...members.map(i => graph.cards[i][Y] + graph.cards[i][H]));
    const box = shape('g', {class: 'fold', tabindex: 0});
    box.append(shape('rect', {x, y, width: right - x, height: bottom - y, rx: 6}),
               shape('text', {x: x + 10, y: y + 22}, `${graph.frames[frame][0]} (${graph.frames[frame][2]} nodes)`));
    box.addEventListener('click', () => unfold(frame));
    box.addEventListener('keydown', event => event.key === 'Enter' && unfold(frame));
    world.append(box);
    folded.set(frame, {box, members});
    hide();
  }
  function unfold(frame) {
    if (!folded.has(frame)) return;
    folded.get(frame).box.remove();
    folded.delete(frame);
    hide();
  }
  function hide() {
    const gone = new Set([...folded.values()].flatMap(each => each.members));
    cards.forEach((card, i) => card.classList.toggle('gone', gone.has(i)));
  }
  function foldAll(on) {
    for (const frame of [...folded.keys()]) unfold(frame);
    if (!on || !graph.frames.length) return;
    const depth = graph.frames.map((_, f) => { let d = 0; for (let p = graph.frames[f][1]; p >= 0; p = graph.frames[p][1]) ++d; return d; });
    let level = 0;
    while (depth.filter(d => d === level).length < 2 && depth.includes(level + 1)) ++level;
    depth.forEach((d, f) => d === level && fold(f));
  }
  let hits = [], at = -1;
  function search() {
    const typed = byId('search').value.toLowerCase();
    hits = [];
    at = -1;
    graph.cards.forEach((c, i) => {
      const hit = typed !== '' && `${c[NAME]} ${c[TITLE]} ${c[DETAIL]} ${graph.sources[c[NAME]] || ''} ${graph.notes[c[NAME]] || ''}`.toLowerCase().includes(typed);
      cards[i].classList.toggle('hit', hit);
      if (hit) hits.push(i);
    });
    byId('found').textContent = typed ? `${hits.length} found` : '';
  }
  function next() {
    if (hits.length) choose(hits[at = (at + 1) % hits.length], true);
  }
  if (data.graphs.length) {
    byId('search').addEventListener('input', search);
    byId('search').addEventListener('keydown', event => event.key === 'Enter' && next());
    byId('fit').addEventListener('click', fit);
    byId('fold').addEventListener('click', () => foldAll(true));
    byId('unfold').addEventListener('click', () => foldAll(false));
    const which = byId('which');
    data.graphs.forEach((g, i) => which.append(el('option', {value: i}, `${g.title} (${g.nodes} nodes)`)));
    which.addEventListener('change', () => draw(data.graphs[Number(which.value)]));
    let drag = null;
    svg.addEventListener('pointerdown', event => { drag = [event.clientX - view.x, event.clientY - view.y]; });
    window.addEventListener('pointerup', () => { drag = null; });
    window.addEventListener('pointermove', event => {
      if (!drag) return;
      view.x = event.clientX - drag[0];
      view.y = event.clientY - drag[1];
      place();
    });
    svg.addEventListener('wheel', event => {
      event.preventDefault();
      const box = svg.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      const k = Math.min(6, Math.max(0.02, view.k * Math.exp(-event.deltaY / 400)));
      view.x = x - (x - view.x) * k / view.k;
      view.y = y - (y - view.y) * k / view.k;
      view.k = k;
      place();
    }, {passive: false});
    which.value = data.first;
    draw(data.graphs[data.first]);
  } else {
    byId('graphs').hidden = true;
  }

  if (data.notes)
    section('notes', 'Notes', table(['Node', 'Note', 'Graph'], data.notes.map(n => [n.node, n.text, n.graph])));
  if (data.cuts) {
    const shown = n => n === null ? ['', -1] : [bytes(n), n];
    section('cuts', "PyTorch's cut and ours", el('p', {}, 'What either saves for the backward, and what the other does in its place.'),
      table(['Value', "PyTorch's", 'Ours', 'Why'], data.cuts.values.map(([name, theirs, ours, why]) => [name, shown(theirs), shown(ours), why])));
  }
  if (data.memory) {
    const m = data.memory, most = Math.max(1, ...m.in_use.map(s => s.bytes));
    section('memory', 'Memory of a step', el('p', {}, `A step holds ${bytes(m.peak_bytes)}: ` +
        Object.entries(m.held).map(([kind, n]) => `${bytes(n)} ${kind}`).join(', ') + `; beside it ${bytes(m.input_bytes)} of inputs and weights.`),
      table(['Step', 'Graph', 'Name', 'In use', ''], m.in_use.map((s, i) =>
        [[String(i), i], s.graph, s.step, [bytes(s.bytes), s.bytes], '\u2588'.repeat(Math.round(30 * s.bytes / most))])));
  }
  if (data.cut) {
    const c = data.cut;
    section('cut', 'Our cut', el('p', {}, `${c.saved.length} values cross from forward to backward: ${bytes(c.activation_bytes)} of activations, ` +
        `${bytes(c.input_bytes)} of inputs. ${c.recomputed.length} calls are computed again.`),
      table(['Value', 'Bytes', 'Input', 'Why'], [...c.saved].sort((a, b) => b.bytes - a.bytes)
        .map(s => [s.name, [bytes(s.bytes), s.bytes], s.is_input ? 'yes' : '', s.why])),
      c.recomputed.length ? el('details', {}, el('summary', {}, 'computed again'), el('p', {class: 'mono'}, c.recomputed.join(', '))) : null);
  }
  if (data.passes) {
    section('passes', 'Passes', ...data.passes.map(p => {
      const head = `${p.stage} ${p.pass}: ${p.before} to ${p.after} nodes, ${p.ms.toPrecision(3)} ms${p.graph ? ', ' + p.graph : ''}`;
      if (!p.diff) return el('div', {class: 'dim'}, head + ', unchanged');
      const diff = el('pre', {class: 'scroll'});
      for (const line of p.diff.split('\n'))
        diff.append(el('div', {class: line.trim().startsWith('+') ? 'add' : 'del'}, line));
      return el('details', {}, el('summary', {}, head), diff);
    }));
  }
  for (const list of data.kernels || []) {
    const rows = list.steps.map(s => [
      [String(s.step), s.step], s.library || s.kind, s.name, s.seconds ? [seconds(s.seconds), s.seconds] : '',
      s.share_of_limit ? [(100 * s.share_of_limit).toFixed(0) + ' %', s.share_of_limit] : '', [bytes(s.read_bytes), s.read_bytes],
      [bytes(s.written_bytes), s.written_bytes], s.nodes.map(n => n.name).join(', '),
      s.apart.filter(a => a.reads).map(a => `step ${a.step}: ${a.why}`).join('; ')]);
    section('kernels-' + list.graph, 'Kernels, ' + list.graph,
      el('p', {}, `${list.steps.length} steps; temporaries take ${bytes(list.arena_bytes)}` +
        (list.peak ? `, at most ${bytes(list.peak.bytes)} at step ${list.peak.step}` : '')),
      table(['Step', 'Kind', 'Name', 'Time', 'Of limit', 'Read', 'Written', 'Nodes', 'Apart from what it reads because'], rows),
      ...list.steps.filter(s => s.code).map(s => el('details', {}, el('summary', {}, `${s.name}: loop IR`), el('pre', {class: 'scroll'}, s.code))));
  }
  for (const code of data.inductor || [])
    section('inductor-' + code.code, "PyTorch's kernels, " + code.code, el('p', {}, `${code.found} links to nodes found, ${code.missed} missed`),
      table(['Line', 'Language', 'Name', 'Linked by', 'Nodes', 'From'], code.kernels.map(k => [[String(k.call_line), k.call_line], k.language, k.name, k.link,
        k.nodes.join(', '), k.frames.map(f => `${f.file}:${f.line} ${f.code}`).join('; ')])));
  for (const facts of data.facts || [])
    section(facts.title.toLowerCase().replaceAll(' ', '-'), facts.title, table(['Compilation', 'Of', 'What', 'Why'], facts.rows));
  if (data.steps)
    section('steps', 'Steps of compiling', table(['Step', 'Its own', 'With what is in it', 'Times'],
      data.steps.map(([name, own, whole, count]) => [name, [seconds(own), own], [seconds(whole), whole], [String(count), count]])));
  if (data.compile_times)
    section('compile-times', 'Compile times', table(['Of', 'What', 'Time'], data.compile_times.map(t => [t.id, t.what.replaceAll('_', ' '), [seconds(t.seconds), t.seconds]])));
  if (data.guards)
    section('guards', 'Guards', ...data.guards.map(g => el('details', {}, el('summary', {}, g.id), el('pre', {class: 'scroll'}, g.text))));
  for (const report of data.comparison || [])
    section('compare-' + report.found, `Comparison, ${report.found} with ${report.expected}`,
      el('p', {class: report.ok ? 'good' : 'bad'}, report.ok ? 'all agree' : `${report.rows.filter(r => !r.ok).length} of ${report.rows.length} differ`),
      table(['Value', 'Agrees', 'Largest error', 'Relative', 'What'], report.rows.map(r => [r.name, el('span', {class: r.ok ? 'good' : 'bad'}, r.ok ? 'yes' : 'no'),
        number(r.max_abs), number(r.max_rel), r.what])));
  if (data.repro)
    section('repro', 'Minified repro', ...data.repro.map(f => el('details', {open: ''}, el('summary', {}, f.name), el('pre', {class: 'scroll'}, f.text))));
  document.body.dataset.ready = 'yes';
})();
