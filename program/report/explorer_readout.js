/* Shows the numbers of one cell, and of the head it belongs to. SPDX-License-Identifier: MIT */

/* Returns the formula, which stands in the place of a cell's numbers until there are any, so that nothing below
 * moves. */
function formulas() {
    const copies = [...document.querySelectorAll('#explain math')].map((math) => math.cloneNode(true));
    for (const copy of copies) for (const element of [copy, ...copy.querySelectorAll('[id]')]) element.removeAttribute('id');
    return copies;
}

function drawReadout() {
    const cell = currentCell(), readout = byId('readout');
    byId('cell-pane').classList.toggle('filled', cell !== null);
    if (!cell) {
        readout.replaceChildren(make('h3', {}, 'A pair of tokens'), make('p', {class: 'quiet'},
            make('span', {class: 'on-screen'}, 'Point at a cell, tap it, or focus the matrix and use the arrows. '), 'A row is a query, a column a key.'), ...formulas());
        return;
    }
    const [i, j, pane] = cell, places = paneHeads(), text = page.texts[places[pane][0]], query = cellTokens(text, i), key = cellTokens(text, j);
    const shown = [places[pane], ...places.filter(([t], k) => k !== pane && t === places[pane][0])];
    readout.replaceChildren(make('h3', {}, 'A pair of tokens'),
        make('dl', {class: 'pair'}, make('dt', {}, 'query'), make('dd', {}, make('b', {dir: 'auto'}, query.label), ` ${query.place}`),
            make('dt', {}, 'key'), make('dd', {}, make('b', {dir: 'auto'}, key.label), ` ${key.place}`),
            make('dt', {}, 'i − j'), make('dd', {}, distanceLabel(text, i, j))),
        shown.length > 1 ? comparedTable(text, i * text.cells + j, shown) : cellTable(text, i * text.cells + j, places[pane]),
        make('p', {class: 'quiet small'}, precisionNote(text, places[pane])));
}

function distanceLabel(text, i, j) {
    const r = (i - j) * text.pool, where = r > 0 ? 'key to the left' : r < 0 ? 'key to the right' : 'itself';
    return `${formatNumber(r)} ${text.pool > 1 ? `± ${text.pool - 1}` : `(${where})`}`;
}

const columnHead = (...names) => make('thead', {}, make('tr', {}, make('td'), ...names.map((name) => make('th', {scope: 'col'}, name))));
const shownNumber = (value, c) => c === PROBS ? formatNumber(value) : withSign(value);
const cellComponents = (text) => [...COMPONENTS.keys()].filter((c) => hasComponent(text, c));

/* Returns a table of a cell's numbers as they enter the softmax and as the colours show them, without removed
 * terms. */
function cellTable(text, k, [t, layer, head]) {
    const cells = headAsShown(t, layer, head), of = headCells(t, layer, head), mask = removalMask(t, layer, head), rows = make('tbody');
    for (const c of cellComponents(text)) {
        const out = c < SUM && mask >> c & 1, value = (centred) => shownValues(text, cells, c, centred)[k];
        rows.append(make('tr', {class: [c === state.component ? 'shown' : '', out ? 'out' : ''].join(' ').trim() || null, 'data-component': COMPONENTS[c].key},
            make('th', {scope: 'row'}, c === PROBS ? 'probability' : COMPONENTS[c].name), make('td', {}, shownNumber(value(false), c)),
            make('td', {}, c === PROBS ? '' : shownNumber(value(true), c)), make('td', {class: 'bar'}, valueBar(value(state.centre), currentLimit(c), c))));
        if (mask && c >= SUM) rows.append(make('tr', {class: 'quiet small'}, make('th', {scope: 'row'}, 'with all'),
            ...[false, true].map((centred) => make('td', {}, c === PROBS && centred ? '' : shownNumber(shownValues(text, of, c, centred)[k], c))), make('td')));
        if (text.pool > 1) rows.append(make('tr', {class: 'quiet small'}, make('th', {scope: 'row'}, 'range'),
            make('td', {colspan: 3}, `${formatNumber(cells.low[c][k], 3)} … ${formatNumber(cells.high[c][k], 3)}`)));
    }
    return make('table', {}, columnHead('as it is', 'less row mean', ''), rows);
}

/* Returns a table of the same cell in two heads, as the colours show it. */
function comparedTable(text, k, places) {
    const rows = cellComponents(text).map((c) => make('tr', {class: c === state.component ? 'shown' : null, 'data-component': COMPONENTS[c].key},
        make('th', {scope: 'row'}, c === PROBS ? 'probability' : COMPONENTS[c].name),
        ...places.map((place) => make('td', {class: c < SUM && removalMask(...place) >> c & 1 ? 'out' : null},
            shownNumber(shownValues(text, headAsShown(...place), c, state.centre)[k], c)))));
    return make('table', {}, make('caption', {class: 'quiet small'}, state.centre ? 'terms and logit less their row means' : 'row means left in'),
        columnHead(...places.map(([, layer, head]) => `layer ${layer}, head ${head}`)), make('tbody', {}, ...rows));
}

function valueBar(value, limit, component) {
    const signed = component !== PROBS, zero = signed ? 50 : 0, length = Math.min(1, Math.abs(value) / limit || 0) * (signed ? 50 : 100);
    return make('svg:svg', {viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        make('svg:rect', {x: value < 0 ? zero - length : zero, y: 1, width: length, height: 8, fill: component < SUM ? seriesColour(component) : colour('quiet')}),
        make('svg:line', {x1: zero, x2: zero, y1: -1, y2: 11, stroke: colour('quiet'), 'stroke-width': .6}));
}

function precisionNote(text, [, layer, head]) {
    const pooled = text.pool > 1 ? `Cells are ${meansOf(text)}; ranges are of the values without row means. ` : '';
    const computed = lowPrecision ? ` Computed with ${lowPrecision} linear layers.` : '';
    if (text.exact) return `${pooled}float32 values.${computed}`;
    const steps = termsOf(text).map((c) => smallestStep(text, text.heads[layer][head], c));
    return `${pooled}Shown from 8 bits: a term is within ${formatNumber(Math.max(...steps), 2)}. ${text.data ? `Exact values: ${text.data}.` : ''}${computed}`;
}

/* --------------------------------------------------------------------------------------------------------- one head */

/* Formats a share; logits that do not vary have none. */
const percent = (share) => share === null ? '–' : `${formatNumber(100 * share, 3)} %`;

function drawHeadFacts() {
    const text = currentText(), about = headNumbers(state.text, state.layer, state.head), out = removalMask(state.text, state.layer, state.head);
    const rows = termsOf(text).map((c) => make('tr', {class: out >> c & 1 ? 'out' : null}, make('th', {scope: 'row'}, COMPONENTS[c].name),
        make('td', {}, percent(about.share[c])), make('td', {class: 'bar'}, valueBar(about.share[c] ?? 0, 1, c)),
        make('td', {}, about.shapley[c] === null ? '–' : `${formatNumber(about.shapley[c], 2)} bits`)));
    const link = (id, label) => make('a', {href: `#word-${id}`}, label);
    byId('head-facts').replaceChildren(make('h3', {}, 'This head'), make('table', {}, make('thead', {}, make('tr', {}, make('td'),
        make('th', {scope: 'col', colspan: 2}, link('share', 'share of the variance')), make('th', {scope: 'col'}, link('shapley', 'Shapley value')))), make('tbody', {}, ...rows)),
        make('p', {class: 'small'}, link('entropy', 'entropy'), ` ${formatNumber(about.entropy, 3)} of ${formatNumber(Math.log2(text.n), 3)} bits, `,
            link('distance', 'mean distance'), ` ${formatNumber(about.distance, 3)}`),
        ...out && !ablatedRun(state.text) ? [make('p', {class: 'quiet small'}, 'Shares and Shapley values are of the head with all its terms.')] : [],
        ...text.data ? [make('p', {class: 'quiet small'}, make('a', {href: text.data}, text.data), ` attn.${state.layer}.*[0, ${state.head}]`)] : []);
}

/* -------------------------------------------------------------------------------------------------- the matrix as a table */

const MOST_TABLE_CELLS = 64; // cells on a side; for longer texts the table has the row of the chosen query

/* Draws the matrix as a table, for screen readers and for copying. It is only made while it is open. */
function drawMatrixTable() {
    const details = byId('matrix-table');
    if (!details.open) return;
    const text = currentText(), m = text.cells, values = shownValues(text, currentHead(), state.component, state.centre), [row] = currentRowAndColumn();
    const label = (k) => `${cellTokens(text, k).place} ${cellTokens(text, k).label}`, rows = m > MOST_TABLE_CELLS ? [row] : Array.from({length: m}, (_, k) => k);
    const note = `${paneTitle({t: state.text, layer: state.layer, head: state.head})}${state.component === PROBS ? '' : state.centre ? ', row mean subtracted' : ', row mean left in'}${text.pool > 1 ? `, ${meansOf(text)}` : ''}`;
    const caption = rows.length < m ? `${note}: the row of the chosen query` : note, all = Array.from({length: m}, (_, k) => k);
    details.lastElementChild.replaceChildren(rows.length < m ? table(['key', label(row)], all.map((j) => [label(j), formatNumber(values[row * m + j])]), caption)
        : table(['query \\ key', ...all.map(label)], rows.map((i) => [label(i), ...all.map((j) => formatNumber(values[i * m + j]))]), caption));
}
