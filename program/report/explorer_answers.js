/* Shows the model's answers: words for [MASK], classes, labels of tokens, replaced tokens; with all terms and, where
 * some are removed, without them, side by side.
 * SPDX-License-Identifier: MIT */

const MOST_ANSWERS = 6; // answers in the table; when compared, the most probable ones
const STEP_LETTERS = 14; // letters of an answer in a step of the way
const ANSWER_MS = 600; // time in which a bar moves from the old answer to the new one
const STILL = matchMedia('(prefers-reduced-motion: reduce)');

const candidateName = (token) => token.replace(/^▁/, '') || '␣';
const answersOf = (text) => text.answers ?? null;
const answerNow = (text) => state.removed ? answersOf(text)?.without?.[state.removed] : answersOf(text)?.full;
const layersNow = (text) => state.removed ? answersOf(text)?.layersWithout?.[state.removed] : answersOf(text)?.layers;

/* Returns the questions that a text can be asked: {title, command, more: its options, of(answer): [{id, name, value,
 * isScore}], the most probable first}. */
function questionsOf(text) {
    const full = answersOf(text)?.full, asked = [];
    if (!full) return asked;
    const ordinary = (t) => !text.special[t], byValue = (a, b) => b.value - a.value;
    (full.masks ?? []).forEach(({place}, k) => asked.push({title: full.masks.length > 1 ? `[MASK] at ${place}` : '[MASK]', command: 'fill-mask',
        of: ({masks}) => masks[k].tokens.map(({token, id, probability}) => ({id, name: candidateName(token), value: probability}))}));
    if (full.classes && !page.no_labels) asked.push({title: full.classes[0]?.score === undefined ? 'class' : 'score', command: 'classify',
        of: ({classes}) => classes.map(({label, id, probability, score}) => ({id, name: label, value: probability ?? score, isScore: probability === undefined}))});
    if (full.tags && !page.no_labels) asked.push({title: 'labels of tokens', command: 'tag', more: ' --grouping none',
        of: ({tags}) => tags.map(({label, probability}, t) => ({id: t, name: text.tokens[t], label, isOutside: label === 'O', value: probability})).filter(({id}) => ordinary(id))
            .sort((a, b) => a.isOutside - b.isOutside || byValue(a, b))});
    if (full.replaced) asked.push({title: 'replaced tokens', command: 'detect',
        of: ({replaced}) => replaced.map((value, t) => ({id: t, name: text.tokens[t], value})).filter(({id}) => ordinary(id)).sort(byValue)});
    return asked;
}

const currentQuestion = () => {
    const asked = questionsOf(currentText());
    return asked[Math.min(state.question, asked.length - 1)];
};

const answerValue = ({value, isScore, label}) => isScore ? formatNumber(value, 3) : `${label ? `${label} ` : ''}${inPercent(value)}`;
const answerName = ({name, label}) => label ? `${name}: ${label}` : name; // omitted where the number is shown alone

/* Returns [{id, name, before, now}], the most probable of `now` first. Only the first few of each run are known; the
 * others have an upper bound, the least of the known ones. */
function comparedAnswers(question, text) {
    const before = question.of(answersOf(text).full), now = answerNow(text) && question.of(answerNow(text));
    if (!state.removed || !now) return before.slice(0, MOST_ANSWERS).map((item) => ({...item, before: item, now: state.removed ? null : item}));
    const find = (list, {id}) => list.find((item) => item.id === id), seen = [...now.slice(0, MOST_ANSWERS - 1), ...before.slice(0, 2)].filter((item, k, all) => all.findIndex(({id}) => id === item.id) === k);
    return seen.slice(0, MOST_ANSWERS).map((item) => ({...item, before: find(before, item), now: find(now, item), least: {before: before.at(-1), now: now.at(-1)}}));
}

const shownAnswers = new Map(); // width that each bar had
const answerWidth = (item) => item ? Math.max(0, Math.min(100, 100 * (item.isScore ? 0 : item.value))) : 0;

/* Draws a bar that starts at its old width, to show the effect of a term; without motion if the reader prefers
 * none. */
function answerBar(key, width, kind) {
    const bar = make('i', {class: kind, style: `width:${width}%`}), was = shownAnswers.get(key);
    shownAnswers.set(key, width);
    if (was !== undefined && was !== width && !STILL.matches) bar.animate({width: [`${was}%`, `${width}%`]}, {duration: ANSWER_MS, easing: 'ease-out'});
    return bar;
}

/* Returns a number that its column has room for; the whole one is its title. */
const isTiny = ({value, isScore, label}) => !isScore && !label && value < 1e-4;
const upperBound = (item) => isTiny(item) ? '< 0.01 %' : `< ${answerValue(item)}`;

function answerRow(question, {id, name, before, now, least}) {
    const cell = (item, side) => make('td', {title: item && isTiny(item) && answerValue(item)},
        item ? isTiny(item) ? upperBound(item) : answerValue(item) : least ? upperBound(least[side]) : '…');
    const compared = state.removed !== '';
    return make('tr', {'data-answer': id}, make('th', {scope: 'row'}, make('b', {dir: 'auto', title: name}, name)),
        make('td', {class: 'bars'}, answerBar(`${state.text} ${question.title} ${id}`, answerWidth(compared ? now : before), 'now'), ...compared ? [make('i', {class: 'was', style: `width:${answerWidth(before)}%`})] : []),
        cell(before, 'before'), ...compared ? [cell(now, 'now')] : []);
}

/* Returns the command line; empty if the page does not know how its text was given. */
function answerCommand(question) {
    const text = currentText();
    if (!text.words) return '';
    const [input, rest] = textOptions(state.text);
    return `deberta ${question.command}${input}${question.more ?? ''}${rest}${state.removed ? ` --ablate ${state.removed}` : ''}`;
}

const removedInWords = () => state.removed.replaceAll(',', ', ');

/* Puts the answer into a sentence, also for screen readers. */
function wordsOfAnswer(question, text) {
    const [first] = question.of(answersOf(text).full), now = answerNow(text) && question.of(answerNow(text));
    if (!state.removed || !now || !first) return '';
    const same = now.find(({id}) => id === first.id), ahead = now[0];
    return ahead.id === first.id ? `“${first.name}” stays first: ${answerValue(ahead)} instead of ${answerValue(first)}.`
        : `“${ahead.name}” is first with ${answerValue(ahead)}; “${first.name}” had ${answerValue(first)} and has ${same ? answerValue(same) : `less than ${answerValue(now.at(-1))}`}.`;
}

function drawAnswers() {
    const text = currentText(), asked = questionsOf(text), question = currentQuestion();
    byId('answer-pane').hidden = !question && !page.no_labels;
    byId('question').hidden = byId('answers').hidden = !question;
    if (!question) {
        byId('answer-note').textContent = page.no_labels ? `There is no label here: ${page.no_labels}.` : '';
        return;
    }
    fillChoice('question', asked.map(({title}) => title));
    byId('question').value = Math.min(state.question, asked.length - 1);
    byId('question').hidden = asked.length < 2;
    byId('answer-what').textContent = asked.length < 2 ? question.title : '';
    const without = state.removed ? [make('th', {scope: 'col', title: [givenOut, removedInWords()].filter(Boolean).join(', ')}, 'without')] : [];
    byId('answers').classList.toggle('labelled', question.command === 'tag');
    byId('answers').replaceChildren(make('caption', {class: 'hidden'}, `${question.title}: what the model answers`),
        make('thead', {}, make('tr', {}, make('td'), make('td', {class: 'bars'}), make('th', {scope: 'col', title: givenOut && `without ${givenOut}`}, givenOut ? 'ablated' : 'all terms'), ...without)),
        make('tbody', {}, ...comparedAnswers(question, text).map((item) => answerRow(question, item))));
    const waits = state.removed && !answerNow(text), command = answerCommand(question);
    byId('answer-note').textContent = !waits ? wordsOfAnswer(question, text) : page.live ? 'Computing …' : 'This page does not hold the answer without these terms; the program has it:';
    byId('answer-command').replaceChildren(...waits && !page.live && command ? [commandLine(command, 'the answer without these terms')] : []);
}

/* ---------------------------------------------------------------------------------------------------------- the way */

/* Returns a name short enough for a step, and its share. */
function stepAnswer(item) {
    if (!item) return [];
    const letters = graphemes(answerName(item)), name = letters.length > STEP_LETTERS ? `${letters.slice(0, STEP_LETTERS - 1).join('')}…` : answerName(item);
    return [make('b', {dir: 'auto'}, /[\p{L}\p{N}]/u.test(name) ? name : `“${name}”`), ` ${item.isScore ? formatNumber(item.value, 2) : `${formatNumber(100 * item.value, 2)} %`}`];
}

/* Returns the terms removed from a layer's heads, from all or some of them. */
const removedOf = (layer) => TERMS.filter((c) => currentText().heads[layer].some((_, head) => isRemoved(c, layer, head))).map((c) => COMPONENTS[c].name);

const firstRemovedLayer = () => {
    const layers = currentText().heads.map((_, layer) => layer).filter((layer) => removedOf(layer).length);
    return layers.length ? layers[0] : Infinity;
};

/* Makes a step of the way: tokens, embeddings, layers, head, answer. changed: a term is removed at this step or below
 * it; only then an arrow moves. */
function wayStep(kind, name, said, {changed = false, layer = null, share = 0, title = null, order = 0} = {}) {
    const inside = [make('span', {}, name), make('small', {}, ...said)];
    const body = layer === null ? make('div', {title}, ...inside) : make('button', {type: 'button', 'data-layer': layer, title}, ...inside);
    body.style.setProperty('--share', `${100 * share}%`);
    const step = make('li', {class: [kind, changed ? 'changed' : ''].join(' ').trim()}, body);
    step.style.setProperty('--order', order);
    return step;
}

let removedOnWay = '';

function drawWay() {
    const text = currentText(), question = currentQuestion(), lens = question ? layersNow(text) ?? answersOf(text)?.layers : null, from = firstRemovedLayer();
    const isOld = state.removed && lens && !layersNow(text);
    const said = (k) => lens && lens[k] ? question.of(lens[k])[0] : null, share = (item) => item && !item.isScore ? Math.max(0, Math.min(1, item.value)) : 0;
    const reading = (item, where) => item ? `logit lens: to the states ${where} the head would answer “${item.name}”, ${answerValue(item)}` : null;
    const steps = [wayStep('tokens-step', 'tokens', [String(text.n)]),
        wayStep('embeddings-step', 'embeddings', stepAnswer(said(0)), {share: share(said(0)), title: reading(said(0), 'before the first layer')})];
    text.heads.forEach((_, layer) => {
        const item = said(layer + 1), out = removedOf(layer), stale = isOld && layer >= from;
        steps.push(wayStep(out.length ? 'out' : '', `layer ${layer}${out.length ? ` −${out.join(' −')}` : ''}`, stale ? ['changed'] : stepAnswer(item),
            {layer, share: stale ? 0 : share(item), changed: layer > from, order: layer - from, title: stale ? null : reading(item, `after layer ${layer}`)}));
    });
    if (question) {
        const before = question.of(answersOf(text).full)[0], now = state.removed ? answerNow(text) && question.of(answerNow(text))[0] : before, changed = state.removed !== '';
        const order = text.heads.length - from;
        steps.push(wayStep('head-step', question.command === 'fill-mask' && answersOf(text).full.decoder === 'emd' ? 'decoder' : 'head', [], {changed, order}));
        steps.push(wayStep('answer-step', now && changed && before.id !== now.id ? `answer, was ${before.name}` : 'answer', now ? stepAnswer(now) : ['…'], {share: share(now), changed, order: order + 1}));
    }
    byId('way').classList.toggle('flow', state.removed !== removedOnWay); // motion only for a term that was just removed or restored
    removedOnWay = state.removed;
    byId('way').replaceChildren(...steps);
    byId('lens-note').hidden = !lens;
    byId('lens-ask').hidden = !question || Boolean(layersNow(text)) || !page.live || live.running !== null;
    markWay();
}

/* Marks the current step; Tab reaches it alone, and arrow keys go on from there. */
function markWay() {
    for (const button of byId('way').querySelectorAll('button')) {
        const isChosen = Number(button.dataset.layer) === state.layer;
        button.setAttribute('aria-pressed', isChosen);
        button.tabIndex = isChosen ? 0 : -1;
        if (isChosen) showAlong(byId('way'), button);
    }
}

/* Scrolls the strip alone, never the page. */
function showAlong(strip, element) {
    const left = element.getBoundingClientRect().left - strip.getBoundingClientRect().left + strip.scrollLeft;
    const room = strip.clientWidth - (strip.querySelector('.answer-step')?.offsetWidth ?? 0); // the answer stays in sight
    if (left < strip.scrollLeft || left + element.offsetWidth > strip.scrollLeft + room) strip.scrollLeft = left - (room - element.offsetWidth) / 2;
}

function bindAnswers() {
    const way = byId('way'), layerOf = (event) => event.target.closest('button')?.dataset.layer;
    byId('question').addEventListener('change', ({target}) => change({question: Number(target.value)}));
    byId('lens-ask').addEventListener('click', askForLayers);
    way.addEventListener('click', (event) => layerOf(event) !== undefined && change({layer: Number(layerOf(event))}));
    way.addEventListener('keydown', (event) => {
        const by = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
        if (!by || layerOf(event) === undefined) return;
        const layer = clamp(Number(layerOf(event)) + by, currentText().heads.length);
        change({layer});
        way.querySelector(`[data-layer="${layer}"]`).focus();
        event.preventDefault();
    });
}
