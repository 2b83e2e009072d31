/* Writes the sentence on top, five steps from it through the model, and heads with a plain habit, all for the current
 * text.
 * SPDX-License-Identifier: MIT */

/* Returns a name of a cell for a sentence: its token or, of a longer text, the first and the last of its block. */
const inWords = (text, cell) => make('b', {dir: 'auto'}, cellTokens(text, cell).label.replace(/(^|… )▁/g, '$1') || '␣');
const oneOf = (text, cell) => [...cellTokens(text, cell).first === cellTokens(text, cell).last ? [] : ['a token of '], inWords(text, cell)];
/* Returns the attention that single tokens pay. The cells of a longer text are means, which are shares of no token:
 * the greatest of each cell is one. */
const sharesOf = (text, head) => text.pool > 1 ? head.high[PROBS] : head.values[PROBS];
const inPercent = (share) => `${formatNumber(100 * share, 2)} %`;

const isOrdinary = (text, cell) => !text.special[cell * text.pool];

const rowOf = (text, values, query) => values.subarray(query * text.cells, (query + 1) * text.cells);

/* Returns the key that a query attends to most, including [CLS]: a sentence that left it out would contradict the
 * matrix. */
function strongestKey(text, values, query) {
    const row = rowOf(text, values, query);
    return row.reduce((best, value, j) => value > row[best] ? j : best, 0);
}

/* Returns the pair that the sentences describe: the chosen cell, else the chosen token and its strongest key. */
function pairInWords() {
    const text = currentText(), probabilities = sharesOf(text, headCells(state.text, state.layer, state.head));
    if (state.pinned?.[2] === 0) return state.pinned;
    const query = cellOfToken(state.token ?? telling(text, probabilities));
    return [query, strongestKey(text, probabilities, query)];
}

/* Returns the ordinary token with the largest share. */
function queryWithMost(text, share) {
    let best = 0, most = -1;
    for (let i = 0; i < text.cells; i++) {
        const p = isOrdinary(text, i) ? share(i) : -1;
        if (p > most) [best, most] = [i, p];
    }
    return best * text.pool;
}

/* Returns the ordinary token that attends most strongly to another one. */
const telling = (text, probabilities) => queryWithMost(text, (i) =>
    rowOf(text, probabilities, i).reduce((most, p, j) => j !== i && isOrdinary(text, j) ? Math.max(most, p) : most, -1));

function whereInWords(text, i, j) {
    const r = (i - j) * text.pool, far = Math.abs(r), most = text.pool - 1;
    if (r === 0) return most ? 'one of the same block' : 'itself';
    return far === 1 ? `the token ${r > 0 ? 'before' : 'after'} it` : `${most ? `${far - most} to ${far + most}` : far} tokens to its ${r > 0 ? 'left' : 'right'}`;
}

/* Chooses the view of a new page: the head whose tokens attend most strongly to single other tokens, and one of
 * these. */
function openOnAnswer() {
    const text = currentText(), habit = ([layer, head]) => text.heads[layer][head].habits.word ?? -1;
    [state.layer, state.head] = modelHeads().reduce((best, place) => habit(place) > habit(best) ? place : best);
    state.token = telling(text, sharesOf(text, headCells(state.text, state.layer, state.head)));
}

/* ----------------------------------------------------------------------------------------------------------- steps */

const sumOver = (text, kept, place) => recompute(text, headCells(...place), kept).values[PROBS];

const WORDS_OF_VIEW = {
    matrix: ({pool}) => pool > 1 ? `Each row is a block of ${pool} tokens that ask; each column is one that they can look at: the darker, the more on average. `
        : 'Each row is a token, a word or a piece of one, that asks; each column is one that it can look at: the darker, the more. ',
    lines: ({pool}) => pool > 1 ? `Each line leads from a block of ${pool} tokens that ask, on the left, to one that they look at: the stronger, the more on average. `
        : 'Each line leads from a token that asks, on the left, to one that it looks at: the stronger, the more. ',
    heads: () => 'Each square is a head, each row of squares a layer; a click chooses a head, a second one shows it alone. ',
};

function wordsOfOpening(text, [i, j]) {
    const p = sharesOf(text, currentHead())[i * text.cells + j];
    return [WORDS_OF_VIEW[state.view](text),
        `In layer ${state.layer}, head ${state.head}${givenOut && `, of the model without ${givenOut}`}, `, ...oneOf(text, i), ' looks at ', ...i === j ? [] : [...oneOf(text, j), ', '],
        `${whereInWords(text, i, j)}, with ${inPercent(p)} of its attention.`];
}

function wordsOfTerms(text, [i, j]) {
    const head = headCells(state.text, state.layer, state.head), value = (c) => {
        const number = head.values[c][i * text.cells + j];
        return (number < 0 ? '−' : '+') + Math.abs(number).toFixed(smallestStep(text, text.heads[state.layer][state.head], c) > .02 ? 1 : 2);
    };
    const said = {[C2C]: () => [`c2c ${value(C2C)}, what both tokens are, wherever they stand`],
        [C2P]: () => [`; c2p ${value(C2P)}, what `, inWords(text, i), ' looks for at this distance, whatever stands there'],
        [P2C]: () => [`; p2c ${value(P2C)}, what `, inWords(text, j), ' offers at this distance, whoever asks']};
    return ['A softmax makes these shares of scores, the logits. A logit is a sum; ', text.pool > 1 ? `means over ${text.pool} × ${text.pool} pairs, ` : '', 'for ', inWords(text, i), ' and ', inWords(text, j), ': ',
        ...termsOf(text).flatMap((c) => said[c]()), '. All are less their row means, which a softmax ignores.'];
}

const hasPositionsAtInput = () => readJson('info')?.model?.position_biased_input ?? live.opened?.model.position_biased_input ?? false;

const positionTerms = (text) => termsOf(text).filter((c) => c !== C2C).map((c) => COMPONENTS[c].name);

function wordsOfOrder(text, [i]) {
    const about = text.heads[state.layer][state.head], share = about.share[C2P] + about.share[P2C];
    const names = positionTerms(text), them = names.length > 1 ? 'them' : 'it';
    if (!names.length) return ['This model has neither c2p nor p2c: whatever it knows of order comes from positions at its input.'];
    const opening = hasPositionsAtInput() ? 'Positions are added to the tokens at the input. Here order enters through the distance i − j, in '
        : 'No position is added to a token: order enters through the distance i − j alone, in ';
    const said = [opening, listOf(names, 'and'), names.length > 1 ? '. They make up ' : '. It makes up ',
        Number.isFinite(share) ? inPercent(share) : 'an unknown part', ' of what varies in the logits of this head. '];
    if (!canRecompute(text)) return said;
    const without = sumOver(text, [C2C], [state.text, state.layer, state.head]), key = strongestKey(text, without, i);
    return [...said, `Without ${them} `, inWords(text, i), ' would look most at ', inWords(text, key), `, with ${inPercent(without[i * text.cells + key])}, wherever it stood.`];
}

function wordsOfReach(text) {
    const field = readJson('receptive-field'), about = headNumbers(state.text, state.layer, state.head);
    const said = [`This head looks ${formatNumber(about.distance, 2)} tokens away on average; the map of heads shows this number for all. `];
    if (!positionTerms(text).length) return [...said, 'No term of this model depends on the distance: no limit of a table bears on what a layer tells apart.'];
    if (!field) return [...said, 'It can look at any token. But only near distances have a row of the relative table each; farther ones share rows, and a layer cannot tell them apart.'];
    const near = field.contiguous_unique, last = field.per_layer[field.per_layer.length - 1];
    return [...said, `It can look at any token, but tells only ${near.left} distances to the left and ${near.right} to the right from all others, its receptive field: farther ones share rows of the relative table. `,
        `${last.layers} layers, one after the other, tell ${last.run} distances apart.`];
}

/* Returns the term whose removal changes this pair most. */
function decisiveTerm() {
    const text = currentText(), [i, j] = pairInWords(), place = [state.text, state.layer, state.head], k = i * text.cells + j;
    if (!canRecompute(text)) return null;
    const left = (c) => sumOver(text, termsOf(text).filter((other) => other !== c), place)[k], full = headCells(...place).values[PROBS][k];
    return termsOf(text).reduce((best, c) => Math.abs(left(c) - full) > Math.abs(left(best) - full) ? c : best);
}

const termNames = (text, word) => listOf(termsOf(text).map((c) => COMPONENTS[c].name), word);

function wordsOfAblation(text, [i, j]) {
    if (!showsRemoval(text)) return ['The cells of this text are means of many values. Of a shorter one the page can take out a term and compute the softmax again.'];
    const k = i * text.cells + j, full = sharesOf(text, headCells(state.text, state.layer, state.head))[k], now = sharesOf(text, currentHead())[k];
    const out = TERMS.filter((c) => removalMask(state.text, state.layer, state.head) >> c & 1).map((c) => COMPONENTS[c].name);
    if (!out.length) return [`An ablation takes a term out and computes again: untick ${termNames(text, 'or')} under “In the softmax”, and watch `, inWords(text, i), ' and ', inWords(text, j), '.'];
    return [`An ablation takes a term out and computes again. Without ${out.join(' and ')} in this head `, ...oneOf(text, i), ' looks at ', ...oneOf(text, j), ` with ${inPercent(now)} instead of ${inPercent(full)}. `,
        now < full / 2 ? 'So this head needs it for that. ' : now < full ? 'So it helps, and is not all. ' : 'So it does not help here. ', `Tick and untick ${termNames(text, 'and')} under “In the softmax”.`];
}

function wordsOfBits() {
    const verify = readJson('verify'), tiers = (readJson('info')?.tiers ?? []).filter((tier) => tier.available).map((tier) => tier.name);
    const {sha256, digest} = currentText(), isSame = sha256 && digest === sha256;
    return ['Whoever computes these numbers again gets them to the last bit: every sum has one order and one rounding a step, on every processor and with any number of threads. ',
        isSame ? 'Your browser just did: it found the SHA-256 of the program. ' : '', verify ? `On the machine of this page ${tiers.join(', ')} were compared: ${verify.checks} checks, ${verify.failed ?? 0} failed.` : `The machine of this page has ${tiers.join(', ')}; deberta verify compares them.`];
}

const strongerPosition = (text) => {
    const {share} = text.heads[state.layer][state.head];
    return !text.has[P2C] || (text.has[C2P] && share[C2P] >= share[P2C]) ? C2P : P2C;
};

const GUIDE = [
    {name: 'Attention', words: wordsOfOpening, view: () => ({component: PROBS})},
    {name: 'Terms', words: wordsOfTerms, view: () => ({component: SUM, centre: true, pinned: [...pairInWords().slice(0, 2), 0]})},
    {name: 'Order', words: wordsOfOrder, view: (text) => ({component: hasComponent(text, strongerPosition(text)) ? strongerPosition(text) : SUM, centre: true})},
    {name: 'Reach', words: wordsOfReach, view: () => ({component: PROBS, map: 'distance'})},
    {name: 'Take out', words: wordsOfAblation, view: () => ({component: PROBS}), enter: () => {
        const term = state.removed ? null : decisiveTerm();
        if (term !== null) removedTerms.add(removalName(term, state.layer, state.head));
    }},
    {name: 'Same bits', words: wordsOfBits, view: () => ({component: PROBS})},
];

const TERMS_STEP = GUIDE.findIndex(({words}) => words === wordsOfTerms);

/* Changes by a step that are undone when it is left: the terms it removed and, where the numbers of a pair cover the
 * matrix, its pair. */
let removedByGuide = '', pinnedByGuide = null;
const isOneColumn = () => matchMedia('(max-width: 45.99rem)').matches;

function chooseStep(number) {
    const step = GUIDE[number], text = currentText();
    if (pinnedByGuide && state.pinned === pinnedByGuide && isOneColumn()) change({token: state.pinned[0] * text.pool, pinned: null});
    if (removedByGuide && state.removed === removedByGuide) removedTerms.clear();
    if (state.map === 'distance') byId('heads-show').value = 'picture';
    const before = [...removedTerms].length;
    step.enter?.();
    const removed = formatRemoved();
    removedByGuide = removedTerms.size > before ? removed : '';
    change({step: number, removed, view: 'matrix', map: 'picture', ...step.view(text)});
    if (number === TERMS_STEP) pinnedByGuide = state.pinned;
    byId('heads-show').value = state.map;
}

function drawGuide() {
    const text = currentText(), step = GUIDE[state.step];
    byId('guide-words').replaceChildren(...step.words(text, pairInWords()));
    [...byId('guide-steps').children].forEach((button, k) => button.setAttribute('aria-pressed', k === state.step));
}

function buildGuide() {
    byId('guide-steps').replaceChildren(...GUIDE.map(({name}, k) => {
        const button = make('button', {type: 'button', id: `step-${k}`}, make('b', {}, k ? String(k) : '↺'), make('span', {}, ` ${name}`));
        button.addEventListener('click', () => chooseStep(k));
        return button;
    }));
}

/* ---------------------------------------------------------------------------------------------------------- habits */

/* The cell of the key: a block holds most of its tokens' neighbours itself. */
const HABITS = {left: ['the token before', (i, {pool}) => pool > 1 ? i : i - 1], right: ['the token after', (i, {pool}) => pool > 1 ? i : i + 1], itself: ['themselves', (i) => i],
    first: ['the first token', () => 0], last: ['the last token', (i, {cells}) => cells - 1]};

/* Lists for each plain habit the head that has it most, with its mean share; a click chooses the token that shows it
 * best. */
function drawHabits() {
    const text = currentText();
    byId('habits').replaceChildren('Heads that look at', ...Object.entries(HABITS).map(([key, [words, keyOf]]) => {
        const [layer, head] = modelHeads().reduce((best, place) => text.heads[place[0]][place[1]].habits[key] > text.heads[best[0]][best[1]].habits[key] ? place : best);
        const share = text.heads[layer][head].habits[key];
        const button = make('button', {type: 'button', 'data-habit': key, title: `layer ${layer}, head ${head}: ${inPercent(share ?? 0)} of its attention`}, `${words}, ${inPercent(share ?? 0)}`);
        const shareOf = (values) => (i) => values[i * text.cells + keyOf(i, text)] ?? -1;
        button.addEventListener('click', () => change({layer, head, component: PROBS, pinned: null,
            token: queryWithMost(text, shareOf(sharesOf(text, headCells(state.text, layer, head))))}));
        return button;
    }));
}
