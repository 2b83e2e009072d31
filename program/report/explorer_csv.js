/* Writes the numbers of the view as CSV (RFC 4180): a line for each cell of a head, or for each head.
 * SPDX-License-Identifier: MIT */

/* Quotes a field; one that a spreadsheet program would take for a formula begins with a blank. */
function csvField(value) {
    const text = typeof value === 'string' && /^[=+@\t\r-]/.test(value) && !/^-?[\d.]+(e[+-]?\d+)?$/.test(value) ? ` ${value}` : String(value ?? '');
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/* Writes a number with the fewest digits that give the same float32. */
function csvNumber(value) {
    for (let digits = 6; digits < 9; digits++) if (Math.fround(Number(value.toPrecision(digits))) === value) return String(Number(value.toPrecision(digits)));
    return Number.isFinite(value) ? String(Number(value.toPrecision(9))) : String(value);
}

const csvNames = {sum: 'logit', probs: 'probability'};

function csvOfHead() {
    const text = currentText(), head = currentHead(), m = text.cells, which = cellComponents(text);
    const values = which.map((c) => shownValues(text, head, c, false)), lines = [['query', 'key', 'query_token', 'key_token', ...which.map((c) => (csvNames[COMPONENTS[c].key] ?? COMPONENTS[c].key) + (text.pool > 1 ? '_mean' : ''))]];
    for (let i = 0; i < m; i++)
        for (let j = 0; j < m; j++) {
            const query = cellTokens(text, i), key = cellTokens(text, j);
            lines.push([query.place, key.place, query.label, key.label, ...values.map((v) => csvNumber(v[i * m + j]))]);
        }
    return lines;
}

function csvOfHeads() {
    const terms = termsOf(currentText()), number = (value) => value === null ? '' : String(value);
    return [['layer', 'head', ...terms.flatMap((c) => [`share_${COMPONENTS[c].key}`, `shapley_${COMPONENTS[c].key}`]), 'entropy_bits', 'mean_distance'],
        ...modelHeads().map(([layer, head]) => {
            const about = headNumbers(state.text, layer, head);
            return [layer, head, ...terms.flatMap((c) => [number(about.share[c]), number(about.shapley[c])]), number(about.entropy), number(about.distance)];
        })];
}

const csvOfView = () => (state.view === 'heads' ? csvOfHeads() : csvOfHead()).map((fields) => fields.map(csvField).join(',')).join('\r\n') + '\r\n';
