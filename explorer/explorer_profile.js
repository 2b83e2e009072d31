/* Beside the matrix: the numbers of one cell, the strip of tokens, and the row and column of the chosen token.
 * SPDX-License-Identifier: MIT */

const termColour = seriesColour;

/* --------------------------------------------------------------------------------------------------------- one cell */

function drawReadout() {
    const text = currentText(), cell = currentCell(), readout = byId('readout');
    if (!cell) {
        readout.replaceChildren(make('h3', {}, 'A pair of tokens'), make('p', {class: 'quiet'},
            'Point at a cell, or focus the matrix and use the arrows. A row is a query, a column a key.'));
        return;
    }
    const [i, j] = cell, query = cellTokens(text, i), key = cellTokens(text, j);
    readout.replaceChildren(make('h3', {}, 'A pair of tokens'),
        make('dl', {class: 'pair'}, make('dt', {}, 'query'), make('dd', {}, make('b', {dir: 'auto'}, query.label), ` ${query.place}`),
            make('dt', {}, 'key'), make('dd', {}, make('b', {dir: 'auto'}, key.label), ` ${key.place}`),
            make('dt', {}, 'i − j'), make('dd', {}, distanceLabel(text, i, j))),
        cellTable(text, i, j), make('p', {class: 'quiet small'}, precisionNote(text)));
}

function distanceLabel(text, i, j) {
    const r = (i - j) * text.pool, where = r > 0 ? 'key to the left' : r < 0 ? 'key to the right' : 'itself';
    return `${formatNumber(r)} ${text.pool > 1 ? `± ${text.pool - 1}` : `(${where})`}`;
}

function cellTable(text, i, j) {
    const head = currentHead(), k = i * text.cells + j, rows = make('tbody');
    for (let c = C2C; c <= PROBS; c++) {
        if (!hasComponent(text, c)) continue;
        const value = shownValues(text, head, c, state.centre)[k];
        const number = c === PROBS ? formatNumber(value) : withSign(value);
        rows.append(make('tr', {class: c === state.component ? 'shown' : null, 'data-component': COMPONENTS[c].key},
            make('th', {scope: 'row'}, c === PROBS ? 'probability' : COMPONENTS[c].name), make('td', {}, number),
            make('td', {class: 'bar'}, valueBar(value, currentLimit(c), c))));
        if (text.pool > 1)
            rows.append(make('tr', {class: 'quiet small'}, make('th', {scope: 'row'}, 'range'),
                make('td', {colspan: 2}, `${formatNumber(head.low[c][k], 3)} … ${formatNumber(head.high[c][k], 3)}`)));
    }
    return make('table', {}, rows);
}

function valueBar(value, limit, component) {
    const signed = component !== PROBS, zero = signed ? 50 : 0, length = Math.min(1, Math.abs(value) / limit || 0) * (signed ? 50 : 100);
    return make('svg:svg', {viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        make('svg:rect', {x: value < 0 ? zero - length : zero, y: 1, width: length, height: 8, fill: component < SUM ? termColour(component) : colour('quiet')}),
        make('svg:line', {x1: zero, x2: zero, y1: -1, y2: 11, stroke: colour('quiet'), 'stroke-width': .6}));
}

function precisionNote(text) {
    const about = currentAbout(), pooled = text.pool > 1 ? `Means of ${text.pool} × ${text.pool} values; ranges are of the values without row means. ` : '';
    if (text.exact) return `${pooled}float32 values.`;
    const steps = [C2C, C2P, P2C].filter((c) => text.has[c]).map((c) => smallestStep(text, about, c));
    return `${pooled}Shown from 8 bits: a term is within ${formatNumber(Math.max(...steps), 2)}. Exact values: ${text.data}.`;
}

/* Logits that do not vary have no shares. */
const percent = (share) => share === null ? '–' : `${formatNumber(100 * share, 3)} %`;

function drawHeadFacts() {
    const text = currentText(), about = currentAbout(), terms = [C2C, C2P, P2C].filter((c) => text.has[c]);
    const rows = make('tbody', {}, ...terms.map((c) => make('tr', {}, make('th', {scope: 'row'}, COMPONENTS[c].name),
        make('td', {}, percent(about.share[c])), make('td', {class: 'bar'}, valueBar(about.share[c] ?? 0, 1, c)),
        make('td', {}, about.shapley[c] === null ? '–' : `${formatNumber(about.shapley[c], 2)} bits`))));
    const columns = make('thead', {}, make('tr', {}, make('th', {}, ''),
        make('th', {scope: 'col', colspan: 2, title: 'Cov(term, sum) / Var(sum) within rows: together 1, may be negative'}, 'of the variance'),
        make('th', {scope: 'col', title: 'bits of KL(probabilities ‖ uniform) that the term explains, over all orders of adding terms'}, 'Shapley')));
    byId('head-facts').replaceChildren(make('h3', {}, 'This head'), make('table', {}, columns, rows),
        make('p', {class: 'small'}, `entropy ${formatNumber(about.entropy, 3)} of ${formatNumber(Math.log2(text.n), 3)} bits, mean distance ${formatNumber(about.distance, 3)}`),
        make('p', {class: 'quiet small'}, make('a', {href: text.data}, text.data), ` attn.${state.layer}.*[0, ${state.head}]`));
}

/* ------------------------------------------------------------------------------------------------------------ tokens */

function buildTokens() {
    const text = currentText();
    byId('tokens').replaceChildren(...text.tokens.map((token, t) => make('button', {type: 'button', dir: 'auto', 'data-token': t,
        class: [text.special[t] ? 'special' : '', t && text.types[t] !== text.types[t - 1] ? 'segment' : ''].join(' ').trim() || null,
        title: `position ${t}, id ${text.ids[t]}`}, token)));
    shadeTokens();
}

/* The chosen token's attention, as a tint behind every key. */
function shadeTokens() {
    const text = currentText(), m = text.cells, chosen = state.token, buttons = byId('tokens').children;
    const row = chosen === null ? null : currentHead().values[PROBS].subarray(cellOfToken(chosen) * m, (cellOfToken(chosen) + 1) * m);
    const most = row ? Math.max(...row.filter(Number.isFinite), 1e-30) : 1;
    for (let t = 0; t < buttons.length; t++) {
        const part = row ? row[cellOfToken(t)] / most : 0;
        buttons[t].style.background = part > .02 ? `color-mix(in srgb, var(--accent) ${Math.round(45 * part)}%, transparent)` : '';
        buttons[t].setAttribute('aria-pressed', t === chosen);
        buttons[t].tabIndex = t === (chosen ?? 0) ? 0 : -1;
    }
    if (chosen !== null) showInStrip(buttons[chosen]);
}

/* Scrolls the strip, never the page. */
function showInStrip(button) {
    const strip = byId('tokens'), top = button.offsetTop - strip.offsetTop;
    if (top < strip.scrollTop || top + button.offsetHeight > strip.scrollTop + strip.clientHeight) strip.scrollTop = top - strip.clientHeight / 2;
}

const chooseToken = (token) => change({token: token === state.token ? null : token});

function bindTokens() {
    const strip = byId('tokens');
    const tokenOf = (event) => event.target.closest('button')?.dataset.token;
    strip.addEventListener('click', (event) => tokenOf(event) !== undefined && chooseToken(Number(tokenOf(event))));
    strip.addEventListener('keydown', (event) => {
        const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (!step || tokenOf(event) === undefined) return;
        const next = clamp(Number(tokenOf(event)) + step, currentText().n);
        change({token: next});
        strip.children[next].focus();
        event.preventDefault();
    });
}

/* -------------------------------------------------------------------------------------------------- row and column */

const PROFILE = {left: 44, terms: 130, gap: 8, probabilities: 44, labels: 90};

function drawProfiles() {
    const text = currentText(), chosen = state.token ?? 0, cell = cellOfToken(chosen), {label, place} = cellTokens(text, cell);
    const title = (before, after) => [before, make('bdi', {}, `“${label}”`), ` (${place}) ${after}`];
    const swatches = () => [C2C, C2P, P2C].filter((c) => text.has[c]).map((c) => make('span', {class: 'term'}, make('i', {class: 'swatch', style: `background:${termColour(c)}`}), COMPONENTS[c].name));
    byId('row-title').replaceChildren(...title('Row: the query ', 'over all keys'), ...swatches());
    byId('column-title').replaceChildren(...title('Column: all queries for the key ', ''), ...swatches());
    const m = text.cells;
    drawProfile(byId('row'), (k) => cell * m + k);
    drawProfile(byId('column'), (k) => k * m + cell);
}

/* Terms stacked away from zero, a stroke where their sum is, probabilities below. indexOf: slot to place in the matrix. */
function drawProfile(canvas, indexOf) {
    const text = currentText(), head = currentHead(), m = text.cells, width = Math.max(260, canvas.parentElement.clientWidth);
    const slot = Math.min(46, (width - PROFILE.left - 4) / m), labels = slot >= LABEL_CELL ? labelRoom(canvas, text) : 18;
    const context = prepareCanvas(canvas, width, PROFILE.terms + PROFILE.gap + PROFILE.probabilities + labels);
    const terms = [C2C, C2P, P2C].filter((c) => text.has[c]).map((c) => ({c, values: shownValues(text, head, c, state.centre)}));
    const sums = shownValues(text, head, SUM, state.centre), probabilities = head.values[PROBS];
    let low = 0, high = 0, likely = 1e-9;
    for (let k = 0; k < m; k++) {
        const values = terms.map(({values}) => values[indexOf(k)] || 0);
        low = Math.min(low, values.filter((v) => v < 0).reduce((a, b) => a + b, 0));
        high = Math.max(high, values.filter((v) => v > 0).reduce((a, b) => a + b, 0));
        likely = Math.max(likely, probabilities[indexOf(k)] || 0);
    }
    const span = high - low || 1, y = (value) => 4 + (high - value) / span * (PROFILE.terms - 8), bar = Math.max(.5, slot - (slot > 4 ? 1.5 : 0));
    const foot = PROFILE.terms + PROFILE.gap + PROFILE.probabilities;
    drawProfileAxis(context, width, niceTicks(low, high, 5), y, likely, foot);
    for (let k = 0; k < m; k++) {
        const x = PROFILE.left + k * slot, place = indexOf(k);
        let up = 0, down = 0;
        for (const {c, values} of terms) {
            const from = values[place] > 0 ? up : down, to = from + (values[place] || 0);
            context.fillStyle = termColour(c);
            context.fillRect(x, Math.min(y(from), y(to)), bar, Math.abs(y(from) - y(to)));
            if (values[place] > 0) up = to;
            else down = to;
        }
        context.fillStyle = colour('ink');
        context.fillRect(x - .5, y(sums[place]) - 1, bar + 1, 2);
        const height = (probabilities[place] || 0) / likely * PROFILE.probabilities;
        context.fillStyle = colour('quiet');
        context.fillRect(x, foot - height, bar, height);
    }
    drawProfileLabels(context, text, slot, foot);
    canvas.dataset.slot = slot;
}

/* As much as the longest label takes. */
function labelRoom(canvas, text) {
    const context = canvas.getContext('2d');
    context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    return Math.min(PROFILE.labels, Math.ceil(Math.max(...text.tokens.map((token) => context.measureText(token).width))) + 12);
}

function drawProfileAxis(context, width, ticks, y, likely, foot) {
    context.font = context.font.replace('12px', '11px');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const tick of ticks) {
        context.fillStyle = colour(tick === 0 ? 'quiet' : 'line');
        context.fillRect(PROFILE.left, Math.round(y(tick)), width - PROFILE.left, 1);
        context.fillStyle = colour('quiet');
        context.fillText(formatTick(tick), PROFILE.left - 5, y(tick));
    }
    context.fillStyle = colour('quiet');
    context.fillText(formatNumber(likely, 2), PROFILE.left - 5, foot - PROFILE.probabilities + 6);
    context.fillText('p', PROFILE.left - 5, foot - 6);
    context.fillRect(PROFILE.left, foot, width - PROFILE.left, 1);
}

function drawProfileLabels(context, text, slot, foot) {
    if (slot < LABEL_CELL) {
        context.textAlign = 'center';
        context.textBaseline = 'top';
        context.fillStyle = colour('quiet');
        for (const token of niceTicks(0, text.n - 1, 8)) if (Number.isInteger(token)) context.fillText(String(token), PROFILE.left + (token / text.pool + .5) * slot, foot + 4);
        return;
    }
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (let k = 0; k < text.cells; k++) {
        const {label, first} = cellTokens(text, k);
        context.fillStyle = colour(text.special[first] ? 'quiet' : 'ink');
        context.save();
        context.translate(PROFILE.left + (k + .45) * slot, foot + 5);
        context.rotate(-Math.PI / 2);
        context.fillText(fitLabel(context, label, PROFILE.labels - 8), 0, 0);
        context.restore();
    }
}

function bindProfiles() {
    for (const id of ['row', 'column']) {
        const canvas = byId(id);
        const slotUnder = (event) => {
            const k = Math.floor((event.clientX - canvas.getBoundingClientRect().left - PROFILE.left) / canvas.dataset.slot);
            return k >= 0 && k < currentText().cells ? k : null;
        };
        canvas.addEventListener('pointermove', (event) => {
            const k = slotUnder(event), cell = cellOfToken(state.token ?? 0);
            change({hover: k === null ? null : id === 'row' ? [cell, k] : [k, cell]});
        });
        canvas.addEventListener('pointerleave', () => change({hover: null}));
        canvas.addEventListener('click', (event) => slotUnder(event) !== null && change({token: slotUnder(event) * currentText().pool}));
    }
}
