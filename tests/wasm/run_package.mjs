// The package as whoever installs it gets it: node run_package.mjs BUILD MODEL PROGRAM
// The example runs from the archive, types name what there is, licences are inside, and what is wrong is said.
// SPDX-License-Identifier: MIT
import {execFileSync} from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

const [build, folder, program] = process.argv.slice(2);
if (!program) {
    console.error('usage: node run_package.mjs BUILD MODEL PROGRAM');
    process.exit(2);
}
let passed = 0, failed = 0;
const check = (fine, what) => { if (fine) passed++; else { failed++; console.log(`FAIL ${what}`); } };
const place = fs.mkdtempSync(path.join(os.tmpdir(), 'deberta-package-'));
process.on('exit', () => fs.rmSync(place, {recursive: true}));

const archive = fs.readdirSync(build).find((name) => /^deberta-.*\.tgz$/.test(name));
if (archive) execFileSync('tar', ['xzf', path.join(build, archive), '-C', place]);
else fs.cpSync(path.join(build, 'package'), path.join(place, 'package'), {recursive: true});
const root = path.join(place, 'package');

const licences = fs.readFileSync(path.join(root, 'LICENSES.txt'), 'utf8');
for (const text of ['deberta.c authors', 'Petri Lehtinen', 'University of Cambridge', 'Rich Felker', 'LLVM'])
    check(licences.includes(text), `the licences do not name ${text}`);

const library = await import(path.join(root, 'deberta.mjs'));
const types = fs.readFileSync(path.join(root, 'deberta.d.ts'), 'utf8');
for (const name of Object.keys(library)) check(new RegExp(`export (function|class) ${name}\\b`).test(types), `the types do not name ${name}`);
for (const name of Object.getOwnPropertyNames(library.Model.prototype).filter((name) => name !== 'constructor'))
    check(new RegExp(`^    (readonly )?${name}\\b`, 'm').test(types), `the types do not name Model.${name}`);

/* What a reader downloads: the limits in bytes of the modules, plain and packed. */
for (const [tier, most] of Object.entries({scalar: 8.5e5, relaxed: 8.5e5, exact: 1.2e6})) {
    const code = fs.readFileSync(path.join(root, `deberta-${tier}.wasm`)), packed = zlib.gzipSync(code, {level: 9}).length;
    check(code.length <= most && packed <= 3.1e5, `${tier}: ${code.length} bytes, ${packed} under gzip; at most ${most} and 310000`);
}

/* The example, and the bits of its sentence. */
const said = execFileSync(process.execPath, [...process.execArgv, path.join(root, 'example.mjs'), folder], {encoding: 'utf8'});
const out = path.join(place, 'states.safetensors');
execFileSync(program, ['encode', folder, '--text', 'the captain [MASK] the ship', '-q', '-o', out]);
const raw = fs.readFileSync(out), size = Number(raw.readBigUInt64LE()), head = JSON.parse(raw.subarray(8, 8 + size));
const [from, to] = Object.entries(head).find(([name]) => /hidden/.test(name))[1].data_offsets;
const native = crypto.createHash('sha256').update(raw.subarray(8 + size + from, 8 + size + to)).digest('hex');
check(said.includes(`SHA-256 ${native}`), `the example has not the native program's bits: ${said}`);
check(/token 3: .+\n.*change by up to [0-9]/.test(said), `the example ends too early: ${said}`);

/* What deberta.mjs hands over is what the digest is of. */
const {Model, readFolder, usableTiers} = library, files = await readFolder(folder);
for (const tier of await usableTiers()) {
    const model = await Model.open(files, {tier});
    const {hidden, sha256, tokens, n} = model.encode('a ship', {pair: 'and the sea'});
    check(crypto.createHash('sha256').update(new Uint8Array(hidden.buffer)).digest('hex') === sha256, `${tier}: hidden states are not those of the digest`);
    check(n === tokens.length && model.about.tier === tier, `${tier}: ${n} tokens, ${model.about.tier}`);
    const explored = model.explore('a ship');
    check(explored.bytes.length === explored.head_bytes * model.about.layers * model.about.heads, `${tier}: heads of ${explored.bytes.length} bytes`);
    model.close();
    const after = await Promise.resolve().then(() => model.encode('x')).catch((error) => error.message);
    check(/closed/.test(after), `${tier}: a closed model says ${after}`);
}

/* Candidates are those of the text that was encoded or explored last, whatever was tokenized or failed since. */
const wrong = (act) => { try { act(); return 'nothing'; } catch (error) { return error.message; } };
{
    const model = await Model.open(files), first = 'the captain [MASK] the ship', second = 'we went to the [MASK]';
    check(/no text is encoded/.test(wrong(() => model.candidates())), `candidates before a text: ${wrong(() => model.candidates())}`);
    model.tokenize(first);
    check(/no text is encoded/.test(wrong(() => model.candidates())), `candidates of tokens alone: ${wrong(() => model.candidates())}`);
    const answers = (text, ablations) => { model.encode(text, {ablations}); return JSON.stringify(model.candidates(2)); };
    const other = answers(second), without = answers(first, 'c2p@all'), full = answers(first);
    const still = (what, act, expected) => { act(); const found = JSON.stringify(model.candidates(2)); check(found === expected, `${what}: ${found}, not ${expected}`); };
    check(new Set([other, without, full]).size === 3, 'three texts have the same candidates');
    still('after tokenize', () => model.tokenize(second), full);
    still('after two of them', () => { model.tokenize('a'); model.tokenize(second, first); }, full);
    still('after unknown ablations', () => check(/c9p/.test(wrong(() => model.encode(second, {ablations: 'c9p@all'}))), 'c9p is no term'), full);
    still('after explore', () => model.explore(second), other);
    still('after explore that fails', () => wrong(() => model.explore(first, {ablations: 'c9p@all'})), other);
    still('after encode with ablations', () => model.encode(first, {ablations: 'c2p@all'}), without);

    /* Lone surrogates are read as U+FFFD, and counted; pairs of them are characters. */
    for (const [text, pair, count] of [['a \u{1f600} ship', 'b', 0], ['a \ud800 ship', '\udc00\ud83d', 3], ['\udc00\ud800', null, 2]])
        for (const [call, found] of [['tokenize', model.tokenize(text, pair)], ['encode', model.encode(text, {pair})], ['explore', model.explore(text, {pair})]])
            check(found.replaced === count, `${call}: ${found.replaced} replaced, not ${count}`);
    model.encode(first, {ablations: 'c2p@all'});

    /* What would change nothing, or is of another type, is refused. */
    const refuses = (pattern, act) => check(pattern.test(wrong(act)), `${act}: ${wrong(act)}`);
    refuses(/candidates: the option 'emd' is unknown; known are: decoder/, () => model.candidates(2, {emd: true}));
    for (const decoder of ['emd', 'plain', 0, null]) refuses(/candidates: decoder is .*; expected true or false/, () => model.candidates(2, {decoder}));
    refuses(/candidates: the last argument is false; expected an object of options: decoder/, () => model.candidates(2, false));
    for (const call of ['encode', 'explore']) {
        refuses(/: the option 'ablation' is unknown; known are: pair, ablations/, () => model[call](first, {ablation: 'c2p@all'}));
        refuses(/: the last argument is 'c2p@all'; expected an object/, () => model[call](first, 'c2p@all'));
        for (const ablations of [null, ['c2p@all'], 'c2p@all\0,p2c@all']) refuses(/: ablations is .*; expected a string/, () => model[call](first, {ablations}));
        refuses(/: pair is 7; expected a string or null/, () => model[call](first, {pair: 7}));
    }
    for (const call of ['encode', 'explore', 'tokenize'])
        for (const text of [undefined, null, 5, ['a'], {}]) refuses(new RegExp(`^${call}: text is .*; expected a string`), () => model[call](text));
    refuses(/tokenize: pair is an object; expected a string or null/, () => model.tokenize('a', {pair: 'b'}));
    still('after what was refused', () => model.candidates(2, {decoder: undefined}), without);
    model.encode(first, {pair: null, ablations: undefined});
    still('with decoder', () => check(JSON.stringify(model.candidates(2, {decoder: true})) === full, 'the decoder is the default'), full);
    model.close();
}

const refused = async (what, pattern, list, options) => {
    const message = await Model.open(list, options).then(() => 'nothing', (error) => error.message);
    check(pattern.test(message), `${what}: ${message}`);
};
await refused('unknown precision', /'half' is unknown; known are float32/, files, {precision: 'half'});
await refused('a misspelt option', /open: the option 'presicion' is unknown; known are: precision, tier, module, onProgress/, files, {presicion: 'int8'});
await refused('a precision alone', /open: the last argument is 'int8'; expected an object/, files, 'int8');
await refused('a number as precision', /open: precision is 8; expected float32, int16, int8/, files, {precision: 8});
await refused('progress that is no function', /open: onProgress is true; expected a function/, files, {onProgress: true});
await refused('no folder', /open: the first argument is undefined; expected a folder's path, or names and bytes/, undefined);
await refused('a file of text', /open: the file 'config.json' is an array; expected a name and a Uint8Array/, [['config.json', '{}']]);
await refused('names alone', /open: a file is 'config.json'; expected a name and a Uint8Array/, ['config.json']);
await refused('unknown tier', /'avx2' cannot be used here/, files, {tier: 'avx2'});
await refused('no files', /\S{10}|\S+ \S+/, []);
await refused('a module that is none', /./, files, {module: new Uint8Array(4)});
await refused('weights of PyTorch', /safetensors/, [...files.filter(([name]) => !/safetensors$/.test(name)), ['pytorch_model.bin', new TextEncoder().encode('PK\x03\x04'.padEnd(99, '\0'))]]);
await refused('a model of 3.2 GB', /has 3\.2 GB; a module has at most 4 GB/, [['model.safetensors', {length: 3.2e9}]]);
await refused('too many files', /too many files/, Array.from({length: 40}, (_, k) => [`${k}.json`, new Uint8Array(2)]));
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;
