/* Holds the current choice, notifies the functions that draw it, and keeps it in the address so that a view can be
 * cited.
 * SPDX-License-Identifier: MIT */

/* The palettes that the figures of the program take too where none is asked for. */
const DEFAULT_PALETTES = {signed: 'polar', sequential: 'blues'};
const state = {text: 0, layer: 0, head: 0, component: PROBS, centre: true, scale: 'head', ...DEFAULT_PALETTES, map: 'picture',
    step: 0, // step of the guide
    question: 0, // index of the model's answer shown
    run: 0, // number of the last text computed here
    view: 'matrix', // or 'lines', 'heads'
    lines: 'head', // lines of the head, or of its layer
    zoom: 1, removed: '', // removed terms, as --ablate names them
    held: null, // [text, layer, head] beside the current one
    token: null, // index of the chosen token
    pinned: null, // cell [i, j, pane] that stays when the pointer leaves; pane 1 is the held one
    hover: null}; // cell under the pointer
const VIEW = ['text', 'layer', 'head', 'component', 'centre', 'scale', 'signed', 'sequential', 'view', 'lines', 'zoom', 'removed', 'held', 'run'];
const listeners = []; // {keys, draw}: draw() is called once a frame if one of the keys changed
let changed = new Set();

const currentText = () => page.texts[state.text];
const currentHead = () => headAsShown(state.text, state.layer, state.head);
const currentCell = () => state.hover ?? state.pinned;
const cellOfToken = (token) => Math.floor(token / currentText().pool);
const currentPalette = (component) => palettes[component === PROBS ? state.sequential : state.signed];

/* Returns the heads to draw: the chosen one and, beside it, the held one. */
const paneHeads = () => [[state.text, state.layer, state.head], ...state.held ? [state.held] : []];
const currentLimit = (component) => Math.max(...paneHeads().map((place) => scaleLimit(...place, component, state.centre, state.scale === 'text')));

/* Returns the current row and column: of the chosen cell, else of the chosen token, else the first. */
function currentRowAndColumn() {
    if (state.pinned && paneHeads()[state.pinned[2]][0] === state.text) return state.pinned;
    const cell = cellOfToken(state.token ?? 0);
    return [cell, cell];
}

const onChange = (keys, draw) => listeners.push({keys, draw});

function change(values) {
    for (const [key, value] of Object.entries(values)) {
        if (String(state[key]) === String(value)) continue;
        state[key] = value;
        if (!changed.size) requestAnimationFrame(redraw);
        changed.add(key);
    }
}

function redraw() {
    const now = changed;
    changed = new Set();
    for (const {keys, draw} of listeners)
        if (keys.some((key) => now.has(key))) draw();
    if (VIEW.some((key) => now.has(key)) || now.has('token') || now.has('pinned')) writeAddress();
}

function redrawAll() {
    for (const {draw} of listeners) draw();
}

/* Limits a step through layers, heads or components to existing ones. */
const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
const stepLayer = (by) => change({layer: clamp(state.layer + by, currentText().heads.length)});
const stepHead = (by) => change({head: clamp(state.head + by, currentText().heads[0].length)});

function chooseText(number) {
    if (page.texts[number]) change({text: number, token: null, pinned: null, hover: null});
}

/* Holds the current head, or releases the held one with its cell. */
const hold = () => change({held: state.held ? null : [state.text, state.layer, state.head], hover: null, ...state.pinned?.[2] ? {pinned: null} : {}});

/* Chooses a view. Lines show probabilities, because lines of logits are a tangle: most are far from what the softmax
 * lets through. */
const chooseView = (view) => change({view, ...view === 'lines' && state.component === SUM ? {component: PROBS} : {}});

function chooseComponent(component) {
    if (hasComponent(currentText(), component)) change({component});
}

/* --------------------------------------------------------------------------------------------------------- address */

const ZOOMS = [1, 1.5, 2, 3];
const ADDRESS_CHARACTERS = 300; // most characters of a typed text in the address
const DEFAULTS = {view: 'matrix', lines: 'head', zoom: '1', removed: '', held: ''};

function writeAddress() {
    const fields = {text: state.text, layer: state.layer, head: state.head, show: COMPONENTS[state.component].key, centre: state.centre ? 'row' : 'none',
        scale: state.scale};
    for (const key of ['view', 'lines', 'zoom', 'removed', 'held']) if (String(state[key] ?? '') !== DEFAULTS[key]) fields[key] = state[key];
    if (state.token !== null) fields.token = state.token;
    if (state.pinned) fields.cell = state.pinned.join(',');
    if (currentText().typed && currentText().title.length <= ADDRESS_CHARACTERS) fields.words = currentText().words[0];
    history.replaceState(null, '', '#' + new URLSearchParams(fields));
}

/* Reads the choice from the address; whatever does not fit this page is left out. */
function readAddress() {
    const fields = new URLSearchParams(location.hash.slice(1)), number = (key) => /^\d+$/.test(fields.get(key) ?? '') ? Number(fields.get(key)) : 0;
    if (!fields.has('layer')) return openOnAnswer();
    state.component = SUM;
    state.text = clamp(number('text'), page.texts.length);
    state.layer = clamp(number('layer'), currentText().heads.length);
    state.head = clamp(number('head'), currentText().heads[0].length);
    const component = COMPONENTS.findIndex((c) => c.key === fields.get('show'));
    if (component >= 0 && hasComponent(currentText(), component)) state.component = component;
    state.centre = fields.get('centre') !== 'none';
    state.scale = fields.get('scale') === 'text' ? 'text' : 'head';
    if (fields.has('token')) state.token = clamp(number('token'), currentText().n);
    if (['lines', 'heads'].includes(fields.get('view'))) state.view = fields.get('view');
    if (fields.get('lines') === 'layer') state.lines = 'layer';
    if (ZOOMS.includes(Number(fields.get('zoom')))) state.zoom = Number(fields.get('zoom'));
    readRemoved(fields.get('removed') ?? '');
    const numbers = (key) => (fields.get(key) ?? '').split(',').map((k) => /^\d+$/.test(k) ? Number(k) : NaN);
    const held = numbers('held'), cell = numbers('cell');
    if (held.length === 3 && page.texts[held[0]]?.heads[held[1]]?.[held[2]]) state.held = held;
    const pane = paneHeads()[cell[2] ??= 0];
    if (cell.length === 3 && pane && Math.max(cell[0], cell[1]) < page.texts[pane[0]].cells) state.pinned = cell;
}

/* ------------------------------------------------------------------------------------------------------ small tools */

const byId = (id) => document.getElementById(id);

/* Makes an element with attributes and children; texts are inserted as texts, so nothing needs escaping. */
function make(name, attributes = {}, ...children) {
    const element = name.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', name.slice(4)) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    element.append(...children);
    return element;
}

/* Formats whole numbers as they are, others with four digits, a true minus, and no exponent if possible. */
function formatNumber(value, digits = 4) {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? 'not a number' : value > 0 ? '∞' : '−∞';
    const size = Math.abs(value);
    const text = Number.isInteger(value) && size < 1e6 ? String(value) : size < 1e-4 || size >= 1e6 ? value.toExponential(2)
        : size >= 10 ** digits - .5 ? value.toFixed(0) : value.toPrecision(digits); // toPrecision uses an exponent where more digits stand before the point
    return text.replace(/-/g, '−');
}
/* Returns “a, b and c”. */
const listOf = (names, word) => names.length > 1 ? `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)}` : names.join('');

const withSign = (value) => (value > 0 ? '+' : '') + formatNumber(value);

const pageFont = () => getComputedStyle(document.body).fontFamily;

/* Sizes a canvas in CSS pixels for the current screen; the context works in CSS pixels. */
function prepareCanvas(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = `12px ${pageFont()}`;
    return context;
}

/* Returns the colour of a series; the colours are made for white paper, and lightened on a dark screen. */
const seriesColour = (index) => {
    const tone = page.series[index % page.series.length];
    return `color-mix(in srgb, ${tone}, white ${colour('lift')})`;
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/* Splits a label into characters as people count them. */
const graphemes = (text) => window.Intl?.Segmenter ? Array.from(new Intl.Segmenter().segment(text), (s) => s.segment) : Array.from(text);
function fitLabel(context, text, width) {
    if (context.measureText(text).width <= width) return text;
    const parts = graphemes(text);
    while (parts.length && context.measureText(parts.join('') + '…').width > width) parts.pop();
    return parts.join('') + '…';
}

/* Returns the tokens under a cell: one, or the first and the last of a pool. */
function cellTokens(text, cell) {
    const first = cell * text.pool, last = Math.min(first + text.pool, text.n) - 1;
    return {first, last, label: first === last ? text.tokens[first] : `${text.tokens[first]} … ${text.tokens[last]}`,
        place: first === last ? String(first) : `${first}–${last}`};
}

/* Says what a number of a cell is where it is no number of the model. */
const meansOf = ({pool}) => pool > 1 ? `means of ${pool} × ${pool} values` : '';

const formatTick = (value) => String(Number(value.toPrecision(6))).replace('-', '−');

/* Returns round numbers for an axis. */
function niceTicks(low, high, most) {
    const span = high - low || 1, raw = span / most, base = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * base).find((s) => s >= raw * .999), ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
}
