/* The questions to the engine in a call, in Slurm's bitmaps. */
#ifndef TOPOLANE_CHOICES_H
#define TOPOLANE_CHOICES_H

#include "driver.h"

/* The outcome of a question. */
typedef enum { CHOSEN, NO_PLACE, ENGINE_FAILED, ENGINE_SLOW } Answer;

/* The question: where among the candidates may a job be placed? */
typedef struct {
    uint32_t job;
    Terms terms;
    topolane_policy *policy; /* NULL for stock */
    bitstr_t *candidates;
    topolane_state *state;   /* with the jobs of the hypothesis */
    bool shares_nodes;       /* whether it takes parts of nodes */
    uint32_t segment;        /* nodes of each part that the policy keeps together (--segment); 0 for none */
} Question;

/* The engine's choice. Free it with choices_free. */
typedef struct {
    bitstr_t *nodes;
    topolane_decision *decision;
} Choice;

/* Whether the engine rests because a call took too long. */
bool choices_rest(void);

Answer choices_place(const Question *question, uint32_t nodes, Choice *choice);

void choices_free(Choice *choice);

/* The kind of the last refusal: see topolane_state_refused. */
const char *choices_refused(const Question *question);

/* Areas within which the stock evaluation may choose freely: see topolane_state_areas. */
Answer choices_areas(const Question *question, uint32_t nodes, uint32_t link_use, topolane_areas **areas);

/* The nodes of an area as a bitmap, which the caller frees. */
bitstr_t *choices_area(const topolane_areas *areas, size_t index);

#endif
