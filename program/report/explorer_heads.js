/* Draws the map of heads, with a row for each layer and a column for each head: pictures of the chosen component, or
 * one number for each head.
 * SPDX-License-Identifier: MIT */

const HEADS = {left: 22, top: 18, gap: 5};
const HEAD_NUMBERS = {
    position: {of: (about) => about.share[C2P] + about.share[P2C], range: () => [0, 1], what: 'share of c2p + p2c in the variance of the logits, 0 to 1'},
    entropy: {of: (about) => about.entropy, range: (text) => [0, Math.log2(text.n) || 1], what: 'mean entropy of the probabilities, 0 to log₂ n bits'},
    distance: {of: (about) => about.distance, range: (text, heads) => [0, Math.max(...heads.map((h) => h.distance), 1e-9)], what: 'mean |i − j| under the probabilities'},
};
const COARSE = matchMedia('(pointer: coarse)'); // true on touch screens
let headMap = null; // {side, layers, heads, rows: layers in one column, after which another column begins}
let headDrawing = 0; // number of the newest drawing, which ends older ones

function drawHeads() {
    const text = currentText(), layers = text.heads.length, heads = text.heads[0].length, room = byId('heads').parentElement.clientWidth - HEADS.left;
    headMap = {layers, heads, ...state.view === 'heads' ? fillRoom(layers, heads, room)
        : {rows: layers, side: Math.max(COARSE.matches ? 44 - HEADS.gap : 22, Math.min(54, Math.floor(200 / heads)))}};
    const {side, rows} = headMap;
    const context = prepareCanvas(byId('heads'), Math.ceil(layers / rows) * columnWidth() + 2, HEADS.top + rows * (side + HEADS.gap) + 2);
    const drawing = ++headDrawing, pictures = state.map === 'picture';
    byId('heads-note').textContent = pictures
        ? `${COMPONENTS[state.component].name} of every head, ${state.scale === 'text' ? 'on one scale' : 'each on its own scale'}`
        : HEAD_NUMBERS[state.map].what;
    drawHeadMap(context, pictures ? null : drawHeadNumber);
    if (pictures) drawPictures(context, drawing, 0);
    outlineHead(context, state.layer, state.head, true);
}

/* Returns the largest squares that fit one screen: layers below one another, or in several columns if a model has few
 * heads. */
function fillRoom(layers, heads, room) {
    const most = state.map === 'picture' ? 260 : 96, height = window.innerHeight - 120;
    const fits = Array.from({length: layers}, (_, k) => k + 1).map((columns) => {
        const rows = Math.ceil(layers / columns), wide = Math.floor((room / columns - (columns > 1 ? HEADS.left : 0)) / heads) - HEADS.gap;
        return {rows, side: Math.min(most, wide, Math.max(state.map === 'picture' ? 110 : 72, Math.floor(height / rows) - HEADS.gap))};
    });
    const best = fits.reduce((one, other) => other.side > one.side ? other : one);
    return {...best, side: Math.max(22, best.side)};
}

const columnWidth = () => HEADS.left + headMap.heads * (headMap.side + HEADS.gap);

/* Draws the axes, and each head at once where that takes little time. */
function drawHeadMap(context, drawHead) {
    const {layers, heads} = headMap;
    context.font = context.font.replace('12px', '11px');
    context.fillStyle = colour('quiet');
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    const half = (headMap.side + HEADS.gap) / 2;
    for (let layer = 0; layer < layers; layer += headMap.rows)
        for (let head = 0; head < heads; head++) context.fillText(String(head), headPlace(layer, head)[0] + half, 8);
    context.textAlign = 'right';
    for (let layer = 0; layer < layers; layer++) {
        const [x, y] = headPlace(layer, 0);
        context.fillText(String(layer), x - 6, y + half);
    }
    if (drawHead) for (const [layer, head] of modelHeads()) drawHead(context, layer, head);
}

function headPlace(layer, head) {
    const {rows, side} = headMap, step = side + HEADS.gap;
    return [Math.floor(layer / rows) * columnWidth() + HEADS.left + head * step, HEADS.top + layer % rows * step];
}

function drawHeadNumber(context, layer, head) {
    const numbers = HEAD_NUMBERS[state.map], text = currentText(), [x, y] = headPlace(layer, head);
    const [low, high] = numbers.range(text, text.heads.flat()), value = numbers.of(headNumbers(state.text, layer, head));
    const rgb = colourOf(palettes[state.sequential], (value - low) / (high - low));
    context.fillStyle = `rgb(${rgb.join()})`;
    context.fillRect(x, y, headMap.side, headMap.side);
    if (headMap.side < 28) return;
    context.fillStyle = inkOn(rgb);
    context.textAlign = 'center';
    context.fillText(formatNumber(value, 2), x + headMap.side / 2, y + headMap.side / 2);
}

function drawPicture(context, layer, head) {
    const {side} = headMap, text = currentText(), [x, y] = headPlace(layer, head), cells = headAsShown(state.text, layer, head);
    const values = shownValues(text, cells, state.component, state.centre), limit = scaleLimit(state.text, layer, head, state.component, state.centre, state.scale === 'text');
    context.imageSmoothingEnabled = text.cells > side;
    context.imageSmoothingQuality = 'high';
    context.drawImage(paintCells(values, text.cells, state.component, limit, currentPalette(state.component)), x, y, side, side);
    outlineHead(context, layer, head, false);
}

/* Draws pictures for a few milliseconds at a time, so that a page of many heads stays responsive. */
function drawPictures(context, drawing, from) {
    const {layers, heads} = headMap, end = performance.now() + 12;
    let k = from;
    for (; k < layers * heads && performance.now() < end; k++) drawPicture(context, Math.floor(k / heads), k % heads);
    outlineHead(context, state.layer, state.head, true);
    if (k < layers * heads) setTimeout(() => drawing === headDrawing && drawPictures(context, drawing, k));
    else byId('heads').dataset.drawn = drawing;
}

/* Outlines a head, as its cells may be as white as the page, and marks the chosen one. */
function outlineHead(context, layer, head, chosen) {
    const [x, y] = headPlace(layer, head), {side} = headMap;
    for (const [tone, width] of [['paper', 3], chosen ? ['mark', 2] : ['line', 1]]) {
        context.strokeStyle = colour(tone);
        context.lineWidth = width;
        context.strokeRect(x - width / 2, y - width / 2, side + width, side + width);
    }
}

/* Pictures are kept when only the choice moves. */
let markedPicture = null;
function moveMark() {
    const canvas = byId('heads'), wanted = [state.text, state.component, state.centre, state.scale, state.signed, state.sequential, state.map, state.view, state.removed, state.run].join();
    if (markedPicture !== wanted || canvas.dataset.drawn !== String(headDrawing) || state.map !== 'picture') {
        markedPicture = wanted;
        drawHeads();
        return;
    }
    for (let layer = 0; layer < headMap.layers; layer++)
        for (let head = 0; head < headMap.heads; head++) outlineHead(canvas.getContext('2d'), layer, head, layer === state.layer && head === state.head);
}

function bindHeads() {
    const canvas = byId('heads');
    const headUnder = (event) => {
        const box = canvas.getBoundingClientRect(), step = headMap.side + HEADS.gap;
        const x = event.clientX - box.left, column = Math.floor(x / columnWidth()), row = Math.floor((event.clientY - box.top - HEADS.top) / step);
        const head = Math.floor((x - column * columnWidth() - HEADS.left) / step), layer = column * headMap.rows + row;
        return row >= 0 && row < headMap.rows && layer >= 0 && layer < headMap.layers && head >= 0 && head < headMap.heads ? {layer, head} : null;
    };
    canvas.addEventListener('click', (event) => {
        const place = headUnder(event);
        if (place) change({...place, ...place.layer === state.layer && place.head === state.head ? {view: 'matrix'} : {}});
    });
    canvas.addEventListener('pointermove', (event) => {
        const place = headUnder(event);
        if (!place) return hideTip();
        const about = headNumbers(state.text, place.layer, place.head), shares = termsOf(currentText());
        showTip(event, [`layer ${place.layer}, head ${place.head}`, ...shares.map((c) => `${COMPONENTS[c].name} ${percent(about.share[c])}`),
            `entropy ${formatNumber(about.entropy, 3)} bits`, `mean distance ${formatNumber(about.distance, 3)}`,
            ...place.layer === state.layer && place.head === state.head ? ['click: this head alone'] : []].join('\n'));
    });
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('keydown', (event) => {
        const step = {ArrowUp: () => stepLayer(-1), ArrowDown: () => stepLayer(1), ArrowLeft: () => stepHead(-1), ArrowRight: () => stepHead(1)}[event.key];
        if (step) step();
        else if (event.key === 'Enter') change({view: 'matrix'});
        else return;
        event.preventDefault();
    });
    byId('heads-show').addEventListener('change', (event) => change({map: event.target.value}));
}
