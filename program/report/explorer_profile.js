/* Draws the strip of tokens, and the row and the column of the chosen cell or token.
 * SPDX-License-Identifier: MIT */

/* ------------------------------------------------------------------------------------------------------------ tokens */

function buildTokens() {
    const text = currentText();
    byId('tokens').replaceChildren(...text.tokens.map((token, t) => make('button', {type: 'button', dir: 'auto', 'data-token': t,
        class: [text.special[t] ? 'special' : '', t && text.types[t] !== text.types[t - 1] ? 'segment' : ''].join(' ').trim() || null,
        title: `position ${t}, id ${text.ids[t]}`}, token)));
    shadeTokens();
}

/* Tints every key by the query's attention to it, and marks the query and the key of a cell. */
function shadeTokens() {
    const text = currentText(), m = text.cells, buttons = byId('tokens').children, [query, key] = currentRowAndColumn(), chosen = state.token !== null || state.pinned?.[2] === 0;
    const row = chosen ? currentHead().values[PROBS].subarray(query * m, query * m + m) : null, most = row ? Math.max(...row.filter(Number.isFinite), 1e-30) : 1;
    for (let t = 0; t < buttons.length; t++) {
        const part = row ? row[cellOfToken(t)] / most : 0;
        buttons[t].style.background = part > .02 ? `color-mix(in srgb, var(--accent) ${Math.round(45 * part)}%, transparent)` : '';
        buttons[t].setAttribute('aria-pressed', chosen && (state.token === null ? cellOfToken(t) === query : t === state.token));
        buttons[t].classList.toggle('key', chosen && query !== key && cellOfToken(t) === key);
        buttons[t].tabIndex = t === (state.token ?? 0) ? 0 : -1;
    }
    if (chosen) showInStrip(buttons[state.token ?? query * text.pool]);
}

/* Scrolls the strip, never the page. */
function showInStrip(button) {
    const strip = byId('tokens'), top = button.offsetTop - strip.offsetTop;
    if (top < strip.scrollTop || top + button.offsetHeight > strip.scrollTop + strip.clientHeight) strip.scrollTop = top - strip.clientHeight / 2;
}

const chooseToken = (token) => change({token: token === state.token && !state.pinned ? null : token, pinned: null});

function bindTokens() {
    const strip = byId('tokens');
    const tokenOf = (event) => event.target.closest('button')?.dataset.token;
    strip.addEventListener('click', (event) => tokenOf(event) !== undefined && chooseToken(Number(tokenOf(event))));
    strip.addEventListener('keydown', (event) => {
        const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (!step || tokenOf(event) === undefined) return;
        const next = clamp(Number(tokenOf(event)) + step, currentText().n);
        change({token: next, pinned: null});
        strip.children[next].focus();
        event.preventDefault();
    });
}

/* -------------------------------------------------------------------------------------------------- row and column */

const PROFILE = {left: 44, terms: 130, gap: 8, probabilities: 44, labels: 90, slot: 90};

function drawProfiles() {
    const text = currentText(), m = text.cells, [i, j] = currentRowAndColumn();
    const title = (before, cell, after) => [before, make('bdi', {}, `“${cellTokens(text, cell).label}”`), ` (${cellTokens(text, cell).place}) ${after}`];
    const swatches = () => termsOf(text).map((c) => make('span', {class: 'term'}, make('i', {class: 'swatch', style: `background:${seriesColour(c)}`}), COMPONENTS[c].name));
    const means = text.pool > 1 ? `, ${meansOf(text)} ` : '';
    byId('row-title').replaceChildren(...title('Row: the query ', i, `over all keys${means}`), ...swatches());
    byId('column-title').replaceChildren(...title('Column: all queries for the key ', j, means), ...swatches());
    drawProfile(byId('row'), (k) => i * m + k);
    drawProfile(byId('column'), (k) => k * m + j);
}

/* Draws terms stacked away from zero, with a stroke at their sum, and probabilities below. indexOf: index in the
 * matrix of each slot. */
function drawProfile(canvas, indexOf) {
    const text = currentText(), head = currentHead(), m = text.cells, width = Math.max(260, canvas.parentElement.clientWidth);
    const slot = Math.min(PROFILE.slot, (width - PROFILE.left - 4) / m), labels = slot >= LABEL_CELL ? labelRoom(canvas, text) : 18;
    const context = prepareCanvas(canvas, width, PROFILE.terms + PROFILE.gap + PROFILE.probabilities + labels);
    const out = removalMask(state.text, state.layer, state.head), terms = termsOf(text).filter((c) => !(out >> c & 1)).map((c) => ({c, values: shownValues(text, head, c, state.centre)}));
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
            context.fillStyle = seriesColour(c);
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

/* Returns the room for the longest label. */
function labelRoom(canvas, text) {
    const context = canvas.getContext('2d');
    context.font = `11px ${pageFont()}`;
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
            const k = slotUnder(event), [i, j] = currentRowAndColumn();
            change({hover: k === null ? null : id === 'row' ? [i, k, 0] : [k, j, 0]});
        });
        canvas.addEventListener('pointerleave', () => change({hover: null}));
        canvas.addEventListener('click', (event) => slotUnder(event) !== null && change({token: slotUnder(event) * currentText().pool, pinned: null}));
    }
}
