/* Draws lines from the queries, on the left, to their keys, on the right: of a head, or of all heads of its layer,
 * with a colour for each.
 * SPDX-License-Identifier: MIT */

const WEAKEST_LINE = .05; // fraction of the scale below which a line is left out, as in the printed figure
const MOST_LINES = 2500; // number of strongest lines drawn: more are slow and hide each other
const NEAR_LINE = 7; // distance in pixels at which the pointer selects a line

function layOutLines(context, text, available, zoom) {
    const row = Math.max(3, Math.min(34, Math.max(300, window.innerHeight - 220) * zoom / text.cells)), labels = row >= LABEL_CELL;
    const longest = labels ? Math.max(...text.tokens.map((token) => context.measureText(token).width)) : context.measureText(text.pool > 1 ? `${text.n}–${text.n}` : 'query').width;
    const gutter = Math.min(130, available * .3, Math.ceil(longest) + 12), width = Math.min(available - 2, 640);
    return {left: gutter, right: width - gutter, top: AXIS + 4, cell: row, cells: text.cells, labels, width, height: AXIS + 8 + row * text.cells};
}

const lineY = (grid, k) => grid.top + (k + .5) * grid.cell;

/* Returns the colour that distinguishes a head within its layer. */
function lineColour(head, heads) {
    if (state.lines === 'head') return seriesColour(0);
    return heads <= page.series.length ? seriesColour(head) : `hsl(${Math.round(360 * head / heads)} 70% ${colour('lift') === '0%' ? 40 : 65}%)`;
}

const lineHeads = (pane) => state.lines === 'head' ? [pane.head] : pane.text.heads[pane.layer].map((_, head) => head);

const lineValues = (pane, head) => shownValues(pane.text, headAsShown(pane.t, pane.layer, head), state.component, state.centre);

/* Returns the strength of the strongest line: of this component in the heads drawn, as `attention lines` has it, or of
 * all heads. */
const linesLimit = () => state.scale === 'text' ? currentLimit(state.component)
    : panes.flatMap((pane) => lineHeads(pane).map((head) => lineValues(pane, head).reduce((most, value) => Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most, 0)))
        .reduce((a, b) => Math.max(a, b)) || 1;

function drawLines(context, pane) {
    const {text, grid} = pane, heads = lineHeads(pane), limit = linesLimit();
    const lines = [];
    for (const head of heads) {
        const values = lineValues(pane, head);
        for (let k = 0; k < values.length; k++) {
            const strength = Math.abs(values[k]) / limit;
            if (strength >= WEAKEST_LINE) lines.push({i: Math.floor(k / grid.cells), j: k % grid.cells, strength: Math.min(1, strength), dashed: values[k] < 0, head});
        }
    }
    pane.lines = lines.sort((a, b) => a.strength - b.strength).slice(-MOST_LINES); // the strongest are drawn last, over the others
    pane.leftOut = lines.length - pane.lines.length;
    for (const line of pane.lines) drawLine(context, pane, line, lineColour(line.head, text.heads[pane.layer].length), line.strength);
    context.setLineDash([]);
    drawLineLabels(context, pane, (k) => colour(text.special[cellTokens(text, k).first] ? 'quiet' : 'ink'), Array.from({length: grid.cells}, (_, k) => k), [0, 1]);
    context.fillStyle = colour('quiet');
    context.textAlign = 'right';
    context.fillText('query', grid.left - 8, 8);
    context.textAlign = 'left';
    context.fillText('key', grid.right + 8, 8);
}

function drawLine(context, {grid}, {i, j, dashed}, tone, strength) {
    context.globalAlpha = strength;
    context.strokeStyle = tone;
    context.lineWidth = Math.max(1, Math.min(4, grid.cell / 6));
    context.setLineDash(dashed ? [5, 4] : []);
    context.beginPath();
    context.moveTo(grid.left, lineY(grid, i));
    context.lineTo(grid.right, lineY(grid, j));
    context.stroke();
    context.globalAlpha = 1;
}

/* Draws the labels. sides: 0 the queries, 1 the keys. Without room for tokens it draws some positions. */
function drawLineLabels(context, {text, grid}, tone, cells, sides) {
    const every = grid.labels ? 1 : Math.ceil(14 / grid.cell);
    context.textBaseline = 'middle';
    for (const k of cells) {
        if (cells.length > 1 && k % every) continue;
        const {label, place} = cellTokens(text, k), shown = fitLabel(context, grid.labels ? label : place, grid.left - 10);
        context.fillStyle = tone(k);
        for (const side of sides) {
            context.textAlign = side ? 'left' : 'right';
            context.fillText(shown, side ? grid.right + 8 : grid.left - 8, lineY(grid, k));
        }
    }
}

const VEIL = {light: .74, dark: .55}; // opacity of the veil over other lines, which stay visible on either ground

/* Draws what the chosen query attends to, over a veil on all others, and marks the line of the cell. */
function drawLinesCursor(context, pane, [i, j], isCell) {
    const {grid, text} = pane, heads = text.heads[pane.layer].length;
    context.fillStyle = colour('paper');
    context.globalAlpha = colour('lift') === '0%' ? VEIL.light : VEIL.dark;
    context.fillRect(grid.left + 1, AXIS, grid.right - grid.left - 2, grid.height);
    context.globalAlpha = 1;
    for (const line of pane.lines) if (line.i === i) drawLine(context, pane, line, lineColour(line.head, heads), line.strength);
    if (isCell) drawLine(context, pane, {i, j}, colour('mark'), 1);
    context.setLineDash([]);
    for (const [k, side] of isCell ? [[i, 0], [j, 1]] : [[i, 0]]) {
        context.fillStyle = colour('paper');
        context.fillRect(side ? grid.right + 6 : 0, lineY(grid, k) - Math.max(7, grid.cell / 2), grid.left - 6, Math.max(14, grid.cell));
        drawLineLabels(context, pane, () => colour('mark'), [k], [side]);
    }
}

/* Returns the cell of the nearest line; over a token's label, that token. */
function linesCellAt({grid, lines}, x, y) {
    const k = Math.floor((y - grid.top) / grid.cell), inside = k >= 0 && k < grid.cells;
    if (x < grid.left) return inside ? [k, null] : null;
    if (x > grid.right) return inside ? [null, k] : null;
    const along = (x - grid.left) / (grid.right - grid.left);
    let best = null, least = NEAR_LINE;
    for (const {i, j, strength} of lines) {
        const distance = Math.abs(y - lineY(grid, i) - along * (lineY(grid, j) - lineY(grid, i))) + 2 - 2 * strength;
        if (distance < least) [best, least] = [[i, j], distance];
    }
    return best;
}
