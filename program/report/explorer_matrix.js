/* Draws the matrix, with a row for each query and a column for each key. SPDX-License-Identifier: MIT */

const LABEL_CELL = 11; // smallest cell, in CSS pixels, with readable tokens beside it
const NUMBER_CELL = 33; // smallest cell that a number fits into
const LARGEST_CELL = 80;
const AXIS = 17; // room for the names of the axes, in CSS pixels

/* Returns the height that the first screen has below the top of the matrix. */
const roomBelow = () => window.innerHeight - byId('matrix').closest('.layers').getBoundingClientRect().top - window.scrollY;

/* Returns {left, top, cell, size, cells, labels, width, height} of a matrix in the available room. */
function layOutMatrix(context, text, available, zoom) {
    const ratio = window.devicePixelRatio || 1, roomy = (available - 40) * zoom / text.cells >= LABEL_CELL;
    const longest = roomy ? Math.max(...text.tokens.map((token) => context.measureText(token).width)) : 0;
    const gutter = AXIS + (roomy ? Math.min(130, available * .3, Math.ceil(longest) + 10) : 34);
    const free = Math.max(60, available - gutter - 2) * zoom, height = Math.max(280, roomBelow() - gutter - 24) * zoom;
    /* whole device pixels for each cell, so that all are alike, unless that wastes much of the room */
    const wanted = Math.min(LARGEST_CELL * zoom, free / text.cells, Math.max(4, height / text.cells)), whole = Math.floor(wanted * ratio) / ratio;
    const cell = whole / wanted > .85 ? whole : wanted, size = cell * text.cells;
    return {left: gutter, top: gutter, cell, size, cells: text.cells, labels: cell >= LABEL_CELL, width: gutter + size + 1, height: gutter + size + 1};
}

function drawMatrix(context, pane) {
    const {text, grid} = pane, {component} = state;
    const values = shownValues(text, headAsShown(pane.t, pane.layer, pane.head), component, state.centre), limit = currentLimit(component), map = currentPalette(component);
    if (text.heads[pane.layer][pane.head].not_finite) hatch(context, grid);
    context.imageSmoothingEnabled = false;
    context.drawImage(paintCells(values, text.cells, component, limit, map), grid.left, grid.top, grid.size, grid.size);
    context.strokeStyle = colour('gap');
    context.strokeRect(grid.left - .5, grid.top - .5, grid.size + 1, grid.size + 1);
    drawSegments(context, pane);
    if (grid.cell >= NUMBER_CELL) drawNumbers(context, grid, values, component, limit, map);
    if (grid.labels) drawTokenLabels(context, pane);
    else drawPositionLabels(context, pane);
    drawAxisNames(context, grid);
}

function drawAxisNames(context, grid) {
    context.save();
    context.font = context.font.replace('12px', '11px');
    context.fillStyle = colour('quiet');
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText('key →', grid.left + Math.min(grid.size, 400) / 2, 7);
    context.translate(7, grid.top + Math.min(grid.size, 400) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText('← query', 0, 0);
    context.restore();
}

/* Draws a pattern below the cells, which shows where one is not finite. */
function hatch(context, {left, top, size}) {
    context.strokeStyle = colour('quiet');
    context.beginPath();
    for (let x = 5 - size; x < size; x += 5) {
        context.moveTo(left + Math.max(0, x), top + Math.max(0, -x));
        context.lineTo(left + Math.min(size, size + x), top + Math.min(size, size - x));
    }
    context.stroke();
}

/* Draws a rule where the second text of a pair begins. */
function drawSegments(context, {text, grid}) {
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

function drawNumbers(context, grid, values, component, limit, map) {
    context.save();
    context.font = context.font.replace('12px', `${Math.max(10.5, Math.min(14, grid.cell / 5.5))}px`);
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

function writeRowLabel(context, grid, label, i) {
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText(fitLabel(context, label, grid.left - AXIS - 8), grid.left - 6, grid.top + (i + .5) * grid.cell);
}

function writeColumnLabel(context, grid, label, j) {
    context.save();
    context.translate(grid.left + (j + .5) * grid.cell, grid.top - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillText(fitLabel(context, label, grid.top - AXIS - 8), 0, 0);
    context.restore();
}

function drawTokenLabels(context, {text, grid}) {
    for (let k = 0; k < text.cells; k++) {
        const {first, label} = cellTokens(text, k);
        context.fillStyle = colour(text.special[first] ? 'quiet' : 'ink');
        writeRowLabel(context, grid, label, k);
        writeColumnLabel(context, grid, label, k);
    }
}

function drawPositionLabels(context, {text, grid}) {
    context.fillStyle = colour('quiet');
    for (const token of niceTicks(0, text.n - 1, Math.max(2, grid.size / 60))) {
        if (!Number.isInteger(token)) continue;
        writeRowLabel(context, grid, String(token), token / text.pool - .5 + .5 / text.pool);
        writeColumnLabel(context, grid, String(token), token / text.pool - .5 + .5 / text.pool);
    }
}

/* ---------------------------------------------------------------------------------------------------------- legend */

/* Draws the colour bar, or for lines of several heads their colours. */
function drawLegend(context, left, width) {
    const {component} = state, limit = currentLimit(component);
    context.drawImage(paletteStrip(currentPalette(component)), left, 0, width, 11);
    context.fillStyle = colour('ink');
    context.font = context.font.replace('12px', '11px');
    context.textAlign = 'center';
    context.textBaseline = 'top';
    const ends = component === PROBS ? [0, limit / 2, limit] : [-limit, 0, limit];
    ends.forEach((value, k) => context.fillText(formatTick(Number(value.toPrecision(3))), left + k * width / 2, 15));
}

function legendNote() {
    const text = currentText(), {component} = state, terms = termsOf(text).length;
    const whose = state.scale === 'text' ? 'all heads' : state.view === 'lines' && state.lines === 'layer' ? 'the heads of the layer' : state.held ? 'these heads' : 'this head';
    const parts = component === PROBS ? ['probability', `scale of ${whose}`] : [
        terms > 1 ? `logit (scaled by 1/√(${terms}d))` : 'logit (scaled by 1/√d)',
        state.centre ? 'row mean subtracted: a softmax ignores what is constant over the keys' : 'row mean left in: a softmax ignores it',
        state.view === 'lines' && state.scale === 'head' ? `scale of ${whose}`
            : `one scale for ${COMPONENTS.filter((_, c) => c <= SUM && hasComponent(text, c)).map((c) => c.name).join(', ')} of ${whose}`];
    if (state.view === 'lines') parts.push(component === PROBS ? 'the stronger a line, the more likely' : 'dashed where negative',
        panes[0].leftOut ? `only the ${MOST_LINES} strongest` : `weaker ones than ${100 * WEAKEST_LINE} % of the scale are left out`);
    if (text.pool > 1) parts.push(`${text.n} tokens: cells are ${meansOf(text)}`);
    const bad = text.heads[state.layer][state.head].not_finite;
    if (bad) parts.push(`hatched: not finite (${bad} cells of all components)`);
    return parts.join(' · ');
}

/* ---------------------------------------------------------------------------------------------------------- cursor */

/* Marks the cell and its labels; row, column and labels always belong to the same cell. */
function drawMatrixCursor(context, pane, [i, j], isCell) {
    const {left, top, cell, size, labels} = pane.grid;
    context.strokeStyle = colour('mark');
    context.lineWidth = 1;
    context.strokeRect(left - .5, top + i * cell - .5, size + 1, cell + 1);
    context.strokeRect(left + j * cell - .5, top - .5, cell + 1, size + 1);
    context.lineWidth = 2;
    if (isCell) context.strokeRect(left + j * cell - 1, top + i * cell - 1, cell + 2, cell + 2);
    if (labels) drawCursorLabels(context, pane, i, j);
    else drawCursorPlaces(context, pane, i, j);
}

/* Draws the labels of the cell again, over the pale ones. */
function drawCursorLabels(context, {text, grid}, i, j) {
    context.fillStyle = colour('paper');
    context.fillRect(AXIS, grid.top + i * grid.cell, grid.left - AXIS - 3, grid.cell);
    context.fillRect(grid.left + j * grid.cell, AXIS, grid.cell, grid.top - AXIS - 3);
    context.fillStyle = colour('mark');
    writeRowLabel(context, grid, cellTokens(text, i).label, i);
    writeColumnLabel(context, grid, cellTokens(text, j).label, j);
}

/* Writes the cell's tokens over the axis where labels have no room. */
function drawCursorPlaces(context, {text, grid}, i, j) {
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

/* Returns [i, j], null for one of them over a label, and null outside. */
function matrixCellAt({grid}, x, y) {
    const i = Math.floor((y - grid.top) / grid.cell), j = Math.floor((x - grid.left) / grid.cell);
    const inside = (k) => k >= 0 && k < grid.cells;
    return inside(i) && inside(j) ? [i, j] : inside(i) && j < 0 ? [i, null] : inside(j) && i < 0 ? [null, j] : null;
}
