// Compares the modules of WebAssembly with the native program: node tests/wasm/run_bits.mjs MODULES MODEL PROGRAM
// Bits of hidden states for texts and precisions, directed multiply-adds, and damaged files. SPDX-License-Identifier: MIT
import {execFileSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const [modules, folder, program] = process.argv.slice(2);
if (!program) {
    console.error('usage: node run_bits.mjs MODULES MODEL PROGRAM');
    process.exit(2);
}
const TEXTS = ['a new store opened beside the new mall', 'x', 'the captain saw a 👩‍👩‍👧 and wrote مرحبا on <b>paper</b>', 'word '.repeat(120).trim()];
let failed = 0, checks = 0, skipped = 0;
const check = (fine, what) => { checks++; if (!fine) { failed++; console.log(`FAIL ${what}`); } };

async function load(tier) {
    const compiled = await WebAssembly.compile(fs.readFileSync(path.join(modules, `deberta-${tier}.wasm`))), imports = {};
    for (const {module, name} of WebAssembly.Module.imports(compiled))
        (imports[module] ??= {})[name] = module === 'deberta' ? () => {} : name === 'clock_time_get' ? () => 0 : () => { throw new Error(`called ${name}`); };
    const {exports: x} = await WebAssembly.instantiate(compiled, imports);
    x._initialize();
    const put = (bytes) => {
        const at = x.take(bytes.length + 1), memory = new Uint8Array(x.memory.buffer);
        memory.set(bytes, at);
        memory[at + bytes.length] = 0;
        return at;
    };
    const string = (at) => {
        const memory = new Uint8Array(x.memory.buffer);
        return new TextDecoder().decode(memory.slice(at, memory.indexOf(0, at)));
    };
    const encode = (text) => put(new TextEncoder().encode(text));
    const ok = (status) => { if (status !== 0) throw new Error(string(x.message())); };
    const add = (name, bytes) => { if (x.file_add(encode(name), put(bytes), bytes.length)) throw new Error(`too many files: ${name}`); };
    return {x, add, ok, encode, string, digest(text) {
        const bytes = new TextEncoder().encode(text), at = put(bytes), t = performance.now();
        ok(x.tokenize(at, bytes.length, 0, 0));
        ok(x.encode(encode('')));
        ok(x.hidden_digest());
        return {sha: JSON.parse(string(x.answer())).sha256, ms: performance.now() - t};
    }};
}

const names = fs.readdirSync(folder).filter((name) => /json$|safetensors$|model$|txt$/.test(name) && name !== 'deberta.packed');
const files = names.map((name) => [name, fs.readFileSync(path.join(folder, name))]);

/* The hidden states that `encode` wrote, as bytes. */
function nativeDigest(text, precision) {
    const out = path.join(os.tmpdir(), `bits-${process.pid}.safetensors`);
    execFileSync(program, ['encode', folder, '--text', text, '--precision', precision, '-q', '-o', out]);
    const raw = fs.readFileSync(out), size = Number(raw.readBigUInt64LE()), head = JSON.parse(raw.subarray(8, 8 + size));
    fs.rmSync(out);
    const [name, about] = Object.entries(head).find(([key]) => /hidden/.test(key));
    check(name, 'native hidden states');
    return crypto.createHash('sha256').update(raw.subarray(8 + size + about.data_offsets[0], 8 + size + about.data_offsets[1])).digest('hex');
}

const wanted = ['float32', 'int16', 'int8'].map((precision) => TEXTS.map((text) => nativeDigest(text, precision)));
for (const tier of ['scalar', 'exact', 'relaxed']) {
    if (!WebAssembly.validate(fs.readFileSync(path.join(modules, `deberta-${tier}.wasm`)))) {
        console.log(`skip ${tier}: this node does not know its instructions`);
        skipped++;
        continue;
    }
    for (const [number, precision] of ['float32', 'int16', 'int8'].entries()) {
        const m = await load(tier);
        for (const [name, bytes] of files) m.add(name, bytes);
        m.ok(m.x.model_open(number));
        const times = TEXTS.map((text, k) => {
            const {sha, ms} = m.digest(text);
            check(sha === wanted[number][k], `${tier}, ${precision}, text ${k}: ${sha}, native ${wanted[number][k]}`);
            return ms.toFixed(1);
        });
        console.log(`${tier} ${precision}: ${times.join(', ')} ms`);
    }
    const m = await load(tier);
    for (const small of [0, 1])
        for (const negative of [0, 1]) check(m.x.midpoints_wrong(small, negative) === 0, `${tier}: directed multiply-adds, small ${small}, negative ${negative}: ${m.x.midpoints_wrong(small, negative)}`);
    for (const [name, bytes] of files.filter(([name]) => /safetensors$|config.json$/.test(name)))
        for (const cut of [0, 7, 9, Math.floor(bytes.length / 2)]) {
            const damaged = await load(tier);
            for (const [other, content] of files) damaged.add(other, other === name ? bytes.subarray(0, cut) : content);
            check(damaged.x.model_open(0) !== 0 && damaged.string(damaged.x.message()).length > 10, `${tier}: ${name} of ${cut} bytes is refused`);
        }
}
console.log(`${checks - failed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed ? 1 : 0);
