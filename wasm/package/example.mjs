// What stands for [MASK], and how much a head's position terms change it: node example.mjs [FOLDER OF A MODEL]
import {Model} from './deberta.mjs';

const model = await Model.open(process.argv[2] ?? 'models/demo');
const {about} = model;
console.log(`DeBERTa v${about.version}, ${about.layers} layers, ${about.parameters} parameters, tier ${about.tier}`);

const text = 'the captain [MASK] the ship';
const {tokens, columns, hidden, sha256} = model.encode(text);
console.log(tokens.join(' '));
console.log(`${hidden.length / columns} x ${columns} hidden states, SHA-256 ${sha256}`);

for (const {place, tokens: best} of about.has_mlm ? model.candidates(3) : [])
    console.log(`token ${place}: ${best.map(({token, probability}) => `${token} ${probability.toFixed(3)}`).join(', ')}`);

const without = model.encode(text, {ablations: 'c2p@all'});
const largest = hidden.reduce((most, value, k) => Math.max(most, Math.abs(value - without.hidden[k])), 0);
console.log(`without content-to-position terms hidden states change by up to ${largest.toFixed(3)}`);
model.close();
