/* What other commands found, as tables: verification, receptive field, environment, commands, files.
 * SPDX-License-Identifier: MIT */

/* Rows of texts and numbers; the first column is the row's name. A row may be {cells, bad}. */
function table(columns, rows, caption) {
    const head = make('tr', {}, ...columns.map((name, k) => make('th', {scope: 'col', class: k === 0 ? 'text' : null}, name)));
    const body = rows.map((row) => {
        const cells = row.cells ?? row;
        return make('tr', {class: row.bad ? 'bad' : null}, ...cells.map((cell, k) => k === 0 ? make('th', {scope: 'row'}, String(cell))
            : make('td', {class: cell instanceof Node || String(cell).length > 24 ? 'text' : null}, typeof cell === 'number' ? formatNumber(cell) : cell)));
    });
    return make('div', {class: 'scroll', tabindex: 0}, make('table', {}, ...(caption ? [make('caption', {}, caption)] : []), make('thead', {}, head), make('tbody', {}, ...body)));
}

const folded = (title, ...children) => make('details', {}, make('summary', {}, title), ...children);
const absent = (section, text) => section.append(make('p', {class: 'quiet'}, text));

/* ----------------------------------------------------------------------------------------------------- verification */

/* One line a kind of result, with the worst of every tier; all results are below. */
function summariseChecks(results) {
    const kinds = new Map();
    for (const r of results) {
        const name = r.subject.replace(/^layer \d+ /, '').replace(/ \d+$/, '');
        if (!kinds.has(name)) kinds.set(name, {name, tiers: new Map(), bad: false});
        const kind = kinds.get(name), tier = kind.tiers.get(r.isa) ?? {checks: 0, values: 0, differing: 0, worst: 0, limit: r.limit, where: ''};
        tier.checks++;
        tier.values += r.values;
        tier.differing += r.differing;
        kind.bad ||= !r.passed;
        if (r.worst >= tier.worst) Object.assign(tier, {worst: r.worst, limit: r.limit, where: r.subject});
        kind.tiers.set(r.isa, tier);
    }
    return [...kinds.values()];
}

function summaryTable(results) {
    const tiers = [...new Set(results.map((r) => r.isa))], others = tiers.filter((isa) => isa !== 'scalar');
    const columns = ['what', 'checks a tier', 'values', ...tiers.map((isa) => `error, ${isa}`), 'limit', 'worst in', ...others.map((isa) => `bits differ, ${isa}`)];
    return table(columns, summariseChecks(results).map((kind) => {
        const of = (isa, key) => kind.tiers.get(isa)?.[key], first = kind.tiers.values().next().value;
        return {bad: kind.bad, cells: [kind.name, first.checks, first.values, ...tiers.map((isa) => formatNumber(of(isa, 'worst') ?? NaN, 3)), first.limit, first.where,
            ...others.map((isa) => of(isa, 'differing') ?? '–')]};
    }));
}

function buildVerification() {
    const verify = readJson('verify'), section = byId('verification');
    if (!verify) return absent(section, 'Not run.');
    const failures = verify.failures;
    section.append(make('p', {}, `${verify.checks} checks, `, make('span', {class: failures ? 'bad' : null}, `${failures} failed`),
        '. Bits are compared with the scalar tier; errors against float64 are in eps = 2⁻²³ times the largest magnitude.'));
    section.append(summaryTable(verify.results));
    section.append(folded(`All ${verify.results.length} results`, table(['what', 'isa', 'values', 'bits differ', 'worst', '99.9 %', 'limit', 'where'],
        verify.results.map((r) => ({bad: !r.passed, cells: [r.subject, r.isa, r.values, r.differing, formatNumber(r.worst, 3), formatNumber(r.p999, 3), r.limit, r.where ?? '']})))));
}

/* -------------------------------------------------------------------------------------------------- receptive field */

const FIELD_DEFINITIONS = [['run', 'unbroken run'], ['unique_set', 'distinct distances'], ['contiguous', 'contiguous distances'], ['hull', 'hull']];

function buildReceptiveField() {
    const field = readJson('receptive-field'), section = byId('receptive-field');
    if (!field) return absent(section, readJson('info')?.model?.relative_rows ? 'Not computed.' : 'The model has no relative positions.');
    const {contiguous_unique: near, unique_distances: unique} = field, tables = make('div', {class: 'pairs'});
    section.append(make('p', {class: 'quiet'}, field.meaning ? `${field.meaning[0].toUpperCase()}${field.meaning.slice(1)}.` : ''),
        make('p', {}, `K = ${field.k}, ${field.slots_used} rows in use. Alone on their row: ${unique.count} distances, ${near.left} keys to the left and ${near.right} to the right. `,
            field.longest_unambiguous_text ? `The longest text without any shared row has ${field.longest_unambiguous_text} tokens.` : ''), tables);
    tables.append(table(['layers', ...FIELD_DEFINITIONS.map((d) => d[1])],
        field.per_layer.map((row) => [row.layers, ...FIELD_DEFINITIONS.map(([key]) => row[key] ?? '–')]), 'Unambiguous relative positions, composed over layers'));
    tables.append(table(['formula', 'value', 'equals', 'above the run by'], Object.entries(field.formulas).map(([formula, value]) => {
        const verdict = field.verdicts?.[formula] ?? {};
        return [formula, value, (verdict.equals ?? []).map((key) => FIELD_DEFINITIONS.find((d) => d[0] === key)?.[1] ?? key).join(', ') || 'none', verdict.over_run_by ?? '–'];
    }), `Quoted formulas, k = ${field.k}, n = ${field.layers}`));
    const tests = Object.entries(field.behaviour ?? {});
    if (tests.length) section.append(table(['test on the weights', 'holds'], tests.map(([name, t]) => ({bad: t.pass === false, cells: [name.replace(/_/g, ' '), t.skipped ? `skipped: ${t.skipped}` : t.pass ? 'yes' : 'no']}))));
    appendImage(section, 'receptive-field.png', 'The band over the layers with every formula, and the bucket function');
}

function appendImage(parent, name, alternative) {
    if (page.files.some((file) => file.name === name)) parent.append(folded('Drawn', make('img', {src: name, alt: alternative, class: 'drawn', loading: 'lazy'})));
}

/* ------------------------------------------------------------------------------- environment, commands, files */

const plain = (value) => value === null || value === '' ? 'unknown' : Array.isArray(value) ? value.map(plain).join(', ') || 'none'
    : Number.isInteger(value) && Math.abs(value) >= 1e4 ? value.toLocaleString('en') : typeof value === 'number' ? formatNumber(value) : typeof value === 'object' ? Object.entries(value).map(([k, v]) => `${k.replace(/_/g, ' ')} ${plain(v)}`).join(', ') : String(value);

function sheet(title, object, without = []) {
    const rows = Object.entries(object ?? {}).filter(([key]) => !without.includes(key));
    return rows.length ? [make('h3', {}, title), make('dl', {class: 'sheet'}, ...rows.map(([key, value]) =>
        make('div', {}, make('dt', {}, key.replace(/_/g, ' ')), make('dd', {}, plain(value)))))] : [];
}

function buildEnvironment() {
    const info = readJson('info') ?? {}, measured = readJson('lengths')?.environment;
    byId('environment').append(...sheet('Model', info.model, ['context', 'name']),
        ...sheet(measured ? 'While measuring' : 'Machine', measured ?? info.topology, ['notes', 'command']),
        ...sheet('Tiers', Object.fromEntries((info.tiers ?? []).map((tier) => [tier.name, tier.available ? 'available' : tier.reason]))));
}

async function copyText(text, button) {
    try {
        await navigator.clipboard.writeText(text);
        button.textContent = 'Copied';
    } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
        button.textContent = 'Selected';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

function buildCommands() {
    const section = byId('commands');
    section.append(make('p', {class: 'quiet'}, 'Each line makes its part of this folder again; commands.sh holds all of them.'));
    for (const step of page.steps) {
        const button = make('button', {type: 'button', 'aria-label': `Copy: ${step.title}`}, 'Copy');
        button.addEventListener('click', () => copyText(step.command, button));
        section.append(make('div', {class: 'command'}, make('code', {class: step.failed ? 'bad' : null, title: step.title}, step.command ?? ''), button));
    }
    section.append(table(['file', 'holds', 'bytes'], page.files.map((file) => [file.name, make('span', {}, file.what, ' ', make('a', {href: file.name}, 'open')), file.bytes.toLocaleString('en')])));
}

function buildFigures() {
    const text = currentText(), name = text.data.replace(/safetensors$/, 'png'), print = text.data.replace(/safetensors$/, 'pdf');
    const has = page.files.some((file) => file.name === name);
    byId('printed').hidden = !has;
    if (has) byId('figures').replaceChildren(make('p', {}, make('a', {href: print}, print), ', ', make('a', {href: name}, name)),
        make('img', {src: name, alt: 'The attention figure of this text', loading: 'lazy'}));
}
