//! Phases of tasks. All time that is lost in one is lost by what the phase was written for.

use super::writer::Writer;

/// What is planted among tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    EvenTree,
    ShallowTree,
    UnevenTree,
    OneByOne,
    GroupByGroup,
    Groups,
    If,
    Final,
    Chain,
    Wavefront,
    Excluding,
    Detached,
    Producer,
    LongLast,
    LongFirst,
    Few,
    Taskloop,
    LargeGrains,
    Untied,
}

impl Writer {
    /// Ends the line of a task's creation: what is planted there.
    fn planted(&mut self, phase: usize, words: &[&'static str], lines: &[u32]) -> usize {
        self.phases[phase].whole = Some((words.to_vec(), lines.to_vec()));
        self.place(phase, words, lines)
    }

    fn open(&mut self, phase: usize) -> u32 {
        self.head(phase);
        self.region(phase, "#pragma omp parallel");
        let line = self.line("#pragma omp single");
        self.line("    {");
        line
    }

    fn close(&mut self, phase: usize, times: usize) {
        self.line("    }");
        self.end(phase, times);
    }

    /// A phase of this shape.
    pub(super) fn tasks(&mut self, shape: Shape) {
        let phase = self.begin(Some(self.threads));
        match shape {
            Shape::EvenTree | Shape::ShallowTree | Shape::UnevenTree => self.tree(phase, shape),
            Shape::OneByOne | Shape::GroupByGroup => self.one_by_one(phase, shape),
            Shape::Groups => self.groups(phase),
            Shape::If => self.undeferred(phase),
            Shape::Final => self.finals(phase),
            Shape::Chain | Shape::Wavefront => self.dependent(phase, shape),
            Shape::Excluding => self.excluding(phase),
            Shape::Detached => self.detached(phase),
            Shape::Producer => self.producer(phase),
            Shape::LongLast | Shape::LongFirst | Shape::Few | Shape::Untied => {
                self.list(phase, shape);
            }
            Shape::Taskloop | Shape::LargeGrains => self.taskloop(phase, shape),
        }
    }

    /// The textbook's recursion: two tasks at two places, then a wait.
    fn tree(&mut self, phase: usize, shape: Shape) {
        let depth = match shape {
            Shape::ShallowTree => 1,
            _ => 3 + usize::from(self.threads > 4),
        };
        let number = self.next();
        let place = self.next_place();
        let leaf = self.number(8, 20);
        let slow = match shape {
            Shape::UnevenTree => format!("n == 1 ? {} : {leaf}", leaf * 5),
            _ => leaf.to_string(),
        };
        self.line("");
        self.line(format!("static void tree_{number}(int depth, int n)"));
        self.line("{");
        self.line(format!(
            "    if (!depth) {{ unit({place}, 0, {slow}); return; }}"
        ));
        let first = self.line("#pragma omp task");
        self.line(format!("    tree_{number}(depth - 1, 2 * n);"));
        let second = self.line("#pragma omp task");
        self.line(format!("    tree_{number}(depth - 1, 2 * n + 1);"));
        self.line("#pragma omp taskwait");
        self.line("}");
        self.open(phase);
        self.line(format!("        tree_{number}({depth}, 1);"));
        let words: &[_] = match shape {
            Shape::EvenTree => &["few", "imbalance", "tasks", "taskwait"],
            _ => &["few", "imbalance"],
        };
        self.planted(phase, words, &[first, second]);
        self.never.push("create several tasks before waiting");
        if shape == Shape::UnevenTree {
            // One leaf in so many: node 1 is the root, its leaves are 8 and up.
            let text = format!("n == 1 ? {} : {leaf}", leaf * 5);
            self.replace(
                &text,
                &format!("n == {} ? {} : {leaf}", 1 << depth, leaf * 5),
            );
        }
        self.close(phase, 2);
    }

    fn one_by_one(&mut self, phase: usize, shape: Shape) {
        let count = self.number(4, 9);
        self.open(phase);
        let place = self.next_place();
        self.line(format!("        for (int i = 0; i < {count}; i++) {{"));
        let line = match shape {
            Shape::OneByOne => {
                let line = self.line("#pragma omp task");
                self.line(format!("            unit({place}, 0, 12);"));
                self.line("#pragma omp taskwait");
                line
            }
            _ => {
                self.line("#pragma omp taskgroup");
                self.line("            {");
                let line = self.line("#pragma omp task");
                self.line(format!("            unit({place}, 0, 12);"));
                self.line("            }");
                line
            }
        };
        self.line("        }");
        // gcc may give the wait the region's line.
        let region = self.phases[phase].line;
        self.planted(phase, &["taskwait"], &[line, line + 2, line - 2, region]);
        self.close(phase, 2);
    }

    /// Groups of tasks, too small for the threads.
    fn groups(&mut self, phase: usize) {
        let size = self.threads + 1;
        self.open(phase);
        let place = self.next_place();
        self.line("        for (int k = 0; k < 4; k++) {");
        let group = self.line("#pragma omp taskgroup");
        self.line(format!("            for (int i = 0; i < {size}; i++) {{"));
        let line = self.line("#pragma omp task");
        self.line(format!("                unit({place}, k, 12);"));
        self.line("            }");
        self.line("        }");
        self.planted(phase, &["few", "imbalance", "taskwait"], &[line, group]);
        self.never.push("create several tasks before waiting");
        self.close(phase, 1);
    }

    fn undeferred(&mut self, phase: usize) {
        let number = self.next();
        let place = self.next_place();
        let count = self.number(8, 20);
        self.line(format!("static volatile int size_{number} = 200;"));
        self.open(phase);
        self.line(format!("        for (int i = 0; i < {count}; i++) {{"));
        let line = self.line(format!("#pragma omp task if(size_{number} > 1000)"));
        self.line(format!("            unit({place}, 0, 10);"));
        self.line("        }");
        self.planted(phase, &["at-once"], &[line]);
        self.never.push("divide the tasks");
        self.close(phase, 2);
    }

    fn finals(&mut self, phase: usize) {
        let number = self.next();
        let place = self.next_place();
        self.line(format!("static void tree_{number}(int depth)"));
        self.line("{");
        self.line(format!(
            "    if (depth == 3) {{ unit({place}, 0, 15); return; }}"
        ));
        let first = self.line("#pragma omp task final(depth >= 0)");
        self.line(format!("    tree_{number}(depth + 1);"));
        let second = self.line("#pragma omp task final(depth >= 0)");
        self.line(format!("    tree_{number}(depth + 1);"));
        self.line("#pragma omp taskwait");
        self.line("}");
        self.open(phase);
        self.line(format!("        tree_{number}(0);"));
        self.planted(phase, &["at-once"], &[first, second]);
        self.never
            .extend(["create several tasks before waiting", "divide the tasks"]);
        self.close(phase, 2);
    }

    fn dependent(&mut self, phase: usize, shape: Shape) {
        let number = self.next();
        self.line(format!("static char grid_{number}[9][9];"));
        self.open(phase);
        let place = self.next_place();
        let line = match shape {
            Shape::Chain => {
                let count = self.number(6, 14);
                self.line(format!("        for (int i = 0; i < {count}; i++) {{"));
                let line = self.line(format!(
                    "#pragma omp task depend(inout : grid_{number}[0][0])"
                ));
                self.line(format!("            unit({place}, 0, 10);"));
                self.line("        }");
                line
            }
            _ => {
                let size = self.number(3, 5);
                self.line(format!("        for (int i = 1; i <= {size}; i++)"));
                self.line(format!("            for (int j = 1; j <= {size}; j++) {{"));
                let line = self.line(format!(
                    "#pragma omp task depend(in : grid_{number}[i - 1][j], grid_{number}[i][j - 1]) depend(out : grid_{number}[i][j])"
                ));
                self.line(format!("            unit({place}, 0, 12);"));
                self.line("        }");
                line
            }
        };
        if self.chance(50) {
            self.line("#pragma omp taskwait");
        }
        self.planted(phase, &["dependences"], &[line]);
        self.never.push("give the waiting thread work");
        self.close(phase, 2);
    }

    fn excluding(&mut self, phase: usize) {
        let number = self.next();
        self.line(format!("static char sum_{number};"));
        self.open(phase);
        let place = self.next_place();
        let count = self.number(6, 12);
        self.line(format!("        for (int i = 0; i < {count}; i++) {{"));
        let line = self.line(format!(
            "#pragma omp task depend(mutexinoutset : sum_{number})"
        ));
        self.line(format!("            unit({place}, 0, 12);"));
        self.line("        }");
        self.planted(
            phase,
            &["dependences", "excluding", "exclusive-tasks"],
            &[line],
        );
        self.never.push("divide the tasks");
        self.close(phase, 2);
    }

    /// A task ends when another one fulfils its event, long after its code.
    fn detached(&mut self, phase: usize) {
        let place = self.next_place();
        let late = place + 1;
        self.open(phase);
        self.line("        omp_event_handle_t event;");
        let line = self.line("#pragma omp task detach(event)");
        self.line(format!("        unit({place}, 0, 5);"));
        let fulfils = self.line("#pragma omp task firstprivate(event)");
        self.line(format!(
            "        {{ unit({late}, 0, 60); omp_fulfill_event(event); }}"
        ));
        let wait = self.line("#pragma omp taskwait");
        let words = ["few", "imbalance", "detached", "event", "taskwait"];
        self.planted(phase, &words, &[line, fulfils, wait]);
        self.place(phase, &words, &[fulfils]);
        self.close(phase, 2);
    }

    fn producer(&mut self, phase: usize) {
        let place = self.next_place();
        let making = place + 1;
        let count = self.number(8, 16);
        let single = self.open(phase);
        self.line(format!("        for (int i = 0; i < {count}; i++) {{"));
        self.line(format!("            unit({making}, 0, 10);"));
        let line = self.line("#pragma omp task");
        self.line(format!("            unit({place}, 0, 6);"));
        self.line("        }");
        let words = ["producer", "single", "few"];
        self.planted(phase, &words, &[line, single]);
        self.place(phase, &words, &[single]);
        self.close(phase, 1);
    }

    fn list(&mut self, phase: usize, shape: Shape) {
        let place = self.next_place();
        let (count, cost) = match shape {
            Shape::LongLast => (
                3 * self.threads,
                format!("i == {} ? 80 : 8", 3 * self.threads - 1),
            ),
            Shape::LongFirst => (3 * self.threads, "i == 0 ? 90 : 8".to_owned()),
            Shape::Few => (self.threads.div_ceil(2), "20".to_owned()),
            _ => (3 * self.threads + 1, "10".to_owned()),
        };
        let untied = if shape == Shape::Untied {
            " untied"
        } else {
            ""
        };
        self.open(phase);
        self.line(format!("        for (int i = 0; i < {count}; i++) {{"));
        let line = self.line(format!("#pragma omp task{untied}"));
        self.line(format!("            unit({place}, 0, {cost});"));
        self.line("        }");
        if self.chance(50) {
            self.line("#pragma omp taskwait");
        }
        let words: &[_] = match shape {
            // One that is waited for at once is one by one, too.
            Shape::Few if count == 1 => &["few", "taskwait"],
            Shape::Few => &["few"],
            Shape::Untied => &["few", "imbalance", "tasks"],
            _ => &["few", "imbalance"],
        };
        if shape == Shape::LongFirst {
            self.never.extend(["begin first", "begin with the largest"]);
        }
        let wait = line + 3;
        let lines: &[_] = if count == 1 { &[line, wait] } else { &[line] };
        self.planted(phase, words, lines);
        self.close(phase, 2);
    }

    fn taskloop(&mut self, phase: usize, shape: Shape) {
        let place = self.next_place();
        let count = 6 * self.threads;
        let clause = match shape {
            Shape::LargeGrains => format!(" grainsize({})", count / 2),
            _ => String::new(),
        };
        self.open(phase);
        let line = self.line(format!("#pragma omp taskloop{clause}"));
        self.line(format!(
            "        for (int i = 0; i < {count}; i++) unit({place}, 0, 8);"
        ));
        let words: &[_] = match shape {
            Shape::LargeGrains => &["few", "imbalance", "taskwait"],
            _ => &["few", "imbalance", "tasks", "taskwait"],
        };
        self.planted(phase, words, &[line]);
        self.close(phase, 2);
    }
}
