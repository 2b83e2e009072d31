/* Candidates for [MASK]: with all terms and, where some are taken out, without them. SPDX-License-Identifier: MIT */

const candidateName = (token) => token.replace(/^▁/, '') || '␣';

function candidateRow(title, {tokens}, before) {
    return make('tr', {}, make('th', {scope: 'row'}, title), ...tokens.map(({token, id, probability}) => {
        const was = before?.tokens.find((other) => other.id === id)?.probability;
        return make('td', {class: 'candidate', title: was === undefined ? null : `with all terms ${inPercent(was)}`},
            make('b', {dir: 'auto'}, candidateName(token)), ` ${inPercent(probability)}`,
            make('svg:svg', {viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
                make('svg:rect', {width: 100 * probability, height: 4, fill: 'currentColor'})));
    }));
}

function drawAnswers() {
    const text = currentText(), run = ablatedRun(state.text), masks = text.masks ?? [];
    byId('answers').hidden = !masks.length;
    byId('answers').replaceChildren(...masks.map((mask, k) => make('table', {},
        make('caption', {class: 'hidden'}, `Candidates for the mask at token ${mask.place}`),
        make('tbody', {}, candidateRow(`[MASK]${masks.length > 1 ? ` ${mask.place}` : ''}${run ? ', all terms' : ''}`, mask),
            ...run?.masks[k] ? [candidateRow(`without ${state.removed.replaceAll(',', ', ')}`, run.masks[k], mask)] : []))));
}
