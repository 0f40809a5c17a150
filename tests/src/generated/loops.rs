//! Phases of loops, sections, and code by thread.

use super::writer::Writer;

/// How iterations differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Even,
    LastBlock,
    FirstBlock,
    Ramp,
    Falling,
    OneFirst,
    OneLast,
}

/// Those that aren't even.
pub(super) const UNEVEN: [Shape; 6] = [
    Shape::LastBlock,
    Shape::FirstBlock,
    Shape::Ramp,
    Shape::Falling,
    Shape::OneFirst,
    Shape::OneLast,
];

impl Writer {
    /// Milliseconds of each iteration: some 20 a thread together.
    fn shaped(&mut self, shape: Shape, count: usize) -> Vec<f64> {
        let each = 20.0 * self.threads as f64 / count as f64;
        let times = self.number(3, 7) as f64;
        let block = count.div_ceil(4).min(count - 1).max(1);
        let of = |i: usize| match shape {
            Shape::Even => each,
            Shape::LastBlock if i >= count - block => each * times,
            Shape::FirstBlock if i < block => each * times,
            Shape::Ramp => each * 2.0 * (i + 1) as f64 / count as f64,
            Shape::Falling => each * 2.0 * (count - i) as f64 / count as f64,
            Shape::OneFirst if i == 0 => each * times * 2.0,
            Shape::OneLast if i + 1 == count => each * times * 2.0,
            _ => each,
        };
        (0..count).map(of).collect()
    }

    fn schedule(&mut self) -> &'static str {
        self.pick(&[
            "",
            "schedule(static)",
            "schedule(static, 1)",
            "schedule(static, 4)",
            "schedule(dynamic)",
            "schedule(dynamic, 3)",
            "schedule(guided)",
            "schedule(auto)",
        ])
    }

    /// A loop of some schedule.
    pub(super) fn a_loop(&mut self, shape: Shape, schedule: Option<&str>) {
        let count = self.number(2, 9) * self.threads;
        let costs = self.shaped(shape, count);
        let schedule = match schedule {
            Some(given) => given.to_owned(),
            None => self.schedule().to_owned(),
        };
        let style = self.number(0, 4);
        let collapsed = style == 3 && count.is_multiple_of(4);
        let phase = self.begin(Some(self.threads));
        let cost = self.costs(&costs);
        self.head(phase);
        let place = self.next_place();
        let unit = match collapsed {
            true => format!("unit({place}, 0, cost_{cost}[4 * i + j]);"),
            false => format!("unit({place}, 0, cost_{cost}[i]);"),
        };
        let collapse = if collapsed { " collapse(2)" } else { "" };
        let heads = match collapsed {
            true => vec![
                format!("for (int i = 0; i < {}; i++)", count / 4),
                "for (int j = 0; j < 4; j++)".to_owned(),
            ],
            false => vec![format!("for (int i = 0; i < {count}; i++)")],
        };
        let line = match style {
            0 | 3 => self.region(
                phase,
                format!("#pragma omp parallel for {schedule}{collapse}"),
            ),
            _ => {
                self.region(phase, "#pragma omp parallel");
                self.line("    {");
                self.line(format!("#pragma omp for {schedule}{collapse}"))
            }
        };
        for head in heads {
            self.line(format!("        {head}"));
        }
        self.line(format!("            {unit}"));
        if !matches!(style, 0 | 3) {
            self.line("    }");
        }
        let region = self.phases[phase].line;
        self.place(phase, &["imbalance", "few"], &[line, region]);
        let times = self.number(3, 8);
        self.end(phase, times);
    }

    /// A loop without barrier, and another one behind it: each in some shape.
    pub(super) fn two_loops(&mut self, shapes: [Shape; 2]) {
        let count = self.number(1, 5) * self.threads;
        let phase = self.begin(Some(self.threads));
        let costs = shapes.map(|shape| {
            let costs = self.shaped(shape, count);
            self.costs(&costs)
        });
        self.head(phase);
        self.region(phase, "#pragma omp parallel");
        self.line("    {");
        for cost in costs {
            let line = self.line("#pragma omp for schedule(static) nowait");
            // gcc names the region of what comes first in it, and a report the first one, "or the one behind it".
            let region = self.phases[phase].line;
            let lines = (region..=line)
                .filter(|l| *l != region + 1)
                .collect::<Vec<_>>();
            let place = self.place(phase, &["imbalance"], &lines);
            self.line(format!("        for (int i = 0; i < {count}; i++)"));
            self.line(format!("            unit({place}, 0, cost_{cost}[i]);"));
        }
        self.line("    }");
        let times = self.number(2, 6);
        self.end(phase, times);
    }

    /// Sections, one of which may take longer: `once`: much longer, in one of its executions.
    pub(super) fn sections(&mut self, count: usize, uneven: bool, once: bool) {
        let phase = self.begin(Some(self.threads));
        let counter = self.next();
        self.line(format!("static int calls_{counter};"));
        self.head(phase);
        self.line(format!("    int call = calls_{counter}++;"));
        self.line("    (void)call;");
        let separate = self.chance(50);
        let line = match separate {
            true => {
                self.region(phase, "#pragma omp parallel");
                self.line("    {");
                self.line("#pragma omp sections")
            }
            false => self.region(phase, "#pragma omp parallel sections"),
        };
        let words: &[&'static str] = match (count < self.threads, uneven) {
            (true, true) => &["sections", "imbalance"],
            (true, false) => &["sections"],
            (false, _) => &["imbalance"],
        };
        let region = self.phases[phase].line;
        let place = self.place(phase, words, &[line, region]);
        let slow = self.number(0, count);
        let ms = self.pick(&[6.0, 10.0]);
        let times = self.number(3, 7) as f64;
        self.line("        {");
        for section in 0..count {
            self.line("#pragma omp section");
            let cost = match section == slow && uneven {
                true => ms * times,
                false => ms,
            };
            let cost = match section == slow && once {
                true => format!("call == 2 ? {} : {cost}", cost * 6.0),
                false => format!("{cost}"),
            };
            self.line(format!("            unit({place}, 0, {cost});"));
        }
        self.line("        }");
        if separate {
            self.line("    }");
        }
        self.end(phase, if once { 8 } else { 4 });
    }

    /// Code that every thread executes, longer on one of them.
    pub(super) fn by_thread(&mut self) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let slow = self.number(0, self.threads);
        self.head(phase);
        let line = self.region(phase, "#pragma omp parallel");
        let place = self.place(phase, &["imbalance"], &[line]);
        let times = self.number(3, 6);
        self.line(format!(
            "    unit({place}, 0, omp_get_thread_num() == {slow} ? {} : 10);",
            10 * times
        ));
        self.end(phase, 3);
    }

    /// A block that one thread executes, between or before even work.
    pub(super) fn block(&mut self, construct: &str) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let ms = self.number(10, 40);
        let steps = self.number(1, 4);
        self.head(phase);
        let region = self.region(phase, "#pragma omp parallel");
        self.line(format!("    for (int k = 0; k < {steps}; k++) {{"));
        let even = self.place(phase, &["imbalance"], &[region]);
        self.line(format!("        unit({even}, 2 * k, 8);"));
        self.line("#pragma omp barrier");
        let line = self.line(format!("#pragma omp {construct}"));
        let place = self.place(phase, &["single"], &[line]);
        self.line(format!("        unit({place}, 2 * k + 1, {ms});"));
        if construct != "single" {
            self.line("#pragma omp barrier");
        }
        self.line("    }");
        self.end(phase, 2);
    }

    /// A loop in a function that a team calls, each step another thread is slow.
    pub(super) fn orphaned(&mut self, clause: &str) {
        self.scales = false;
        let phase = self.begin(Some(self.threads));
        let place = self.next_place();
        let steps = self.number(4, 12);
        let slow = self.number(3, 7) * 4;
        self.line("");
        let number = self.next();
        self.line(format!("static void sweep_{number}(int step, int n)"));
        self.line("{");
        let line = self.line(format!("#pragma omp for schedule(static) {clause}"));
        self.line("    for (int i = 0; i < n; i++)");
        self.line(format!(
            "        unit({place}, step, i == step % n ? {slow} : 4);"
        ));
        let mut lines = vec![line];
        if clause == "nowait" {
            lines.push(self.line("#pragma omp barrier"));
        }
        self.line("}");
        let place = self.place(phase, &["imbalance"], &lines);
        self.head(phase);
        // gcc makes arithmetic of the loop, which is code of the region then.
        let region = self.region(phase, "#pragma omp parallel");
        self.places[place].lines.push(region);
        self.line(format!("    for (int k = 0; k < {steps}; k++)"));
        self.line(format!("        sweep_{number}(k, omp_get_num_threads());"));
        self.end(phase, 2);
    }

    /// Iterations that wait for their turn: because of the ordered part, or of what is before it.
    pub(super) fn ordered(&mut self, long_part: bool) {
        let phase = self.begin(Some(self.threads));
        let count = 6 * self.threads;
        self.head(phase);
        let region = self.region(phase, "#pragma omp parallel");
        self.line("    {");
        let line = self.line("#pragma omp for ordered schedule(static, 1)");
        let before = self.next_place();
        let inside = before + 1;
        self.line(format!("        for (int i = 0; i < {count}; i++) {{"));
        let slow = self.number(4, 8) * 8;
        match long_part {
            true => self.line(format!("            unit({before}, 0, 4);")),
            false => self.line(format!(
                "            unit({before}, 0, i % {} ? 5 : {slow});",
                2 * self.threads - 1
            )),
        };
        self.line("            double t = at();");
        let ordered = self.line("#pragma omp ordered");
        self.line(format!(
            "            {{ waited({inside}, t); unit({inside}, 0, {}); }}",
            if long_part { 5.0 } else { 0.2 }
        ));
        self.line("        }");
        self.line("    }");
        let (words, lines): (&[_], _) = match long_part {
            true => (&["ordered"], vec![ordered, line]),
            false => (
                &["imbalance", "ordered", "turns"],
                vec![line, ordered, region],
            ),
        };
        self.place(phase, &["imbalance", "ordered"], &[line, ordered, region]);
        self.place(phase, words, &lines);
        let mutex = self.mutex();
        self.places[inside].mutex = Some(mutex);
        if !long_part {
            self.never.push("out of the ordered part");
        }
        self.end(phase, 1);
    }
}
