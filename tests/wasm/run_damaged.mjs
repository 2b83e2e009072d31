// Damaged models in the module: an error with a sentence, never a trap, and nothing that the native program refuses.
//     node run_damaged.mjs BUILD MODEL PROGRAM [CASES [SEED]]
// Declared sizes are drawn so that products of two overflow 32 bits, in config.json and in the header of model.safetensors.
// SPDX-License-Identifier: MIT
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const [build, folder, program, cases = '60', given] = process.argv.slice(2);
if (!program) {
    console.error('usage: node run_damaged.mjs BUILD MODEL PROGRAM [CASES [SEED]]');
    process.exit(2);
}
const {Model, readFolder} = await import(path.resolve(build, 'package/deberta.mjs'));
const seed = given ? Number(given) : Date.now() % 1e6;
console.log(`seed ${seed}`);
let state = seed, passed = 0, failed = 0;
const below = (n) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor(state / 2 ** 32 * n); };
const one = (list) => list[below(list.length)];

const SIZES = [2 ** 16, 2 ** 16 - 1, 2 ** 22, 2 ** 24, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 192, 2 ** 33, 2 ** 40, 2 ** 53];
const KEYS = ['hidden_size', 'intermediate_size', 'vocab_size', 'max_position_embeddings', 'num_hidden_layers', 'num_attention_heads', 'position_buckets',
    'max_relative_positions', 'type_vocab_size', 'conv_kernel_size', 'embedding_size', 'attention_head_size'];
const files = new Map((await readFolder(folder)).filter(([name]) => name !== 'deberta.packed' && !/^examples/.test(name)));
const weights = files.get('model.safetensors'), headBytes = Number(weights.readBigUInt64LE());
const head = JSON.parse(weights.subarray(8, 8 + headBytes)), tensors = Object.keys(head).filter((name) => name !== '__metadata__');
const module = await WebAssembly.compile(fs.readFileSync(path.join(build, 'deberta-scalar.wasm')));
const place = fs.mkdtempSync(path.join(os.tmpdir(), 'deberta-damaged-'));
process.on('exit', () => [place, `${place}.safetensors`].forEach((made) => fs.rmSync(made, {recursive: true, force: true})));
for (const [name] of files) fs.copyFileSync(path.join(folder, name), path.join(place, name));

function drawConfig() {
    const config = JSON.parse(files.get('config.json')), changed = [];
    for (let k = 1 + below(3); k; k--) {
        const key = one(KEYS);
        config[key] = one(SIZES);
        changed.push(`${key} ${config[key]}`);
    }
    return {name: 'config.json', what: changed.join(', '), bytes: Buffer.from(JSON.stringify(config))};
}

function withHead(head, length) {
    const text = Buffer.from(JSON.stringify(head)), size = Buffer.alloc(8);
    size.writeBigUInt64LE(length ?? BigInt(text.length));
    return Buffer.concat([size, text, weights.subarray(8 + headBytes)]);
}

/* An end of data that is right in its lower 32 bits. */
function endBeyond(name) {
    const copy = structuredClone(head);
    copy[name].data_offsets[1] += 2 ** 32;
    return {name: 'model.safetensors', what: `${name} ends 2^32 bytes later`, bytes: withHead(copy)};
}

function drawHeader() {
    const copy = structuredClone(head), name = one(tensors), tensor = copy[name];
    const kind = below(3);
    if (kind === 0) tensor.shape = tensor.shape.map(() => one(SIZES));
    else if (kind === 1) tensor.shape = [one(SIZES), one(SIZES)], tensor.data_offsets = [tensor.data_offsets[0], tensor.data_offsets[0]];
    else tensor.data_offsets = [tensor.data_offsets[0], tensor.data_offsets[1] + one(SIZES)];
    const length = below(8) ? undefined : BigInt(one(SIZES)) - 8n;
    return {name: 'model.safetensors', what: `${name} ${JSON.stringify(tensor)}, header of ${length ?? 'its'} bytes`, bytes: withHead(copy, length)};
}

/* Every file cut where a length could be trusted, then what is drawn. */
function* damages() {
    for (const [name, bytes] of files)
        for (const cut of [0, 1, 7, 9, bytes.length >> 1, bytes.length - 1])
            yield {name, what: `${cut} of ${bytes.length} bytes`, bytes: bytes.subarray(0, cut)};
    for (const name of tensors.slice(0, 2)) yield endBeyond(name);
    for (let k = 0; k < Number(cases); k++) yield k % 2 ? drawHeader() : drawConfig();
}

for (const {name, what, bytes} of damages()) {
    const error = await Model.open(new Map([...files, [name, bytes]]), {tier: 'scalar', module}).then((model) => {
        model.encode('a ship');
        model.close();
    }).catch((error) => error);
    let wrong = '';
    if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) wrong = `trap: ${error.message}`;
    else if (error && error.message.length < 15) wrong = `no sentence: '${error.message}'`;
    else if (!error) {
        fs.writeFileSync(path.join(place, name), bytes);
        const native = spawnSync(program, ['encode', place, '--text', 'a ship', '-q', '-o', `${place}.safetensors`], {encoding: 'utf8'});
        fs.copyFileSync(path.join(folder, name), path.join(place, name));
        if (native.status !== 0) wrong = `opened, which the native program refuses: ${native.stderr}`;
    }
    if (wrong) { failed++; console.log(`FAIL ${name}, ${what}: ${wrong}`); } else passed++;
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;
