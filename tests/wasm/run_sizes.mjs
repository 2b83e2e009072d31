// Sizes that 32 bits do not hold, numbers of candidates, weights that are no numbers, lower case: node run_sizes.mjs BUILD MODEL
// Each ends in a sentence or a right answer, and the model goes on. SPDX-License-Identifier: MIT
import fs from 'node:fs';
import path from 'node:path';

const [build, folder] = process.argv.slice(2);
if (!folder) {
    console.error('usage: node run_sizes.mjs BUILD MODEL');
    process.exit(2);
}
const {Model, readFolder, usableTiers} = await import(path.resolve(build, 'package/deberta.mjs'));
const [tier] = await usableTiers();
const module = await WebAssembly.compile(fs.readFileSync(path.join(build, `deberta-${tier}.wasm`)));
const files = new Map((await readFolder(folder)).filter(([name]) => name !== 'deberta.packed' && !/^examples/.test(name)));
const weights = files.get('model.safetensors'), headBytes = Number(weights.readBigUInt64LE());
const head = JSON.parse(weights.subarray(8, 8 + headBytes)), config = JSON.parse(files.get('config.json'));
const open = (changes) => Model.open(new Map([...files, ...Object.entries(changes)]), {tier, module});
const said = (act) => { try { act(); return 'nothing'; } catch (error) { return error instanceof WebAssembly.RuntimeError ? `trap: ${error.message}` : error.message; } };
let passed = 0, failed = 0;
const check = (fine, what) => { if (fine) passed++; else { failed++; console.log(`FAIL ${what}`); } };

/* A model of zeros with this shape, from the names that the demo has. */
function zeros(layers, hidden, heads) {
    const shapes = {}, known = new Map([[config.hidden_size, hidden], [config.intermediate_size, hidden], [config.embedding_size ?? config.hidden_size, hidden]]);
    for (const [name, {shape}] of Object.entries(head)) {
        if (name === '__metadata__' || /lm_|predictions|classifier|pooler|qa_/.test(name)) continue;
        const layer = /\.layer\.(\d+)\./.exec(name);
        if (layer && layer[1] !== '0') continue;
        for (let k = 0; k < (layer ? layers : 1); k++)
            shapes[name.replace('.layer.0.', `.layer.${k}.`)] = shape.map((size) => known.get(size) ?? size);
    }
    let at = 0;
    const tensors = Object.fromEntries(Object.entries(shapes).map(([name, shape]) => {
        const from = at;
        at += 4 * shape.reduce((product, size) => product * size, 1);
        return [name, {dtype: 'F32', shape, data_offsets: [from, at]}];
    }));
    const text = Buffer.from(JSON.stringify(tensors)), size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    const changed = {...config, num_hidden_layers: layers, hidden_size: hidden, intermediate_size: hidden, num_attention_heads: heads};
    for (const key of ['embedding_size', 'attention_head_size']) if (key in changed) changed[key] = key === 'embedding_size' ? hidden : hidden / heads;
    return {'config.json': Buffer.from(JSON.stringify(changed)), 'model.safetensors': Buffer.concat([size, text, Buffer.alloc(at)])};
}

const many = await open(zeros(1, 1024, 1024)); // 1024 heads of 5 matrices: 2^32 bytes are passed at 458 tokens
let text = 'a ship';
while (many.tokenize(text).n < 458) text += ' a';
check(/out of memory for the heads of 458 tokens/.test(said(() => many.explore(text))), `1024 heads: ${said(() => many.explore(text))}`);
check(many.explore('a ship').bytes.length > 0, 'a short text after it');
many.close();

const model = await open({});
model.encode('the captain [MASK] the ship');
const all = model.candidates(2 ** 30)[0].tokens, few = model.candidates(3)[0].tokens;
check(all.length >= 1000 && all.length === new Set(all.map(({id}) => id)).size, `2^30 candidates: ${all.length}`);
check(few.length === 3 && few.every(({id}, k) => id === all[k].id), 'the first of them');
for (const top of [0, -1, 1.5, NaN, 2 ** 32, 'all']) check(/is no number of tokens/.test(said(() => model.candidates(top))), `candidates(${top}): ${said(() => model.candidates(top))}`);
model.close();

/* One value of a tensor is no number: the program refuses such results, and so does the module. */
async function damaged(pattern) {
    const [, tensor] = Object.entries(head).find(([name]) => pattern.test(name)), copy = Buffer.from(weights);
    const place = 8 + headBytes + tensor.data_offsets[0];
    if (tensor.dtype === 'F32') copy.writeUInt32LE(0x7fc00000, place); else copy.writeUInt16LE(tensor.dtype === 'F16' ? 0x7e00 : 0x7fc0, place);
    return open({'model.safetensors': copy});
}
for (const pattern of [new RegExp(`layer\\.${config.num_hidden_layers - 1}\\.output\\.LayerNorm\\.bias`), /lm_.*bias$|predictions.*bias$/]) {
    const refusal = await damaged(pattern).then(() => '', (error) => error.message);
    check(/weights of the model are damaged/.test(refusal), `${pattern} with NaN: ${refusal}`);
}

/* Lower case asks no system for a locale. */
const tokenizer = JSON.parse(files.get('tokenizer_config.json') ?? '{}');
const lower = await open({'tokenizer_config.json': Buffer.from(JSON.stringify({...tokenizer, do_lower_case: true}))});
const plain = await open({});
check(String(lower.tokenize('The SHIP').ids) === String(plain.tokenize('the ship').ids), `lower case: ${lower.tokenize('The SHIP').tokens}`);
check(String(lower.tokenize('\u00c9A \u0130').ids) === String(plain.tokenize('\u00e9a i\u0307').ids), 'lower case beyond ASCII');
lower.close(), plain.close();

/* A folder that holds no weights that are read: what lies there is named, as the program names it. */
const without = [...files].filter(([name]) => name !== 'model.safetensors');
const none = await Model.open(new Map([...without, ['model.onnx', Buffer.from('x')]]), {tier, module}).then(() => 'nothing', (error) => error.message);
check(/no weights.*model\.onnx is ONNX/.test(none), `a folder of ONNX: ${none}`);
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;
