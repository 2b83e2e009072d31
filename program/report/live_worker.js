/* The page's worker: unpacks module and model, computes a text, and answers with messages. It makes no requests.
 * wasm/usable_tiers.js comes before it.
 *
 * in:  {load: {modules: {tier: {pieces, bytes}}, tier or '', modelBytes}}
 *      {piece: {name, bytes, text}}, the next piece of that file of the page, or {file: {name, bytes, blob}}; weights last
 *      {open: {precision}}
 *      {run: {number, text, pair or null, removed, byLayer}}
 * out: {ready: {model, tier, tiers}}, {progress: {number, done, of}}, {failed: {number or null, message}}
 *      {answer: {number, about, cells, answer, sha256, milliseconds}}, or by layer {answer: {number, layers}}
 * SPDX-License-Identifier: MIT */
const MOST_MODEL_BYTES = 3e9; // sizes have 32 bits there, and packed weights come on top
let x = null; // exports of the module
let filling = null; // file whose pieces are arriving
let hasTokenizer = false;
let tiers = [], chosen = ''; // tiers that can run here, and the one in use
let running = null; // number of the current run
let last = Promise.resolve(); // end of the chain of messages, each of which waits for the one before

/* --------------------------------------------------------------------------------------------------------- unpacking */

function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const characters = atob(text), bytes = new Uint8Array(characters.length);
    for (let k = 0; k < bytes.length; k++) bytes[k] = characters.charCodeAt(k);
    return bytes;
}

/* Writes a stream of that many bytes to an address of the module, a piece at a time, so that a model is not held
 * twice. */
async function pour(stream, at, bytes) {
    const reader = stream.getReader();
    let done = 0;
    for (let part; !(part = await reader.read()).done; done += part.value.length) {
        if (done + part.value.length > bytes) throw new Error('what the page holds is longer than it says');
        new Uint8Array(x.memory.buffer).set(part.value, at + done);
    }
    if (done !== bytes) throw new Error(`what the page holds ends after ${done} of ${bytes} bytes`);
}

/* Takes a file. The tokenizer's files come before the weights, so that it is opened while those are read. */
function takeFile(name, bytes) {
    if (name.endsWith('.safetensors')) openTokenizer();
    return take(bytes); // the memory stays allocated, since the model reads its files in place
}

function addFile(name, at, bytes) {
    if (withTexts([name], (place) => x.file_add(place, at, bytes)) !== 0) throw new Error(`${name}: too many files, or too long a name`);
}

function beginFile({name, bytes}) {
    const {readable, writable} = new DecompressionStream('deflate'), at = takeFile(name, bytes);
    filling = {name, bytes, at, writer: writable.getWriter(), poured: pour(readable, at, bytes)};
    filling.poured.catch(() => {}); // its end is awaited as well
}

async function endFile() {
    if (!filling) return;
    const {name, bytes, at, writer, poured} = filling;
    filling = null;
    await Promise.all([writer.close(), poured]);
    addFile(name, at, bytes);
}

async function piece({name, bytes, text}) {
    if (filling?.name !== name) {
        await endFile();
        beginFile({name, bytes});
    }
    await Promise.race([filling.writer.write(bytesOf(text)), filling.poured]);
}

async function file({name, bytes, blob}) {
    const at = takeFile(name, bytes);
    await pour(blob.stream(), at, bytes);
    addFile(name, at, bytes);
}

/* ---------------------------------------------------------------------------------------------------------- the module */

function take(bytes) {
    const at = x.take(bytes + 1) >>> 0;
    if (!at) throw new Error(`there is no memory for ${Math.ceil(bytes / 1e6)} MB more`);
    new Uint8Array(x.memory.buffer)[at + bytes] = 0;
    return at;
}

function string(at) {
    const memory = new Uint8Array(x.memory.buffer), from = at >>> 0;
    return new TextDecoder().decode(memory.subarray(from, memory.indexOf(0, from)));
}

/* Calls a function with texts in UTF-8, and frees them afterwards. */
function withTexts(texts, act) {
    const places = texts.map((text) => {
        if (text === null) return [0, 0];
        const bytes = new TextEncoder().encode(text), at = take(bytes.length);
        new Uint8Array(x.memory.buffer).set(bytes, at);
        return [at, bytes.length];
    });
    try {
        return act(...places.flat());
    } finally {
        for (const [at] of places) if (at) x.give(at);
    }
}

const ok = (status) => { if (status !== 0) throw new Error(string(x.message())); };
const answer = () => JSON.parse(string(x.answer()));

async function instantiate({pieces, bytes}) {
    const packed = new Blob(pieces.map(bytesOf)).stream().pipeThrough(new DecompressionStream('deflate'));
    const code = new Uint8Array(await new Response(packed).arrayBuffer()), imports = {};
    if (code.length !== bytes) throw new Error('the module of this page is damaged');
    const module = await WebAssembly.compile(code);
    for (const {module: from, name} of WebAssembly.Module.imports(module))
        (imports[from] ??= {})[name] = from === 'deberta' ? (done, of) => postMessage({progress: {number: running, done, of}})
            : name === 'clock_time_get' ? () => 0 : () => { throw new Error(`the module asked the system for ${name}`); };
    x = (await WebAssembly.instantiate(module, imports)).exports;
    x._initialize();
}

async function load({modules, tier, modelBytes}) {
    if (!self.WebAssembly) throw new Error('this browser has no WebAssembly');
    if (!self.DecompressionStream) throw new Error('this browser has no DecompressionStream, with which the page unpacks its modules');
    if (modelBytes > MOST_MODEL_BYTES) throw new Error(`the model has ${(modelBytes / 1e9).toFixed(1)} GB; a page has at most 4 GB of memory, of which a model may take 3`);
    tiers = (await usableTiers()).filter((name) => modules[name]);
    chosen = tiers.includes(tier) ? tier : tiers[0];
    if (!chosen) throw new Error(`this browser can run none of the page's modules (${Object.keys(modules).join(', ')})`);
    await instantiate(modules[chosen]);
}

function openTokenizer() {
    if (!hasTokenizer) ok(x.tokenizer_open());
    hasTokenizer = true;
}

async function open({precision}) {
    await endFile();
    ok(x.model_open(precision));
    ok(x.model_describe());
    postMessage({ready: {model: answer(), tier: chosen, tiers}});
}

/* ------------------------------------------------------------------------------------------------------------ a text */

function run({number, text, pair, removed, byLayer}) {
    const start = performance.now();
    running = number;
    withTexts([text, pair], (at, bytes, pairAt, pairBytes) => ok(x.tokenize(at, bytes, pairAt, pairBytes)));
    if (byLayer) {
        withTexts([removed], (at) => ok(x.answers_by_layer(at)));
        postMessage({answer: {number, layers: answer()}});
        return;
    }
    withTexts([removed], (at) => ok(x.explore(at)));
    const about = answer(), at = x.cells() >>> 0, cells = new Uint8Array(x.memory.buffer).slice(at, at + (x.cells_bytes() >>> 0));
    ok(x.hidden_digest());
    const {sha256} = answer();
    ok(x.answers_describe());
    postMessage({answer: {number, about, cells, answer: answer(), sha256, milliseconds: performance.now() - start}}, [cells.buffer]);
}

async function handle(data) {
    const number = data.run?.number ?? null;
    try {
        if (data.load) await load(data.load);
        else if (!x) return; // that failure was reported already
        else if (data.piece) await piece(data.piece);
        else if (data.file) await file(data.file);
        else if (data.open) await open(data.open);
        else run(data.run);
    } catch (error) {
        const broken = error instanceof (self.WebAssembly?.RuntimeError ?? RangeError) || error instanceof RangeError;
        if (number === null) x = null;
        postMessage({failed: {number, broken, message: error.message || String(error)}});
    }
}

onmessage = ({data}) => { last = last.then(() => handle(data)); };
