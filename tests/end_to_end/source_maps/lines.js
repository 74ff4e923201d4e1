// node lines.js ANNOTATE.json JITDUMP: each instruction's authored line against source-map's answer for the dump's position
const fs=require('fs'),path=require('path'),{SourceMapConsumer}=require('source-map');
(async()=>{const [json,dump]=process.argv.slice(2);const b=fs.readFileSync(dump);const debug=[];let at=b.readUInt32LE(8);const codes=[];let pending=null;
while(at+16<=b.length){const id=b.readUInt32LE(at),size=b.readUInt32LE(at+4);if(size<16||at+size>b.length)break;
 if(id===2){const addr=b.readBigUInt64LE(at+16),n=Number(b.readBigUInt64LE(at+24));let p=at+32;const es=[];let name='';for(let i=0;i<n;i++){const a=b.readBigUInt64LE(p),l=b.readInt32LE(p+8),d=b.readInt32LE(p+12);p+=16;let e=p;while(b[e])e++;const s=b.slice(p,e).toString('latin1');p=e+1;name=s;es.push({a,l,d,s});}pending={addr,es};}
 if(id===0){const addr=b.readBigUInt64LE(at+16+16),len=Number(b.readBigUInt64LE(at+16+24));let e=at+16+40;const s=e;while(b[e])e++;codes.push({addr,len,name:b.slice(s,e).toString(),es:pending&&pending.addr===addr?pending.es:null});pending=null;}
 at+=size;}
const maps=new Map();const get=async s=>{if(!maps.has(s)){let m=null;if(fs.existsSync(s+'.map')){const j=JSON.parse(fs.readFileSync(s+'.map'));m={c:await new SourceMapConsumer(j),dir:path.dirname(s),j};}maps.set(s,m);}return maps.get(s);};
const a=JSON.parse(fs.readFileSync(json));let same=0,differ=0,none=0,lost=0,sampled=0;const bad=[];
for(const f of a.listings){const start=BigInt(f.address);const c=codes.filter(c=>c.addr===start).pop();if(!c||!c.es||!f.instructions)continue;
 const script=/ (\/[^ ]*):\d+:\d+$/.exec(c.name)?.[1];const m=script&&await get(script);if(!m)continue;
 const es=c.es.map((e,n)=>({off:Number(e.a-c.addr)-0x40,n,...e})).sort((x,y)=>x.off-y.off||x.n-y.n);
 for(const i of f.instructions){const off=Number(BigInt(i.address)-start);const e=es.filter(e=>e.off<=off).pop();if(!e)continue;
  const o=m.c.originalPositionFor({line:e.l,column:e.d-1});const file=f.files[i.file];
  if(!o.source){none++;continue;}
  const source=m.j.sources[m.c.sources.indexOf(o.source)],url=/^([a-z]+:\/\/)\/*([^?]*)/.exec(source);
  const want=url?url[1]+path.posix.normalize(url[2]).replace(/^(\.\.\/)+/,''):path.resolve(m.dir,source);
  if(i.costs||i["cpu-clock:ppp"])sampled++;
  if(i.line===o.line&&file===want)same++;else if(i.line==null)lost++;else{differ++;bad.push([c.name.slice(-40),off,file,i.line,'V8',e.l,e.d,'want',want,o.line].join(' '));}}}
console.log({listings:a.listings.length,same,differ,none,lost,sampled});bad.slice(0,8).forEach(x=>console.log(x));})();
