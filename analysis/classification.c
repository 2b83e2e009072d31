/* Computes the scores of a classifier from its table of right and given answers. SPDX-License-Identifier: MIT */
#include "analysis/classification.h"

#include <math.h>

void confusion_add(confusion *c, size_t right, size_t answered) { c->counts[right * c->labels + answered]++; }

size_t confusion_at(const confusion *c, size_t right, size_t answered)
{
    return c->counts[right * c->labels + answered];
}

static double part_of(double part, double whole) { return whole > 0 ? part / whole : NAN; }

class_score confusion_class(const confusion *c, size_t label)
{
    class_score score = {.hits = confusion_at(c, label, label)};
    for (size_t other = 0; other < c->labels; other++) {
        score.texts += confusion_at(c, label, other);
        score.answers += confusion_at(c, other, label);
    }
    score.precision = part_of((double)score.hits, (double)score.answers);
    score.recall = part_of((double)score.hits, (double)score.texts);
    score.f1 = part_of(2 * (double)score.hits, (double)(score.texts + score.answers));
    return score;
}

accuracy_score accuracy_of(size_t hits, size_t texts)
{
    accuracy_score score = {.texts = texts, .hits = hits};
    if (!texts) return score;
    const double z = 1.959963984540054, n = (double)texts, p = (double)hits / n;
    const double middle = (p + z * z / (2 * n)) / (1 + z * z / n),
                 half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
    score.accuracy = p;
    score.low = middle - half;
    score.high = middle + half;
    return score;
}

classification_score confusion_score(const confusion *c)
{
    classification_score score = {0};
    size_t most = 0, occurring = 0;
    for (size_t label = 0; label < c->labels; label++) {
        const class_score one = confusion_class(c, label);
        score.texts += one.texts;
        score.hits += one.hits;
        if (one.texts > most) most = one.texts;
        if (isnan(one.f1)) continue;
        score.macro_f1 += one.f1;
        occurring++;
    }
    if (!score.texts) return score;
    const accuracy_score accuracy = accuracy_of(score.hits, score.texts);
    score.accuracy = accuracy.accuracy;
    score.low = accuracy.low;
    score.high = accuracy.high;
    score.majority = (double)most / (double)score.texts;
    score.macro_f1 = score.macro_f1 / (double)occurring;
    return score;
}

size_t logits_largest(const float *logits, size_t width)
{
    size_t largest = 0;
    for (size_t v = 1; v < width; v++)
        if (logits[v] > logits[largest]) largest = v;
    return largest;
}
