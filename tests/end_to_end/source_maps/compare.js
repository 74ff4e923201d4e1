// usage: node compare.js PAIRS.tsv : generated name \t shown name; each row one function. Compares with npm source-map and a parse.
'use strict';
const fs = require('fs'), path = require('path');
const { SourceMapConsumer } = require('source-map');
const parser = require('@babel/parser');
const NAME = /^(JS|LazyCompile|Function):([*^~+]?'?)(.*?) (\/.*|webpack:.*|file:.*):(\d+):(\d+)$/s;
function mapOf(script) {
  const text = fs.readFileSync(script, 'utf8');
  const url = [...text.matchAll(/\/\/# sourceMappingURL=(\S+)/g)].pop()?.[1];
  if (!url) return null;
  if (url.startsWith('data:')) return { json: JSON.parse(Buffer.from(url.split(',')[1], 'base64')), dir: path.dirname(script) };
  const file = path.join(path.dirname(script), url);
  return fs.existsSync(file) ? { json: JSON.parse(fs.readFileSync(file, 'utf8')), dir: path.dirname(file) } : null;
}
const own = (source, map) => /^[a-z]+:\/\//.test(source) ? ((u) => u[1] + path.posix.normalize(u[2].replace(/^\/+/, '')).replace(/^(\.\.\/)+/, '').replace(/\?.*$/, ''))(/^([a-z]+:\/\/)(.*)$/.exec(source)) : path.resolve(map.dir, map.json.sourceRoot ?? '', source);
// Where a place of an authored file was written itself, if the text of that file has a map in it: a library that was compiled.
const inlineMaps = new Map();
async function earlier(file, text, { line, column }) {
  if (!inlineMaps.has(file)) {
    const url = /\/\/# sourceMappingURL=data:[^,]*;base64,(\S+)\s*$/.exec(text ?? '');
    const json = url && JSON.parse(Buffer.from(url[1], 'base64'));
    inlineMaps.set(file, json && { json, consumer: await new SourceMapConsumer(json) });
  }
  const found = inlineMaps.get(file);
  const at = found?.consumer.originalPositionFor({ line, column });
  if (!at?.source) return undefined;
  const index = found.consumer.sources.indexOf(at.source), source = path.posix.join(found.json.sourceRoot ?? '', found.json.sources[index]);
  const [, url, own] = /^([a-z]+:\/\/)?(.*)$/.exec(file);
  return { file: (url ?? '') + path.posix.join(path.posix.dirname(own), source), line: at.line, column: at.column, text: found.json.sourcesContent?.[index] };
}
// Names of functions as V8 would give them.
function keyName(key, computed) { return computed ? undefined : key.type === 'PrivateName' ? '#' + key.id.name : key.name ?? String(key.value); }
function dotted(node) { if (node.type === 'Identifier') return node.name; if (node.type === 'ThisExpression') return 'this'; if (node.type === 'MemberExpression' && (!node.computed || node.property.type === 'StringLiteral')) { const o = dotted(node.object); return (o ? o + '.' : '') + keyName(node.property); } return undefined; }
function functionsOf(text, file) {
  let ast; const plugins = /\.[cm]?tsx?$/.test(file) ? ['typescript', 'decorators-legacy'] : ['flow'];
  for (const sourceType of ['unambiguous', 'script', 'module']) { try { ast = parser.parse(text, { sourceType, plugins, errorRecovery: true, allowReturnOutsideFunction: true }); break; } catch { } }
  if (!ast) return null;
  const found = [];
  const walk = (node, binding, declared) => {
    if (!node || typeof node.type !== 'string') return;
    let inner = {}, begin = node.start;
    if (/Function|^ObjectMethod$|^Class(Private)?Method$/.test(node.type) && node.body && !/^TS/.test(node.type)) {
      let names = new Set(binding?.names ?? []);
      if (node.id) names = new Set([node.id.name]);
      if (node.key) { const name = keyName(node.key, node.computed); names = new Set(name === undefined ? [] : [name, ...(node.kind === 'get' || node.kind === 'set' ? [`${node.kind} ${name}`] : [])]); if (node.kind === 'constructor') names = new Set(binding?.classNames ?? []); }
      found.push({ start: Math.min(begin, binding?.start ?? begin), end: node.end, names, type: node.type, kind: node.kind });
      binding = undefined;
    } else if (/^Class(Declaration|Expression)$/.test(node.type)) {
      const names = node.id ? [node.id.name] : [...(binding?.names ?? [])];
      found.push({ start: Math.min(begin, binding?.start ?? begin), end: node.end, names: new Set([...names]), type: node.type, isClass: true, bodyStart: node.body.start });
      inner = { classNames: names };
    }
    for (const key of Object.keys(node)) {
      if (['loc', 'errors', 'comments', 'tokens', 'leadingComments', 'trailingComments', 'innerComments', 'extra'].includes(key)) continue;
      const value = node[key];
      const visit = (child) => {
        if (!child || typeof child.type !== 'string') return;
        let b;
        const set = (names, start) => { b = { names: names.filter(Boolean), start }; };
        if (node.type === 'VariableDeclarator' && key === 'init') set([node.id.name], node.start);
        else if (node.type === 'AssignmentExpression' && key === 'right') { const d = dotted(node.left); set(d ? [d, d.split('.').pop(), d.replace(/^this\./, ''), d.replace('.prototype', '')] : node.left.type === 'MemberExpression' && !node.left.computed ? [keyName(node.left.property)] : [], node.start); }
        else if (node.type === 'AssignmentPattern' && key === 'right') set([node.left.name], node.start);
        else if ((node.type === 'ObjectProperty' || node.type === 'ClassProperty' || node.type === 'ClassPrivateProperty') && key === 'value') set([keyName(node.key, node.computed)], node.start);
        else if (['TSAsExpression', 'ParenthesizedExpression', 'TSNonNullExpression'].includes(node.type)) b = binding;
        else if (node.type === 'ClassBody') b = { names: [], classNames: binding?.classNames };
        else if (inner.classNames && key === 'body') b = { names: [], classNames: inner.classNames };
        walk(child, b);
      };
      if (Array.isArray(value)) value.forEach(visit); else visit(value);
    }
  };
  walk(ast.program);
  return found;
}
const lineStarts = (text) => { const starts = [0]; for (let i = 0; i < text.length; i++) if (text[i] === '\n') starts.push(i + 1); return starts; };
(async () => {
  const rows = fs.readFileSync(process.argv[2], 'utf8').split('\n').filter(Boolean).map(l => l.split('\t'));
  const maps = new Map(), contents = new Map(), functions = new Map();
  const counts = { functions: 0, renamed: 0, 'renamed, statement mapped': 0, 'placed, name kept and right': 0, 'placed, generated name kept': 0, 'not placed': 0, wrong: 0, 'wrong place': 0, 'not judged': 0 };
  const bad = [];
  for (const [generated, shown] of rows) {
    const g = NAME.exec(generated);
    if (!g) continue;
    const script = g[4].replace(/^file:\/\//, '');
    if (!maps.has(script)) { const map = fs.existsSync(script) ? mapOf(script) : null; maps.set(script, map && { map, consumer: await new SourceMapConsumer(map.json) }); }
    const entry = maps.get(script);
    if (!entry) { if (shown !== generated) bad.push(['no map', generated, shown]); continue; }
    counts.functions++;
    const { map, consumer } = entry;
    if (shown === generated) { counts['not placed']++; if (process.env.KEPT) console.log('kept', generated); continue; }
    const s = NAME.exec(shown);
    if (!s) { counts.wrong++; bad.push(['unreadable', generated, shown]); continue; }
    const at = consumer.originalPositionFor({ line: +g[5], column: +g[6] - 1 });
    const file = at.source && own(map.json.sources[consumer.sources?.indexOf(at.source) >= 0 ? consumer.sources.indexOf(at.source) : 0] ?? at.source, map);
    const compiled = { file, line: at.line, column: at.column, text: map.json.sourcesContent?.[consumer.sources.indexOf(at.source)] };
    const places = [await earlier(file, compiled.text, at), compiled].filter(Boolean);
    const place = places.find(({ file, line, column }) => s[4] === file && +s[5] === line && +s[6] === column + 1);
    if (!place) { counts['wrong place']++; bad.push(['place', generated, shown, ...places.map(({ file, line, column }) => `${file}:${line}:${column + 1}`)]); continue; }
    judge(generated, g, shown, s, place);
  }
  function judge(generated, g, shown, s, { file, line, column, text }) {
    if (!contents.has(file) && text != null) { contents.set(file, lineStarts(text)); functions.set(file, functionsOf(text, file)); }
    const list = functions.get(file);
    if (!list) { counts['not judged']++; bad.push(['not parsed', generated, shown]); return; }
    const offset = contents.get(file)[line - 1] + column;
    const around = list.filter(f => f.start <= offset && offset < f.end).sort((a, b) => (a.end - a.start) - (b.end - b.start));
    // Tools that map statements lead to their start: the function is one that begins on the rest of that line.
    const end = contents.get(file)[line] ?? text.length;
    const later = list.filter(f => f.start >= offset && f.start < end);
    const inner = around[0], name = s[3], kept = name === g[3];
    const plain = name.replace(/^.*\./, '');
    const matches = (f) => f && (f.names.has(name) || f.names.has(plain) || (name.startsWith('get ') || name.startsWith('set ')) && f.names.has(name.slice(4)));
    if (kept) { if (matches(inner) || name === '' && inner && inner.names.size === 0) counts['placed, name kept and right']++; else { counts['placed, generated name kept']++; if (process.env.KEPT) console.log('generated', generated, shown, inner && [...inner.names].join()); } }
    else if (matches(inner)) counts.renamed++;
    else if (later.some(matches)) counts['renamed, statement mapped']++;
    else { counts.wrong++; bad.push(['name', generated, shown, inner ? [...inner.names].join('|') : 'none', JSON.stringify(text.slice(offset - 20, offset + 30))]); }
  }
  console.log(JSON.stringify(counts));
  bad.slice(0, +process.env.MOST || 12).forEach(b => console.log('  ', b.join('  ').slice(0, 400)));
})();
