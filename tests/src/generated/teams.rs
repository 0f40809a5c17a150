//! Phases of serial code, smaller teams, teams inside teams, and threads that wait for what OpenMP doesn't know.

use super::writer::{BESIDE, Writer};

impl Writer {
    /// Serial code between regions.
    pub(super) fn serial(&mut self) {
        let phase = self.begin(None);
        let place = self.place(phase, &["serial"], &[]);
        let ms = self.number(10, 60);
        self.head(phase);
        self.line(format!("    unit({place}, 0, {ms});"));
        let times = self.number(1, 4);
        self.end(phase, times);
    }

    /// Serial code before `main`, or behind it.
    pub(super) fn around_main(&mut self, before: bool) {
        let phase = self.begin(None);
        let place = self.place(phase, &["serial"], &[]);
        let ms = self.number(60, 160);
        self.line("");
        self.line(match before {
            true => format!("__attribute__((constructor(110))) static void around_{phase}(void)"),
            false => format!("static void around_{phase}(void)"),
        });
        self.line("{");
        self.line(format!("    unit({place}, 0, {ms});"));
        self.line("}");
        if !before {
            self.calls.insert(0, format!("atexit(around_{phase});"));
        }
    }

    /// Even work by fewer threads than the program has. `clause`: how the source says so.
    pub(super) fn smaller(&mut self, by_if: bool) {
        let team = match by_if {
            true => 1,
            false => self.threads.div_ceil(2),
        };
        let phase = self.begin(Some(team));
        self.head(phase);
        let number = self.next();
        let clause = match by_if {
            true => format!("if(few_{number} > 5)"),
            false => format!("num_threads({team})"),
        };
        if by_if {
            self.line(format!("    static volatile int few_{number} = 2;"));
        }
        let line = self.region(phase, format!("#pragma omp parallel {clause}"));
        let place = self.place(phase, &["smaller-team"], &[line]);
        self.line(format!("    unit({place}, 0, 20);"));
        self.end(phase, 3);
    }

    /// Two branches with a team each; one of them has more to do if `uneven`.
    pub(super) fn nested(&mut self, uneven: bool) {
        self.scales = false;
        let inner = (self.threads / 2).max(1);
        let phase = self.begin(Some(2 * inner));
        let times = if uneven { self.number(2, 5) } else { 1 };
        self.head(phase);
        let line = self.region(phase, "#pragma omp parallel num_threads(2)");
        self.line("    {");
        self.line("        int me = omp_get_thread_num();");
        let line_inner = self.line(format!("#pragma omp parallel num_threads({inner})"));
        let words: &[_] = match uneven {
            true => &["nested", "imbalance"],
            false => &["nested", "imbalance", "fork", "late", "smaller-team"],
        };
        let place = self.place(phase, words, &[line, line_inner]);
        self.line(format!(
            "        unit({place}, 0, me ? {} : 12);",
            12 * times
        ));
        self.line("    }");
        self.phases[phase].whole = Some((words.to_vec(), vec![line, line_inner]));
        self.calls
            .insert(0, "omp_set_max_active_levels(2);".to_owned());
        self.never.push("let its team have more threads");
        self.end(phase, 4);
    }

    /// All threads but one look again and again whether the first one has come so far.
    pub(super) fn hidden(&mut self) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let number = self.next();
        self.line(format!("static volatile int ready_{number};"));
        self.head(phase);
        self.line(format!("    ready_{number} = 0;"));
        let line = self.region(phase, "#pragma omp parallel for schedule(static)");
        let place = self.place(phase, &["imbalance"], &[line]);
        self.line(format!("    for (int i = 0; i < {}; i++) {{", self.threads));
        self.line(format!(
            "        if (!i) {{ unit({place}, 0, 50); ready_{number} = 1; }}"
        ));
        self.line(format!(
            "        else while (!ready_{number}) unit({place}, 0, 1);"
        ));
        self.line("    }");
        self.end(phase, 2);
    }

    /// A thread of its own works beside `main` for a while.
    pub(super) fn beside(&mut self) {
        let phase = self.begin(None);
        let place = self.place(phase, &["serial"], &[]);
        let beside = self.place(phase, &[BESIDE], &[]);
        self.line("");
        self.line(format!(
            "__attribute__((noinline)) static void *work_{phase}(void *p) {{ unit({beside}, 0, 60); return p; }}"
        ));
        self.head(phase);
        self.line("    pthread_t thread;");
        self.line(format!("    pthread_create(&thread, 0, work_{phase}, 0);"));
        self.line(format!("    unit({place}, 0, 60);"));
        self.line("    pthread_join(thread, 0);");
        self.line(format!("    unit({place}, 0, 30);"));
        self.end(phase, 1);
    }

    /// More threads than processors, whose source says so, compute.
    pub(super) fn crowded(&mut self) {
        self.scales = false;
        let team = 4;
        let phase = self.begin(Some(team));
        self.head(phase);
        let line = self.region(phase, format!("#pragma omp parallel num_threads({team})"));
        let place = self.place(phase, &["imbalance"], &[line]);
        self.line(format!(
            "    for (int k = 0; k < 4; k++) unit({place}, 0, 15);"
        ));
        self.phases[phase].whole = Some((vec!["oversubscribed", "no-processor"], vec![]));
        self.never.push("OMP_NUM_THREADS");
        self.end(phase, 3);
    }
}
