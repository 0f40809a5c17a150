//! Phases with critical sections and locks, and with what compilers make of clauses.

use super::writer::Writer;

/// How a mutex is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutex {
    Critical,
    Lock,
}

impl Writer {
    /// Between two of its lines a thread holds a mutex. Tells the line that enters it.
    fn held(&mut self, mutex: Mutex, number: usize, place: usize, ms: f64, indent: &str) -> u32 {
        self.line(format!("{indent}double t = at();"));
        match mutex {
            Mutex::Critical => {
                let line = self.line(format!("#pragma omp critical(mutex_{number})"));
                self.line(format!(
                    "{indent}{{ waited({place}, t); unit({place}, 0, {ms}); }}"
                ));
                line
            }
            Mutex::Lock => {
                let line = self.line(format!("{indent}omp_set_lock(&lock_{number});"));
                self.line(format!("{indent}waited({place}, t);"));
                self.line(format!("{indent}unit({place}, 0, {ms});"));
                self.line(format!("{indent}omp_unset_lock(&lock_{number});"));
                line
            }
        }
    }

    fn mutex_word(mutex: Mutex) -> &'static [&'static str] {
        match mutex {
            Mutex::Critical => &["critical"],
            Mutex::Lock => &["lock"],
        }
    }

    fn declare(&mut self, mutex: Mutex, number: usize) {
        if mutex == Mutex::Lock {
            self.line(format!("static omp_lock_t lock_{number};"));
            self.line(format!(
                "__attribute__((constructor(105))) static void init_{number}(void) {{ omp_init_lock(&lock_{number}); }}"
            ));
        }
    }

    /// All threads enter it at one place.
    pub(super) fn contended(&mut self, mutex: Mutex) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let number = self.mutex();
        self.declare(mutex, number);
        self.head(phase);
        self.region(phase, "#pragma omp parallel");
        let rounds = self.number(3, 8);
        let hold = self.number(2, 7) as f64;
        self.line(format!("    for (int k = 0; k < {rounds}; k++) {{"));
        let outside = self.place(phase, &["imbalance"], &[self.phases[phase].line]);
        self.line(format!("        unit({outside}, 0, 3);"));
        let place = self.place(phase, Self::mutex_word(mutex), &[]);
        self.places[place].mutex = Some(number);
        let line = self.held(mutex, number, place, hold, "        ");
        self.places[place].lines = vec![line];
        self.line("    }");
        self.end(phase, 2);
    }

    /// One place holds it long, another one shortly.
    pub(super) fn holder(&mut self, mutex: Mutex) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let number = self.mutex();
        self.declare(mutex, number);
        let long = self.number(6, 14) as f64;
        let mut functions = vec![];
        for (name, ms) in [("writer", long), ("reader", 0.4)] {
            self.line("");
            self.line(format!(
                "__attribute__((noinline)) static void {name}_{number}(void)"
            ));
            self.line("{");
            let place = self.place(phase, Self::mutex_word(mutex), &[]);
            self.places[place].mutex = Some(number);
            let line = self.held(mutex, number, place, ms, "    ");
            self.places[place].lines = vec![line];
            self.line("}");
            functions.push(format!("{name}_{number}"));
        }
        self.head(phase);
        let region = self.region(phase, "#pragma omp parallel");
        let outside = self.place(phase, &["imbalance"], &[region]);
        self.line("    for (int k = 0; k < 20; k++) {");
        self.line(format!(
            "        if (omp_get_thread_num() == 0) {{ {}(); unit({outside}, 0, 1); }}",
            functions[0]
        ));
        self.line(format!(
            "        else {{ {}(); unit({outside}, 0, {}); }}",
            functions[1],
            long / 2.0
        ));
        self.line("    }");
        self.end(phase, 1);
    }

    /// One line with a critical section that the compiler copies into several places.
    pub(super) fn copies(&mut self, mutex: Mutex) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let number = self.mutex();
        self.declare(mutex, number);
        let place = self.place(phase, Self::mutex_word(mutex), &[]);
        self.places[place].mutex = Some(number);
        let hold = self.number(3, 6) as f64;
        self.line("");
        self.line(format!(
            "__attribute__((always_inline)) static inline void deposit_{number}(void)"
        ));
        self.line("{");
        let line = self.held(mutex, number, place, hold, "    ");
        self.places[place].lines = vec![line];
        self.line("}");
        self.head(phase);
        let region = self.region(phase, "#pragma omp parallel");
        let outside = self.place(phase, &["imbalance"], &[region]);
        self.line("    {");
        for ms in [2, 3, 1] {
            self.line(format!("        unit({outside}, 0, {ms});"));
            self.line(format!("        deposit_{number}();"));
        }
        self.line("    }");
        self.end(phase, 5);
    }

    /// Only one thread enters it, and the others wait for that thread.
    pub(super) fn uncontended(&mut self) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let number = self.mutex();
        self.head(phase);
        let region = self.region(phase, "#pragma omp parallel");
        let ms = self.number(10, 40) as f64;
        let outside = self.place(phase, &["imbalance"], &[region]);
        self.line("    for (int k = 0; k < 5; k++) {");
        self.line(format!("        unit({outside}, k, 10);"));
        // It is a master, written by hand.
        let place = self.place(phase, &["imbalance", "single"], &[]);
        self.line("        if (omp_get_thread_num() == 0) {");
        let line = self.line(format!("#pragma omp critical(mutex_{number})"));
        self.line(format!("            unit({place}, k, {ms});"));
        self.line("        }");
        let barrier = self.line("#pragma omp barrier");
        self.places[place].lines = vec![line, region, barrier];
        self.never.push("hold it for less time");
        self.line("    }");
        self.end(phase, 1);
    }

    /// A reduction whose join takes long.
    pub(super) fn slow_join(&mut self) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let number = self.next();
        let place = self.next_place();
        let join = place + 1;
        let ms = self.number(5, 12);
        self.line("");
        self.line(
            "static double join_".to_owned()
                + &format!(
                    "{number}(double a, double b) {{ unit({join}, 0, {ms}); return a + b; }}"
                ),
        );
        self.line(format!(
            "#pragma omp declare reduction(slow_{number} : double : omp_out = join_{number}(omp_out, omp_in)) initializer(omp_priv = 0)"
        ));
        self.head(phase);
        self.line("    double sum = 0;");
        let line = self.region(
            phase,
            format!("#pragma omp parallel for schedule(static) reduction(slow_{number} : sum)"),
        );
        self.line(format!(
            "    for (int i = 0; i < {}; i++) {{ unit({place}, 0, 8); sum += i; }}",
            2 * self.threads
        ));
        self.line("    if (sum < 0) exit(1);");
        self.place(phase, &["imbalance"], &[line]);
        // libomp joins the parts of more than four threads by itself, in a tree.
        let join = self.place(phase, &["reduction"], &[line]);
        self.places[join].is_hidden = self.threads > 4;
        self.phases[phase].whole = Some((vec!["reduction"], vec![line]));
        self.never
            .extend(["or use a reduction", "use a reduction,"]);
        self.end(phase, 3);
    }

    /// Copies of a threadprivate object take long.
    pub(super) fn slow_copies(&mut self, last: bool) {
        self.scales = false;
        self.is_cxx = true;
        let phase = self.begin(Some(self.threads));
        let number = self.next();
        let place = self.next_place();
        let copy = place + 1;
        let ms = self.number(15, 30);
        self.line(format!(
            "struct Mesh{number} {{ double v = 1; Mesh{number} &operator=(const Mesh{number} &o) {{ v = o.v; unit({copy}, 0, {ms}); return *this; }} }};"
        ));
        self.line(format!("extern Mesh{number} mesh_{number};"));
        if !last {
            self.line(format!("#pragma omp threadprivate(mesh_{number})"));
        }
        self.line(format!("Mesh{number} mesh_{number};"));
        self.head(phase);
        let (line, lines) = match last {
            true => {
                // clang 19 crashes.
                self.only_gcc = true;
                let region = self.region(phase, "#pragma omp parallel");
                self.line("    {");
                let line = self.line(format!(
                    "#pragma omp for schedule(static) lastprivate(mesh_{number})"
                ));
                self.line(format!(
                    "        for (int i = 0; i < {}; i++) {{ unit({place}, 0, 10); mesh_{number}.v = i; }}",
                    self.threads
                ));
                self.line("    }");
                (line, vec![line, region])
            }
            false => {
                let line =
                    self.region(phase, format!("#pragma omp parallel copyin(mesh_{number})"));
                self.line(format!("    unit({place}, 0, 10);"));
                (line, vec![line])
            }
        };
        self.place(phase, &["imbalance"], &[line]);
        // The copies are code of the region.
        let words = ["copies", "imbalance"];
        self.place(phase, &words, &lines);
        self.phases[phase].whole = Some((words.to_vec(), lines));
        self.never.push("divide it by a work-sharing construct");
        self.end(phase, 3);
    }
}
