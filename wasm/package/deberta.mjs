// DeBERTa in JavaScript, for Node and browsers: the modules of WebAssembly as a class. deberta.d.ts has the types.
//
// A model is one instance of a module with a memory of its own. Nothing is asked of a network but the module's file,
// and not that where `module` brings it. SPDX-License-Identifier: MIT

export {usableTiers}; // usable_tiers.js

const PRECISIONS = ['float32', 'int16', 'int8'];
const MOST_BYTES = 3e9; // sizes have 32 bits, and packed weights come on top of the files
const NAMES = /^(?!training\.safetensors$|adapter_).*\.(json|safetensors|model)$|^(merges|vocab)\.txt$|^bpe_encoder\.bin$|^pytorch_model.*\.bin$/;
const inNode = typeof process !== 'undefined' && !!process.versions?.node;

async function compile(tier, given) {
    if (given instanceof WebAssembly.Module) return given;
    if (given) return WebAssembly.compile(given);
    const place = new URL(`./deberta-${tier}.wasm`, import.meta.url);
    if (inNode && place.protocol === 'file:') return WebAssembly.compile(await (await import('node:fs/promises')).readFile(place));
    const response = await fetch(place);
    if (!response.ok) throw new Error(`${place.href}: ${response.status} ${response.statusText}`);
    return WebAssembly.compile(await response.arrayBuffer());
}

async function instantiate(module, onProgress) {
    const imports = {};
    for (const {module: from, name} of WebAssembly.Module.imports(module))
        (imports[from] ??= {})[name] = from === 'deberta' ? onProgress : name === 'clock_time_get' ? () => 0
            : () => { throw new Error(`the module asked the system for ${name}`); };
    const {exports} = await WebAssembly.instantiate(module, imports);
    exports._initialize();
    return exports;
}

/* ------------------------------------------------------------------------------------------------------ what is given */

/* What an argument or an option may be, and how a message says it. The module would read a text up to its first NUL. */
const isText = (value) => typeof value === 'string', isName = (value) => isText(value) && !value.includes('\0');
const TEXT = [isText, 'a string'], PAIR = [(value) => value === null || isText(value), 'a string or null'];
const TEXT_OPTIONS = {pair: PAIR, ablations: [isName, "a string such as 'c2p@all', without NUL"]};
const DECODER_OPTIONS = {decoder: [(value) => typeof value === 'boolean', 'true or false']};
const OPEN_OPTIONS = {precision: [isText, PRECISIONS.join(', ')], tier: TEXT, module: [(value) => typeof value === 'object', 'the bytes of a module, or a compiled one'],
    onProgress: [(value) => typeof value === 'function', 'a function']};
const FILES = [(value) => isText(value) || typeof value === 'object' && value !== null, "a folder's path, or names and bytes of files"];
const FILE = [(value) => Array.isArray(value) && isName(value[0]) && ArrayBuffer.isView(value[1]) && value[1].BYTES_PER_ELEMENT === 1, 'a name and a Uint8Array'];

function expect(call, name, value, [fits, expected]) {
    if (fits(value)) return;
    const found = isText(value) ? `'${value}'` : Array.isArray(value) ? 'an array' : typeof value === 'object' && value ? 'an object' : String(value);
    throw new Error(`${call}: ${name} is ${found}; expected ${expected}`);
}

/* An option of another name would change nothing, so it is refused; one that is undefined has its default. */
function expectOptions(call, options, known) {
    const names = Object.keys(known).join(', ');
    expect(call, 'the last argument', options, [(value) => typeof value === 'object' && value !== null, `an object of options: ${names}`]);
    for (const name in options) {
        if (!Object.hasOwn(known, name)) throw new Error(`${call}: the option '${name}' is unknown; known are: ${names}`);
        if (options[name] !== undefined) expect(call, name, options[name], known[name]);
    }
}

/* The files of a model's folder, in Node. */
export async function readFolder(folder) {
    const fs = await import('node:fs/promises'), path = await import('node:path');
    const names = (await fs.readdir(folder)).filter((name) => NAMES.test(name));
    return Promise.all(names.map(async (name) => [name, await fs.readFile(path.join(folder, name))]));
}

/* ------------------------------------------------------------------------------------------------------------ a model */

export class Model {
    #x;
    #about;
    #replaced = 0;

    constructor(exports) { this.#x = exports; }

    static async open(files, options = {}) {
        expect('open', 'the first argument', files, FILES);
        expectOptions('open', options, OPEN_OPTIONS);
        const {precision = 'float32', tier, module, onProgress = () => {}} = options;
        const number = PRECISIONS.indexOf(precision), tiers = await usableTiers(), chosen = tier ?? tiers[0];
        if (number < 0) throw new Error(`precision '${precision}' is unknown; known are ${PRECISIONS.join(', ')}`);
        if (!tiers.includes(chosen)) throw new Error(`the tier '${chosen}' cannot be used here; usable are: ${tiers.join(', ') || 'none'}`);
        const list = typeof files === 'string' ? await readFolder(files) : Symbol.iterator in files ? [...files] : Object.entries(files);
        const total = list.reduce((sum, file) => sum + (file?.[1]?.length ?? 0), 0);
        if (total > MOST_BYTES) throw new Error(`the model has ${(total / 1e9).toFixed(1)} GB; a module has at most 4 GB of memory, of which a model may take 3`);
        for (const file of list) expect('open', Array.isArray(file) && isText(file[0]) ? `the file '${file[0]}'` : 'a file', file, FILE);
        const model = new Model(await instantiate(await compile(chosen, module), onProgress));
        for (const [name, bytes] of list) model.#addFile(name, bytes);
        model.#do((x) => x.model_open(number));
        model.#do((x) => x.model_describe());
        model.#about = Object.freeze(model.#answer());
        return model;
    }

    get about() { return this.#about; }

    tokenize(text, pair = null) {
        this.#setText('tokenize', text, pair);
        return this.#tokens();
    }

    encode(text, options = {}) {
        expectOptions('encode', options, TEXT_OPTIONS);
        const {pair = null, ablations = ''} = options, columns = this.about.hidden_size;
        this.#setText('encode', text, pair);
        const tokens = this.#tokens();
        this.#withTexts([ablations], (x, at) => x.encode(at));
        const from = this.#x.hidden() >>> 0, stride = this.#x.hidden_stride() >>> 0, hidden = new Float32Array(tokens.n * columns);
        for (let t = 0; t < tokens.n; t++)
            hidden.set(new Float32Array(this.#x.memory.buffer, from + 4 * t * stride, columns), t * columns);
        this.#do((x) => x.hidden_digest());
        return {...tokens, columns, hidden, sha256: this.#answer().sha256};
    }

    explore(text, options = {}) {
        expectOptions('explore', options, TEXT_OPTIONS);
        const {pair = null, ablations = ''} = options;
        this.#setText('explore', text, pair);
        this.#withTexts([ablations], (x, at) => x.explore(at));
        const about = {...this.#answer(), replaced: this.#replaced}, at = this.#x.cells() >>> 0;
        return {...about, bytes: new Uint8Array(this.#x.memory.buffer).slice(at, at + (this.#x.cells_bytes() >>> 0))};
    }

    candidates(top = 5, options = {}) {
        if (!Number.isInteger(top) || top < 1 || top >= 2 ** 32) throw new Error(`candidates: ${top} is no number of tokens; expected 1, 2, ...`);
        expectOptions('candidates', options, DECODER_OPTIONS);
        const {decoder = true} = options;
        this.#do((x) => x.candidates(top, Number(decoder)));
        return this.#answer();
    }

    close() { this.#x = null; }

    /* -------------------------------------------------------------------------------------------- the module's memory */

    /* A trap leaves the memory as it was in the middle of something: such a model is closed. */
    #do(act) {
        if (!this.#x) throw new Error('the model is closed');
        let status;
        try {
            status = act(this.#x);
        } catch (error) {
            this.close();
            throw error;
        }
        if (status !== 0) throw new Error(this.#string(this.#x.message()));
    }

    #take(bytes) {
        if (!this.#x) throw new Error('the model is closed');
        const at = this.#x.take(bytes + 1) >>> 0;
        if (!at) throw new Error(`there is no memory for ${Math.ceil(bytes / 1e6)} MB more`);
        new Uint8Array(this.#x.memory.buffer)[at + bytes] = 0;
        return at;
    }

    #put(bytes) {
        const at = this.#take(bytes.length);
        new Uint8Array(this.#x.memory.buffer).set(bytes, at);
        return at;
    }

    /* Texts as UTF-8 for one call, which may fail; null: 0. */
    #withTexts(texts, act) {
        const places = texts.map((text) => {
            if (text === null) return [0, 0];
            const bytes = new TextEncoder().encode(text);
            return [this.#put(bytes), bytes.length];
        });
        try {
            this.#do((x) => act(x, ...places.flat()));
        } finally {
            for (const [at] of places) if (at && this.#x) this.#x.give(at);
        }
    }

    #tokens() {
        this.#do((x) => x.tokens_describe());
        return {...this.#answer(), replaced: this.#replaced};
    }

    #setText(call, text, pair) {
        expect(call, 'text', text, TEXT);
        expect(call, 'pair', pair, PAIR);
        /* UTF-8 has no lone surrogates: TextEncoder makes U+FFFD of them. */
        this.#replaced = [text, pair ?? ''].reduce((sum, one) => sum + (one.match(/\p{Surrogate}/gu)?.length ?? 0), 0);
        this.#withTexts([text, pair], (x, at, bytes, pairAt, pairBytes) => x.tokenize(at, bytes, pairAt, pairBytes));
    }

    /* The bytes stay: the model reads its files in place. */
    #addFile(name, bytes) {
        const at = this.#put(bytes);
        this.#withTexts([name], (x, text) => {
            if (x.file_add(text, at, bytes.length) !== 0) throw new Error(`${name}: too many files, or too long a name`);
            return 0;
        });
    }

    #string(at) {
        const memory = new Uint8Array(this.#x.memory.buffer), from = at >>> 0;
        return new TextDecoder().decode(memory.slice(from, memory.indexOf(0, from)));
    }

    #answer() { return JSON.parse(this.#string(this.#x.answer())); }
}
