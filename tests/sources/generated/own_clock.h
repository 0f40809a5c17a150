/* What a generated program knows of itself: each unit of its work, each wait and each phase, by its own clock. */
#ifndef OWN_CLOCK_H
#define OWN_CLOCK_H
#ifdef __cplusplus
extern "C" {
#endif
/* Works for so many milliseconds at a place: asleep, or computing with COMPUTE in the environment. `step` orders a place's units in a phase. */
void unit(int place, int step, double ms);
double at(void);
/* The calling thread has waited to enter a place since then. */
void waited(int place, double since);
/* A phase was executed since then. */
void phase(int number, double since);
/* What follows in main is nothing but its end. */
void nearly_over(void);
/* Sleeps for no unit. */
void pause_ms(double ms);
#ifdef __cplusplus
}
#endif
#endif
