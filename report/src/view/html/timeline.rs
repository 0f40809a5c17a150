//! The timeline: what each thread did when.
