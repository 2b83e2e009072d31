/* Shows results of other commands as tables: verification, receptive field, environment, commands, files.
 * SPDX-License-Identifier: MIT */

const isWords = (cell) => cell instanceof Node || /^[^\d−–∞+]/.test(String(cell ?? ''));

/* Makes a table of rows of texts and numbers; the first column is the row's name. A row may be {cells, bad}. */
function table(columns, rows, caption) {
    const first = rows[0]?.cells ?? rows[0] ?? [];
    const head = make('tr', {}, ...columns.map((name, k) => make('th', {scope: 'col', class: k === 0 || isWords(first[k]) ? 'text' : null}, name)));
    const body = rows.map((row) => {
        const cells = row.cells ?? row;
        return make('tr', {class: row.bad ? 'bad' : null}, ...cells.map((cell, k) => k === 0 ? make('th', {scope: 'row'}, String(cell))
            : make('td', {class: isWords(cell) ? 'text' : null}, typeof cell === 'number' ? formatNumber(cell) : cell)));
    });
    return make('div', {class: 'scroll', tabindex: 0}, make('table', {}, ...(caption ? [make('caption', {}, caption)] : []), make('thead', {}, head), make('tbody', {}, ...body)));
}

const folded = (title, ...children) => make('details', {}, make('summary', {}, title), ...children);
const absent = (section, text) => section.append(make('p', {class: 'quiet'}, text));

/* Shows a command line with a button that copies it. */
function commandLine(command, title, failed = false) {
    const button = make('button', {type: 'button', 'aria-label': `Copy: ${title}`}, 'Copy');
    button.addEventListener('click', () => copyText(button.previousElementSibling, button));
    return make('div', {class: 'command'}, make('code', {class: failed ? 'bad' : null, title}, command), button);
}

/* Shows, in place of a part that was left out, the command that adds it; of two options that name a part the last
 * decides. */
function notAskedFor(section, text, part) {
    absent(section, text);
    section.append(commandLine(`${page.command} --with ${part}`, `a report with ${part}`));
}

/* ----------------------------------------------------------------------------------------------------- verification */

/* Returns one line for each kind of result, with the worst of every tier; all results are below. */
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
        return {bad: kind.bad, cells: [kind.name, first.checks, first.values,
            ...tiers.map((isa) => of(isa, 'worst') === undefined ? '–' : formatNumber(of(isa, 'worst'), 3)), first.limit, first.where,
            ...others.map((isa) => of(isa, 'differing') ?? '–')]};
    }));
}

function buildVerification() {
    const verify = readJson('verify'), section = byId('verification');
    if (!verify) return notAskedFor(section, 'Not run, as it takes longer than all else. This command adds it:', 'verify');
    const failures = verify.failures;
    section.append(make('p', {}, `${verify.checks} checks, `, make('span', {class: failures ? 'bad' : null}, `${failures} failed`),
        '. Bits are compared with the scalar tier; errors against float64 are in eps = 2⁻²³ times the largest magnitude.',
        lowPrecision ? ` Linear layers are in ${lowPrecision}.` : ''));
    section.append(summaryTable(verify.results));
    section.append(folded(`All ${verify.results.length} results`, table(['what', 'isa', 'values', 'bits differ', 'worst', '99.9 %', 'limit', 'where'],
        verify.results.map((r) => ({bad: !r.passed, cells: [r.subject, r.isa, r.values, r.differing, formatNumber(r.worst, 3), formatNumber(r.p999, 3), r.limit, r.where ?? '']})))));
}

/* -------------------------------------------------------------------------------------------------- receptive field */

const FIELD_DEFINITIONS = [['run', 'unbroken run'], ['unique_set', 'distinct distances'], ['contiguous', 'contiguous distances'], ['hull', 'hull']];

function buildReceptiveField() {
    const field = readJson('receptive-field'), section = byId('receptive-field');
    if (!field) return absent(section, readJson('info')?.model?.relative_rows ? 'Left out by --skip receptive-field.' : 'The model has no relative positions.');
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

/* ----------------------------------------------------------------------------------------------------------- training */

function buildTraining() {
    const section = byId('training'), name = 'training.png', there = page.files.some((file) => file.name === name);
    if (there) section.append(make('img', {src: name, alt: 'Loss, what was measured on held-out data, learning rate and norm of the gradients by step', class: 'drawn'}));
    section.hidden = document.querySelector('nav a[href="#training"]').hidden = !there;
}

function appendImage(parent, name, alternative) {
    if (page.files.some((file) => file.name === name)) parent.append(folded('Drawn', make('img', {src: name, alt: alternative, class: 'drawn', loading: 'lazy'})));
}

/* ------------------------------------------------------------------------------- environment, commands, files */

/* Meanings of the keys of the environment; a key that is missing here is shown as it is. */
const LABELS = {
    cpu: 'processor', system: 'operating system', cores: 'cores', logical: 'hardware threads', logical_processors: 'hardware threads',
    allowed_logical_processors: 'hardware threads allowed', usable_cores: 'cores this process may use', packages: 'sockets',
    numa_nodes: 'memory nodes (NUMA)', cpu_quota: 'limit on processor time, cores', virtual_machine: 'in a virtual machine',
    l1d_bytes: 'first-level data cache', l2_bytes: 'second-level cache', l3_bytes: 'third-level cache', l3_cores: 'cores that share it',
    memory_bytes: 'memory', governor: 'frequency governor', load: 'load before the start', clock_ghz: 'clock before, GHz',
    clock_ghz_after: 'clock after, GHz', other_cores: 'cores used by others', stolen_cores: 'cores taken by the host',
    peak_gflops_1t: 'measured peak of one thread, GFLOP/s', peak_gflops: 'measured peak, GFLOP/s', stream_gbs: 'memory bandwidth (triad), GB/s',
    stream_bytes: 'measured over', roofs: 'measured limits', load_s: 'opening the model, seconds', load_peak_rss_bytes: 'peak memory while opening',
    isa: 'instruction set', tiers: 'instruction sets', flags: 'compiler options', dirty: 'changed since the commit', scalar_gflops: 'scalar, GFLOP/s',
    avx2_gflops: 'AVX2, GFLOP/s', avx512_gflops: 'AVX-512, GFLOP/s', neon_gflops: 'NEON, GFLOP/s', read_gbs: 'reading, GB/s', triad_gbs: 'triad, GB/s',
    typical_share: 'share of the peak in a median measurement', gops: 'integer operations, 10⁹/s', version: 'deberta', generation: 'DeBERTa', hidden_size: 'hidden size', position_buckets: 'position buckets',
    relative_rows: 'rows of the relative table', position_biased_input: 'absolute positions at the input', has_position_table: 'table of absolute positions',
    heads_present: 'output heads', memory_needed_bytes: 'memory needed', packed: 'packed file', convolution_width: 'convolution width',
    position_terms: 'position terms',
};
const labelOf = (key) => (LABELS[key] ?? key.replace(/_/g, ' ')).replace(/, .*/, '');
const unitOf = (key) => LABELS[key]?.match(/, (.*)/)?.[1] ?? ''; // text after the comma of a label

function bytesAsText(bytes) {
    const power = Math.min(3, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
    return `${formatNumber(Number((bytes / 1024 ** power).toPrecision(3)), 3)} ${['bytes', 'KiB', 'MiB', 'GiB'][power]}`;
}

/* Formats a value with its unit. */
function plain(value, key = '') {
    if (value === null || value === '') return 'unknown';
    if (Array.isArray(value)) return value.map((one) => plain(one)).join('; ') || 'none';
    if (typeof value === 'object') return Object.entries(value).map(([k, v]) => `${labelOf(k)} ${plain(v, k)}`).join(', ');
    if (typeof value === 'boolean') return value ? 'yes' : 'no';
    if (key === 'cpu_quota' && value === 0) return 'none';
    if (key === 'position_terms') return value.replace('|', ', ');
    if (key.endsWith('_bytes')) return bytesAsText(value);
    if (typeof value !== 'number') return String(value);
    return `${Number.isInteger(value) && Math.abs(value) >= 1e4 ? value.toLocaleString('en') : formatNumber(value, 3)} ${unitOf(key)}`.trim();
}

function sheet(title, object, without = []) {
    const rows = Object.entries(object ?? {}).filter(([key, value]) => !without.includes(key) && value !== null);
    return rows.length ? [make('h3', {}, title), make('dl', {class: 'sheet'}, ...rows.map(([key, value]) =>
        make('div', {}, make('dt', {}, labelOf(key)), make('dd', {}, plain(value, key)))))] : [];
}

function buildEnvironment() {
    const info = readJson('info') ?? {}, measured = readJson('lengths')?.environment;
    byId('environment').append(...sheet('Model', info.model && {path: page.model, generation: `v${info.model.version}`, ...info.model}, ['context', 'name', 'version']),
        ...sheet(measured ? 'While measuring' : 'Machine', measured ?? info.topology, ['notes', 'command']),
        ...sheet('Instruction sets', Object.fromEntries((info.tiers ?? []).map((tier) => [tier.name, tier.available ? 'available' : tier.reason]))));
}

async function copyText(element, button) {
    try {
        await navigator.clipboard.writeText(element.textContent);
        button.textContent = 'Copied';
    } catch {
        getSelection().selectAllChildren(element);
        button.textContent = 'Selected';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

function buildCommands() {
    const section = byId('commands');
    section.append(make('p', {class: 'quiet'}, page.alone ? 'Each line makes a part of this page again.' : 'Each line makes its part of this folder again; commands.sh holds all of them.'));
    if (!page.live) section.append(make('p', {class: 'quiet'}, 'This page computes no sentences of yours. One that does: ./build.sh wasm, then deberta report --live.'));
    for (const step of page.steps) section.append(commandLine(step.command ?? '', step.title, step.failed));
    if (page.files.length) section.append(table(['file', 'holds', 'bytes'], page.files.map((file) => [file.name, make('span', {}, file.what, ' ', make('a', {href: file.name}, 'open')), file.bytes.toLocaleString('en')])));
}

function buildFigures() {
    const text = currentText(), name = text.data?.replace(/safetensors$/, 'png'), print = text.data?.replace(/safetensors$/, 'pdf');
    const has = page.files.some((file) => file.name === name), {layers, heads} = page.printed;
    byId('printed').hidden = !has;
    byId('printed').firstElementChild.textContent = `Figure for print: layer ${layers}, head ${heads}`;
    if (has) byId('figures').replaceChildren(make('p', {}, make('a', {href: print}, print), ', ', make('a', {href: name}, name), make('span', {class: 'quiet'},
        ` show layer ${layers}, head ${heads} of this text (report --layers, --heads). For the view on the screen: Save, or the command below it.`)),
        make('img', {src: name, alt: `The attention figure of this text, layer ${layers}, head ${heads}`, loading: 'lazy'}));
}
