// Sizes and times of the modules as the table of wasm/README.md: node wasm/measure.mjs BUILD MODEL PROGRAM
// Times are medians of one thread: MODEL with a text of 20 tokens, and a made-up v3-base with 20 ids, whose hidden states must be
// the native program's. SPDX-License-Identifier: MIT
import {execFileSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

const [build, folder, program] = process.argv.slice(2);
if (!program) {
    console.error('usage: node wasm/measure.mjs BUILD MODEL PROGRAM');
    process.exit(2);
}
const {Model, readFolder, usableTiers} = await import(path.resolve(build, 'package/deberta.mjs'));
const TEXT = 'the captain looked at the ship and saw that the men had gone down to the sea in', TOKENS = 20;
const BASE = 'synthetic:v3-base,vocab=1000', RUNS = {relaxed: 9, exact: 5}, WARM = 3;
const files = await readFolder(folder), usable = await usableTiers();
const runner = new URL('../tests/wasm/run_program.mjs', import.meta.url).pathname;

async function bundled(tier, precision) {
    const model = await Model.open(files, {tier, precision}), times = [];
    const words = TEXT.split(' ');
    let text = words.shift();
    for (let k = 0; model.tokenize(text).n < TOKENS; k++) text += ` ${words[k % words.length]}`;
    if (model.tokenize(text).n !== TOKENS) throw new Error('the text has not 20 tokens');
    const runs = tier === 'scalar' ? 5 : 25;
    for (let k = 0; k < runs + WARM; k++) {
        const start = performance.now();
        model.encode(text);
        if (k >= WARM) times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[runs >> 1];
}

function nativeDigest(precision) {
    const out = path.join(os.tmpdir(), `measure-${process.pid}.safetensors`), ids = Array.from({length: TOKENS}, (_, k) => k + 3).join(',');
    execFileSync(program, ['encode', BASE, '--ids', ids, '--precision', precision, '-q', '-o', out]);
    const raw = fs.readFileSync(out), size = Number(raw.readBigUInt64LE()), head = JSON.parse(raw.subarray(8, 8 + size));
    fs.rmSync(out);
    const [from, to] = Object.entries(head).find(([name]) => /hidden/.test(name))[1].data_offsets;
    return crypto.createHash('sha256').update(raw.subarray(8 + size + from, 8 + size + to)).digest('hex');
}

function base(tier, precision, wanted) {
    const answer = execFileSync(process.execPath, [...process.execArgv, '--no-warnings', runner, path.join(build, `tests/encode_times-${tier}.wasm`),
        BASE, TOKENS, precision, RUNS[tier]], {encoding: 'utf8'});
    const [time, sha] = answer.trim().split(' ');
    if (sha !== wanted) throw new Error(`${tier}, ${precision}: hidden states of ${BASE} are not the native program's`);
    return Number(time) / 1000;
}

const digests = {float32: nativeDigest('float32'), int8: nativeDigest('int8')};
console.log('| module | KB | gzip | bundled model | int8 | v3-base | int8 |\n|---|--:|--:|--:|--:|--:|--:|');
for (const tier of usable) {
    const bytes = fs.readFileSync(path.join(build, `deberta-${tier}.wasm`));
    const cells = [`\`${tier}\``, (bytes.length / 1000).toFixed(0), (zlib.gzipSync(bytes, {level: 9}).length / 1000).toFixed(0)];
    for (const precision of ['float32', 'int8']) cells.push(`${(await bundled(tier, precision)).toFixed(1)} ms`);
    for (const precision of ['float32', 'int8']) cells.push(RUNS[tier] ? `${base(tier, precision, digests[precision]).toFixed(2)} s` : '');
    console.log(`| ${cells.join(' | ')} |`);
}
