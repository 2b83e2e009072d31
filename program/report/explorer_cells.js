/* Reads the data in the page, decodes its bytes (explorer_cells.h describes them), and paints cells.
 * SPDX-License-Identifier: MIT */
const readJson = (name) => {
    const element = document.getElementById(`json-${name}`);
    return element ? JSON.parse(element.textContent) : null;
};
const page = readJson('page');
/* "int8" and the like; empty for float32, the unnamed default */
const lowPrecision = (readJson('info')?.model?.precision ?? 'float32').replace('float32', '');
const C2C = 0, C2P = 1, P2C = 2, SUM = 3, PROBS = 4;
const TERMS = [C2C, C2P, P2C];
const COMPONENTS = [
    {key: 'c2c', name: 'c2c', long: 'content to content'},
    {key: 'c2p', name: 'c2p', long: 'content to position'},
    {key: 'p2c', name: 'p2c', long: 'position to content'},
    {key: 'sum', name: 'logit', long: 'logit, the sum of the terms'},
    {key: 'probs', name: 'probabilities', long: 'probabilities'},
];
const MOST_HEADS_KEPT = 24;

const hasComponent = (text, component) => component >= SUM || text.has[component];
const termsOf = (text) => TERMS.filter((c) => text.has[c]);

function decodeBase64(encoded) {
    const characters = atob(encoded), bytes = new Uint8Array(characters.length);
    for (let k = 0; k < bytes.length; k++) bytes[k] = characters.charCodeAt(k);
    return bytes;
}

/* A byte of a term is a signed fraction of the scale; a byte of a probability is the root of such a fraction. */
const termOfByte = (byte, scale) => byte === 128 ? NaN : (byte << 24 >> 24) / 127 * scale;
const probabilityOfByte = (byte, scale) => byte === 255 ? NaN : (byte / 254) ** 2 * scale;

function takeBytes(bytes, at, count, component, scale) {
    const table = new Float32Array(256), values = new Float32Array(count);
    for (let b = 0; b < 256; b++) table[b] = component === PROBS ? probabilityOfByte(b, scale) : termOfByte(b, scale);
    for (let k = 0; k < count; k++) values[k] = table[bytes[at + k]];
    return values;
}

/* Returns {means: row means of the terms, values: without them, low and high: ranges of pooled cells}; by
 * component. */
function decodeHead(text, about, bytes) {
    const m = text.cells, area = m * m, head = {means: [], values: [], low: [], high: [], shown: new Map()};
    let at = 0;
    for (const c of termsOf(text)) {
        head.means[c] = new Float32Array(bytes.buffer, at, m);
        at += 4 * m;
    }
    for (const c of [...termsOf(text), PROBS]) {
        head.values[c] = text.exact ? new Float32Array(bytes.buffer, at, area) : takeBytes(bytes, at, area, c, about.scale[c]);
        at += text.exact ? 4 * area : area;
    }
    head.values[SUM] = addTerms(termsOf(text), head.values, area);
    head.means[SUM] = addTerms(termsOf(text), head.means, m);
    for (let c = C2C; c <= PROBS && text.pool > 1; c++) {
        if (!hasComponent(text, c)) continue;
        head.low[c] = takeBytes(bytes, at, area, c, about.range[c]);
        head.high[c] = takeBytes(bytes, at + area, area, c, about.range[c]);
        at += 2 * area;
    }
    return head;
}

function addTerms(which, terms, count) {
    const sum = new Float32Array(count);
    for (const c of which) for (let k = 0; k < count; k++) sum[k] += terms[c][k];
    return sum;
}

const keptHeads = new Map(); // in the order of use, the latest last

/* Returns the bytes of a head: from the page's element for a text that came with it, or from the worker's answer for
 * a computed one. */
function headBytes(t, layer, number, run) {
    const {bytes, head_bytes: size} = run, at = (layer * run.heads[0].length + number) * size;
    return bytes ? bytes.slice(at, at + size) : decodeBase64(document.getElementById(`cells-${t}-${layer}-${number}`).textContent);
}

/* Returns the cells of a head. run: the text itself, or the same text without some terms (explorer_terms.js). */
function headCells(t, layer, number, run = page.texts[t]) {
    const id = `${t}-${layer}-${number}-${run.removed ?? ''}`;
    let head = keptHeads.get(id);
    if (!head) head = decodeHead(run, run.heads[layer][number], headBytes(t, layer, number, run));
    keptHeads.delete(id);
    keptHeads.set(id, head);
    if (keptHeads.size > MOST_HEADS_KEPT) keptHeads.delete(keptHeads.keys().next().value);
    return head;
}

/* Returns the values of a component as shown: terms with or without their row means. */
function shownValues(text, head, component, centred) {
    if (centred || component === PROBS) return head.values[component];
    if (!head.shown.has(component)) {
        const m = text.cells, values = Float32Array.from(head.values[component]);
        for (let i = 0; i < m; i++)
            for (let j = 0; j < m; j++) values[i * m + j] += head.means[component][i];
        head.shown.set(component, values);
    }
    return head.shown.get(component);
}

const smallestStep = (text, about, component) =>
    text.exact ? 0 : component === PROBS ? about.scale[PROBS] / 254 : about.scale[component] / 254;

/* --------------------------------------------------------------------------------------------------------- colours */

const palettes = {};
for (const [name, {diverging, rgb}] of Object.entries(page.palettes)) {
    const bytes = decodeBase64(rgb);
    palettes[name] = {diverging, levels: bytes.length / 3, rgb: bytes};
}

/* Returns the level of a position in [0, 1], rounded as in the figures. */
const paletteLevel = (map, position) => position > 0 ? Math.min(map.levels - 1, Math.floor(position * (map.levels - 1) + .5)) : 0;

function colourOf(map, position) {
    const at = 3 * paletteLevel(map, position);
    return [map.rgb[at], map.rgb[at + 1], map.rgb[at + 2]];
}

const inkOn = ([r, g, b]) => .299 * r + .587 * g + .114 * b < 127.5 ? '#fff' : '#000';

/* Draws all levels side by side, for a colour bar. */
function paletteStrip(map) {
    const image = new ImageData(map.levels, 1);
    for (let k = 0; k < map.levels; k++) image.data.set([...map.rgb.subarray(3 * k, 3 * k + 3), 255], 4 * k);
    const canvas = new OffscreenCanvas(map.levels, 1);
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas;
}

/* Paints one pixel for each cell; cells that are not finite stay transparent. */
function paintCells(values, cells, component, limit, map) {
    const image = new ImageData(cells, cells), signed = component !== PROBS;
    for (let k = 0; k < cells * cells; k++) {
        if (!Number.isFinite(values[k])) continue;
        const at = 3 * paletteLevel(map, signed ? .5 + values[k] / limit / 2 : values[k] / limit);
        image.data[4 * k] = map.rgb[at];
        image.data[4 * k + 1] = map.rgb[at + 1];
        image.data[4 * k + 2] = map.rgb[at + 2];
        image.data[4 * k + 3] = 255;
    }
    const canvas = new OffscreenCanvas(cells, cells);
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas;
}
