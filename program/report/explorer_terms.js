/* Removes terms from the softmax: computes logits and probabilities of a head again from the terms that the page
 * holds. The effect on the layers above is known only to a page that computes (explorer_live.js), or to `--ablate` of
 * the program.
 * SPDX-License-Identifier: MIT */

const removedTerms = new Set(); // "c2p@layer:head"
const removalName = (c, layer, head) => `${COMPONENTS[c].key}@${layer}:${head}`;
const isRemoved = (c, layer, head) => removedTerms.has(removalName(c, layer, head));
const modelHeads = () => page.texts[0].heads.flatMap((row, layer) => row.map((_, head) => [layer, head])); // the same list for all texts

/* Returns the run of the whole model without the terms, if it was computed here. */
const ablatedRun = (t) => state.removed && page.texts[t].ablated?.removed === state.removed ? page.texts[t].ablated : null;

/* Returns true if a softmax can be computed; pooled cells have none of their own. */
const canRecompute = (text) => text.pool === 1;
/* Returns true if the cells show what is left without the removed terms. */
const showsRemoval = (text) => canRecompute(text) || text.ablated?.removed === state.removed;
const removalMask = (t, layer, head) =>
    showsRemoval(page.texts[t]) && removedTerms.size ? TERMS.reduce((bits, c) => bits | isRemoved(c, layer, head) << c, 0) : 0;

/* Terms that the report itself left out, "c2p@0,p2c=mean@1:2", in words and as the heads that lack them. */
const givenOut = page.ablated?.replaceAll(',', ', ') ?? '';
const outFromTheStart = new Set();
const isOut = (c, layer, head) => isRemoved(c, layer, head) || outFromTheStart.has(removalName(c, layer, head));

/* Returns the heads that the boxes apply to. */
const headsInScope = (scope) => modelHeads().filter(([layer, head]) => scope === 'all' || (layer === state.layer && (scope === 'layer' || head === state.head)));

function keepTerm(c, kept, scope) {
    for (const [layer, head] of headsInScope(scope)) removedTerms[kept ? 'delete' : 'add'](removalName(c, layer, head));
    change({removed: formatRemoved()});
}

function keepAllTerms() {
    removedTerms.clear();
    change({removed: ''});
}

/* Writes the removed terms as --ablate does: c2p@all, c2p@2 for a layer, c2p@2:1 for a head. */
function formatRemoved() {
    const all = modelHeads(), parts = [];
    for (const c of TERMS) {
        const name = COMPONENTS[c].key, out = all.filter(([layer, head]) => isRemoved(c, layer, head));
        if (out.length === all.length) parts.push(`${name}@all`);
        else for (const layer of new Set(out.map(([l]) => l))) {
            const heads = out.filter(([l]) => l === layer);
            parts.push(...heads.length === page.texts[0].heads[layer].length ? [`${name}@${layer}`] : heads.map(([l, h]) => `${name}@${l}:${h}`));
        }
    }
    return parts.join(',');
}

/* Adds the terms of a list to a set; whatever does not fit this model is left out. */
function readTerms(list, terms) {
    for (const part of list.split(',')) {
        const [, name, place] = /^(c2c|c2p|p2c)(?:=zero|=mean)?@(all|\d+(?::\d+)?)$/.exec(part) ?? [], c = COMPONENTS.findIndex(({key}) => key === name);
        if (c < 0 || !page.texts[0].has[c]) continue;
        for (const [layer, head] of modelHeads())
            if (place === 'all' || place === String(layer) || place === `${layer}:${head}`) terms.add(removalName(c, layer, head));
    }
}

function readRemoved(list) {
    readTerms(list, removedTerms);
    state.removed = formatRemoved();
}

/* Returns the cells of a head without its removed terms. */
function headAsShown(t, layer, number) {
    const head = headCells(t, layer, number), mask = removalMask(t, layer, number), run = ablatedRun(t);
    if (run) return withTermsOf(head, headCells(t, layer, number, run), mask);
    if (!mask) return head;
    head.without ??= [];
    return head.without[mask] ??= recompute(page.texts[t], head, termsOf(page.texts[t]).filter((c) => !(mask >> c & 1)));
}

/* A removed term is 0 in the model; its former value is shown struck through. */
function withTermsOf(head, ablated, mask) {
    for (const c of TERMS) {
        if (!(mask >> c & 1) || ablated.values[c] === head.values[c]) continue;
        [ablated.values[c], ablated.means[c]] = [head.values[c], head.means[c]];
        ablated.shown.clear();
    }
    return ablated;
}

function recompute(text, head, kept) {
    const m = text.cells, values = [...head.values], means = [...head.means];
    values[SUM] = addTerms(kept, head.values, m * m);
    means[SUM] = addTerms(kept, head.means, m);
    values[PROBS] = softmaxRows(values[SUM], m);
    return {means, values, low: [], high: [], shown: new Map()};
}

function softmaxRows(logits, m) {
    const probabilities = new Float32Array(m * m);
    for (let i = 0; i < m; i++) {
        const row = logits.subarray(i * m, i * m + m), most = Math.max(...row), powers = Array.from(row, (x) => Math.exp(x - most));
        const sum = powers.reduce((a, b) => a + b, 0);
        for (let j = 0; j < m; j++) probabilities[i * m + j] = powers[j] / sum;
    }
    return probabilities;
}

/* Returns the program's numbers of a head; entropy and distance are computed again if a term is removed. */
function headNumbers(t, layer, number) {
    const text = page.texts[t], about = text.heads[layer][number], run = ablatedRun(t);
    if (run) return run.heads[layer][number];
    if (!removalMask(t, layer, number)) return about;
    const m = text.cells, probabilities = headAsShown(t, layer, number).values[PROBS];
    let entropy = 0, distance = 0;
    probabilities.forEach((p, k) => {
        entropy -= p > 0 ? p * Math.log2(p) / m : 0;
        distance += p * Math.abs(Math.floor(k / m) - k % m) / m;
    });
    return {...about, entropy, distance};
}

/* ---------------------------------------------------------------------------------------------------------- scales */

/* Returns the magnitude at the end of the colour scale: signed matrices share one, so that they can be compared. */
function headLimit(t, layer, number, component, centred) {
    const text = page.texts[t], about = text.heads[layer][number];
    const ofModel = component === PROBS ? about.scale[PROBS] : centred ? about.centred : about.plain;
    if (!removalMask(t, layer, number) && !ablatedRun(t)) return ofModel;
    return shownValues(text, headAsShown(t, layer, number), component === PROBS ? PROBS : SUM, centred)
        .reduce((most, value) => Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most, ofModel);
}

const textLimits = {of: '', value: 1}; // limit of the last view

function scaleLimit(t, layer, number, component, centred, ofText) {
    if (!ofText) return headLimit(t, layer, number, component, centred) || 1;
    const view = [t, component === PROBS, centred, state.removed, state.run].join();
    if (textLimits.of !== view)
        Object.assign(textLimits, {of: view, value: Math.max(...modelHeads().map(([l, h]) => headLimit(t, l, h, component, centred))) || 1});
    return textLimits.value;
}
