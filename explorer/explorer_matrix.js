/* The matrix: a row a query, a column a key; a second canvas above it holds what follows the pointer.
 * SPDX-License-Identifier: MIT */

const LABEL_CELL = 11; // smallest cell, in CSS pixels, beside which tokens can be read
const NUMBER_CELL = 36; // and into which a number fits
const LARGEST_CELL = 46;
let grid = null; // {left, top, cell, size, cells, labels} as it was last laid out

function layOutMatrix(text, available) {
    const context = byId('matrix').getContext('2d'), ratio = window.devicePixelRatio || 1;
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const roomy = (available - 40) / text.cells >= LABEL_CELL;
    const longest = roomy ? Math.max(...text.tokens.map((token) => context.measureText(token).width)) : 0;
    const gutter = roomy ? Math.min(130, available * .3, Math.ceil(longest) + 10) : 34;
    const free = Math.max(60, available - gutter - 2), height = Math.max(300, window.innerHeight - gutter - 160);
    /* whole device pixels a cell, so that all cells are alike, unless that costs much of the room */
    const wanted = Math.min(LARGEST_CELL, free / text.cells, Math.max(4, height / text.cells)), whole = Math.floor(wanted * ratio) / ratio;
    const cell = whole / wanted > .85 ? whole : wanted;
    return {left: gutter, top: gutter, cell, size: cell * text.cells, cells: text.cells, labels: cell >= LABEL_CELL};
}

function drawMatrix() {
    const text = currentText(), head = currentHead(), {component} = state;
    grid = layOutMatrix(text, byId('matrix').closest('.matrix-pane').clientWidth);
    const context = prepareCanvas(byId('matrix'), grid.left + grid.size + 1, grid.top + grid.size + 1);
    const values = shownValues(text, head, component, state.centre), limit = currentLimit(component), map = currentPalette(component);
    hatch(context, grid.left, grid.top, grid.size);
    context.imageSmoothingEnabled = false;
    context.drawImage(paintCells(values, text.cells, component, limit, map), grid.left, grid.top, grid.size, grid.size);
    context.strokeStyle = colour('gap');
    context.strokeRect(grid.left - .5, grid.top - .5, grid.size + 1, grid.size + 1);
    drawSegments(context, text);
    if (grid.cell >= NUMBER_CELL) drawNumbers(context, values, component, limit, map);
    if (grid.labels) drawTokenLabels(context, text);
    else drawPositionLabels(context, text);
    prepareCanvas(byId('cursor'), grid.left + grid.size + 1, grid.top + grid.size + 1);
    byId('cursor').dataset.cell = grid.cell;
    byId('matrix-title').textContent = `Layer ${state.layer}, head ${state.head}: ${COMPONENTS[component].long}`;
    drawLegend(text, component, limit, map);
    drawCursor();
}

/* Under the cells: shows where one is not a finite number. */
function hatch(context, left, top, size) {
    context.save();
    context.beginPath();
    context.rect(left, top, size, size);
    context.clip();
    context.strokeStyle = colour('quiet');
    context.beginPath();
    for (let x = -size; x < size; x += 5) {
        context.moveTo(left + x, top);
        context.lineTo(left + x + size, top + size);
    }
    context.stroke();
    context.restore();
}

/* A rule where the second text of a pair begins. */
function drawSegments(context, text) {
    context.strokeStyle = colour('accent');
    for (let t = 1; t < text.n; t++) {
        if (text.types[t] === text.types[t - 1]) continue;
        const at = t / text.pool * grid.cell;
        context.beginPath();
        context.moveTo(grid.left - 4, grid.top + at);
        context.lineTo(grid.left + grid.size, grid.top + at);
        context.moveTo(grid.left + at, grid.top - 4);
        context.lineTo(grid.left + at, grid.top + grid.size);
        context.stroke();
    }
}

function drawNumbers(context, values, component, limit, map) {
    context.save();
    context.font = context.font.replace('12px', '10.5px');
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let k = 0; k < values.length; k++) {
        if (!Number.isFinite(values[k])) continue;
        context.fillStyle = inkOn(colourOf(map, component === PROBS ? values[k] / limit : .5 + values[k] / limit / 2));
        const x = grid.left + (k % grid.cells + .5) * grid.cell, y = grid.top + (Math.floor(k / grid.cells) + .5) * grid.cell;
        const digits = Math.abs(values[k]) >= 100 ? 0 : Math.abs(values[k]) >= 10 ? 1 : 2;
        context.fillText(values[k].toFixed(digits).replace(/^(-?)0\./, '$1.').replace('-', '−').replace(/^−(\.0+)$/, '$1'), x, y);
    }
    context.restore();
}

function writeRowLabel(context, label, i) {
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText(fitLabel(context, label, grid.left - 10), grid.left - 6, grid.top + (i + .5) * grid.cell);
}

function writeColumnLabel(context, label, j) {
    context.save();
    context.translate(grid.left + (j + .5) * grid.cell, grid.top - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillText(fitLabel(context, label, grid.top - 10), 0, 0);
    context.restore();
}

function drawTokenLabels(context, text) {
    for (let k = 0; k < text.cells; k++) {
        const {first, label} = cellTokens(text, k);
        context.fillStyle = colour(text.special[first] ? 'quiet' : 'ink');
        writeRowLabel(context, label, k);
        writeColumnLabel(context, label, k);
    }
}

function drawPositionLabels(context, text) {
    context.fillStyle = colour('quiet');
    for (const token of niceTicks(0, text.n - 1, Math.max(2, grid.size / 60))) {
        if (!Number.isInteger(token)) continue;
        writeRowLabel(context, String(token), token / text.pool - .5 + .5 / text.pool);
        writeColumnLabel(context, String(token), token / text.pool - .5 + .5 / text.pool);
    }
}

function drawLegend(text, component, limit, map) {
    const {left} = grid, width = Math.min(Math.max(200, Math.min(420, grid.size)), byId('legend').parentElement.clientWidth - left - 24);
    const context = prepareCanvas(byId('legend'), left + width + 24, 28);
    context.drawImage(paletteStrip(map), left, 0, width, 11);
    context.fillStyle = colour('ink');
    context.font = context.font.replace('12px', '11px');
    context.textAlign = 'center';
    context.textBaseline = 'top';
    const ends = component === PROBS ? [0, limit / 2, limit] : [-limit, 0, limit];
    ends.forEach((value, k) => context.fillText(formatTick(Number(value.toPrecision(3))), left + k * width / 2, 15));
    byId('legend-note').textContent = legendNote(text, component);
}

function legendNote(text, component) {
    const terms = text.has.filter(Boolean).length, whose = state.scale === 'text' ? 'all heads' : 'this head';
    const parts = component === PROBS ? ['probability', `scale of ${whose}`] : [
        terms > 1 ? `logit / √(${terms}d)` : 'logit / √d',
        state.centre ? 'row mean subtracted: a softmax ignores what is constant over the keys' : 'row mean left in: a softmax ignores it',
        `one scale for ${COMPONENTS.filter((_, c) => c <= SUM && hasComponent(text, c)).map((c) => c.name).join(', ')} of ${whose}`];
    if (text.pool > 1) parts.push(`${text.n} tokens: each cell is the mean of ${text.pool} × ${text.pool} values`);
    const bad = currentAbout().not_finite;
    if (bad) parts.push(`hatched: not finite (${bad} cells of all components)`);
    return parts.join(' · ');
}

/* ---------------------------------------------------------------------------------------------------------- cursor */

function drawCursor() {
    if (!grid) return;
    const text = currentText(), context = byId('cursor').getContext('2d'), {left, top, cell, size} = grid;
    context.clearRect(0, 0, left + size + 2, top + size + 2);
    context.strokeStyle = colour('mark');
    if (state.token !== null) {
        const at = cellOfToken(state.token) * cell;
        context.lineWidth = 1;
        context.strokeRect(left - .5, top + at - .5, size + 1, cell + 1);
        context.strokeRect(left + at - .5, top - .5, cell + 1, size + 1);
    }
    const place = currentCell();
    if (!place) return;
    const [i, j] = place, x = left + j * cell, y = top + i * cell;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, cell + 2, cell + 2);
    if (grid.labels) drawCursorLabels(context, text, i, j);
    else drawCursorPlaces(context, text, i, j);
}

/* The labels of the cell once more, over the quiet ones. */
function drawCursorLabels(context, text, i, j) {
    context.fillStyle = colour('paper');
    context.fillRect(0, grid.top + i * grid.cell, grid.left - 3, grid.cell);
    context.fillRect(grid.left + j * grid.cell, 0, grid.cell, grid.top - 3);
    context.fillStyle = colour('mark');
    writeRowLabel(context, cellTokens(text, i).label, i);
    writeColumnLabel(context, cellTokens(text, j).label, j);
}

/* Where tokens have no room, those of the cell are written over the axis. */
function drawCursorPlaces(context, text, i, j) {
    const writeOn = (label, x, y, align) => {
        const shown = fitLabel(context, label, 150), width = context.measureText(shown).width + 8;
        const at = Math.max(0, Math.min(align === 'left' ? x : x - width / 2, grid.left + grid.size - width));
        context.fillStyle = colour('mark');
        context.fillRect(at, y, width, 17);
        context.fillStyle = colour('paper');
        context.textAlign = 'left';
        context.textBaseline = 'middle';
        context.fillText(shown, at + 4, y + 9);
    };
    writeOn(cellTokens(text, i).label, 0, Math.max(18, grid.top + (i + .5) * grid.cell - 9), 'left');
    writeOn(cellTokens(text, j).label, grid.left + (j + .5) * grid.cell, 0, 'centre');
}

/* [i, j]; on a label one of them is null. Nothing outside. */
function cellUnder(event) {
    const box = byId('cursor').getBoundingClientRect();
    const index = (at, from) => Math.floor((at - from) / grid.cell);
    const i = index(event.clientY - box.top, grid.top), j = index(event.clientX - box.left, grid.left);
    const inside = (k) => k >= 0 && k < grid.cells;
    return inside(i) && inside(j) ? [i, j] : inside(i) && j < 0 ? [i, null] : inside(j) && i < 0 ? [null, j] : null;
}

function moveCell(event, steps) {
    const [di, dj] = steps, {cells} = grid, from = currentCell() ?? [0, 0], far = event.ctrlKey ? cells : event.shiftKey ? 10 : 1;
    const start = currentCell() ? [di * far, dj * far] : [0, 0];
    change({pinned: [clamp(from[0] + start[0], cells), clamp(from[1] + start[1], cells)], hover: null});
}

function bindMatrix() {
    const cursor = byId('cursor');
    cursor.addEventListener('pointermove', (event) => {
        const cell = cellUnder(event);
        change({hover: cell && cell[0] !== null && cell[1] !== null ? cell : null});
    });
    cursor.addEventListener('pointerleave', () => change({hover: null}));
    cursor.addEventListener('click', (event) => {
        const cell = cellUnder(event);
        if (!cell) return;
        const [i, j] = cell, onCell = i !== null && j !== null;
        change({token: (i ?? j) * currentText().pool, ...(onCell ? {pinned: cell} : {})});
    });
    const arrows = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    cursor.addEventListener('keydown', (event) => {
        if (arrows[event.key]) moveCell(event, arrows[event.key]);
        else if (event.key === 'Enter' && currentCell()) change({token: currentCell()[event.shiftKey ? 1 : 0] * currentText().pool});
        else return;
        event.preventDefault();
    });
}
