/* Manages the panes: the chosen head and, beside it, the held one; each has a canvas for its drawing and one above it
 * that follows the pointer.
 * SPDX-License-Identifier: MIT */

const PANES = [{title: 'matrix-title', canvas: 'matrix', cursor: 'cursor'}, {title: 'held-title', canvas: 'held', cursor: 'held-cursor'}];
const DRAWINGS = {
    matrix: {layOut: layOutMatrix, draw: drawMatrix, drawCursor: drawMatrixCursor, cellAt: matrixCellAt},
    lines: {layOut: layOutLines, draw: drawLines, drawCursor: drawLinesCursor, cellAt: linesCellAt},
};
let panes = []; // {index, t, text, layer, head, grid} of each pane as last drawn

const currentDrawing = () => DRAWINGS[state.view === 'lines' ? 'lines' : 'matrix'];

function paneTitle({t, layer, head}) {
    const whose = state.view === 'lines' && state.lines === 'layer' ? `Layer ${layer}, all heads` : `Layer ${layer}, head ${head}`;
    const out = TERMS.filter((c) => outFromTheStart.has(removalName(c, layer, head)) || removalMask(t, layer, head) >> c & 1).map((c) => COMPONENTS[c].name);
    const {name, long} = COMPONENTS[state.component];
    return `${state.held && state.held[0] !== state.text ? `Text ${t}, ${whose.toLowerCase()}` : whose}: ${state.held ? name : long}${out.length ? `, without ${out.join(', ')}` : ''}`;
}

function drawPanes() {
    byId('held-pane').hidden = !state.held;
    panes = paneHeads().map(([t, layer, head], index) => ({index, t, text: page.texts[t], layer, head}));
    if (state.view === 'heads') return;
    for (const pane of panes) {
        const {title, canvas, cursor} = PANES[pane.index], context = byId(canvas).getContext('2d');
        context.font = `12px ${pageFont()}`;
        pane.grid = currentDrawing().layOut(context, pane.text, byId(canvas).closest('.pane').clientWidth, state.zoom);
        currentDrawing().draw(prepareCanvas(byId(canvas), pane.grid.width, pane.grid.height), pane);
        prepareCanvas(byId(cursor), pane.grid.width, pane.grid.height);
        byId(cursor).dataset.cell = pane.grid.cell;
        byId(title).textContent = paneTitle(pane);
    }
    const {left, size = 300} = panes[0].grid, width = Math.min(Math.max(200, Math.min(420, size)), byId('legend').parentElement.clientWidth - left - 24);
    byId('legend').hidden = state.view === 'lines';
    if (state.view === 'matrix') drawLegend(prepareCanvas(byId('legend'), left + width + 24, 28), left, width);
    byId('head-colours').replaceChildren(...state.view === 'lines' && state.lines === 'layer' ? lineHeads(panes[0]).map((head, _, all) =>
        make('span', {class: 'term'}, make('i', {class: 'swatch', style: `background:${lineColour(head, all.length)}`}), `head ${head}`)) : []);
    byId('legend-note').textContent = legendNote();
    drawCursors();
}

function drawCursors() {
    const cell = currentCell();
    for (const pane of panes) {
        if (!pane.grid) continue;
        const context = byId(PANES[pane.index].cursor).getContext('2d');
        context.clearRect(0, 0, pane.grid.width + 1, pane.grid.height + 1);
        const of = cell ? panes[cell[2]]?.t : state.text, token = state.token === null ? null : cellOfToken(state.token);
        if (of === pane.t && (cell || token !== null)) currentDrawing().drawCursor(context, pane, cell ?? [token, token], cell !== null);
    }
}

function moveCell([di, dj], far = 1) {
    const pane = currentCell()?.[2] ?? 0, from = currentCell() ?? [0, 0], step = currentCell() ? far : 0, {cells} = page.texts[paneHeads()[pane][0]];
    change({pinned: [clamp(from[0] + di * step, cells), clamp(from[1] + dj * step, cells), pane], hover: null, token: null});
    requestAnimationFrame(showCell);
}

/* Scrolls a matrix larger than the screen so that the cell is visible. */
function showCell() {
    const [i, j, k] = state.pinned, {grid} = panes[k], box = byId(PANES[k].canvas).closest('.layers');
    if (state.view !== 'matrix' || !grid) return;
    const x = grid.left + j * grid.cell;
    if (x < box.scrollLeft || x + grid.cell > box.scrollLeft + box.clientWidth) box.scrollLeft = x - box.clientWidth / 2;
    const y = byId(PANES[k].canvas).getBoundingClientRect().top + grid.top + i * grid.cell, sheet = byId('cell-pane'),
        foot = window.innerHeight - (getComputedStyle(sheet).position === 'fixed' ? sheet.offsetHeight : 0);
    if (y < 0 || y + grid.cell > foot) window.scrollBy(0, y - foot / 2);
}

const ARROWS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

function bindPane(index) {
    const cursor = byId(PANES[index].cursor);
    const cellUnder = (event) => {
        const box = cursor.getBoundingClientRect();
        return panes[index].grid && currentDrawing().cellAt(panes[index], event.clientX - box.left, event.clientY - box.top);
    };
    cursor.addEventListener('pointermove', (event) => {
        const cell = cellUnder(event);
        change({hover: cell && cell[0] !== null && cell[1] !== null ? [...cell, index] : null});
    });
    cursor.addEventListener('pointerleave', () => change({hover: null}));
    cursor.addEventListener('click', (event) => {
        const [i, j] = cellUnder(event) ?? [null, null];
        if (i !== null && j !== null) change({pinned: [i, j, index], token: null});
        else if ((i ?? j) !== null && panes[index].t === state.text) change({token: (i ?? j) * currentText().pool, pinned: null});
    });
    cursor.addEventListener('keydown', (event) => {
        if (ARROWS[event.key]) moveCell(ARROWS[event.key], event.ctrlKey ? panes[index].grid.cells : event.shiftKey ? 10 : 1);
        else if (event.key === 'Enter' && currentCell() && panes[currentCell()[2]].t === state.text)
            change({token: currentCell()[event.shiftKey ? 1 : 0] * currentText().pool, pinned: null, hover: null});
        else return;
        event.preventDefault();
    });
}

/* Binds buttons that make the same steps on touch screens. */
function bindNudges() {
    for (const button of document.querySelectorAll('#nudges [data-key]')) button.addEventListener('click', () => moveCell(ARROWS[button.dataset.key]));
    byId('release').addEventListener('click', () => change({pinned: null, hover: null}));
}
